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

// foreignWait bounds the wait for bbolt's own lock. Whoever goes by the side lock
// never meets it; it is held only by a program that does not, or through
// another mount of a data directory that is read-only here and has no side file.
const foreignWait = 5 * time.Second

func (d *DB) view(ctx context.Context, fn func(*Tx) error) error {
	release, err := lock(ctx, d.lockPath(), shared)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		// No side file, and a View creates nothing: bbolt's own lock must do.
		if err := ctx.Err(); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		defer release()
	}
	h := handle{path: d.Path()}
	if err := h.open(bolt.Options{ReadOnly: true}); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := d.refuseMissing(); err != nil {
			return err
		}
		tx := Tx{path: h.path, empty: true}
		defer tx.end()
		return fn(&tx)
	}
	defer h.close()
	return h.run(false, func(tx *Tx) error {
		if err := d.checkFormat(tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (d *DB) update(ctx context.Context, fn func(*Tx) error) error {
	release, err := d.lockExclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	h := handle{path: d.Path()}
	err = h.open(bolt.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.refuseMissing(); err != nil {
			return err
		}
		if err := d.create(); err != nil {
			return asReadOnly(err)
		}
		err = h.open(bolt.Options{})
	}
	if err != nil {
		return asReadOnly(err)
	}
	defer h.close()
	if err := d.migrate(&h); err != nil {
		return err
	}
	return h.run(true, fn)
}

// lockExclusive takes the exclusive side lock, creating the data directory and
// the side file where they are absent.
func (d *DB) lockExclusive(ctx context.Context) (release func(), err error) {
	release, err = lock(ctx, d.lockPath(), exclusive)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, asReadOnly(err)
		}
		release, err = lock(ctx, d.lockPath(), exclusive)
	}
	if err != nil {
		return nil, asReadOnly(err)
	}
	return release, nil
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

// A handle is the open database of one transaction. The caller holds the side lock.
type handle struct {
	path string
	file *os.File // as bbolt opened it; closed by bbolt, or by us if bbolt panicked
	bolt *bolt.DB
}

// open opens an existing database. Errors: fs.ErrNotExist and the like as they
// are, ErrBusy, *CorruptError.
func (h *handle) open(o bolt.Options) (err error) {
	o.NoStatistics = true
	o.Timeout = foreignWait
	o.OpenFile = func(path string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(path, flag&^os.O_CREATE, mode)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err != nil || info.Size() == 0 {
			f.Close()
			if err == nil {
				err = h.corrupt("the file is empty", nil)
			}
			return nil, err
		}
		h.file = f
		return f, nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer h.recover(&err)
	h.bolt, err = bolt.Open(h.path, 0o600, &o)
	var (
		corrupt *CorruptError
		errno   syscall.Errno
	)
	switch {
	case err == nil, errors.As(err, &corrupt), errors.As(err, &errno):
		return err
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: %w", h.path, ErrBusy)
	case h.file == nil:
		return err
	}
	return h.corrupt(err.Error(), err)
}

// run runs fn in one transaction on the open database.
func (h *handle) run(writable bool, fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer h.recover(&err)
	b, err := h.bolt.Begin(writable)
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
	if err := fn(&tx); err != nil {
		return err
	}
	if !tx.dirty {
		return nil
	}
	tx.bolt = nil
	if err := b.Commit(); err != nil {
		return fmt.Errorf("%s: commit: %w", h.path, err)
	}
	return nil
}

// close closes the database. After a panic inside bbolt its locks may be held, so
// only the file is closed then and the mapping is left to the process's end.
func (h *handle) close() {
	if h.file == nil {
		return
	}
	unlockDatabase(h.file.Fd())
	if h.bolt != nil {
		_ = h.bolt.Close()
	} else {
		_ = h.file.Close()
	}
	h.file, h.bolt = nil, nil
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
	h.bolt = nil
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
