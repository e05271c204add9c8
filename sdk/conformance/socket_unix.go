//go:build unix

package conformance

import (
	"os"
	"syscall"
	"time"
)

// The sockets here are made without package net, which is slow to load and would
// be loaded by every start of the program that links this package.

// listen returns a socket that waits for one connection at path.
func listen(path string) (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	syscall.CloseOnExec(fd)
	err = syscall.SetNonblock(fd, true)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = syscall.Listen(fd, 1)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("listen", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// accept returns the first connection that comes within the time.
func accept(listener *os.File, within time.Duration) (*os.File, error) {
	if err := listener.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	err = raw.Read(func(on uintptr) bool {
		fd, _, failed = syscall.Accept(int(on))
		return failed != syscall.EAGAIN
	})
	if err == nil && failed == nil {
		syscall.CloseOnExec(fd)
		failed = syscall.SetNonblock(fd, true)
	}
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "connection"), nil
}

// halfClose closes the writing half of a socket, as closing stdin does.
type halfClose struct{ *os.File }

func (c halfClose) Close() error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Shutdown(int(fd), syscall.SHUT_WR) }); err != nil {
		return err
	}
	return failed
}
