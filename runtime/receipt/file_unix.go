//go:build unix

package receipt

import (
	"io/fs"
	"os"
)

// exposed are the modes under which others can read a file.
const exposed fs.FileMode = 0o077

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
