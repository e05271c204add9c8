package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// sample is the package that the tests below wrap in many ways: an executable,
// a file too large for one chunk, a deep one, an empty one and one whose name
// is not ASCII.
var sample = []struct {
	path, contents string
	executable     bool
}{
	{"bin/tool", "#!/bin/sh\nexit 0\n", true},
	{"data/large", strings.Repeat("0123456789abcde\n", 5*chunkSize/16) + "tail", false},
	{"data/a/b/c/d", "deep", false},
	{"data-b", "sorts between data and data/", false},
	{"empty", "", false},
	{"größe.txt", "umlaut", false},
	{"plugin.json", manifest, false},
}

// sampleFiles returns what any archive of the sample must unpack to.
func sampleFiles() []digest.File {
	var files []digest.File
	for _, f := range sample {
		m := digest.ModeFile
		if f.executable {
			m = digest.ModeExecutable
		}
		files = append(files, digest.File{Path: f.path, Mode: m, Size: int64(len(f.contents)), SHA256: digest.Of([]byte(f.contents)).Hex()})
	}
	sortFiles(files)
	return files
}

// sampleTar wraps the sample in a tar, below prefix.
func sampleTar(prefix string) *tarball {
	t := newTar()
	for _, f := range sample {
		m := 0o640 // neither group's nor others' bits count
		if f.executable {
			m = 0o744
		}
		if name := prefix + f.path; isASCII(name) && len(name) <= 100 {
			t.file(name, f.contents, mode(m))
		} else {
			t.pax("path", name, "mtime", "1.5").file("short", f.contents, mode(m))
		}
	}
	return t
}

func sampleZip(prefix string, madeBy uint16) []byte {
	var entries []zipped
	for i, f := range sample {
		m := uint32(0o100644)
		if f.executable {
			m = 0o100755
		}
		e := zipped{name: prefix + f.path, contents: f.contents, flags: zipFlagUTF8, madeBy: madeBy, attributes: m << 16}
		if i%2 == 0 {
			e.method = zipDeflate
		}
		entries = append(entries, e)
	}
	return zipOf(entries...)
}

func writeSample(t testing.TB, dir string) {
	t.Helper()
	for _, f := range sample {
		p := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		m := fs.FileMode(0o644)
		if f.executable {
			m = 0o755
		}
		if err := os.WriteFile(p, []byte(f.contents), m); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, m); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSameDigest holds that the container makes no difference to the package.
func TestSameDigest(t *testing.T) {
	flat := sampleTar("").done()
	withDirs := newTar().dir("./").dir("./bin/").dir("./data/")
	withDirs.Write(sampleTar("./").Bytes())
	wrapped := newTar().dir("pkg-1.0/").dir("pkg-1.0/bin")
	wrapped.Write(sampleTar("pkg-1.0/").Bytes())
	git := newTar().add('g', "pax_global_header", paxRecord("comment", strings.Repeat("0", 40)))
	git.Write(sampleTar("pkg/").Bytes())
	long := newTar()
	for _, f := range sample {
		m := 0o644
		if f.executable {
			m = 0o755
		}
		name := strings.Repeat("w", 200) + "/" + f.path
		long.add('L', "././@LongLink", name+"\x00", gnu()).file(name[:100], f.contents, gnu(), mode(m))
	}
	prefixed := newTar()
	for _, f := range sample {
		m := 0o644
		if f.executable {
			m = 0o755
		}
		prefixed.file(f.path, f.contents, put(345, "top/dir"[:3]), mode(m))
	}
	binary := newTar()
	for _, f := range sample {
		m := 0o644
		if f.executable {
			m = 0o755
		}
		n := len(f.contents)
		binary.file(f.path, f.contents, mode(m), put(124, "\x80"+strings.Repeat("\x00", 7)+string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})))
	}
	sameName := sampleTar("data/").done() // holds data/data, which takes the wrapper's place
	sameNameFolded := sampleTar("DATA/").done()

	for _, c := range []struct {
		name, stripped string
		data           []byte
	}{
		{"tar", "", flat},
		{"tar, padded", "", append(bytes.Clone(flat), make([]byte, 10240)...)},
		{"tar with ./", "", sampleTar("./").done()},
		{"tar with ./ and directories", "", withDirs.done()},
		{"tar wrapped", "pkg", sampleTar("pkg/").done()},
		{"tar wrapped, with ./", "pkg", sampleTar("./pkg/").done()},
		{"tar wrapped, with directories", "pkg-1.0", wrapped.done()},
		{"tar wrapped in its child's name", "data", sameName},
		{"tar wrapped in its child's name in other case", "DATA", sameNameFolded},
		{"tar from git archive", "pkg", git.done()},
		{"tar with long names", strings.Repeat("w", 200), long.done()},
		{"tar with prefixes", "top", prefixed.done()},
		{"tar with binary sizes", "", binary.done()},
		{"tar.gz", "", gzipped(flat)},
		{"tar.zst", "", zstded(flat)},
		{"tar.zst, best", "", zstded(flat, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderCRC(false))},
		{"zip", "", sampleZip("", zipHostUnix<<8|20)},
		{"zip from macOS", "", sampleZip("", zipHostMacOS<<8|20)},
		{"zip with ./", "", sampleZip("./", 0)},
		{"zip wrapped", "pkg", sampleZip("pkg/", 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSandbox(t)
			var last, total int64
			tree, err := s.extract(c.data, Options{Progress: func(done, all int64) {
				if done < last || done > all {
					t.Errorf("progress went from %d to %d of %d", last, done, all)
				}
				last, total = done, all
			}})
			if err != nil {
				t.Fatal(err)
			}
			if total != int64(len(c.data)) || last != total {
				t.Errorf("progress ended at %d of %d", last, total)
			}
			if tree.Stripped != c.stripped || tree.NoModes {
				t.Errorf("stripped %q, no modes %v", tree.Stripped, tree.NoModes)
			}
			if !slices.Equal(tree.Files, sampleFiles()) {
				t.Errorf("files\n%v\nwant\n%v", tree.Files, sampleFiles())
			}
			onDisk, err := s.hash()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(onDisk.Files, tree.Files) || onDisk.Unpacked != tree.Unpacked {
				t.Errorf("on disk\n%v\nwant\n%v", onDisk.Files, tree.Files)
			}
			s.checkModes(tree)
		})
	}
}

// checkModes looks at what is on disk: no more than the files and what they
// need, read-only files.
func (s sandbox) checkModes(tree *Tree) {
	s.t.Helper()
	dirs := tree.Dirs()
	err := filepath.WalkDir(s.dst(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.dst(), path)
		rel = filepath.ToSlash(rel)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case rel == ".":
		case d.IsDir():
			if !slices.Contains(dirs, rel) {
				s.t.Errorf("the directory %s is needed by no file", rel)
			}
		default:
			f, ok := tree.File(rel)
			want := fs.FileMode(0o444)
			if f.Mode == digest.ModeExecutable {
				want = 0o555
			}
			if !ok || unixModes && info.Mode() != want {
				s.t.Errorf("%s has mode %v, want %v", rel, info.Mode(), want)
			}
		}
		return nil
	})
	s.must(err)
}

// TestOneTopDirectory tells wrapped packages from others.
func TestOneTopDirectory(t *testing.T) {
	for _, c := range []struct {
		name     string
		paths    []string
		stripped string
		want     []string
	}{
		{"wrapped", []string{"p/plugin.json", "p/a"}, "p", []string{"a", "plugin.json"}},
		{"manifest last", []string{"p/a/b", "p/plugin.json"}, "p", []string{"a/b", "plugin.json"}},
		{"a file outside", []string{"p/plugin.json", "a"}, "", []string{"a", "p/plugin.json"}},
		{"a file outside, first", []string{"a", "p/plugin.json"}, "", []string{"a", "p/plugin.json"}},
		{"a second directory", []string{"p/plugin.json", "q/a"}, "", []string{"p/plugin.json", "q/a"}},
		{"manifest at the root", []string{"plugin.json", "p/a"}, "", []string{"p/a", "plugin.json"}},
		{"manifest at both", []string{"p/plugin.json", "plugin.json"}, "", []string{"p/plugin.json", "plugin.json"}},
		{"manifest deeper", []string{"p/q/plugin.json", "p/q/a"}, "", []string{"p/q/a", "p/q/plugin.json"}},
		{"no manifest", []string{"p/a", "p/b"}, "", []string{"p/a", "p/b"}},
		{"named like the manifest", []string{"plugin.json/plugin.json"}, "plugin.json", []string{"plugin.json"}},
		{"an empty directory outside", []string{"q/", "p/plugin.json"}, "p", []string{"plugin.json"}},
		{"in its own name", []string{"p/plugin.json", "p/p/p", "p/aside"}, "p", []string{"aside", "p/p", "plugin.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTar()
			var entries []zipped
			for _, p := range c.paths {
				if strings.HasSuffix(p, "/") {
					tb.dir(p)
				} else {
					tb.file(p, p)
				}
				entries = append(entries, zipped{name: p, contents: strings.TrimSuffix(p, p[:strings.LastIndexByte(p, '/')+1])})
			}
			for _, data := range [][]byte{tb.done(), zipOf(entries...)} {
				s := newSandbox(t)
				tree, err := s.extract(data, Options{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, f := range tree.Files {
					got = append(got, f.Path)
				}
				if tree.Stripped != c.stripped || !slices.Equal(got, c.want) {
					t.Errorf("stripped %q, files %q; want %q, %q", tree.Stripped, got, c.stripped, c.want)
				}
				onDisk, err := s.hash()
				if err != nil || !slices.Equal(onDisk.Files, tree.Files) {
					t.Errorf("on disk %v, %v; want %v", onDisk, err, tree.Files)
				}
				s.checkModes(tree)
			}
		})
	}
}

// TestBoundsOfTheFinalPath holds that a wrapping directory costs a package
// nothing of its bounds, and that nothing else gets them for nothing.
func TestBoundsOfTheFinalPath(t *testing.T) {
	long := strings.Repeat("p", small.PathBytes)
	deep := "a/b/c/d"
	longDirs := newTar().file("w/plugin.json", "").dir("x/" + long)
	seven := newTar().file("w/plugin.json", "")
	for i := range 7 {
		seven.file(fmt.Sprintf("w/%d", i), "")
	}
	full := seven.done()
	for _, c := range []struct {
		name  string
		data  []byte
		rule  Rule // "" if accepted
		entry string
	}{
		{"at the bounds", newTar().file("plugin.json", "").file(long, "").file(deep, "").done(), "", ""},
		{"at the bounds, wrapped", newTar().file("w/plugin.json", "").file("w/"+long, "").file("w/"+deep, "").done(), "", ""},
		{"at the bounds, wrapped, manifest last", newTar().file("w/"+long, "").file("w/"+deep, "").file("w/plugin.json", "").done(), "", ""},
		{"not wrapped after all", newTar().file("w/"+long, "").file("w/plugin.json", "").file("a", "").done(), RulePathLength, "w/" + long},
		{"wrapped without a manifest", newTar().file("w/"+deep, "").done(), RuleDepth, "w/" + deep},
		{"a long directory elsewhere", longDirs.done(), RulePathLength, "x/" + long},
		{"over the bounds, wrapped", newTar().file("w/plugin.json", "").file("w/x"+long, "").done(), RulePathLength, "w/x" + long},
		{"over the depth, wrapped", newTar().file("w/plugin.json", "").file("w/x/"+deep, "").done(), RuleDepth, "w/x/" + deep},
		{"as many as may be", many(small.Entries), "", ""},
		{"as many as may be, wrapped", full, "", ""},
		{"one more, wrapped", newTarFrom(full).file("w/8", "").done(), RuleEntries, "w/8"},
		{"one more than may be, not wrapped after all", newTar().file("w/1", "").file("w/2", "").file("w/3", "").file("w/4", "").file("w/5", "").file("w/6", "").file("w/7", "").file("8", "").done(), RuleEntries, "8"},
		{"one more, wrapped without a manifest", newTar().file("w/1", "").file("w/2", "").file("w/3", "").file("w/4", "").file("w/5", "").file("w/6", "").file("w/7", "").file("w/8", "").done(), RuleEntries, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newSandbox(t).extract(c.data, Options{Limits: small})
			if c.rule != "" {
				wantRefusal(t, err, c.rule, c.entry)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// newTarFrom continues a finished tar.
func newTarFrom(done []byte) *tarball {
	t := newTar()
	t.Write(done[:len(done)-2*tarBlock])
	return t
}

// TestBounds runs each size exactly at its bound; one beyond is among the
// refusals.
func TestBounds(t *testing.T) {
	noise := func(n int) string {
		b := make([]byte, n)
		x := uint32(1)
		for i := range b {
			x = x*1664525 + 1013904223
			b[i] = byte(x >> 24)
		}
		return string(b)
	}
	full := good().file("b", noise(int(small.Unpacked)-len(manifest))).done()
	for name, data := range map[string][]byte{
		"unpacked":        full,
		"unpacked, zip":   zipOf(zipped{name: "plugin.json", contents: manifest}, zipped{name: "b", contents: noise(int(small.Unpacked) - len(manifest)), method: zipDeflate}),
		"pax header":      good().pax("comment", noise(0)+strings.Repeat("c", int(small.Header)-len("4096 comment=\n"))).file("b", noise(1000)).done(),
		"padding":         append(good().done(), make([]byte, small.Overhead)...),
		"ratio at a size": zstded(good().file("b", strings.Repeat("\x00", int(small.RatioFree)-5*tarBlock)).done()),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newSandbox(t).extract(data, Options{Limits: small}); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("archive size", func(t *testing.T) {
		l := small
		l.Archive = int64(len(full))
		if _, err := newSandbox(t).extract(full, Options{Limits: l}); err != nil {
			t.Error(err)
		}
		l.Archive--
		_, err := newSandbox(t).extract(full, Options{Limits: l})
		wantRefusal(t, err, RuleArchiveSize, "")
	})
	t.Run("zstd window", func(t *testing.T) {
		// A frame of one raw block that claims a window of 2^exponent bytes.
		frame := func(exponent byte) []byte {
			tar := good().done()
			n := uint32(len(tar))<<3 | 1
			return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3, byte(n), byte(n >> 8), byte(n >> 16)}, tar...)
		}
		if _, err := newSandbox(t).extract(frame(26), Options{}); err != nil {
			t.Errorf("64 MiB: %v", err)
		}
		_, err := newSandbox(t).extract(frame(27), Options{})
		wantRefusal(t, err, RuleWindow, "")
	})
}

// TestZeroLimits holds that a forgotten bound is the strictest.
func TestZeroLimits(t *testing.T) {
	l := Limits{Archive: 1 << 20}
	_, err := newSandbox(t).extract(good().done(), Options{Limits: l})
	wantRefusal(t, err, RuleRatio, "")
	l.RatioFree = 1 << 20
	_, err = newSandbox(t).extract(good().done(), Options{Limits: l})
	wantRefusal(t, err, RulePathLength, "plugin.json")
}

// TestMemory unpacks archives that claim or hold much and checks that memory
// stays what the documentation says.
func TestMemory(t *testing.T) {
	bomb := good().file("b", strings.Repeat("\x00", 64<<20)).done()
	claims := good()
	for range 12 {
		claims.pax("comment", strings.Repeat("c", 1<<20-20)).file("f", "")
		claims.Truncate(claims.Len() - tarBlock)
	}
	for name, data := range map[string][]byte{
		"gzip bomb":       gzipped(bomb),
		"zstd bomb":       zstded(bomb),
		"zip bomb":        zipOf(zipped{name: "b", contents: strings.Repeat("\x00", 64<<20), method: zipDeflate}),
		"many pax":        claims.done(),
		"large tar":       bomb,
		"claimed entries": zipFile{entries: []zipped{{name: "b"}}, end: func(b []byte) { copy(b[8:], "\x20\x4e\x20\x4e") }}.bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			path := filepath.Join(t.TempDir(), "archive")
			s.must(os.WriteFile(path, data, 0o600))
			src, err := os.Open(path)
			s.must(err)
			defer src.Close()
			dst := openRoot(t, s.dst())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			Extract(context.Background(), src, name, dst, Options{})
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 48<<20 {
				t.Errorf("%d MiB allocated", n>>20)
			}
		})
	}
}

// TestNoModes is the archive that cannot say what is executable.
func TestNoModes(t *testing.T) {
	for name, data := range map[string][]byte{
		"made on DOS":        sampleZip("", 20),
		"without attributes": zipOf(zipped{name: "plugin.json"}, zipped{name: "bin/tool"}),
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := newSandbox(t).extract(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range tree.Files {
				if f.Mode != digest.ModeFile {
					t.Errorf("%s is executable", f.Path)
				}
			}
			if !tree.NoModes || !tree.MarkExecutable("bin/tool") || tree.MarkExecutable("bin") {
				t.Error("the executable cannot be marked")
			}
			if f, _ := tree.File("bin/tool"); f.Mode != digest.ModeExecutable {
				t.Error("the executable is not marked")
			}
		})
	}
	mixed := zipOf(zipped{name: "plugin.json"}, zipped{name: "tool", attributes: 0o100755 << 16})
	tree, err := newSandbox(t).extract(mixed, Options{})
	if err != nil || tree.NoModes {
		t.Errorf("a zip with one mode: %v, %v", tree, err)
	}
	if f, _ := tree.File("tool"); f.Mode != digest.ModeExecutable {
		t.Error("the one mode is lost")
	}
}

// TestZipForms reads what the rules for zips leave free.
func TestZipForms(t *testing.T) {
	m := zipped{name: "plugin.json", contents: manifest, method: zipDeflate}
	packed := uint32(len(deflated(manifest)))
	sum := func(e zipped) uint32 {
		b := zipOf(e)
		return uint32(b[14]) | uint32(b[15])<<8 | uint32(b[16])<<16 | uint32(b[17])<<24
	}(m)
	later := func(after []byte) zipped {
		e := m
		e.flags, e.after = zipFlagDescriptor, after
		return e
	}
	wide := func(sig bool) []byte {
		d := descriptor(sig, sum, packed, 0)
		d = d[:len(d)-4]
		d = append(d, 0, 0, 0, 0)
		return append(d, byte(len(manifest)), 0, 0, 0, 0, 0, 0, 0)
	}
	zip64 := m
	zip64.size, zip64.packed = ptr(uint32(0xffffffff)), ptr(uint32(0xffffffff))
	zip64.extra = field(1, byte(len(manifest)), 0, 0, 0, 0, 0, 0, 0, byte(packed), 0, 0, 0, 0, 0, 0, 0)
	zip64.local = zip64.extra
	for name, data := range map[string][]byte{
		"comment":                          zipFile{entries: []zipped{m}, comment: "0123456789012345678901234567890123456789"}.bytes(),
		"descriptor":                       zipOf(later(descriptor(true, sum, packed, uint32(len(manifest))))),
		"descriptor without signature":     zipOf(later(descriptor(false, sum, packed, uint32(len(manifest))))),
		"descriptor with wide sizes":       zipOf(later(wide(true))),
		"wide descriptor, no signature":    zipOf(later(wide(false))),
		"zip64 end":                        zipFile{entries: []zipped{m}, zip64: true}.bytes(),
		"zip64 sizes":                      zipOf(zip64),
		"directory, deflated":              zipOf(m, zipped{name: "d/", method: zipDeflate}),
		"time fields":                      zipOf(func() zipped { e := m; e.extra = field(0x5455, 1, 0, 0, 0, 0); return e }()),
		"name by a Unix zipper":            zipOf(m, zipped{name: "\u00e9"}),
		"name declared by an extra field":  zipOf(m, zipped{name: "\u00e9", madeBy: 20, extra: field(0x7075, append([]byte{1, 0, 0, 0, 0}, "\u00e9"...)...)}),
		"no compression":                   zipOf(zipped{name: "plugin.json", contents: manifest}),
		"end signature inside of the data": zipOf(zipped{name: "plugin.json", contents: "PK\x05\x06" + strings.Repeat("\x00", 18)}),
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := newSandbox(t).extract(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := tree.File("plugin.json"); !ok {
				t.Error("no manifest")
			}
		})
	}
}

// TestFaultsOfTheSystem are not refusals: the archive is not to blame.
func TestFaultsOfTheSystem(t *testing.T) {
	var r *Refusal
	data := sampleTar("").done()

	t.Run("cancelled", func(t *testing.T) {
		for _, data := range [][]byte{data, gzipped(data), zstded(data), sampleZip("", 0)} {
			s := newSandbox(t)
			path := filepath.Join(t.TempDir(), "archive")
			s.must(os.WriteFile(path, data, 0o600))
			src, err := os.Open(path)
			s.must(err)
			defer src.Close()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := Extract(ctx, src, "a", openRoot(t, s.dst()), Options{}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("in the way", func(t *testing.T) {
		s := newSandbox(t)
		s.must(os.WriteFile(filepath.Join(s.dst(), "plugin.json"), []byte("old"), 0o600))
		_, err := s.extract(data, Options{})
		if !errors.Is(err, fs.ErrExist) || errors.As(err, &r) {
			t.Errorf("got %v", err)
		}
		if b, _ := os.ReadFile(filepath.Join(s.dst(), "plugin.json")); string(b) != "old" {
			t.Errorf("overwritten with %q", b)
		}
	})
	t.Run("link in the way", func(t *testing.T) {
		s := newSandbox(t)
		s.must(os.Symlink("../bystander", filepath.Join(s.dst(), "plugin.json")))
		s.must(os.Symlink("..", filepath.Join(s.dst(), "data")))
		if _, err := s.extract(data, Options{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		s := newSandbox(t)
		path := filepath.Join(t.TempDir(), "archive")
		s.must(os.WriteFile(path, data, 0o600))
		src, err := os.OpenFile(path, os.O_WRONLY, 0)
		s.must(err)
		defer src.Close()
		if _, err := Extract(context.Background(), src, "a", openRoot(t, s.dst()), Options{}); err == nil || errors.As(err, &r) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a directory", func(t *testing.T) {
		src, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if _, err := Extract(context.Background(), src, "a", openRoot(t, t.TempDir()), Options{}); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

// TestTools unpacks what the programs people use have packed.
func TestTools(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "pkg-1.0")
	writeSample(t, src)
	for _, c := range []struct {
		out, command string
		needs        []string
	}{
		{"gnu.tar", "tar -cf $OUT -C pkg-1.0 .", nil},
		{"wrapped.tar", "tar -cf $OUT pkg-1.0", nil},
		{"oldgnu.tar", "tar --format=oldgnu -cf $OUT pkg-1.0", nil},
		{"ustar.tar", "tar --format=ustar -cf $OUT pkg-1.0", nil},
		{"posix.tar", "tar --format=posix -cf $OUT pkg-1.0", nil},
		{"posix.tar.gz", "tar --format=posix -czf $OUT pkg-1.0", []string{"gzip"}},
		{"gnu.tar.zst", "tar --zstd -cf $OUT pkg-1.0", []string{"zstd"}},
		{"ultra.tar.zst", "tar -cf - pkg-1.0 | zstd -q -19 --long=26 -T2 >$OUT", []string{"zstd"}},
		{"git.tar", "cd pkg-1.0 && git init -q && git add . && git -c user.name=a -c user.email=a commit -qm x && git archive HEAD >$OUT", []string{"git"}},
		{"git.tar.gz", "cd pkg-1.0 && git archive --prefix=some/ --format=tar.gz HEAD >$OUT", []string{"git", "gzip"}},
		{"git.zip", "cd pkg-1.0 && git archive --format=zip HEAD >$OUT", []string{"git"}},
		{"info.zip", "zip -qr $OUT pkg-1.0 -x '*.git*'", []string{"zip"}},
		{"stream.zip", "zip -qr - pkg-1.0 -x '*.git*' | cat >$OUT", []string{"zip"}},
		{"stored.zip", "cd pkg-1.0 && zip -0qr $OUT . -x '*.git*'", []string{"zip"}},
		{"python.tar.gz", "rm -rf pkg-1.0/.git; python3 -c 'import os, tarfile; t = tarfile.open(os.environ[\"OUT\"], \"w:gz\"); t.add(\"pkg-1.0\"); t.close()'", []string{"python3"}},
		{"python.zip", "python3 -m zipfile -c $OUT pkg-1.0/", []string{"python3"}},
		{"jdk.jar", "jar cfM $OUT -C pkg-1.0 .", []string{"jar"}},
		{"bsd.tar", "bsdtar -cf $OUT pkg-1.0", []string{"bsdtar"}},
		{"bsd.zip", "bsdtar --format zip -cf $OUT pkg-1.0", []string{"bsdtar"}},
	} {
		t.Run(c.out, func(t *testing.T) {
			for _, p := range append(c.needs, "sh", "tar") {
				if _, err := exec.LookPath(p); err != nil {
					t.Skipf("%s is not installed", p)
				}
			}
			out := filepath.Join(dir, c.out)
			cmd := exec.Command("sh", "-ec", "umask 022; "+c.command)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "OUT="+out, "LC_ALL=C.UTF-8")
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := newSandbox(t).extract(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tree.NoModes {
				tree.MarkExecutable("bin/tool") // what the manifest would name
			}
			files := slices.DeleteFunc(tree.Files, func(f digest.File) bool { return strings.HasPrefix(f.Path, ".git/") })
			if !slices.Equal(files, sampleFiles()) {
				t.Errorf("got %v, want %v", files, sampleFiles())
			}
		})
	}
}
