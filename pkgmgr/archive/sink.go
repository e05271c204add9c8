package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

const (
	chunkSize  = 128 << 10 // unit in which contents travel
	chunkCount = 32        // in flight at most, so 4 MiB
)

// A sink writes files below a directory and hashes them on the way, on as many
// goroutines as there are processors, while its one producer decodes what comes
// next. The first error stops everything; close waits for all.
//
// Files are created anew and nothing is overwritten, synced or given a time.
type sink struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	dirs    *trail
	jobs    chan job
	free    chan []byte
	chunks  int // made so far
	workers sync.WaitGroup
	files   []*digest.File
	chmod   atomic.Bool // creation modes do not arrive, because of the umask
}

// A job is one file to write. Its contents come from exactly one of data,
// parts and pull.
type job struct {
	dir  *dir
	name string
	file *digest.File
	data []byte      // all of it, in a buffer of the sink's
	part chan []byte // buffers of the sink's, closed at the end
	pull puller
	from *dir // held for pull, may be nil
}

// release lets go of what a job holds.
func (j job) release() {
	j.dir.release()
	if j.from != nil {
		j.from.release()
	}
}

// A puller reads a file's contents on a worker's own time and passes them on.
type puller func(w *worker) error

// A worker is one goroutine's equipment.
type worker struct {
	*sink
	hash    hash.Hash
	out     *os.File
	written int64
	probed  [2]bool // creation of plain and executable files was checked
	sum     [sha256.Size]byte
	buf     []byte
	inflate inflater
}

func newSink(ctx context.Context, dst *os.Root) *sink {
	s := &sink{
		dirs: newTrail(dst, true),
		jobs: make(chan job, 16),
		free: make(chan []byte, chunkCount),
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	for range max(2, runtime.GOMAXPROCS(0)) {
		s.workers.Go(s.work)
	}
	return s
}

// close ends the workers and returns the first error of producer and workers.
func (s *sink) close(producer error) error {
	if producer != nil {
		s.cancel(producer)
	}
	close(s.jobs)
	s.workers.Wait()
	s.dirs.close()
	err := context.Cause(s.ctx)
	s.cancel(nil)
	return err
}

// chunk returns a buffer of chunkSize bytes; it waits while all are in use.
func (s *sink) chunk() ([]byte, error) {
	select {
	case b := <-s.free:
		return b[:chunkSize], nil
	default:
	}
	if s.chunks < chunkCount {
		s.chunks++
		return make([]byte, chunkSize), nil
	}
	select {
	case b := <-s.free:
		return b[:chunkSize], nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// start readies a job for the file at path; the caller gives it contents and
// submits it.
func (s *sink) start(path string, size int64, executable bool) (job, error) {
	parent, name := splitPath(path)
	d, err := s.dirs.enter(parent)
	if err != nil {
		return job{}, err
	}
	f := &digest.File{Path: path, Mode: digest.ModeFile, Size: size}
	if executable {
		f.Mode = digest.ModeExecutable
	}
	s.files = append(s.files, f)
	return job{dir: d, name: name, file: f}, nil
}

func (s *sink) submit(j job) error {
	j.dir.hold()
	if j.from != nil {
		j.from.hold()
	}
	select {
	case s.jobs <- j:
		return nil
	case <-s.ctx.Done():
		j.release()
		return context.Cause(s.ctx)
	}
}

// writeFrom writes the file of a started job from the producer's own reader:
// read fills a buffer completely or fails.
func (s *sink) writeFrom(j job, read func([]byte) error) error {
	if j.file.Size <= chunkSize {
		b, err := s.chunk()
		if err != nil {
			return err
		}
		j.data = b[:j.file.Size]
		if err := read(j.data); err != nil {
			return err
		}
		return s.submit(j)
	}
	j.part = make(chan []byte, 4)
	if err := s.submit(j); err != nil {
		return err
	}
	defer close(j.part)
	for left := j.file.Size; left > 0; {
		b, err := s.chunk()
		if err != nil {
			return err
		}
		b = b[:min(left, chunkSize)]
		if err := read(b); err != nil {
			s.cancel(err) // before the channel closes, so that no worker takes this for the end
			return err
		}
		left -= int64(len(b))
		select {
		case j.part <- b:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	return nil
}

func (s *sink) work() {
	w := &worker{sink: s, hash: sha256.New()}
	for j := range s.jobs {
		if s.ctx.Err() != nil {
			j.release()
			continue
		}
		if err := w.write(j); err != nil {
			s.cancel(err)
		}
	}
}

func (w *worker) write(j job) error {
	defer j.release()
	executable := j.file.Mode == digest.ModeExecutable
	perm := fs.FileMode(0o444)
	if executable {
		perm = 0o555
	}
	out, err := j.dir.root.OpenFile(j.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, perm)
	if err != nil {
		return err
	}
	w.out, w.written = out, 0
	w.hash.Reset()
	err = w.fixMode(executable, perm)
	if err == nil {
		err = w.contents(j)
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil && w.written != j.file.Size {
		err = fmt.Errorf("%s: %d bytes written of %d", j.file.Path, w.written, j.file.Size)
	}
	if err != nil {
		return err
	}
	j.file.SHA256 = hex.EncodeToString(w.hash.Sum(w.sum[:0]))
	return nil
}

func (w *worker) contents(j job) error {
	switch {
	case j.pull != nil:
		return j.pull(w)
	case j.part == nil:
		err := w.put(j.data)
		w.free <- j.data
		return err
	}
	for {
		select {
		case b, ok := <-j.part:
			if !ok {
				return context.Cause(w.ctx)
			}
			err := w.put(b)
			w.free <- b
			if err != nil {
				return err
			}
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

// put takes in the next bytes of the file being written.
func (w *worker) put(p []byte) error {
	w.hash.Write(p)
	n, err := w.out.Write(p)
	w.written += int64(n)
	return err
}

// buffer returns the worker's own buffer, for pullers.
func (w *worker) buffer() []byte {
	if w.buf == nil {
		w.buf = make([]byte, chunkSize)
	}
	return w.buf
}

// fixMode gives the file that was just created its mode where creation did not:
// under a umask that takes away read or execute bits. Whether it does is looked
// up once for each worker and kind.
func (w *worker) fixMode(executable bool, perm fs.FileMode) error {
	if !unixModes {
		return nil
	}
	kind := 0
	if executable {
		kind = 1
	}
	if !w.probed[kind] {
		w.probed[kind] = true
		info, err := w.out.Stat()
		if err != nil {
			return err
		}
		if info.Mode().Perm() != perm {
			w.chmod.Store(true)
		}
	}
	if w.chmod.Load() {
		return w.out.Chmod(perm)
	}
	return nil
}

// tree returns the files written, without the directory that wraps them.
func (s *sink) tree(top string) *Tree {
	t := &Tree{Files: make([]digest.File, len(s.files)), Stripped: top}
	for i, f := range s.files {
		t.Files[i] = *f
		t.Unpacked += f.Size
		if top != "" {
			t.Files[i].Path = f.Path[len(top)+1:]
		}
	}
	sortFiles(t.Files)
	return t
}

func sortFiles(files []digest.File) {
	slices.SortFunc(files, func(a, b digest.File) int { return strings.Compare(a.Path, b.Path) })
}
