package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bounds limit what one call looks at.
type bounds struct {
	entries int           // files and directories
	depth   int           // directories inside each other
	text    int64         // bytes read of a file for its meaning
	hashed  int64         // bytes read of all files for an inventory
	time    time.Duration // for one walk; 0: as long as the host waits
}

var defaultBounds = bounds{entries: 100_000, depth: 64, text: 64 << 10, hashed: 8 << 30, time: 12 * time.Second}

// skipped are directories whose content is not the project's own work.
var skipped = []string{".git", ".hg", ".jj", ".svn", "node_modules"}

// errOutOfBounds ends a walk at one of the bounds.
var errOutOfBounds = errors.New("out of bounds")

// A file is a regular file as a walk meets it.
type file struct {
	path string   // '/'-separated, relative to the project
	dir  *os.Root // the directory it stands in, open during the visit only
	name string   // within dir
	size int64
}

// open opens the file for reading. It refuses whatever has taken its place, and
// does not wait for the other end of a pipe.
func (f file) open() (*os.File, error) {
	h, err := f.dir.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: errors.New("not a regular file any more")}
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// A tally is what a walk met besides the files it visited.
type tally struct {
	files, directories int
	bytes              int64
	links, special     int
	unreadable         []string // paths, at most maxNamed
	moreUnreadable     int
	stopped            string // why the walk is incomplete, or ""
}

const maxNamed = 20

func (t *tally) cannotRead(path string) {
	if len(t.unreadable) < maxNamed {
		t.unreadable = append(t.unreadable, path)
	} else {
		t.moreUnreadable++
	}
}

// walk visits every regular file below root in a fixed order. Links are not
// followed. It returns an error if visit does or ctx ends; at a bound it stops
// and says so in the tally.
func walk(ctx context.Context, root *os.Root, b bounds, visit func(file) error) (*tally, error) {
	limited := ctx
	if b.time > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, b.time)
		defer cancel()
	}
	w := walker{ctx: limited, bounds: b, visit: visit, tally: &tally{}}
	err := w.directory(root, "", 0)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		w.tally.stopped = "stopped after " + b.time.String()
	case errors.Is(err, errOutOfBounds):
	case err != nil:
		return nil, err
	}
	return w.tally, nil
}

type walker struct {
	ctx    context.Context
	bounds bounds
	visit  func(file) error
	seen   int // entries so far
	tally  *tally
}

func (w *walker) directory(dir *os.Root, prefix string, depth int) error {
	entries, err := w.list(dir)
	if err != nil {
		w.tally.cannotRead(path.Join(".", prefix))
		return nil
	}
	for _, name := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.seen++; w.seen > w.bounds.entries {
			w.tally.stopped = "stopped after " + count(w.bounds.entries, "entry", "entries")
			return errOutOfBounds
		}
		at := path.Join(prefix, name)
		info, err := dir.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // gone since it was listed
		case err != nil:
			w.tally.cannotRead(at)
		case info.IsDir():
			if err := w.enter(dir, name, at, depth); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			w.tally.files++
			w.tally.bytes += info.Size()
			if err := w.visit(file{path: at, dir: dir, name: name, size: info.Size()}); err != nil {
				return err
			}
		case info.Mode()&fs.ModeSymlink != 0:
			w.tally.links++
		default:
			w.tally.special++
		}
	}
	return nil
}

func (w *walker) enter(parent *os.Root, name, at string, depth int) error {
	if slices.Contains(skipped, name) {
		return nil
	}
	w.tally.directories++
	if depth+1 >= w.bounds.depth {
		w.tally.stopped = "directories more than " + count(w.bounds.depth, "level", "levels") + " deep were left out"
		return nil
	}
	sub, err := parent.OpenRoot(name)
	if err != nil {
		w.tally.cannotRead(at)
		return nil
	}
	defer sub.Close()
	return w.directory(sub, at, depth+1)
}

// list returns the sorted names in dir, but no more than the walk may still
// visit, and one to notice that.
func (w *walker) list(dir *os.Root) ([]string, error) {
	h, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer h.Close()
	names, err := h.Readdirnames(w.bounds.entries - w.seen + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(names, strings.Compare)
	return names, nil
}

// readStart returns at most max bytes from the start of a file.
func readStart(f file, max int64) ([]byte, error) {
	h, err := f.open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return io.ReadAll(io.LimitReader(h, max))
}
