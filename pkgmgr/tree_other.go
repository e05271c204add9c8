//go:build !linux

package pkgmgr

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const hasExecuteBits = runtime.GOOS != "windows"

// exchangeTrees swaps two sealed trees by three renames: this system has no
// exchange that Go offers. A reader may see no tree at b for an instant.
func exchangeTrees(a, b string) error {
	for _, p := range []string{a, b} {
		if err := os.Chmod(p, 0o755); err != nil {
			return err
		}
	}
	aside := a + asideSuffix
	if err := os.Rename(b, aside); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return err
	}
	if err := os.Rename(aside, a); err != nil {
		return err
	}
	return os.Chmod(b, 0o555)
}

// syncTree makes every file below path durable.
func syncTree(path string) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
