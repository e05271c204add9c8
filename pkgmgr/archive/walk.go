package archive

import (
	"context"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
)

// A listing is what Pack and CopyDir take from a directory, judged by the rules
// for archives.
type listing struct {
	files    []sourceFile // sorted by path
	top      string       // the directory that wraps everything, to be removed
	unpacked int64
}

type sourceFile struct {
	path       string // below the source's root
	size       int64
	executable bool
}

// below returns the file's path in the package.
func (l *listing) below(f sourceFile) string {
	if l.top == "" {
		return f.path
	}
	return f.path[len(l.top)+1:]
}

// list walks a directory. What is ignored is neither judged nor entered.
func list(ctx context.Context, root *os.Root, o Options) (*listing, error) {
	ignore, err := readIgnore(root, o)
	if err != nil {
		return nil, err
	}
	w := &lister{ctx: ctx, options: o, ignore: ignore, names: newNamespace(o.limits())}
	if err := w.walk(root, ""); err != nil {
		return nil, err
	}
	l := &listing{files: w.files, unpacked: w.names.unpacked}
	if l.top, err = w.names.finish(); err != nil {
		return nil, err
	}
	slices.SortFunc(l.files, func(a, b sourceFile) int { return strings.Compare(a.path, b.path) })
	return l, nil
}

type lister struct {
	ctx     context.Context
	options Options
	ignore  *ignoreList
	names   *namespace
	files   []sourceFile
}

func (w *lister) walk(d *os.Root, path string) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	entries, err := readDir(d, math.MaxInt)
	if err != nil {
		return err
	}
	// Which of several faults is reported must not depend on the file system.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		full := e.Name()
		if path != "" {
			full = path + "/" + full
		}
		if w.ignore.skip(full, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			err = w.enter(d, e.Name(), full)
		} else {
			err = w.file(d, e.Name(), full)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *lister) enter(d *os.Root, name, path string) error {
	if _, r := w.names.add(path, true, 0); r != nil {
		return r
	}
	sub, err := d.OpenRoot(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	return w.walk(sub, path)
}

func (w *lister) file(d *os.Root, name, path string) error {
	info, err := d.Lstat(name)
	if err != nil {
		return err
	}
	if r := refuseInfo(path, info); r != nil {
		return r
	}
	if _, r := w.names.add(path, false, info.Size()); r != nil {
		return r
	}
	f := sourceFile{path: path, size: info.Size(), executable: info.Mode()&0o100 != 0}
	if !unixModes {
		f.executable = path == w.options.Executable
	}
	w.files = append(w.files, f)
	return nil
}

// openSource opens a listed file, which must still be what it was.
func openSource(d *os.Root, f sourceFile) (*os.File, error) {
	_, name := splitPath(f.path)
	in, err := d.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != f.size || unixModes && (info.Mode()&0o100 != 0) != f.executable) {
		err = refuse(f.path, RuleChanged, "the file changed while it was read")
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}
