//go:build unix

package session

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// direct returns a function that writes as much as w takes without waiting and returns
// how many bytes that were, or nil if w has no descriptor that never waits. An error
// counts as no byte: the next write meets it again.
func direct(w io.Writer) func([]byte) int {
	c, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	never := false
	err = raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		never = err == nil && flags&unix.O_NONBLOCK != 0
	})
	if err != nil || !never {
		return nil
	}
	return func(b []byte) (n int) {
		err := raw.Write(func(fd uintptr) bool {
			n, _ = syscall.Write(int(fd), b)
			return true
		})
		if err != nil {
			return 0
		}
		return max(n, 0)
	}
}
