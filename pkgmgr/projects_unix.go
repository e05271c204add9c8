//go:build unix

package pkgmgr

import (
	"io/fs"
	"syscall"
)

// writableByOthers reports whether somebody else can change what is in a directory: it
// is writable by others, or by a group that is not its owner's own, without the sticky
// bit.
func writableByOthers(info fs.FileInfo) bool {
	others := info.Mode().Perm() & 0o022
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Gid == st.Uid {
		others &^= 0o020
	}
	return others != 0 && info.Mode()&fs.ModeSticky == 0
}
