package state

import (
	bolt "go.etcd.io/bbolt"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state/boltfile"
)

// A tree is one bucket for reading: of bbolt inside Update, where it shows what the
// transaction has written, and of boltfile inside View.
type tree interface {
	get(key []byte) ([]byte, error)  // nil: none
	child(name []byte) (tree, error) // nil: none
	cursor() cursor
	sequence() uint64
}

// errKind is damage: a bucket stands where a value belongs, or the reverse.
var errKind error = wrongKind{}

// wrongKind is made of nothing at start, which an error that is formatted is not.
type wrongKind struct{}

func (wrongKind) Error() string {
	return boltfile.ErrDamaged.Error() + ": a bucket where a value belongs, or the reverse"
}
func (wrongKind) Unwrap() error { return boltfile.ErrDamaged }

// A cursor walks through a tree in the order of its keys; the key is nil beyond either end.
type cursor interface {
	Seek(key []byte) (k, v []byte, err error)
	Last() (k, v []byte, err error)
	Next() (k, v []byte, err error)
	Prev() (k, v []byte, err error)
	Release()
}

type fileTree struct{ b *boltfile.Bucket }

func fileChild(b *boltfile.Bucket, err error) (tree, error) {
	if b == nil || err != nil {
		return nil, err
	}
	return fileTree{b}, nil
}

func (t fileTree) get(key []byte) ([]byte, error) {
	v, err := t.b.Get(key)
	if v == nil && err == nil {
		err = t.none(key)
	}
	return v, err
}

func (t fileTree) child(name []byte) (tree, error) {
	b, err := fileChild(t.b.Bucket(name))
	if b == nil && err == nil {
		err = t.none(name)
	}
	return b, err
}

// none returns an error if there is something of that name, which is then not of
// the kind that was looked for.
func (t fileTree) none(name []byte) error {
	if has, err := t.b.Has(name); err != nil || !has {
		return err
	}
	return errKind
}

func (t fileTree) cursor() cursor   { return t.b.Cursor() }
func (t fileTree) sequence() uint64 { return t.b.Sequence() }

type boltTree struct{ b *bolt.Bucket }

func boltChild(b *bolt.Bucket) (tree, error) {
	if b == nil {
		return nil, nil
	}
	return boltTree{b}, nil
}

func (t boltTree) get(key []byte) ([]byte, error) {
	v := t.b.Get(key)
	if v == nil && t.b.Bucket(key) != nil {
		return nil, errKind
	}
	return v, nil
}

func (t boltTree) child(name []byte) (tree, error) {
	b, err := boltChild(t.b.Bucket(name))
	if b == nil && t.b.Get(name) != nil {
		err = errKind
	}
	return b, err
}

func (t boltTree) cursor() cursor   { return boltCursor{t.b.Cursor()} }
func (t boltTree) sequence() uint64 { return t.b.Sequence() }

type boltCursor struct{ c *bolt.Cursor }

func (c boltCursor) Seek(key []byte) (k, v []byte, err error) { k, v = c.c.Seek(key); return }
func (c boltCursor) Last() (k, v []byte, err error)           { k, v = c.c.Last(); return }
func (c boltCursor) Next() (k, v []byte, err error)           { k, v = c.c.Next(); return }
func (c boltCursor) Prev() (k, v []byte, err error)           { k, v = c.c.Prev(); return }
func (c boltCursor) Release()                                 {}
