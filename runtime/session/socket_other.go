//go:build !linux && !darwin && !windows

package session

import (
	"context"
	"os"
)

// A Socket is a socket on which one child is awaited; this system has none.
type Socket struct{ Path string }

// A Conn is a connection over a socket.
type Conn struct{ *os.File }

// Listen returns ErrTransport.
func Listen() (*Socket, error) { return nil, ErrTransport }

// Accept returns ErrTransport.
func (s *Socket) Accept(context.Context, int) (Conn, error) { return Conn{}, ErrTransport }

// Close does nothing.
func (s *Socket) Close() {}
