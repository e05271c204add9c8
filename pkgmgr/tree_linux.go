package pkgmgr

import (
	"os"

	"golang.org/x/sys/unix"
)

const hasExecuteBits = true

// exchangeTrees swaps two sealed trees in one step.
func exchangeTrees(a, b string) error {
	if err := os.Chmod(a, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(b, 0o755); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return os.Chmod(b, 0o555)
}

// syncTree makes everything below path durable with one call: a file system sync
// costs a fraction of one fsync per file.
func syncTree(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
