//go:build linux || darwin

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// maxStrangers is how many other processes may try before a socket is given up.
const maxStrangers = 16

// A Socket is a Unix socket on which one child is awaited. It stands in a directory of
// its own that only this user can enter.
type Socket struct {
	Path     string
	dir      string
	listener *net.UnixListener
}

// Listen makes a socket. The caller closes it, also after Accept.
func Listen() (*Socket, error) {
	dir, err := os.MkdirTemp("", "switchyard-")
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s := &Socket{dir: dir, Path: filepath.Join(dir, "plugin.sock")}
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: s.Path, Net: "unix"}); err != nil {
		os.Remove(dir)
		return nil, fmt.Errorf("socket: %w", err)
	}
	return s, nil
}

// Accept waits for the child with this process id, which runs as this user, and then
// takes nobody else. The error is ctx's cause, or wraps ErrStranger.
func (s *Socket) Accept(ctx context.Context, pid int) (*net.UnixConn, error) {
	defer context.AfterFunc(ctx, func() { s.listener.SetDeadline(time.Unix(1, 0)) })()
	var stranger error
	for range maxStrangers {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, errors.Join(fmt.Errorf("socket: %w", err), stranger)
		}
		uid, peer, err := credentials(conn)
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
	return nil, stranger
}

// Close removes the socket and its directory. It does not close the connection.
func (s *Socket) Close() {
	s.listener.Close()
	os.Remove(s.Path)
	os.Remove(s.dir)
}

// control runs do with the connection's descriptor.
func control(conn *net.UnixConn, do func(fd int) error) error {
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
