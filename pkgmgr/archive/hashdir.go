package archive

import (
	"context"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// HashDir returns the files below root with their digests, as they stand on
// disk. It refuses links, special files, set-id and sticky bits, names that
// Extract would refuse, and more than Default allows; directories as such,
// their modes and empty ones do not count.
//
// The largest files are hashed first, on as many goroutines as there are
// processors left: all calls in the process together use one extra goroutine
// for each processor but the first, so that several may run at a time, one on
// each goroutine of the caller's.
func HashDir(ctx context.Context, root *os.Root) (*Tree, error) {
	t, _, err := hashDir(ctx, root, nil, newHashQueue(ctx))
	return t, err
}

// HashDirAlone is HashDir on the caller's goroutine alone, for callers that keep
// every processor busy themselves.
func HashDirAlone(ctx context.Context, root *os.Root) (*Tree, error) {
	q := newHashQueue(ctx)
	q.alone = true
	t, _, err := hashDir(ctx, root, nil, q)
	return t, err
}

// HashDirOpen is HashDir, and returns the files at the paths in keep still open
// for reading: the very files that were hashed, whatever their names come to
// mean. A path that is no file yields nil. The caller closes them.
func HashDirOpen(ctx context.Context, root *os.Root, keep ...string) (*Tree, []*os.File, error) {
	return hashDir(ctx, root, keep, newHashQueue(ctx))
}

func hashDir(ctx context.Context, root *os.Root, keep []string, q *hashQueue) (*Tree, []*os.File, error) {
	w := &hashWalk{queue: q, keep: keep, kept: make([]*os.File, len(keep)), limits: Default}
	if err := w.queue.finish(w.walk(root, "", 1)); err != nil {
		for _, f := range w.kept {
			if f != nil {
				f.Close()
			}
		}
		return nil, nil, named(err, root.Name(), "")
	}
	t := &Tree{Files: make([]digest.File, len(w.files)), Unpacked: w.total, NoModes: !unixModes}
	for i, f := range w.files {
		t.Files[i] = *f
	}
	sortFiles(t.Files)
	return t, w.kept, nil
}

// A hashWalk opens the files of a tree and queues them for being hashed.
type hashWalk struct {
	queue  *hashQueue
	keep   []string
	kept   []*os.File
	limits Limits
	nodes  int
	total  int64
	files  []*digest.File
}

// walk opens what is in the directory d, which lies at path.
func (w *hashWalk) walk(d *os.Root, path string, depth int) error {
	if err := w.queue.failed(); err != nil {
		return err
	}
	entries, err := readDir(d, w.limits.Entries-w.nodes)
	if err != nil {
		return err
	}
	w.nodes += len(entries)
	if w.nodes > w.limits.Entries {
		return refuse(path, RuleEntries, "more than %d files and directories", w.limits.Entries)
	}
	for _, e := range entries {
		name := e.Name()
		full := name
		if path != "" {
			full = path + "/" + name
		}
		if rule, why := checkComponent(name); rule != "" {
			return refuse(full, rule, "%s", why)
		}
		if len(full) > w.limits.PathBytes {
			return refuse(full, RulePathLength, "the path has %d bytes, at most %d are allowed", len(full), w.limits.PathBytes)
		}
		if depth > w.limits.Depth {
			return refuse(full, RuleDepth, "the path has %d components, at most %d are allowed", depth, w.limits.Depth)
		}
		switch kind := e.Type(); {
		case kind.IsDir():
			sub, err := d.OpenRoot(name)
			if err != nil {
				return err
			}
			err = w.walk(sub, full, depth+1)
			sub.Close()
			if err != nil {
				return err
			}
		case !kind.IsRegular():
			return refuseKind(full, kind)
		default:
			if err := w.open(d, name, full); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuseKind refuses what is neither a file nor a directory.
func refuseKind(path string, kind fs.FileMode) *Refusal {
	if kind&fs.ModeSymlink != 0 {
		return refuse(path, RuleLink, "it is a symbolic link")
	}
	return refuse(path, RuleSpecial, "it is neither a file nor a directory")
}

// refuseInfo refuses an opened file for what its inode says.
func refuseInfo(path string, info fs.FileInfo) *Refusal {
	mode := info.Mode()
	switch {
	case !mode.IsRegular():
		return refuseKind(path, mode.Type())
	case mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
		return refuse(path, RuleMode, "it has a set-user-id, set-group-id or sticky bit")
	}
	return nil
}

// open opens one file and queues it.
func (w *hashWalk) open(d *os.Root, name, path string) error {
	in, err := d.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err != nil {
		in.Close()
		return err
	}
	if r := refuseInfo(path, info); r != nil {
		in.Close()
		return r
	}
	f := &digest.File{Path: path, Mode: digest.ModeFile, Size: info.Size()}
	if info.Mode()&0o100 != 0 && unixModes {
		f.Mode = digest.ModeExecutable
	}
	if f.Size > w.limits.Unpacked-w.total {
		in.Close()
		return refuse(path, RuleUnpackedSize, "the files have more than %d bytes together", w.limits.Unpacked)
	}
	w.total += f.Size
	w.files = append(w.files, f)
	kept := slices.Index(w.keep, path)
	if kept >= 0 {
		w.kept[kept] = in
	}
	w.queue.push(hashFile{in: in, file: f, keep: kept >= 0})
	return nil
}

// readDir returns the entries of d in no order, and no more than it takes to
// see that there are more than most.
func readDir(d *os.Root, most int) ([]fs.DirEntry, error) {
	f, err := d.OpenFile(".", os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		batch, err := f.ReadDir(1024)
		all = append(all, batch...)
		if err == io.EOF || err == nil && len(all) > most {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
