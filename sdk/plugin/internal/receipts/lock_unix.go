//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package receipts

import (
	"errors"
	"os"
	"syscall"
)

// tryLock opens a file, creates it if need be, and takes an exclusive advisory lock
// that lasts until it is closed or the process is gone. It returns nil if somebody
// has the lock, this process included.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
			continue
		}
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, os.NewSyscallError("flock", err)
	}
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
