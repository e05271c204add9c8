//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package plugin

import (
	"os"
	"syscall"
)

// divertStdout moves standard output to a descriptor of its own, which no child
// inherits, and makes descriptor 1 another name of standard error. So even code
// that kept os.Stdout from before, and children that inherit it, cannot write
// into the protocol.
func divertStdout() (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(1)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if err := dup2(2, 1); err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("dup2", err)
	}
	return os.NewFile(uintptr(fd), "/dev/stdout"), nil
}
