package state

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state/boltfile"
)

// A Tx is one transaction. It is valid until the function that received it
// returns, and belongs to that goroutine.
//
// Every getter copies what it returns. Getters of one record return
// ErrNotFound if there is none; listings return an empty slice. Setters
// overwrite; removers are content when there is nothing to remove.
type Tx struct {
	path  string
	file  *boltfile.File // in View
	bolt  *bolt.Tx       // in Update
	empty bool           // in View of an absent database
	dirty bool           // something was written
	trees [buckets]tree
}

// end makes the transaction unusable and rolls it back unless it was committed.
func (tx *Tx) end() {
	if tx.bolt != nil {
		_ = tx.bolt.Rollback()
	}
	*tx = Tx{path: tx.path}
}

// tree returns the bucket for reading, or nil in an empty state.
func (tx *Tx) tree(id bucketID) (tree, error) {
	if tx.trees[id] != nil || tx.empty {
		return tx.trees[id], nil
	}
	var t tree
	var err error
	switch name := []byte(bucketNames[id]); {
	case tx.file != nil:
		t, err = fileChild(tx.file.Bucket(name))
	case tx.bolt != nil:
		t, err = boltChild(tx.bolt.Bucket(name))
	default:
		return nil, ErrTxDone
	}
	if err == nil && t == nil {
		return nil, &CorruptError{Path: tx.path, Detail: fmt.Sprintf("bucket %q is missing", bucketNames[id])}
	}
	tx.trees[id] = t
	return t, asCorrupt(tx.path, err)
}

// get returns the value of key, or ErrNotFound. The value belongs to the
// database and must be copied before the next read.
func (tx *Tx) get(id bucketID, key []byte) ([]byte, error) {
	t, err := tx.tree(id)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, ErrNotFound
	}
	v, err := t.get(key)
	switch {
	case err != nil:
		return nil, asCorrupt(tx.path, err)
	case v == nil:
		return nil, ErrNotFound
	}
	return v, tx.checkSize(id, key, v)
}

// maxValue bounds a value, so that a damaged length is not believed.
const maxValue = 4 << 20

func (tx *Tx) checkSize(id bucketID, key, value []byte) error {
	if len(value) > maxValue {
		return tx.damaged(id, key, fmt.Errorf("a value of %d bytes", len(value)))
	}
	return nil
}

// writableBucket returns a bucket for a change of the transaction.
func (tx *Tx) writableBucket(id bucketID) (*bolt.Bucket, error) {
	switch {
	case tx.file != nil || tx.empty:
		return nil, fmt.Errorf("%s: a change inside View: %w", tx.path, ErrReadOnly)
	case tx.bolt == nil:
		return nil, ErrTxDone
	}
	b := tx.bolt.Bucket([]byte(bucketNames[id]))
	if b == nil {
		return nil, &CorruptError{Path: tx.path, Detail: fmt.Sprintf("bucket %q is missing", bucketNames[id])}
	}
	tx.dirty = true
	return b, nil
}

func (tx *Tx) put(id bucketID, key, value []byte) error {
	if len(key) == 0 || len(key) > bolt.MaxKeySize || len(value) > maxValue {
		return fmt.Errorf("%w: %s: a key of %d bytes, a value of %d bytes", ErrRecord, bucketNames[id], len(key), len(value))
	}
	b, err := tx.writableBucket(id)
	if err != nil {
		return err
	}
	return b.Put(key, value)
}

// remove removes a record. Where there is none nothing is written.
func (tx *Tx) remove(id bucketID, key []byte) error {
	if tx.bolt != nil {
		if _, err := tx.get(id, key); errors.Is(err, ErrNotFound) {
			return nil
		}
	}
	b, err := tx.writableBucket(id)
	if err != nil {
		return err
	}
	return b.Delete(key)
}

// errStop, returned by the function of a scan, ends the scan without error.
var errStop = errors.New("stop")

// each calls fn for the records whose key begins with prefix, in key order. Key and
// value belong to the database. fn must not change the bucket.
func (tx *Tx) each(id bucketID, prefix []byte, fn func(key, value []byte) error) error {
	t, err := tx.tree(id)
	if err != nil || t == nil {
		return err
	}
	c := t.cursor()
	defer c.Release()
	limit := tx.scanLimit(id)
	k, v, err := c.Seek(prefix)
	for ; err == nil && k != nil && bytes.HasPrefix(k, prefix); k, v, err = c.Next() {
		if err := limit.pass(k, v, fn); err != nil {
			return unlessStop(err)
		}
	}
	return asCorrupt(tx.path, err)
}

// eachBackwards is each over a whole bucket, or one inside it, from the last key
// to the first.
func (tx *Tx) eachBackwards(id bucketID, t tree, fn func(key, value []byte) error) error {
	c := t.cursor()
	defer c.Release()
	limit := tx.scanLimit(id)
	k, v, err := c.Last()
	for ; err == nil && k != nil; k, v, err = c.Prev() {
		if err := limit.pass(k, v, fn); err != nil {
			return unlessStop(err)
		}
	}
	return asCorrupt(tx.path, err)
}

// stopAt stops a scan that has found n records of at most limit; a limit below
// one is none.
func stopAt(limit, n int) error {
	if limit > 0 && n >= limit {
		return errStop
	}
	return nil
}

func unlessStop(err error) error {
	if err == errStop {
		return nil
	}
	return err
}

// A scanLimit ends a scan of a damaged tree, which can be a circle or claim
// records without end: no scan meets more bytes than the database has.
type scanLimit struct {
	tx   *Tx
	id   bucketID
	left int64
}

func (tx *Tx) scanLimit(id bucketID) scanLimit {
	var left int64
	if tx.file != nil {
		left = tx.file.Size()
	} else if left = tx.bolt.Size(); tx.dirty {
		left += 64 << 20 // what this transaction may have added
	}
	return scanLimit{tx: tx, id: id, left: left}
}

// pass calls fn with one record.
func (l *scanLimit) pass(key, value []byte, fn func(key, value []byte) error) error {
	const element = 16 // bytes of every record in its page, beside key and value
	if l.left -= int64(element + len(key) + len(value)); l.left < 0 {
		return &CorruptError{Path: l.tx.path, Detail: fmt.Sprintf("%s has more records than the file has room for", bucketNames[l.id])}
	}
	if err := l.tx.checkSize(l.id, key, value); err != nil {
		return err
	}
	return fn(key, value)
}

// damaged says that one record cannot be read.
func (tx *Tx) damaged(id bucketID, key []byte, cause error) error {
	return &CorruptError{Path: tx.path, Detail: fmt.Sprintf("%s %q: %v", bucketNames[id], key, cause), Cause: cause}
}
