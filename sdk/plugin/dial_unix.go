//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package plugin

import (
	"os"
	"syscall"
)

// dialUnix connects to a Unix socket. It does without package net, which every plugin
// would have to load.
func dialUnix(path string) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	for {
		if err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("connect", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
