package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
)

// Bounds of the files of the data directory that are read whole, in bytes. Each is
// far beyond what this program writes there.
const (
	maxNoteBytes   = 1 << 20
	maxMarkerBytes = 1 << 16
	maxIntentBytes = 16 << 20
)

// readOwn reads a whole file of the data directory, which the program wrote itself: a
// regular file of at most limit bytes. Anything else that stands there is *Malformed;
// none is waited for or followed. A missing file is fs.ErrNotExist.
func readOwn(path string, limit int64) ([]byte, error) {
	raw, err := textfile.Read(path, limit)
	var owner *textfile.OwnerError
	switch {
	case err == nil:
		return raw, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, textfile.ErrSymlink):
		err = errors.New("is a symbolic link and not a regular file")
	case errors.Is(err, textfile.ErrNotRegular):
		err = errors.New("is not a regular file")
	case errors.Is(err, textfile.ErrTooLarge):
		err = fmt.Errorf("has more than %d bytes", limit)
	case errors.As(err, &owner):
		err = fmt.Errorf("belongs to user %d, not to you (user %d)", owner.Owner, owner.Self)
	default:
		return nil, err
	}
	return nil, &Malformed{Where: filepath.Dir(path), File: filepath.Base(path), Err: err}
}
