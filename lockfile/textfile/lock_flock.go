//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package textfile

import (
	"errors"
	"os"
	"syscall"
)

// lockDir waits for an exclusive advisory lock on the directory itself, so that
// no lock file is left in anybody's project. A file system without such locks
// gives none, and edits are not ordered there.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil && !isUnsupported(err) {
		d.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { d.Close() }, nil
}

// isUnsupported covers what network file systems answer: EBADF is NFS refusing
// an exclusive lock on a descriptor that is open for reading.
func isUnsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EBADF)
}
