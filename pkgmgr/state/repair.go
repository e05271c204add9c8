package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"
)

// Check verifies the structure of the file and reads every record, and returns the
// first fault, a *CorruptError if it is one of the database. It takes as long as
// the database is large.
func (d *DB) Check(ctx context.Context) error {
	return d.View(ctx, (*Tx).check)
}

// Rebuild starts a new, empty database where the old one is missing or Check
// finds it damaged. The damaged file is kept under the name that is returned;
// aside is "" when there was none. A sound database is left as it is, and one of a
// newer format is refused with ErrNewer.
//
// With the database all trust, grants, project trust and history are gone. What stands
// in store, plugins and quarantine is not touched.
func (d *DB) Rebuild(ctx context.Context) (aside string, err error) {
	leave, err := d.enterAlone(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	err = d.examine()
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, ErrCorrupt):
		if aside, err = setAside(d.Path()); err != nil {
			return "", asReadOnly(err)
		}
	case !absent(err):
		return "", err
	}
	return aside, asReadOnly(d.create())
}

// examine is Check for the holder of the queue. A sound database of an older
// format is only verified; the next Update migrates it.
func (d *DB) examine() error {
	f, err := os.OpenFile(d.Path(), os.O_RDONLY|noWait, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	file, err := readFile(f)
	if err != nil {
		return err
	}
	tx := Tx{path: d.Path(), file: file}
	defer tx.end()
	if err := d.checkFormat(&tx); errors.Is(err, ErrOlder) {
		return asCorrupt(tx.path, file.Verify())
	} else if err != nil {
		return err
	}
	return tx.check()
}

// setAside gives a damaged file a free name beside it.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.damaged-%d", path, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, aside); err != nil {
				return "", err
			}
			return aside, syncDir(filepath.Dir(path))
		} else if err != nil {
			return "", err
		}
	}
}

// check verifies the file's structure and reads every record of every bucket.
func (tx *Tx) check() error {
	if tx.empty {
		return nil
	}
	if err := tx.file.Verify(); err != nil {
		return asCorrupt(tx.path, err)
	}
	for _, read := range []func() error{
		discard(tx.Installs),
		discard(tx.Defaults),
		discard(tx.Standings),
		discard(tx.ProjectTrusts),
		discard(func() ([]ProjectApproval, error) { return tx.ProjectApprovals("") }),
		discard(tx.AllSeen),
		discard(func() ([]Operation, error) { return tx.Operations(0, nil) }),
		discard(func() ([]Event, error) { return tx.Events(0, nil) }),
		tx.readCounts,
		tx.readIndexes,
		tx.readResults,
		tx.readLogs,
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

func discard[T any](read func() (T, error)) func() error {
	return func() error {
		_, err := read()
		return err
	}
}

// readCounts checks the buckets whose sequence is the number of their keys.
func (tx *Tx) readCounts() error {
	for _, id := range [...]bucketID{bucketOperations, bucketResults} {
		t, err := tx.tree(id)
		if err != nil {
			return err
		}
		var n uint64
		if err := tx.each(id, nil, func(_, _ []byte) error { n++; return nil }); err != nil {
			return err
		}
		if n != t.sequence() {
			return tx.damaged(id, nil, fmt.Errorf("%d records, counted as %d", n, t.sequence()))
		}
	}
	return nil
}

// readIndexes checks that both indexes of operations lead to operations that
// say the same.
func (tx *Tx) readIndexes() error {
	err := tx.each(bucketRunning, nil, func(k, _ []byte) error {
		op, err := tx.indexed(bucketRunning, k, k)
		if err == nil && op.State != Running {
			err = tx.damaged(bucketRunning, k, fmt.Errorf("the operation is %s", op.State))
		}
		return err
	})
	if err != nil {
		return err
	}
	return tx.each(bucketKeys, nil, func(k, id []byte) error {
		op, err := tx.indexed(bucketKeys, k, id)
		if err == nil && string(operationKey(op.PluginID, op.Action, op.IdempotencyKey)) != string(k) {
			err = tx.damaged(bucketKeys, k, fmt.Errorf("operation %s has another key", id))
		}
		return err
	})
}

func (tx *Tx) readResults() error {
	return tx.each(bucketResults, nil, func(k, v []byte) error {
		if !jsontext.Value(v).IsValid() {
			return tx.damaged(bucketResults, k, errEncoding)
		}
		_, err := tx.indexed(bucketResults, k, k)
		return err
	})
}

func (tx *Tx) readLogs() error {
	return tx.each(bucketLogs, nil, func(id, _ []byte) error {
		_, err := tx.Logs(string(id), 0, 0)
		return err
	})
}

// indexed returns the operation that a record of another bucket refers to.
func (tx *Tx) indexed(index bucketID, key, id []byte) (Operation, error) {
	op, err := tx.operation(string(id))
	if errors.Is(err, ErrNotFound) {
		err = tx.damaged(index, key, fmt.Errorf("operation %q does not exist", id))
	}
	return op, err
}
