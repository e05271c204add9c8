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

// A watcher looks whether packages below plugins/ are as they were seen. It serves
// display only: decisions always hash.
type watcher struct {
	path string
	dir  statDir
	ok   bool
}

// watch opens plugins/. Where that does not exist or the system tells too little,
// nothing is ever as it was seen.
func (h *Home) watch() *watcher {
	w := &watcher{path: h.join(pluginsDir)}
	var err error
	w.dir, err = openStatDir(w.path)
	w.ok = err == nil
	return w
}

func (w *watcher) close() {
	if w.ok {
		w.dir.close()
	}
}

// facts returns what the file system says about every file and directory of a
// package, its root included. Entries of directories show in their times. It is
// nil where the system tells too little.
func (w *watcher) facts(name string) []state.FileStat {
	if !w.ok {
		return nil
	}
	var stats []state.FileStat
	root := filepath.Join(w.path, name)
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner := filepath.ToSlash(strings.TrimPrefix(p, root))
		s, err := w.dir.lstat(name + inner)
		if err != nil {
			return err
		}
		s.Path = strings.TrimPrefix(inner, "/")
		stats = append(stats, s)
		return nil
	})
	if err != nil {
		return nil
	}
	return stats
}

// unchanged reports whether every file and directory is as it was. It reads no
// file.
func (w *watcher) unchanged(name string, stats []state.FileStat) bool {
	if !w.ok || len(stats) == 0 {
		return false
	}
	path := make([]byte, 0, 256)
	for i := range stats {
		want := &stats[i]
		path = append(path[:0], name...)
		if want.Path != "" {
			path = append(append(path, '/'), want.Path...)
		}
		got, err := w.dir.lstat(string(path))
		if err != nil {
			return false
		}
		got.Path = want.Path
		if got != *want {
			return false
		}
	}
	return true
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
