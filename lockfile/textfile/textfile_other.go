//go:build !unix

package textfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

// openNoFollow opens what stands at path. A symbolic link is seen before the
// opening; making one needs a privilege on Windows.
func openNoFollow(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// owners reports nothing: files have no Unix owner here.
func owners(fs.FileInfo) (owner, self int, known bool) { return 0, 0, false }

// replace has no use for the mode: a directory decides who reads its files here.
func replace(path string, data []byte, _ fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once the file is renamed
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
