// Package state keeps the data directory's database: installs, decisions,
// health, logs, operations and history, in <dir>/state.db (bbolt).
//
// The database is open for one transaction at a time, under two advisory locks
// that every process waits for in the kernel (lock.go): Views run beside each
// other, an Update runs alone, and neither starves the other. Nobody may hold a
// transaction across the life of a child process, and none may be started inside
// another one: it can wait for itself.
//
// Update goes through bbolt. View reads the same file by position (package
// boltfile), which costs a fraction of bbolt's mapping and cannot be led astray by a
// damaged file.
//
// The package stores what it is told and holds invariants of storage only:
// keys, bounds, transitions of an operation, a format version. It refuses to
// decide: what trust means, whether a block can be lifted and when an
// operation may run again is said elsewhere. It refuses to start empty: a
// database that is missing beside installed packages is ErrMissing, a damaged
// one ErrCorrupt, a newer one ErrNewer, and only Rebuild replaces it.
//
// Durability is bbolt's: a committed Update has been through fdatasync. Records
// hold strings from packages and plugins as they came; whoever shows them escapes
// them. Nothing that is returned refers to memory of the database.
package state

import (
	"context"
	"path/filepath"
)

// Names of the two files in the data directory.
const (
	FileName = "state.db"
	LockName = "state.lock"
)

// A DB names the database of one data directory. It holds nothing open and is
// safe for concurrent use.
type DB struct {
	dir        string
	migrations []migration
}

// At returns the database of the data directory dir. It touches nothing.
func At(dir string) *DB {
	return &DB{dir: dir, migrations: migrations()}
}

// Path returns the path of the database file, which need not exist.
func (d *DB) Path() string { return filepath.Join(d.dir, FileName) }

func (d *DB) lockPath() string { return filepath.Join(d.dir, LockName) }

// View runs fn on a consistent snapshot. It writes nothing: an empty or absent
// data directory reads as an empty state, and a read-only one as it is. The
// exception is a database of an older format, which is migrated first and is
// therefore ErrOlder on a read-only data directory.
//
// ctx bounds the wait for the lock, not fn.
func (d *DB) View(ctx context.Context, fn func(*Tx) error) error {
	err := d.view(ctx, fn)
	if older, ok := err.(*FormatError); ok && older.Is(ErrOlder) {
		if err := d.Ensure(ctx); err != nil {
			if readOnly(err) {
				return older
			}
			return err
		}
		return d.view(ctx, fn)
	}
	return err
}

// Update runs fn in a transaction that excludes every other one, and commits
// it durably if fn returns nil; otherwise nothing is changed and fn's error is
// returned as it is. If fn writes nothing, nothing is written. An absent data
// directory or database is created. On a read-only data directory Update
// returns ErrReadOnly without calling fn.
//
// ctx bounds the wait for the lock, not fn.
func (d *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	return d.update(ctx, fn)
}

// Ensure creates the database, or migrates it, if that is needed. Call it before the
// first package is put into the data directory, so that a crash between that
// and the first Update is not taken for a lost database.
func (d *DB) Ensure(ctx context.Context) error {
	return d.update(ctx, func(*Tx) error { return nil })
}
