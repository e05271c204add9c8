package pkgmgr

import (
	"golang.org/x/sys/unix"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// lstat returns what the file system says about p itself; Path is left empty.
func lstat(p string) (state.FileStat, error) {
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return state.FileStat{}, err
	}
	return state.FileStat{Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mode: st.Mode,
		MtimeNs: st.Mtim.Nano(), CtimeNs: st.Ctim.Nano()}, nil
}
