package session

import (
	"os"

	"golang.org/x/sys/unix"
)

// credentials returns who is at the other end, as the kernel noted when it connected.
func credentials(conn *os.File) (uid, pid int, err error) {
	err = control(conn, func(fd int) error {
		who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid, pid = int(who.Uid), int(who.Pid)
		}
		return err
	})
	return uid, pid, err
}
