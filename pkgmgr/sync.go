package pkgmgr

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// syncDirs makes the entries of directories durable. Windows has no such call:
// its renames are made durable by the file system's own journal.
func syncDirs(paths ...string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, p := range paths {
		d, err := os.Open(p)
		if err != nil {
			return err
		}
		err = d.Sync()
		d.Close()
		if err != nil && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}
