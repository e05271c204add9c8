//go:build unix

package commands

import (
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether this user may change a file's mode.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(st.Uid) == os.Geteuid())
}
