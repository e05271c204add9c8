package archive

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
			t.pax("path", name, "mtime", "1.5").file(shorten(name), f.contents, mode(m))
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
		"comment":    zipFile{entries: []zipped{m}, comment: "0123456789012345678901234567890123456789"}.bytes(),
		"descriptor": zipOf(later(descriptor(true, sum, packed, uint32(len(manifest))))),
		"as Java writes it": zipOf(func() zipped {
			e := later(descriptor(true, sum, packed, uint32(len(manifest))))
			e.flags |= zipFlagUTF8
			e.extra, e.local = field(0xcafe), field(0xcafe)
			return e
		}()),
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
