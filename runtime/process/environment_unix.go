//go:build unix

package process

import "os"

func look(path string) sighting {
	var s sighting
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		s.link = true
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		s.writability = missing
	case info.Mode().Perm()&0o002 == 0:
		s.writability = closed
	case info.Mode()&os.ModeSticky != 0:
		s.writability = sticky
	default:
		s.writability = open
	}
	return s
}
