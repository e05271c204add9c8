//go:build !windows

package state

import (
	"io/fs"
	"syscall"
)

// holdQueue is false: a file can be locked again through the same open file.
const holdQueue = false

// noWait keeps the opening of a pipe from waiting for its other end. It changes
// nothing for a regular file.
const noWait = syscall.O_NONBLOCK

// A lockFile is an open side file. It is not inherited by children.
type lockFile int

// openLock opens the side file; a writer creates it if it is absent.
func openLock(path string, writer bool) (lockFile, error) {
	flags := syscall.O_RDONLY
	if writer {
		flags = syscall.O_RDWR | syscall.O_CREAT
	}
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC|noWait, 0o600)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return lockFile(fd), nil
	}
}

// try takes the lock if that is possible at once.
func (f lockFile) try(mode lockMode) (bool, error) {
	err := f.flock(f.how(mode) | syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

// wait blocks its thread until the lock is taken.
func (f lockFile) wait(mode lockMode) error { return f.flock(f.how(mode)) }

// unlock gives the lock up. It matters even before closing: a child that is between
// fork and exec in another thread shares the open file, and closing alone
// would leave the lock with it.
func (f lockFile) unlock() { _ = f.flock(syscall.LOCK_UN) }

func (f lockFile) close() { _ = syscall.Close(int(f)) }

func (f lockFile) how(mode lockMode) int {
	if mode == exclusive {
		return syscall.LOCK_EX
	}
	return syscall.LOCK_SH
}

func (f lockFile) flock(how int) error {
	for {
		if err := syscall.Flock(int(f), how); err != syscall.EINTR {
			return err
		}
	}
}
