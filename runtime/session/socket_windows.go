package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// maxStrangers is how many other processes may try before a pipe is given up.
const maxStrangers = 16

// pipeBuffer is what the system holds of a pipe in each direction, in bytes.
const pipeBuffer = 64 << 10

// A Socket is a named pipe on which one child is awaited. Its name cannot be guessed, it
// is the first and only pipe of that name, no other machine reaches it, and only this user
// may open it.
type Socket struct {
	Path string
	pipe windows.Handle // 0 once it belongs to a connection, or is closed
}

// A Conn is a connection over a named pipe. A pipe has no half that could be closed alone.
type Conn struct{ *os.File }

// Listen makes a pipe. The caller closes it, also after Accept.
func Listen() (*Socket, error) {
	attributes, err := forThisUser()
	if err != nil {
		return nil, fmt.Errorf("named pipe: %w", err)
	}
	var random [16]byte
	rand.Read(random[:])
	s := &Socket{Path: `\\.\pipe\switchyard-` + hex.EncodeToString(random[:])}
	name, err := windows.UTF16PtrFromString(s.Path)
	if err != nil {
		return nil, fmt.Errorf("named pipe: %w", err)
	}
	const (
		access = windows.PIPE_ACCESS_DUPLEX | windows.FILE_FLAG_OVERLAPPED | windows.FILE_FLAG_FIRST_PIPE_INSTANCE
		mode   = windows.PIPE_TYPE_BYTE | windows.PIPE_READMODE_BYTE | windows.PIPE_WAIT | windows.PIPE_REJECT_REMOTE_CLIENTS
	)
	if s.pipe, err = windows.CreateNamedPipe(name, access, mode, 1, pipeBuffer, pipeBuffer, 0, attributes); err != nil {
		return nil, fmt.Errorf("named pipe: %w", os.NewSyscallError("CreateNamedPipe", err))
	}
	return s, nil
}

// forThisUser lets nobody but the user of this process do anything, inherited entries left
// out.
func forThisUser() (*windows.SecurityAttributes, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, os.NewSyscallError("GetTokenInformation", err)
	}
	descriptor, err := windows.SecurityDescriptorFromString("D:P(A;;GA;;;" + user.User.Sid.String() + ")")
	if err != nil {
		return nil, os.NewSyscallError("ConvertStringSecurityDescriptorToSecurityDescriptor", err)
	}
	a := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	a.Length = uint32(unsafe.Sizeof(*a))
	return a, nil
}

// Accept waits for the child with this process id, and then takes nobody else. The error is
// ctx's cause, or wraps ErrStranger.
func (s *Socket) Accept(ctx context.Context, pid int) (Conn, error) {
	var stranger error
	for range maxStrangers {
		if err := s.connect(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return Conn{}, errors.Join(fmt.Errorf("named pipe: %w", err), stranger)
		}
		var peer uint32
		err := windows.GetNamedPipeClientProcessId(s.pipe, &peer)
		if err == nil && int(peer) == pid {
			conn := Conn{os.NewFile(uintptr(s.pipe), s.Path)}
			s.pipe = 0
			return conn, nil
		}
		stranger = fmt.Errorf("%w: process %d, where %d is expected", ErrStranger, peer, pid)
		if err != nil {
			stranger = fmt.Errorf("%w: %w", ErrStranger, os.NewSyscallError("GetNamedPipeClientProcessId", err))
		}
		if err := windows.DisconnectNamedPipe(s.pipe); err != nil {
			return Conn{}, errors.Join(os.NewSyscallError("DisconnectNamedPipe", err), stranger)
		}
	}
	return Conn{}, stranger
}

// connect waits for somebody to open the pipe.
func (s *Socket) connect(ctx context.Context) error {
	if s.pipe == 0 {
		return os.ErrClosed
	}
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return os.NewSyscallError("CreateEvent", err)
	}
	defer windows.CloseHandle(event)
	waits := &windows.Overlapped{HEvent: event}
	switch err := windows.ConnectNamedPipe(s.pipe, waits); err {
	case nil, windows.ERROR_PIPE_CONNECTED:
		return nil
	case windows.ERROR_IO_PENDING:
	default:
		return os.NewSyscallError("ConnectNamedPipe", err)
	}
	// The wait below ends before waits goes away: what is cancelled completes, too.
	pipe := s.pipe
	stop := context.AfterFunc(ctx, func() { _ = windows.CancelIoEx(pipe, waits) })
	defer stop()
	var none uint32
	if err := windows.GetOverlappedResult(s.pipe, waits, &none, true); err != nil {
		return os.NewSyscallError("ConnectNamedPipe", err)
	}
	return nil
}

// Close takes the pipe away. It does not close the connection.
func (s *Socket) Close() {
	if s.pipe != 0 {
		windows.CloseHandle(s.pipe)
		s.pipe = 0
	}
}
