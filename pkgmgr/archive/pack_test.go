package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

var formats = []Format{TarZst, TarGz, Zip}

func packPath(t testing.TB, path string, f Format, o Options) ([]byte, *Tree, error) {
	t.Helper()
	var b bytes.Buffer
	tree, err := Pack(context.Background(), openRoot(t, path), &b, f, o)
	return b.Bytes(), tree, err
}

func mustPack(t testing.TB, path string, f Format) ([]byte, *Tree) {
	t.Helper()
	data, tree, err := packPath(t, path, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return data, tree
}

func copyPath(t testing.TB, src, dst string, o Options) (*Tree, error) {
	t.Helper()
	return CopyDir(context.Background(), openRoot(t, src), openRoot(t, dst), o)
}

// write makes files below dir: a path and its contents by turns.
func write(t testing.TB, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		p := filepath.Join(dir, filepath.FromSlash(pairs[i]))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(pairs[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPackGolden pins the bytes of each format. They may change with a library
// that compresses differently, never by accident: an archive's digest is what
// people pin.
func TestPackGolden(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	write(t, dir, strings.Repeat("long/", 30)+"file", "in a pax header: no, in the prefix", strings.Repeat("n", 130), "in a pax header")
	for f, want := range map[Format]string{
		TarZst: "sha256:1fe60be381b68e011a50ac625db7d4a52e25f57868eea15beee5f21727134dec",
		TarGz:  "sha256:3ba9849fd886d7c2f26bd0ddbc02d0a162b686d1205099f6cac8abaf4f896869",
		Zip:    "sha256:63b858a990bb9614fe3f9aca8d41eeecb052f874b3b6a703361ef37fc6df1452",
	} {
		data, _ := mustPack(t, dir, f)
		if got := digest.Of(data); string(got) != want {
			t.Errorf("%s: %s, want %s", f, got, want)
		}
	}
}

// TestPackDeterministic changes everything that must not matter.
func TestPackDeterministic(t *testing.T) {
	first := t.TempDir()
	writeSample(t, first)
	second := filepath.Join(t.TempDir(), "elsewhere")
	backwards := slices.Clone(sample)
	slices.Reverse(backwards)
	for _, f := range backwards {
		write(t, second, f.path, f.contents)
		p := filepath.Join(second, filepath.FromSlash(f.path))
		m := fs.FileMode(0o600)
		if f.executable {
			m = 0o711
		}
		if err := errors.Join(os.Chmod(p, m), os.Chtimes(p, time.Time{}, time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC))); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"empty-directory/deeper", ".git/objects"} {
		if err := os.MkdirAll(filepath.Join(second, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TZ", "Pacific/Kiritimati")
	t.Setenv("LC_ALL", "tr_TR.UTF-8")
	for _, f := range formats {
		want, tree := mustPack(t, first, f)
		if !slices.Equal(tree.Files, sampleFiles()) {
			t.Errorf("%s: packed %v, want %v", f, tree.Files, sampleFiles())
		}
		for _, procs := range []int{1, 2, 7} {
			old := runtime.GOMAXPROCS(procs)
			got, _ := mustPack(t, second, f)
			runtime.GOMAXPROCS(old)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: other bytes with %d processors", f, procs)
			}
		}
	}
}

// TestPackReadable has other readers read what Pack writes.
func TestPackReadable(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	write(t, dir, strings.Repeat("long/", 30)+"file", "in the prefix", strings.Repeat("n", 130), "in a pax header")
	want, err := hashPath(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range formats {
		data, _ := mustPack(t, dir, f)
		got, err := standardFiles(data)
		if err != nil || !slices.Equal(got, want.Files) {
			t.Errorf("%s: the standard library reads %v, %v; want %v", f, got, err, want.Files)
		}
	}
	for f, command := range map[Format]string{
		TarGz: "tar -xzf $IN -C $OUT", TarZst: "tar --zstd -xf $IN -C $OUT", Zip: "unzip -q $IN -d $OUT",
	} {
		if _, err := exec.LookPath(strings.Fields(command)[0]); err != nil {
			t.Logf("%s not read by %s: not installed", f, strings.Fields(command)[0])
			continue
		}
		data, _ := mustPack(t, dir, f)
		in, out := filepath.Join(t.TempDir(), "in"), t.TempDir()
		if err := os.WriteFile(in, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", command)
		cmd.Env = append(os.Environ(), "IN="+in, "OUT="+out, "LC_ALL=C.UTF-8")
		if b, err := cmd.CombinedOutput(); err != nil || len(b) > 0 {
			t.Errorf("%s: %v: %s", command, err, b)
			continue
		}
		if got, err := hashPath(t, out); err != nil || packageOf(t, got) != packageOf(t, want) {
			t.Errorf("%s: unpacked %v, %v; want %v", command, got, err, want.Files)
		}
	}
}

// standardFiles reads an archive with the standard library.
func standardFiles(data []byte) ([]digest.File, error) {
	var files []digest.File
	add := func(name string, executable bool, r io.Reader) error {
		b, err := io.ReadAll(r)
		m := digest.ModeFile
		if executable {
			m = digest.ModeExecutable
		}
		name = strings.TrimPrefix(name, "./")
		files = append(files, digest.File{Path: name, Mode: m, Size: int64(len(b)), SHA256: digest.Of(b).Hex()})
		return err
	}
	defer func() { sortFiles(files) }()
	var in io.Reader = bytes.NewReader(data)
	switch {
	case bytes.HasPrefix(data, []byte("PK")):
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, err
		}
		for _, f := range z.File {
			if strings.HasSuffix(f.Name, "/") {
				continue
			}
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			if err := add(f.Name, f.Mode()&0o100 != 0, r); err != nil {
				return nil, err
			}
		}
		sortFiles(files)
		return files, nil
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = z
	case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		in = z
	}
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if err == io.EOF {
			sortFiles(files)
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if err := add(h.Name, h.Mode&0o100 != 0, t); err != nil {
				return nil, err
			}
		}
	}
}

// TestRoundTrip packs, unpacks and copies random trees: whatever the way, the
// package is the same.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			src := t.TempDir()
			randomTree(t, rng, src)
			plain, err := hashPath(t, src)
			if err != nil {
				t.Fatal(err)
			}
			copied := newSandbox(t)
			want, err := copyPath(t, src, copied.dst(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want.Stripped == "" && packageOf(t, want) != packageOf(t, plain) {
				t.Errorf("the copy differs from its source")
			}
			copied.check(want)
			for _, f := range formats {
				data, packed := mustPack(t, src, f)
				if packageOf(t, packed) != packageOf(t, want) {
					t.Errorf("%s: packed %v, copied %v", f, packed.Files, want.Files)
				}
				s := newSandbox(t)
				tree, err := s.extract(data, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(tree.Files, want.Files) || tree.Unpacked != want.Unpacked {
					t.Errorf("%s: unpacked %v, copied %v", f, tree.Files, want.Files)
				}
				s.check(want)
				again, _ := mustPack(t, s.dst(), f)
				if !bytes.Equal(again, data) {
					t.Errorf("%s: packing the unpacked tree gives other bytes", f)
				}
			}
		})
	}
}

// check compares what is on disk.
func (s sandbox) check(want *Tree) {
	s.t.Helper()
	got, err := s.hash()
	if err != nil || !slices.Equal(got.Files, want.Files) {
		s.t.Errorf("on disk %v, %v; want %v", got, err, want.Files)
	}
	s.checkModes(want)
}

func randomTree(t *testing.T, rng *rand.Rand, dir string) {
	t.Helper()
	letters := []string{"a", "b", "c", "-", "_", "0", "é", "字", " x", ".y"}
	var fill func(dir string, depth int, left *int)
	fill = func(dir string, depth int, left *int) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(6) {
			if *left--; *left < 0 {
				return
			}
			name := letters[rng.IntN(7)]
			for range rng.IntN(5) {
				name += letters[rng.IntN(len(letters))]
			}
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				continue
			}
			if depth < 6 && rng.IntN(3) == 0 {
				fill(path, depth+1, left)
				continue
			}
			size := []int{0, 1, 511, 512, 513, 4000, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7}[rng.IntN(10)]
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(rng.IntN(17) * rng.IntN(16))
			}
			m := fs.FileMode(0o644)
			if rng.IntN(4) == 0 {
				m = 0o755
			}
			if err := errors.Join(os.WriteFile(path, b, m), os.Chmod(path, m)); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := 60
	root := dir
	if rng.IntN(3) == 0 {
		root = filepath.Join(dir, "wrapper")
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fill(root, 1, &left)
	write(t, root, "plugin.json", manifest)
}

// TestSourceRefusals holds that Pack and CopyDir refuse what Extract would.
func TestSourceRefusals(t *testing.T) {
	long := strings.Repeat("p", small.PathBytes+1)
	link := func(t *testing.T, dir string) {
		if err := os.Symlink("plugin.json", filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
	}
	files := func(pairs ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, dir, pairs...) }
	}
	chmod := func(m fs.FileMode) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			write(t, dir, "b", "x")
			if err := os.Chmod(filepath.Join(dir, "b"), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		make  func(*testing.T, string)
		rule  Rule
		entry string
	}{
		{"symbolic link", link, RuleLink, "b"},
		{"link to a directory", func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "b")); err != nil {
				t.Fatal(err)
			}
		}, RuleLink, "b"},
		{"socket", func(t *testing.T, dir string) {
			t.Chdir(dir) // a socket's path is short
			l, err := net.Listen("unix", "b")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { l.Close() })
		}, RuleSpecial, "b"},
		{"set-user-id", chmod(0o755 | fs.ModeSetuid), RuleMode, "b"},
		{"set-group-id", chmod(0o755 | fs.ModeSetgid), RuleMode, "b"},
		{"sticky", chmod(0o755 | fs.ModeSticky), RuleMode, "b"},
		{"case", files("README", "x", "readme", "x"), RuleCollision, "readme"},
		{"case of directories", files("Lib/a", "x", "lib/b", "x"), RuleCollision, "lib"},
		{"Unicode forms", files("e\u0301", "x", "\u00e9", "x"), RuleCollision, "\u00e9"},
		{"reserved name", files("aux.c", "x"), RuleReserved, "aux.c"},
		{"backslash", files(`a\b`, "x"), RuleBackslash, `a\b`},
		{"control", files("a\nb", "x"), RuleControl, "a\nb"},
		{"encoding", files("a\xff", "x"), RuleEncoding, "a\xff"},
		{"invisible", files("d/a\u200b", "x"), RuleInvisible, "d/a\u200b"},
		{"path length", files(long, "x"), RulePathLength, long},
		{"depth", files("a/b/c/d/e", "x"), RuleDepth, "a/b/c/d/e"},
		{"entries", files("1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", ""), RuleEntries, "plugin.json"},
		{"unpacked size", files("b", strings.Repeat("x", 64<<10)), RuleUnpackedSize, "plugin.json"},
		{"ignore file", files(IgnoreFile, "[a-"), RuleIgnoreFile, IgnoreFile},
		{"ignore file too long", files(IgnoreFile, strings.Repeat("a\n", 600)), RuleIgnoreFile, IgnoreFile},
		{"no file", files(IgnoreFile, "*"), RuleEmpty, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !unixModes {
				t.Skip("the file system has no such files")
			}
			dir := t.TempDir()
			write(t, dir, "plugin.json", manifest)
			c.make(t, dir)
			_, _, err := packPath(t, dir, TarZst, Options{Limits: small})
			wantRefusal(t, err, c.rule, c.entry)
			s := newSandbox(t)
			_, err = copyPath(t, dir, s.dst(), Options{Limits: small})
			wantRefusal(t, err, c.rule, c.entry)
			s.checkOutside()
			switch c.rule {
			case RuleLink, RuleSpecial, RuleMode, RuleReserved, RuleBackslash, RuleControl, RuleEncoding, RuleInvisible:
				_, err := hashPath(t, dir)
				wantRefusal(t, err, c.rule, c.entry)
			}
		})
	}
}

// TestPackBounds are the bounds that only a finished archive has.
func TestPackBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "plugin.json", manifest, "b", strings.Repeat("\x00", 60<<10))
	for _, f := range formats {
		_, _, err := packPath(t, dir, f, Options{Limits: small})
		wantRefusal(t, err, RuleRatio, "")
		l := Default
		l.Archive = 100
		_, _, err = packPath(t, dir, f, Options{Limits: l})
		wantRefusal(t, err, RuleArchiveSize, "")
	}
}

// TestChanged is a file that changes between listing and reading.
func TestChanged(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(path string) error{
		"longer":  func(p string) error { return os.WriteFile(p, []byte("more than before"), 0) },
		"shorter": func(p string) error { return os.WriteFile(p, nil, 0) },
		"mode":    func(p string) error { return os.Chmod(p, 0o755) },
		"a directory": func(p string) error {
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "plugin.json", "before")
			root := openRoot(t, dir)
			l, err := list(ctx, root, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := change(filepath.Join(dir, "plugin.json")); err != nil {
				t.Fatal(err)
			}
			p, _ := newPacker(Zip, io.Discard)
			var r *Refusal
			if _, err := packFiles(ctx, root, l, p, Options{}); !errors.As(err, &r) || r.Rule != RuleChanged {
				t.Errorf("Pack: got %v", err)
			}
			s := newSink(ctx, openRoot(t, t.TempDir()))
			if err := s.close(copyFiles(s, root, l, Options{})); !errors.As(err, &r) || r.Rule != RuleChanged {
				t.Errorf("CopyDir: got %v", err)
			}
		})
	}
}

// TestOmit leaves out the archive that is being written.
func TestOmit(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "plugin.json", manifest, "out/a.tar.zst", "half an archive")
	_, tree, err := packPath(t, dir, TarZst, Options{Omit: []string{"out/a.tar.zst"}})
	if err != nil || len(tree.Files) != 1 {
		t.Errorf("packed %v, %v", tree, err)
	}
}

// TestPackFaults are not refusals.
func TestPackFaults(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	full := errors.New("disk full")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range formats {
		if _, err := Pack(context.Background(), openRoot(t, dir), failingWriter{full}, f, Options{}); !errors.Is(err, full) {
			t.Errorf("%s: got %v", f, err)
		}
		if _, err := Pack(ctx, openRoot(t, dir), io.Discard, f, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: got %v", f, err)
		}
	}
	if _, err := Pack(context.Background(), openRoot(t, dir), io.Discard, "rar", Options{}); !errors.Is(err, ErrFormatName) {
		t.Errorf("rar: got %v", err)
	}
	if _, err := CopyDir(ctx, openRoot(t, dir), openRoot(t, t.TempDir()), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("CopyDir, cancelled: got %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{
		"a.tar.zst": TarZst, "dir.zip/a-1.0-linux-amd64.tar.gz": TarGz, "a.zip": Zip, "zip": "", "a.tgz": "", "a.tar": "",
	} {
		got, err := FormatOf(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
