//go:build !linux && !darwin

package session

import (
	"context"
	"net"
)

// A Socket is a socket on which one child is awaited; this system has none.
type Socket struct{ Path string }

// Listen returns ErrTransport.
func Listen() (*Socket, error) { return nil, ErrTransport }

// Accept returns ErrTransport.
func (s *Socket) Accept(context.Context, int) (*net.UnixConn, error) { return nil, ErrTransport }

// Close does nothing.
func (s *Socket) Close() {}
