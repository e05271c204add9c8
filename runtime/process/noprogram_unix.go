//go:build unix

package process

import (
	"errors"
	"syscall"
)

// isNoProgram reports whether err says that the system cannot execute such a file.
func isNoProgram(err error) bool { return errors.Is(err, syscall.ENOEXEC) }
