package pkgmgr

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// replaceFile gives a file new content, mode 0600, durably and in one step. Only one
// process at a time may replace a file: what a killed one left is removed.
func replaceFile(path string, content []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		os.Remove(next)
		return err
	}
	return syncDirs(filepath.Dir(path))
}

// readNames returns the names in a directory in no order; none where it does not
// exist.
func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// syncDirs makes the entries of directories durable. Windows has no such call:
// its renames are made durable by the file system's own journal.
func syncDirs(paths ...string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, p := range paths {
		d, err := os.Open(p)
		if err != nil {
			return err
		}
		err = d.Sync()
		d.Close()
		if err != nil && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}
