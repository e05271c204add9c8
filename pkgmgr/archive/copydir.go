package archive

import (
	"context"
	"io"
	"os"
	"sync"
)

// CopyDir copies the directory src below dst, an empty directory, as Extract
// would unpack the archive that Pack makes of src: the same files, the same
// modes, the same refusals, the same package digest. It leaves out what the
// ignore rules name.
func CopyDir(ctx context.Context, src *os.Root, dst *os.Root, o Options) (*Tree, error) {
	l, err := list(ctx, src, o)
	if err != nil {
		return nil, named(err, src.Name(), "")
	}
	s := newSink(ctx, dst)
	if err := s.close(copyFiles(s, src, l, o)); err != nil {
		return nil, named(err, src.Name(), "")
	}
	t := s.tree("")
	t.Stripped = l.top
	t.NoModes = !unixModes
	return t, nil
}

func copyFiles(s *sink, src *os.Root, l *listing, o Options) error {
	from := newTrail(src, false)
	defer from.close()
	tally := &tally{total: l.unpacked, report: o.Progress}
	for _, f := range l.files {
		parent, _ := splitPath(f.path)
		d, err := from.enter(parent)
		if err != nil {
			return err
		}
		j, err := s.start(l.below(f), f.size, f.executable)
		if err != nil {
			return err
		}
		j.from = d
		j.pull = func(w *worker) error { return w.copy(d.root, f, tally) }
		if err := s.submit(j); err != nil {
			return err
		}
	}
	return nil
}

// A tally adds up what several workers have done and reports it, one call at a time.
type tally struct {
	mu          sync.Mutex
	done, total int64
	report      func(done, total int64) // may be nil
}

func (t *tally) add(n int) {
	if t.report == nil || n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += int64(n)
	t.report(t.done, t.total)
}

// copy hands on the contents of a source file.
func (w *worker) copy(d *os.Root, f sourceFile, t *tally) error {
	in, err := openSource(d, f)
	if err != nil {
		return err
	}
	defer in.Close()
	for {
		n, err := in.Read(w.buffer())
		if w.written+int64(n) > f.size || err == io.EOF && w.written < f.size {
			return refuse(f.path, RuleChanged, "the file changed while it was read")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.put(w.buffer()[:n]); err != nil {
			return err
		}
		t.add(n)
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
	}
}
