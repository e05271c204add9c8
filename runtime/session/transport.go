package session

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// Stdio is a connection over the pipes of a child process. Both are closed by Close.
type Stdio struct {
	Stdin  io.WriteCloser // of the child
	Stdout io.ReadCloser
}

func (s Stdio) Read(b []byte) (int, error)  { return s.Stdout.Read(b) }
func (s Stdio) Write(b []byte) (int, error) { return s.Stdin.Write(b) }

// SyscallConn is that of the end which is written to.
func (s Stdio) SyscallConn() (syscall.RawConn, error) {
	if c, ok := s.Stdin.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// SetReadDeadline makes a read end at that time, for which it needs a pipe that can be
// waited on.
func (s Stdio) SetReadDeadline(t time.Time) error {
	if c, ok := s.Stdout.(interface{ SetReadDeadline(time.Time) error }); ok {
		return c.SetReadDeadline(t)
	}
	return errors.ErrUnsupported
}

// CloseWrite tells the child that nothing more comes.
func (s Stdio) CloseWrite() error { return s.Stdin.Close() }

// Close closes both pipes.
func (s Stdio) Close() error { return errors.Join(s.Stdin.Close(), s.Stdout.Close()) }

// SocketVariable is the environment variable that names the socket to a plugin.
const SocketVariable = "SWITCHYARD_PLUGIN_SOCKET"

// ErrTransport reports a transport that this system does not have.
var ErrTransport = errors.New("this system has no sockets whose other end can be told: use the standard streams")

// ErrStranger reports that somebody else than the child connected.
var ErrStranger = errors.New("another process than the plugin connected to its socket")
