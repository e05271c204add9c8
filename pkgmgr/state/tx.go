package state

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// A Tx is one transaction. It is valid until the function that received it
// returns, and belongs to that goroutine.
//
// Every getter copies what it returns. Getters of one record return
// ErrNotFound if there is none; listings return an empty slice. Setters
// overwrite; removers are content when there is nothing to remove.
type Tx struct {
	path    string
	bolt    *bolt.Tx // nil: an empty state, or over
	empty   bool     // there is no database
	dirty   bool     // something was written
	buckets [buckets]*bolt.Bucket
}

// end makes the transaction unusable and rolls it back unless it was committed.
func (tx *Tx) end() {
	if tx.bolt != nil {
		_ = tx.bolt.Rollback()
	}
	tx.bolt, tx.empty, tx.buckets = nil, false, [buckets]*bolt.Bucket{}
}

// bucket returns the bucket, or nil in an empty state.
func (tx *Tx) bucket(id bucketID) (*bolt.Bucket, error) {
	switch {
	case tx.buckets[id] != nil:
		return tx.buckets[id], nil
	case tx.empty:
		return nil, nil
	case tx.bolt == nil:
		return nil, ErrTxDone
	}
	b := tx.bolt.Bucket([]byte(bucketNames[id]))
	if b == nil {
		return nil, &CorruptError{Path: tx.path, Detail: fmt.Sprintf("bucket %q is missing", bucketNames[id])}
	}
	tx.buckets[id] = b
	return b, nil
}

// get returns the value of key, or ErrNotFound. The value belongs to the
// database and must be copied before the transaction ends.
func (tx *Tx) get(id bucketID, key []byte) ([]byte, error) {
	b, err := tx.bucket(id)
	if err != nil {
		return nil, err
	}
	if b != nil {
		if v := b.Get(key); v != nil {
			return v, tx.checkSize(id, key, v)
		}
	}
	return nil, ErrNotFound
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
	if tx.empty || tx.bolt != nil && !tx.bolt.Writable() {
		return nil, fmt.Errorf("%s: a change inside View: %w", tx.path, ErrReadOnly)
	}
	b, err := tx.bucket(id)
	if err == nil {
		tx.dirty = true
	}
	return b, err
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

func (tx *Tx) remove(id bucketID, key []byte) error {
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
	b, err := tx.bucket(id)
	if err != nil || b == nil {
		return err
	}
	c := b.Cursor()
	limit := tx.scanLimit(id)
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if err := limit.pass(k, v, fn); err != nil {
			return unlessStop(err)
		}
	}
	return nil
}

// eachBackwards is each over a whole bucket, or one inside it, from the last key
// to the first.
func (tx *Tx) eachBackwards(id bucketID, b *bolt.Bucket, fn func(key, value []byte) error) error {
	c := b.Cursor()
	limit := tx.scanLimit(id)
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		if err := limit.pass(k, v, fn); err != nil {
			return unlessStop(err)
		}
	}
	return nil
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
	left := tx.bolt.Size()
	if tx.dirty {
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
