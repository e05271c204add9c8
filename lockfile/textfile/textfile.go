// Package textfile reads and replaces one small project file that a person and
// the tool share, such as switchyard.lock.
//
// Reading follows no symbolic link, opens no device or pipe, and accepts a file
// only from the user who runs the program or from root: root can change
// anything that the user runs, so a root-owned file gives it nothing new, while
// a file of anybody else would let that person decide what the user executes.
// The check is made on the opened file. Systems without Unix owners (Windows)
// have no such check here.
//
// Writing goes through a temporary file in the same directory, fsync, rename
// and fsync of the directory, so that a reader sees the old or the new file.
// Nothing of the old file is preserved: not its mode, owner or attributes. A
// symbolic link at the path is refused, never followed and never replaced.
//
// The package knows nothing of what the files say.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Reasons for a refusal, for errors.Is. The error is an *fs.PathError, or an
// *OwnerError for ErrForeign.
var (
	ErrSymlink    = errors.New("is a symbolic link; project files must be plain files")
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("is too large")
	ErrForeign    = errors.New("belongs to another user")
)

// An OwnerError says whose file it is. It matches ErrForeign.
type OwnerError struct {
	Path        string
	Owner, Self int // user ids
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("%s belongs to user id %d; only files of user id %d or of root are used", e.Path, e.Owner, e.Self)
}

// Is makes errors.Is(err, ErrForeign) true.
func (e *OwnerError) Is(target error) bool { return target == ErrForeign }

// Check applies the rules of Read to what stands at path without opening it.
// A missing file is fs.ErrNotExist.
func Check(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return check(path, info)
}

func check(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return &fs.PathError{Op: "read", Path: path, Err: ErrSymlink}
	case !mode.IsRegular():
		return &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	return CheckOwner(path, info)
}

// CheckOwner returns an *OwnerError unless info belongs to the current user or
// to root.
func CheckOwner(path string, info fs.FileInfo) error {
	owner, self, known := owners(info)
	if known && owner != self && owner != 0 {
		return &OwnerError{Path: path, Owner: owner, Self: self}
	}
	return nil
}

// Read returns the whole file, at most limit bytes long.
func Read(path string, limit int64) ([]byte, error) {
	f, err := openNoFollow(path)
	if err != nil {
		if link, lerr := os.Lstat(path); lerr == nil && link.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "read", Path: path, Err: ErrSymlink}
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	return data, nil
}

// Write replaces the file by data, mode 0644 less the umask.
func Write(path string, data []byte) error { return write(path, data, 0o644) }

func write(path string, data []byte, mode fs.FileMode) error {
	if err := Check(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := replace(path, data, mode); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Edit replaces the file by what edit makes of it, under an advisory lock on
// its directory, so that of several processes that edit at once none loses its
// change. exists is false, and text nil, when there is no file. When edit returns
// nil or the bytes that are there, nothing is written.
//
// Where directories cannot be locked (Windows) edits of several processes at
// the same moment are not ordered.
func Edit(path string, limit int64, edit func(text []byte, exists bool) ([]byte, error)) error {
	return editFile(path, limit, 0o644, edit)
}

// EditPrivate is Edit of a file that nobody else may read: mode 0600.
func EditPrivate(path string, limit int64, edit func(text []byte, exists bool) ([]byte, error)) error {
	return editFile(path, limit, 0o600, edit)
}

func editFile(path string, limit int64, mode fs.FileMode, edit func(text []byte, exists bool) ([]byte, error)) error {
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	old, err := Read(path, limit)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := edit(old, exists)
	if err != nil {
		return err
	}
	if text == nil || exists && bytes.Equal(text, old) {
		return nil
	}
	return write(path, text, mode)
}
