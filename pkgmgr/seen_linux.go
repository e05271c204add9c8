package pkgmgr

import (
	"golang.org/x/sys/unix"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// A statDir is an open directory below which many files are looked at: a short path
// costs the system less than a long one.
type statDir int

func openStatDir(path string) (statDir, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return statDir(fd), err
}

func (d statDir) close() { unix.Close(int(d)) }

// lstat returns what the file system says about the file itself; Path is left empty.
func (d statDir) lstat(name string) (state.FileStat, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return state.FileStat{}, err
		}
		return state.FileStat{Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mode: st.Mode,
			MtimeNs: st.Mtim.Nano(), CtimeNs: st.Ctim.Nano()}, nil
	}
}
