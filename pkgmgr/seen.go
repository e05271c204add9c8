package pkgmgr

import (
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// timestampGrain is how far back a change must lie before its timestamp can tell
// it from the next one: file systems round times to as much as a kernel tick.
const timestampGrain = 50 * time.Millisecond

// statTree returns what the file system says about every file and directory of a
// package, the root included. Entries of directories show in their times.
func statTree(root string) ([]state.FileStat, error) {
	var stats []state.FileStat
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		s, err := lstat(p)
		if err != nil {
			return err
		}
		s.Path = strings.TrimPrefix(strings.TrimPrefix(filepath.ToSlash(p), filepath.ToSlash(root)), "/")
		stats = append(stats, s)
		return nil
	})
	return stats, err
}

// unchanged reports whether every file and directory is as it was. It reads no
// file. It serves display only: decisions always hash.
func unchanged(root string, stats []state.FileStat) bool {
	for _, want := range stats {
		p := root
		if want.Path != "" {
			p = root + "/" + want.Path
		}
		got, err := lstat(p)
		if err != nil {
			return false
		}
		got.Path = want.Path
		if got != want {
			return false
		}
	}
	return len(stats) > 0
}

// settled reports whether the newest change lies far enough back to be told from
// one that comes now.
func settled(stats []state.FileStat, now time.Time) bool {
	limit := now.Add(-timestampGrain).UnixNano()
	for _, s := range stats {
		if s.MtimeNs > limit || s.CtimeNs > limit {
			return false
		}
	}
	return true
}
