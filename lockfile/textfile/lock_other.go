//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package textfile

import (
	"errors"
	"os"
	"syscall"
)

// lockDir checks that the directory exists; directories cannot be locked here.
func lockDir(dir string) (unlock func(), err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return func() {}, nil
}

func isUnsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
