//go:build unix

package process

import "os"

func writableByOthers(dir string) writability {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return missing
	case info.Mode().Perm()&0o002 == 0:
		return closed
	case info.Mode()&os.ModeSticky != 0:
		return sticky
	}
	return open
}
