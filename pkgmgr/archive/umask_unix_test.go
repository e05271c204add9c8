//go:build unix

package archive

import (
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
	for _, mask := range []int{0, 0o22, 0o27, 0o77, 0o133} {
		old := syscall.Umask(mask)
		s, c := newSandbox(t), newSandbox(t)
		os.Chmod(s.dst(), 0o755)
		os.Chmod(c.dst(), 0o755)
		_, err := s.extract(data, Options{})
		_, copyErr := copyPath(t, src, c.dst(), Options{})
		syscall.Umask(old)
		if mask == 0o133 && os.Getuid() != 0 {
			continue // directories that their own owner cannot enter
		}
		if err != nil || copyErr != nil {
			t.Errorf("umask %#o: %v, %v", mask, err, copyErr)
			continue
		}
		s.check(want)
		c.check(want)
	}
}

// TestDirectoryModes holds that nobody else can write below the destination.
func TestDirectoryModes(t *testing.T) {
	old := syscall.Umask(0)
	s := newSandbox(t)
	_, err := s.extract(sampleTar("").dir("data/a/").done(), Options{})
	syscall.Umask(old)
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
