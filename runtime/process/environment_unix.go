//go:build unix

package process

import (
	"os"
	"syscall"
)

// look uses the system calls themselves: a PATH takes some thirty of them
// before every call.
func look(path string) sighting {
	var s sighting
	var stat syscall.Stat_t
	err := syscall.Lstat(path, &stat)
	if err == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		s.link = true
		err = syscall.Stat(path, &stat)
	}
	switch {
	case err != nil:
		s.writability = missing
	case stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		s.writability = open // its owner can write
	case stat.Mode&0o002 == 0:
		s.writability = closed
	case stat.Mode&syscall.S_ISVTX != 0:
		s.writability = sticky
	default:
		s.writability = open
	}
	return s
}

// within reports whether path is dir or lies in it; both are clean.
func within(dir, path string) bool {
	if len(path) <= len(dir) {
		return path == dir
	}
	return path[:len(dir)] == dir && (path[len(dir)] == '/' || dir == "/")
}
