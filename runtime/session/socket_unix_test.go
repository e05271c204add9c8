//go:build linux || darwin

package session

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The socket stands where only this user can come; only the expected process is taken, and
// after it nobody.
func TestSocket(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(filepath.Dir(s.Path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info.Mode(), err)
	}
	dialed := make(chan net.Conn, 1)
	go func() {
		conn, err := net.Dial("unix", s.Path)
		if err != nil {
			t.Error(err)
		}
		dialed <- conn
	}()
	conn, err := s.Accept(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer (<-dialed).Close()
	if _, err := net.Dial("unix", s.Path); err == nil {
		t.Fatal("a second process could connect")
	}
	if _, err := os.Stat(filepath.Dir(s.Path)); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the directory is still there")
	}
}

// A process that is not the child is turned away, and does not end the wait.
func TestSocketTurnsStrangersAway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		if conn, err := net.Dial("unix", s.Path); err == nil {
			defer conn.Close()
			conn.Read(make([]byte, 1)) // until it is closed
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Accept(ctx, os.Getpid()+1); !errors.Is(err, ErrStranger) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}
