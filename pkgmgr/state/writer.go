package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// foreignWait bounds bbolt's own polling, which only a program that goes by other
// rules, or a reader where the system has holdQueue, can cause.
const foreignWait = 10 * time.Second

// A writer is the database opened by bbolt for one Update. Its owner holds the queue.
type writer struct {
	path string
	file *os.File // as bbolt opened it; closed by bbolt, or by us if bbolt panicked
	bolt *bolt.DB
}

// open opens an existing database. Errors: fs.ErrNotExist and the like as they
// are, ErrBusy, *CorruptError.
func (w *writer) open(ctx context.Context) (err error) {
	o := bolt.Options{
		NoStatistics: true,
		Timeout:      foreignWait,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return w.openFile(ctx, path, flag, mode)
		},
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer w.recover(&err)
	w.bolt, err = bolt.Open(w.path, 0o600, &o)
	var (
		corrupt *CorruptError
		errno   syscall.Errno
	)
	switch {
	case err == nil, w.file == nil, errors.As(err, &corrupt), errors.As(err, &errno):
		return err
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: %w", w.path, ErrBusy)
	}
	return w.corrupt(err.Error(), err)
}

// openFile opens the file for bbolt, locked.
func (w *writer) openFile(ctx context.Context, path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag&^os.O_CREATE|noWait, mode)
	if err != nil {
		return nil, err
	}
	if !holdQueue {
		if err := acquire(ctx, lockFile(f.Fd()), exclusive, func() { f.Close() }); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	w.file = f
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, notRegular(path)
	} else if info.Size() == 0 {
		return nil, w.corrupt("the file is empty", nil)
	}
	// bbolt believes what it maps: a circle among pages ends the process, and a free
	// page that is in use is overwritten.
	file, err := readFile(f)
	if err == nil && file.Size() <= verifyUpdate {
		err = asCorrupt(path, file.Verify())
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// run runs fn in one transaction on the open database.
func (w *writer) run(fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer w.recover(&err)
	b, err := w.bolt.Begin(true)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	tx := Tx{path: w.path, bolt: b}
	defer tx.end()
	if info, err := w.file.Stat(); err != nil {
		return err
	} else if info.Size() < b.Size() {
		return w.corrupt(fmt.Sprintf("the file has %d bytes of %d", info.Size(), b.Size()), nil)
	}
	if err := fn(&tx); errors.Is(err, bolterrors.ErrIncompatibleValue) {
		return w.corrupt("a bucket where a value belongs, or the reverse", err)
	} else if err != nil {
		return err
	}
	if !tx.dirty {
		return nil
	}
	tx.bolt = nil
	var errno syscall.Errno
	switch err := b.Commit(); {
	case err == nil:
		return nil
	case errors.As(err, &errno):
		return fmt.Errorf("%s: commit: %w", w.path, err)
	default: // not the system's refusal, so what was read led nowhere
		return w.corrupt("commit: "+err.Error(), err)
	}
}

// close closes the database and gives its lock up; it may be called again. After a
// panic inside bbolt its mutexes may be held, so only the file is closed then
// and the mapping is left to the process's end.
func (w *writer) close() {
	if w.file != nil {
		if !holdQueue {
			lockFile(w.file.Fd()).unlock()
		}
		if w.bolt != nil {
			_ = w.bolt.Close()
		} else {
			_ = w.file.Close()
		}
	}
	w.file, w.bolt = nil, nil
}

func (w *writer) corrupt(detail string, cause error) error {
	return &CorruptError{Path: w.path, Detail: detail, Cause: cause}
}

// recover turns a panic that damaged data caused into a *CorruptError: bbolt
// asserts by panic, and reading beyond the end of a mapped file is a fault. Any
// other panic goes on.
func (w *writer) recover(err *error) {
	p := recover()
	if p == nil {
		return
	}
	if _, fault := p.(interface{ Addr() uintptr }); !fault && !panicInBolt() {
		panic(p)
	}
	w.bolt = nil // not to be touched again
	w.close()
	// What was thrown speaks of the program and not of the file.
	*err = w.corrupt("its pages contradict each other", nil)
}

// inStandardLibrary reports whether a function is of a package without a domain.
func inStandardLibrary(function string) bool {
	first, _, deep := strings.Cut(function, "/")
	return !deep || !strings.Contains(first, ".")
}

// panicInBolt reports whether the panic being recovered was raised by bbolt's
// code or by what it calls of the standard library.
func panicInBolt() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && strings.HasPrefix(f.Function, "go.etcd.io/bbolt"):
			return true
		case panicking && !inStandardLibrary(f.Function):
			return false
		}
		if !more {
			return false
		}
	}
}
