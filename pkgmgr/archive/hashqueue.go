package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

const (
	// firstBuffer is small: in a process that hashes one package and ends, page
	// faults on a larger buffer cost more than its fewer reads save.
	firstBuffer = 32 << 10
	// laterBuffer takes its place after worthBuffer bytes, when reads cost more.
	laterBuffer = 128 << 10
	worthBuffer = 8 << 20
	// maxOpen bounds the files that wait, opened, for being hashed.
	maxOpen = 64
	// worthHelp is the least number of waiting bytes, the largest file's not
	// counted, for which another goroutine is woken.
	worthHelp = 128 << 10
)

// helpers returns what holds a token for each extra goroutine that hashes in the process.
func helpers() chan struct{} {
	spare.once.Do(func() { spare.tokens = make(chan struct{}, max(0, runtime.GOMAXPROCS(0)-1)) })
	return spare.tokens
}

var spare struct {
	once   sync.Once
	tokens chan struct{}
}

// A hashQueue holds opened files until they are hashed, the largest first, by
// helpers and by the goroutine that pushes them.
type hashQueue struct {
	ctx     context.Context
	alone   bool // no helper is started
	helpers sync.WaitGroup
	own     *hashWorker // the pushing goroutine's

	mu      sync.Mutex
	changed *sync.Cond // a file was pushed, or there will be no more
	files   []hashFile
	waiting int64 // bytes in files
	closed  bool
	err     error
}

type hashFile struct {
	in   *os.File
	file *digest.File // Size is known, SHA256 to be set
	keep bool         // leave it open
}

func newHashQueue(ctx context.Context) *hashQueue {
	q := &hashQueue{ctx: ctx}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// failed returns the reason to stop, if there is one.
func (q *hashQueue) failed() error {
	if err := context.Cause(q.ctx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

func (q *hashQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
}

// push takes over an opened file. It hashes one itself if too many wait.
func (q *hashQueue) push(f hashFile) {
	q.mu.Lock()
	q.files = append(q.files, f)
	q.waiting += f.file.Size
	full := len(q.files) >= maxOpen
	largest := int64(0)
	for _, f := range q.files {
		largest = max(largest, f.file.Size)
	}
	help := !q.alone && (full || q.waiting-largest >= worthHelp)
	q.mu.Unlock()
	q.changed.Signal()
	if help {
		q.help()
	}
	if full {
		q.work(false)
	}
}

// help starts a helper if the process has one left.
func (q *hashQueue) help() {
	tokens := helpers()
	select {
	case tokens <- struct{}{}:
		q.helpers.Go(func() {
			w := newHashWorker()
			for {
				f, ok := q.pop(true)
				if !ok {
					break
				}
				w.take(q, f)
			}
			w.release()
			<-tokens
		})
	default:
	}
}

// finish hashes what is left after the last push, whose error it is given, and
// returns the first error of all.
func (q *hashQueue) finish(err error) error {
	if err != nil {
		q.fail(err)
	}
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.changed.Broadcast()
	q.work(true)
	q.helpers.Wait()
	if q.own != nil {
		q.own.release()
	}
	return q.failed()
}

// work hashes one file, or all, on the pushing goroutine.
func (q *hashQueue) work(all bool) {
	for {
		f, ok := q.pop(false)
		if !ok {
			return
		}
		if q.own == nil {
			q.own = newHashWorker()
		}
		q.own.take(q, f)
		if !all {
			return
		}
	}
}

// pop takes the largest file out. If there is none it waits for one, until
// finish is called, or gives up at once.
func (q *hashQueue) pop(wait bool) (hashFile, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for wait && len(q.files) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.files) == 0 {
		return hashFile{}, false
	}
	at := 0
	for i, f := range q.files {
		if f.file.Size > q.files[at].file.Size {
			at = i
		}
	}
	f, last := q.files[at], len(q.files)-1
	q.files[at] = q.files[last]
	q.files = q.files[:last]
	q.waiting -= f.file.Size
	return f, true
}

// A hashWorker is what one goroutine hashes with.
type hashWorker struct {
	hash hash.Hash
	buf  []byte
	done int64 // bytes that were read into buf, or into one before it
	sum  [sha256.Size]byte
}

var hashWorkers = sync.Pool{New: func() any {
	return &hashWorker{hash: sha256.New(), buf: make([]byte, firstBuffer)}
}}

func newHashWorker() *hashWorker { return hashWorkers.Get().(*hashWorker) }

func (w *hashWorker) release() { hashWorkers.Put(w) }

// take hashes a file, or after an error only closes it.
func (w *hashWorker) take(q *hashQueue, f hashFile) {
	err := q.failed()
	if err == nil {
		if err = w.read(q, f); err != nil {
			q.fail(err)
		}
	}
	if !f.keep {
		f.in.Close()
	}
}

// read hashes as many bytes as the file had when it was opened, and refuses it
// if it has fewer or more now. It leaves the file's own offset alone.
func (w *hashWorker) read(q *hashQueue, f hashFile) error {
	w.hash.Reset()
	if w.done += f.file.Size; w.done >= worthBuffer && len(w.buf) < laterBuffer {
		w.buf = make([]byte, laterBuffer)
	}
	for at := int64(0); ; {
		n, err := f.in.ReadAt(w.buf, at)
		w.hash.Write(w.buf[:n])
		at += int64(n)
		if at > f.file.Size || err == io.EOF && at < f.file.Size {
			return refuse(f.file.Path, RuleChanged, "the file changed while it was read")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := context.Cause(q.ctx); err != nil {
			return err
		}
	}
	f.file.SHA256 = hex.EncodeToString(w.hash.Sum(w.sum[:0]))
	return nil
}
