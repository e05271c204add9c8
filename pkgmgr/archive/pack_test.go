package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
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
