//go:build !linux

package pkgmgr

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// lstat fails where change times are not read: every listing then hashes.
func lstat(string) (state.FileStat, error) {
	return state.FileStat{}, errors.ErrUnsupported
}
