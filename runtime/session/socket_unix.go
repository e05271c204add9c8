//go:build linux || darwin

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Sockets are made without package net, which every start of the program would pay for.

// maxStrangers is how many other processes may try before a socket is given up.
const maxStrangers = 16

// A Socket is a Unix socket on which one child is awaited. It stands in a directory of
// its own that only this user can enter.
type Socket struct {
	Path     string
	dir      string
	listener *os.File
}

// A Conn is a connection over a socket.
type Conn struct{ *os.File }

// CloseWrite tells the other end that nothing more comes.
func (c Conn) CloseWrite() error {
	return control(c.File, func(fd int) error { return os.NewSyscallError("shutdown", syscall.Shutdown(fd, syscall.SHUT_WR)) })
}

// Listen makes a socket. The caller closes it, also after Accept.
func Listen() (*Socket, error) {
	dir, err := os.MkdirTemp("", "switchyard-")
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s := &Socket{dir: dir, Path: filepath.Join(dir, "plugin.sock")}
	if s.listener, err = listen(s.Path); err != nil {
		os.Remove(s.Path)
		os.Remove(dir)
		return nil, fmt.Errorf("socket: %w", err)
	}
	return s, nil
}

func listen(path string) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	call := "bind"
	if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err == nil {
		call, err = "listen", syscall.Listen(fd, maxStrangers)
	}
	if err == nil {
		call, err = "setnonblock", syscall.SetNonblock(fd, true)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError(call, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// accept waits for the next connection, until the listener's deadline.
func (s *Socket) accept() (Conn, error) {
	raw, err := s.listener.SyscallConn()
	if err != nil {
		return Conn{}, err
	}
	var fd int
	var failed error
	err = raw.Read(func(on uintptr) bool {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		for {
			if fd, _, failed = syscall.Accept(int(on)); failed != syscall.EINTR && failed != syscall.ECONNABORTED {
				break
			}
		}
		if failed == nil {
			syscall.CloseOnExec(fd)
		}
		return failed != syscall.EAGAIN
	})
	if err == nil {
		err = os.NewSyscallError("accept", failed)
	}
	if err != nil {
		return Conn{}, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return Conn{}, os.NewSyscallError("setnonblock", err)
	}
	return Conn{os.NewFile(uintptr(fd), s.Path)}, nil
}

// Accept waits for the child with this process id, which runs as this user, and then
// takes nobody else. The error is ctx's cause, or wraps ErrStranger.
func (s *Socket) Accept(ctx context.Context, pid int) (Conn, error) {
	defer context.AfterFunc(ctx, func() { s.listener.SetDeadline(time.Unix(1, 0)) })()
	var stranger error
	for range maxStrangers {
		conn, err := s.accept()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return Conn{}, errors.Join(fmt.Errorf("socket: %w", err), stranger)
		}
		uid, peer, err := credentials(conn.File)
		if err == nil && uid == os.Getuid() && peer == pid {
			s.Close()
			return conn, nil
		}
		conn.Close()
		stranger = fmt.Errorf("%w: process %d of user %d, where %d of user %d is expected", ErrStranger, peer, uid, pid, os.Getuid())
		if err != nil {
			stranger = fmt.Errorf("%w: %w", ErrStranger, err)
		}
	}
	return Conn{}, stranger
}

// Close removes the socket and its directory. It does not close the connection.
func (s *Socket) Close() {
	s.listener.Close()
	os.Remove(s.Path)
	os.Remove(s.dir)
}

// control runs do with the connection's descriptor.
func control(conn *os.File, do func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}
