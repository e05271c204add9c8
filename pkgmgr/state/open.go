package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// foreignWait bounds bbolt's own polling, which only a program that goes by other
// rules, or a system with holdQueue, can cause.
const foreignWait = 10 * time.Second

func (d *DB) view(ctx context.Context, fn func(*Tx) error) error {
	h := handle{path: d.Path(), mode: shared}
	defer h.close()
	leave, err := enterQueue(ctx, d.lockPath(), shared)
	switch {
	case err == nil:
		h.leave = leave
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return err
	}
	// Without a side file, which a View does not create, the other lock must do.
	if err := h.open(ctx); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := d.refuseMissing(); err != nil {
			return err
		}
		h.close()
		tx := Tx{path: h.path, empty: true}
		defer tx.end()
		return fn(&tx)
	}
	return h.run(func(tx *Tx) error {
		if err := d.checkFormat(tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (d *DB) update(ctx context.Context, fn func(*Tx) error) error {
	leave, err := d.enterAlone(ctx)
	if err != nil {
		return err
	}
	h := handle{path: d.Path(), mode: exclusive, leave: leave}
	defer h.close()
	err = h.open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.refuseMissing(); err != nil {
			return err
		}
		if err := d.create(); err != nil {
			return asReadOnly(err)
		}
		err = h.open(ctx)
	}
	if err != nil {
		return asReadOnly(err)
	}
	if err := d.migrate(&h); err != nil {
		return err
	}
	return h.run(fn)
}

// enterAlone takes the queue exclusively, creating the data directory and the
// side file where they are absent.
func (d *DB) enterAlone(ctx context.Context) (leave func(), err error) {
	leave, err = enterQueue(ctx, d.lockPath(), exclusive)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, asReadOnly(err)
		}
		leave, err = enterQueue(ctx, d.lockPath(), exclusive)
	}
	if err != nil {
		return nil, asReadOnly(err)
	}
	return leave, nil
}

// asReadOnly adds ErrReadOnly to an error that says that this user cannot write.
func asReadOnly(err error) error {
	if readOnly(err) && !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

// refuseMissing returns ErrMissing if something is installed in the data
// directory: a package in the store, a default version, a quarantined package.
func (d *DB) refuseMissing() error {
	for _, place := range [...]struct{ dir, prefix string }{
		{"store", "sha256-"}, {"plugins", ""}, {"quarantine", ""},
	} {
		dir := filepath.Join(d.dir, place.dir)
		f, err := os.Open(dir)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
				continue
			}
			return err
		}
		names, err := f.Readdirnames(-1)
		f.Close()
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasPrefix(name, place.prefix) {
				return fmt.Errorf("%s: %w: %s is not empty", d.Path(), ErrMissing, dir)
			}
		}
	}
	return nil
}

// A handle is the open database of one transaction, with the locks held for it.
type handle struct {
	path  string
	mode  lockMode
	leave func()   // leaves the queue; nil when it is left
	file  *os.File // as bbolt opened it; closed by bbolt, or by us if bbolt panicked
	bolt  *bolt.DB
}

// open opens an existing database. Errors: fs.ErrNotExist and the like as they
// are, ErrBusy, *CorruptError.
func (h *handle) open(ctx context.Context) (err error) {
	o := bolt.Options{
		ReadOnly:     h.mode == shared,
		NoStatistics: true,
		Timeout:      foreignWait,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return h.openFile(ctx, path, flag, mode)
		},
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer h.recover(&err)
	h.bolt, err = bolt.Open(h.path, 0o600, &o)
	var (
		corrupt *CorruptError
		errno   syscall.Errno
	)
	switch {
	case err == nil, h.file == nil, errors.As(err, &corrupt), errors.As(err, &errno):
		return err
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: %w", h.path, ErrBusy)
	}
	return h.corrupt(err.Error(), err)
}

// openFile opens the file for bbolt, locked.
func (h *handle) openFile(ctx context.Context, path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag&^os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	if !holdQueue {
		if err := acquire(ctx, lockFile(f.Fd()), h.mode, func() { f.Close() }); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if h.mode == shared {
			h.leaveQueue()
		}
	}
	h.file = f
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if info.Size() == 0 {
		return nil, h.corrupt("the file is empty", nil)
	}
	return f, nil
}

func (h *handle) leaveQueue() {
	if h.leave != nil {
		h.leave()
		h.leave = nil
	}
}

// run runs fn in one transaction on the open database.
func (h *handle) run(fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer h.recover(&err)
	b, err := h.bolt.Begin(h.mode == exclusive)
	if err != nil {
		return fmt.Errorf("%s: %w", h.path, err)
	}
	tx := Tx{path: h.path, bolt: b}
	defer tx.end()
	if info, err := h.file.Stat(); err != nil {
		return err
	} else if info.Size() < b.Size() {
		return h.corrupt(fmt.Sprintf("the file has %d bytes of %d", info.Size(), b.Size()), nil)
	}
	if err := fn(&tx); errors.Is(err, bolterrors.ErrIncompatibleValue) {
		return h.corrupt("a bucket where a value belongs, or the reverse", err)
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
		return fmt.Errorf("%s: commit: %w", h.path, err)
	default: // not the system's refusal, so what was read led nowhere
		return h.corrupt("commit: "+err.Error(), err)
	}
}

// close closes the database and gives its locks up; it may be called again. After a
// panic inside bbolt its mutexes may be held, so only the file is closed then
// and the mapping is left to the process's end.
func (h *handle) close() {
	if h.file != nil {
		if !holdQueue {
			lockFile(h.file.Fd()).unlock()
		}
		if h.bolt != nil {
			_ = h.bolt.Close()
		} else {
			_ = h.file.Close()
		}
	}
	h.file, h.bolt = nil, nil
	h.leaveQueue()
}

func (h *handle) corrupt(detail string, cause error) error {
	return &CorruptError{Path: h.path, Detail: detail, Cause: cause}
}

// recover turns a panic that damaged data caused into a *CorruptError: bbolt
// asserts by panic, and reading beyond the end of a mapped file is a fault. Any
// other panic goes on.
func (h *handle) recover(err *error) {
	p := recover()
	if p == nil {
		return
	}
	if _, fault := p.(interface{ Addr() uintptr }); !fault && !panicInBolt() {
		panic(p)
	}
	h.bolt = nil // not to be touched again
	h.close()
	cause, _ := p.(error)
	*err = h.corrupt(fmt.Sprint(p), cause)
}

// panicInBolt reports whether the panic being recovered was raised by bbolt's
// code, going by the first frame below the runtime's.
func panicInBolt() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime."):
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}
