package lockfile

import (
	"fmt"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Read reads and parses the lock at path, and returns its bytes too. A missing
// file is fs.ErrNotExist; a symbolic link or another user's file is refused as
// package textfile says; faults of the text are Faults.
func Read(path string) (*File, []byte, error) {
	raw, err := textfile.Read(path, MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	f, err := Parse(path, raw)
	if err != nil {
		return nil, nil, err
	}
	return f, raw, nil
}

// Write replaces the lock at path by f's canonical text, durably and in one step.
// A lock that Parse would refuse is not written, and the fault is returned.
func Write(path string, f *File) error {
	text, err := f.checked(path)
	if err != nil {
		return err
	}
	return textfile.Write(path, text)
}

// Edit reads the lock at path (an empty one when there is none), and writes what
// edit makes of it, under a lock on the directory, so that processes that edit
// at once lose nothing. When the meaning stays the same, the file is not
// touched: neither its bytes nor its existence. It returns the resulting lock.
func Edit(path string, edit func(*File) (*File, error)) (*File, error) {
	var result *File
	err := textfile.Edit(path, MaxBytes, func(raw []byte, exists bool) ([]byte, error) {
		before := &File{}
		if exists {
			var err error
			if before, err = Parse(path, raw); err != nil {
				return nil, err
			}
		}
		after, err := edit(before)
		if err != nil {
			return nil, err
		}
		result = after.canonical()
		if Equal(before, after) {
			return nil, nil
		}
		return after.checked(path)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// checked returns f's canonical text after reading it back.
func (f *File) checked(path string) ([]byte, error) {
	text := f.Format()
	if _, err := Parse(path, text); err != nil {
		return nil, fmt.Errorf("the lock was not written: %w", err)
	}
	return text, nil
}

// Digest names a lock's text with LF line ends: SHA-256 over raw with every CRLF
// taken as LF. A changed comment or order changes it.
func Digest(raw []byte) digest.Digest { return digest.Of(lf(raw)) }
