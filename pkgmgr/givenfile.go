package pkgmgr

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A givenFile says why a file that the user named is not read. Each caller makes of it
// what its own users know.
type givenFile struct {
	path     string
	reason   string
	tooLarge bool
}

func (e *givenFile) Error() string { return e.path + " " + e.reason }

// malformed is the same for files that belong to a package.
func (e *givenFile) malformed() error {
	return &Malformed{Where: filepath.Dir(e.path), File: filepath.Base(e.path), Err: errors.New(e.reason)}
}

// openGiven opens a file that the user named, or that lies beside one: a regular file, or a
// link to one. Anything else is a *givenFile; none is waited for. A missing file is
// fs.ErrNotExist. Files of the data directory are read by readOwn.
func openGiven(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		// What cannot be opened at all, such as a socket, is looked at by its name.
		if info, serr := os.Stat(path); serr == nil && !info.Mode().IsRegular() {
			return nil, nil, &givenFile{path: path, reason: "is not a regular file"}
		}
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &givenFile{path: path, reason: "is not a regular file"}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readUpTo reads at most limit bytes of a file as openGiven opens it, and one more where it
// has more.
func readUpTo(path string, limit int64) ([]byte, error) {
	f, _, err := openGiven(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// readGiven reads a whole file as openGiven opens it. More than limit bytes are a
// *givenFile.
func readGiven(path string, limit int64) ([]byte, error) {
	raw, err := readUpTo(path, limit)
	if err == nil && int64(len(raw)) > limit {
		err = tooLarge(path, limit)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

func tooLarge(path string, limit int64) error {
	return &givenFile{path: path, reason: fmt.Sprintf("has more than %d bytes", limit), tooLarge: true}
}
