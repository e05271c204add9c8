package session

import (
	"os"

	"golang.org/x/sys/unix"
)

// credentials returns who is at the other end, as the kernel noted when it connected.
func credentials(conn *os.File) (uid, pid int, err error) {
	err = control(conn, func(fd int) error {
		who, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err != nil {
			return err
		}
		uid = int(who.Uid)
		pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		return err
	})
	return uid, pid, err
}
