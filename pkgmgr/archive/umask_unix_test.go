//go:build unix

package archive

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestUmask holds that files get their modes under any umask.
func TestUmask(t *testing.T) {
	src := t.TempDir()
	writeSample(t, src)
	data, want := mustPack(t, src, TarZst)
	masks := []int{0, 0o22, 0o27, 0o77}
	if os.Getuid() == 0 {
		masks = append(masks, 0o133) // directories that only root can enter
	}
	for _, mask := range masks {
		s, c := newSandbox(t), newSandbox(t)
		from, to := openRoot(t, src), openRoot(t, c.dst())
		var copyErr error
		_, err := withUmask(mask, func() (*Tree, error) {
			_, copyErr = CopyDir(context.Background(), from, to, Options{})
			return s.extract(data, Options{})
		})
		if err != nil || copyErr != nil {
			t.Errorf("umask %#o: %v, %v", mask, err, copyErr)
			continue
		}
		s.check(want)
		c.check(want)
	}
}

func withUmask(mask int, f func() (*Tree, error)) (*Tree, error) {
	defer syscall.Umask(syscall.Umask(mask))
	return f()
}

// TestDirectoryModes holds that nobody else can write below the destination.
func TestDirectoryModes(t *testing.T) {
	s := newSandbox(t)
	_, err := withUmask(0, func() (*Tree, error) {
		return s.extract(sampleTar("").dir("data/a/").done(), Options{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"bin", "data", "data/a/b"} {
		info, err := os.Stat(filepath.Join(s.dst(), d))
		if err != nil || info.Mode() != fs.ModeDir|0o755 {
			t.Errorf("%s: %v, %v", d, info.Mode(), err)
		}
	}
}

// TestPipe is a special file that a careless open would wait for.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "plugin.json", manifest)
	if err := syscall.Mkfifo(filepath.Join(dir, "b"), 0o600); err != nil {
		t.Skip(err)
	}
	_, _, err := packPath(t, dir, Zip, Options{})
	wantRefusal(t, err, RuleSpecial, "b")
	_, err = hashPath(t, dir)
	wantRefusal(t, err, RuleSpecial, "b")
	// One that takes a listed file's place does not block the open either.
	root := openRoot(t, dir)
	if _, err := openSource(root, sourceFile{path: "b"}); err == nil {
		t.Error("a pipe was opened as a file")
	}
}
