//go:build !linux

package pkgmgr

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// A statDir is nothing where change times are not read: every listing then hashes.
type statDir struct{}

func openStatDir(string) (statDir, error) { return statDir{}, errors.ErrUnsupported }

func (statDir) close() {}

func (statDir) lstat(string) (state.FileStat, error) {
	return state.FileStat{}, errors.ErrUnsupported
}
