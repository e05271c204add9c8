//go:build unix

package verify

import (
	"io/fs"
	"os"
	"syscall"
)

// mayStart refuses a file or directory that somebody else than the owner of the
// program, the user or root controls.
func mayStart(program, other fs.FileInfo) error {
	uid := int(other.Sys().(*syscall.Stat_t).Uid)
	if uid != 0 && uid != os.Geteuid() && uid != int(program.Sys().(*syscall.Stat_t).Uid) {
		return errOwner(uid)
	}
	if other.Mode().Perm()&0o022 != 0 && (!other.IsDir() || other.Mode()&fs.ModeSticky == 0) {
		return errWritable
	}
	return nil
}
