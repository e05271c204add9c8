package commands

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput throws away what the terminal holds and nobody has read. Where standard
// input is no terminal nothing happens.
func discardInput() {
	_ = unix.IoctlSetInt(int(os.Stdin.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
