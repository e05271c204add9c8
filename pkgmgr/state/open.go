package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state/boltfile"
)

// A snapshot is the database opened for one View. It is read by position and
// not through bbolt: see package boltfile.
type snapshot struct {
	leave func() // leaves the queue; nil when it is left or was not entered
	file  *os.File
}

// openSnapshot opens the database. file is nil if there is none.
func (d *DB) openSnapshot(ctx context.Context) (s snapshot, file *boltfile.File, err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.leave, err = enterQueue(ctx, d.lockPath(), false)
	// Without a side file, which a View does not create, the other lock must do.
	if err != nil && !absent(err) {
		return s, nil, err
	}
	if s.file, err = os.OpenFile(d.Path(), os.O_RDONLY|noWait, 0); err != nil {
		if absent(err) {
			err = d.refuseMissing()
		}
		return s, nil, err
	}
	if !holdQueue {
		f := s.file
		if err := acquire(ctx, lockFile(f.Fd()), shared, func() { f.Close() }); err != nil {
			s.file = nil
			return s, nil, fmt.Errorf("lock %s: %w", d.Path(), err)
		}
		s.leaveQueue()
	}
	file, err = readFile(s.file)
	return s, file, err
}

// absent reports whether err says that a file is not there.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// readFile reads the frame of an open database.
func readFile(f *os.File) (*boltfile.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(f.Name())
	}
	file, err := boltfile.Open(f, info.Size())
	return file, asCorrupt(f.Name(), err)
}

// Up to these sizes the whole structure is verified before a transaction, at about a
// millisecond for each mebibyte: calls must not slow down as records grow. Of a larger
// file, what is read is checked on the way.
const (
	verifyView   = 64 << 10
	verifyUpdate = 256 << 10
)

// verifySmall verifies a small database before it is viewed.
func (tx *Tx) verifySmall() error {
	if tx.file.Size() > verifyView {
		return nil
	}
	if err := tx.file.Verify(); err != nil {
		return asCorrupt(tx.path, err)
	}
	return tx.decodeDecisions()
}

// decodeDecisions reads the records that say what is installed and what was decided.
// A key of theirs that was changed would else read as something that is not there.
func (tx *Tx) decodeDecisions() error {
	if err := decodeAll(tx, bucketDefaults, decodeDefault); err != nil {
		return err
	}
	if err := decodeAll(tx, bucketInstalls, decodeInstall); err != nil {
		return err
	}
	return tx.EachStanding(func(Standing) error { return nil })
}

func decodeAll[T any](tx *Tx, id bucketID, decode func(key, value []byte) (T, error)) error {
	return tx.each(id, nil, func(k, v []byte) error {
		if _, err := decode(k, v); err != nil {
			return tx.damaged(id, k, err)
		}
		return nil
	})
}

func notRegular(path string) error {
	return &CorruptError{Path: path, Detail: "it is not a regular file"}
}

// asCorrupt turns boltfile's verdict into a *CorruptError.
func asCorrupt(path string, err error) error {
	if errors.Is(err, boltfile.ErrDamaged) && !errors.Is(err, ErrCorrupt) {
		return &CorruptError{Path: path, Detail: err.Error(), Cause: err}
	}
	return err
}

func (s *snapshot) leaveQueue() {
	if s.leave != nil {
		s.leave()
		s.leave = nil
	}
}

// close closes the database and gives its locks up.
func (s *snapshot) close() {
	if s.file != nil {
		if !holdQueue {
			lockFile(s.file.Fd()).unlock()
		}
		s.file.Close()
		s.file = nil
	}
	s.leaveQueue()
}

func (d *DB) view(ctx context.Context, fn func(*Tx) error) error {
	s, file, err := d.openSnapshot(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	tx := Tx{path: d.Path(), file: file, empty: file == nil}
	defer tx.end()
	if file == nil {
		s.close()
	} else if err := d.checkFormat(&tx); err != nil {
		return err
	} else if err := tx.verifySmall(); err != nil {
		return err
	}
	return fn(&tx)
}

func (d *DB) update(ctx context.Context, fn func(*Tx) error) error {
	leave, err := d.enterAlone(ctx)
	if err != nil {
		return err
	}
	defer leave()
	w := writer{path: d.Path()}
	defer w.close()
	err = w.open(ctx)
	if absent(err) {
		if err := d.refuseMissing(); err != nil {
			return err
		}
		if err := d.create(); err != nil {
			return asReadOnly(err)
		}
		err = w.open(ctx)
	}
	if err != nil {
		return asReadOnly(err)
	}
	if err := d.migrate(&w); err != nil {
		return err
	}
	return w.run(func(tx *Tx) error {
		if tx.bolt.Size() <= verifyView {
			if err := tx.decodeDecisions(); err != nil {
				return err
			}
		}
		return fn(tx)
	})
}

// enterAlone takes the queue exclusively, creating the data directory and the
// side file where they are absent.
func (d *DB) enterAlone(ctx context.Context) (leave func(), err error) {
	leave, err = enterQueue(ctx, d.lockPath(), true)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, asReadOnly(err)
		}
		leave, err = enterQueue(ctx, d.lockPath(), true)
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
			if absent(err) {
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
