package state

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// holdQueue is true: an exclusive lock excludes a second one of the same handle too.
const holdQueue = true

// noWait is nothing here: no pipe stands in a directory.
const noWait = 0

// A lockFile is an open side file. It is not inherited by children.
type lockFile windows.Handle

// openLock opens the side file; a writer creates it if it is absent.
func openLock(path string, writer bool) (lockFile, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	access, create := uint32(windows.GENERIC_READ), uint32(windows.OPEN_EXISTING)
	if writer {
		access, create = windows.GENERIC_READ|windows.GENERIC_WRITE, windows.OPEN_ALWAYS
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, access, share, nil, create, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return lockFile(h), nil
}

// try takes the lock if that is possible at once.
func (f lockFile) try(mode lockMode) (bool, error) {
	err := f.lock(mode, windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// wait blocks its thread until the lock is taken.
func (f lockFile) wait(mode lockMode) error { return f.lock(mode, 0) }

func (f lockFile) lock(mode lockMode, flags uint32) error {
	if mode == exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(windows.Handle(f), flags, 0, 1, 0, new(windows.Overlapped))
}

// unlock gives the lock up.
func (f lockFile) unlock() {
	_ = windows.UnlockFileEx(windows.Handle(f), 0, 1, 0, new(windows.Overlapped))
}

func (f lockFile) close() { _ = windows.CloseHandle(windows.Handle(f)) }
