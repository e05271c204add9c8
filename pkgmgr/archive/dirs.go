package archive

import (
	"os"
	"strings"
	"sync/atomic"
)

// A dir is an open directory that several goroutines may hold at a time; it is
// closed when the last of them lets go.
type dir struct {
	root *os.Root
	refs atomic.Int32
	keep bool // belongs to somebody else
}

func newDir(root *os.Root) *dir {
	d := &dir{root: root}
	d.refs.Store(1)
	return d
}

func (d *dir) hold() *dir {
	d.refs.Add(1)
	return d
}

func (d *dir) release() {
	if d.refs.Add(-1) == 0 && !d.keep {
		d.root.Close()
	}
}

// A trail keeps the directories from a root down to where its user works open,
// so that entries in path order cost one open for each directory and a file one
// system call whatever its depth. The number of open directories is bounded by
// the depth of a path. A trail is for one goroutine.
type trail struct {
	dirs  []*dir   // dirs[0] is the root
	names []string // names[i] is the component that led to dirs[i+1]

	// made is the set of directories that exist, for a trail that makes what is
	// missing; nil for one that only opens.
	made map[string]bool
}

func newTrail(root *os.Root, makes bool) *trail {
	t := &trail{dirs: []*dir{newDir(root)}}
	t.dirs[0].keep = true
	if makes {
		t.made = map[string]bool{}
	}
	return t
}

// enter returns the open directory at path, "" being the root. The caller holds
// it before the next call of enter if it is to stay open.
func (t *trail) enter(path string) (*dir, error) {
	depth, start := 0, 0
	for start < len(path) {
		end := start + firstSlash(path[start:])
		name := path[start:end]
		if depth < len(t.names) && t.names[depth] == name {
			depth, start = depth+1, end+1
			continue
		}
		t.leave(depth)
		parent := t.dirs[depth].root
		if t.made != nil && !t.made[path[:end]] {
			// It must be new: a file system that takes two names for one would
			// otherwise merge two directories.
			if err := parent.Mkdir(name, 0o755); err != nil {
				return nil, err
			}
			t.made[path[:end]] = true
		}
		root, err := parent.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		t.dirs = append(t.dirs, newDir(root))
		t.names = append(t.names, name)
		depth, start = depth+1, end+1
	}
	t.leave(depth)
	return t.dirs[depth], nil
}

// leave closes the directories below the given depth.
func (t *trail) leave(depth int) {
	for i := len(t.dirs) - 1; i > depth; i-- {
		t.dirs[i].release()
	}
	t.dirs = t.dirs[:depth+1]
	t.names = t.names[:depth]
}

func (t *trail) close() { t.leave(0) }

// splitPath returns the directory and the last component of a path.
func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// firstSlash returns the length of a path's first component.
func firstSlash(path string) int {
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return i
	}
	return len(path)
}
