package boltfile

import (
	"bytes"
	"slices"
)

// maxDepth bounds a descent. A tree of this depth with two entries a page would
// have four billion leaves.
const maxDepth = 32

// A Bucket is one tree of keys. The zero value is of no use.
type Bucket struct {
	f        *File
	root     uint64 // 0: the only page is inline
	sequence uint64
	inline   page
}

// Sequence returns the number that bbolt keeps for the bucket.
func (b *Bucket) Sequence() uint64 { return b.sequence }

// Get returns the value of key, or nil if there is none or it is a bucket. It is
// valid until the next use of the same File, but for cursors that exist already.
func (b *Bucket) Get(key []byte) ([]byte, error) {
	value, isBucket, err := b.find(key)
	if isBucket {
		return nil, err
	}
	return value, err
}

// Has reports whether there is a value or a bucket of that name.
func (b *Bucket) Has(key []byte) (bool, error) {
	value, _, err := b.find(key)
	return value != nil, err
}

// Bucket returns a bucket inside b, or nil if there is none of that name.
func (b *Bucket) Bucket(name []byte) (*Bucket, error) {
	value, isBucket, err := b.find(name)
	if err != nil || !isBucket {
		return nil, err
	}
	inner, err := openBucket(b.f, value)
	if err != nil {
		return nil, err
	}
	inner.inline = slices.Clone(inner.inline)
	return inner, nil
}

func (b *Bucket) find(key []byte) (value []byte, isBucket bool, err error) {
	c := &b.f.finder
	c.bucket = b
	if err := c.seek(key); err != nil || c.depth == 0 {
		return nil, false, err
	}
	k, value, isBucket, err := c.element()
	if err != nil || !bytes.Equal(k, key) {
		return nil, false, err
	}
	return value, isBucket, nil
}

// openBucket reads a bucket's value, and refers to it where the bucket is inline.
func openBucket(f *File, value []byte) (*Bucket, error) {
	if len(value) < bucketSize {
		return nil, damaged("a bucket of %d bytes", len(value))
	}
	b := &Bucket{f: f, root: order.Uint64(value), sequence: order.Uint64(value[8:])}
	if b.root != 0 {
		return b, nil
	}
	b.inline = value[bucketSize:]
	if len(b.inline) < headerSize {
		return nil, damaged("an inline bucket of %d bytes", len(value))
	}
	if !b.inline.isLeaf() {
		return nil, damaged("an inline bucket of kind %#x", b.inline.flags())
	}
	return b, b.inline.check(0)
}

// Cursor returns a cursor that stands nowhere.
func (b *Bucket) Cursor() *Cursor {
	c := &Cursor{bucket: b, frames: b.f.finder.frames}
	b.f.finder.frames = nil
	return c
}

// Release gives the cursor's buffers to later look-ups and cursors. The cursor is
// not to be used again.
func (c *Cursor) Release() {
	c.bucket.f.finder.frames = c.frames
	c.frames, c.depth = nil, 0
}

// A Cursor walks through a bucket in the order of its keys. Key and value are nil
// beyond either end; the value is nil for a bucket inside the bucket. Both are
// valid until the cursor moves.
type Cursor struct {
	bucket *Bucket
	frames []frame // from the root to the leaf; its buffers are reused
	depth  int     // frames in use
	reads  uint64  // pages met since the last Seek, First or Last
}

type frame struct {
	id    uint64 // of the page, 0 when it is inline or none
	page  page
	buf   []byte
	index int
	high  []byte // what the pages above say that every key is below; nil is no bound
}

// Seek moves to the first key that is not below key.
func (c *Cursor) Seek(key []byte) (k, v []byte, err error) {
	if err := c.seek(key); err != nil {
		return nil, nil, err
	}
	return c.current()
}

// First moves to the first key.
func (c *Cursor) First() (k, v []byte, err error) {
	c.depth, c.reads = 0, 0
	if err := c.descend(c.bucket.root, first); err != nil {
		return nil, nil, err
	}
	return c.settle(c.next)
}

// Last moves to the last key.
func (c *Cursor) Last() (k, v []byte, err error) {
	c.depth, c.reads = 0, 0
	if err := c.descend(c.bucket.root, last); err != nil {
		return nil, nil, err
	}
	return c.settle(c.previous)
}

// Next moves to the following key.
func (c *Cursor) Next() (k, v []byte, err error) {
	if err := c.next(); err != nil {
		return nil, nil, err
	}
	return c.settle(c.next)
}

// Prev moves to the preceding key.
func (c *Cursor) Prev() (k, v []byte, err error) {
	if err := c.previous(); err != nil {
		return nil, nil, err
	}
	return c.settle(c.previous)
}

// settle moves on over empty leaf pages.
func (c *Cursor) settle(move func() error) (k, v []byte, err error) {
	for c.depth > 0 && c.top().page.count() == 0 {
		if err := move(); err != nil {
			return nil, nil, err
		}
	}
	return c.current()
}

func (c *Cursor) top() *frame { return &c.frames[c.depth-1] }

// current returns where the cursor stands; with depth 0 it is beyond an end.
func (c *Cursor) current() (k, v []byte, err error) {
	if c.depth == 0 {
		return nil, nil, nil
	}
	k, v, isBucket, err := c.element()
	if isBucket {
		v = nil
	}
	return k, v, err
}

func (c *Cursor) element() (key, value []byte, isBucket bool, err error) {
	return c.top().page.leaf(c.top().index)
}

// A choice picks the element of a branch page to go down by, or of a leaf page to
// stand on.
type choice func(p page) (int, error)

func first(page) (int, error)  { return 0, nil }
func last(p page) (int, error) { return max(0, p.count()-1), nil }

// seek stands on the first key that is not below key, or beyond the end.
func (c *Cursor) seek(key []byte) error {
	c.depth, c.reads = 0, 0
	err := c.descend(c.bucket.root, func(p page) (int, error) {
		i, exact, err := p.search(key)
		if !p.isLeaf() && !exact && i > 0 {
			i-- // the child that begins before key
		}
		return i, err
	})
	if err != nil {
		return err
	}
	for c.depth > 0 && c.top().index >= c.top().page.count() {
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}

// search returns the first element whose key is not below key, and whether it is
// that key.
func (p page) search(key []byte) (int, bool, error) {
	low, high := 0, p.count()
	for low < high {
		middle := int(uint(low+high) / 2)
		k, err := p.key(middle)
		if err != nil {
			return 0, false, err
		}
		switch bytes.Compare(k, key) {
		case 0:
			return middle, true, nil
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false, nil
}

// descend adds frames from page id down to a leaf.
func (c *Cursor) descend(id uint64, choose choice) error {
	for {
		p, err := c.push(id)
		if err != nil {
			c.depth = 0
			return err
		}
		i, err := choose(p)
		if err != nil {
			c.depth = 0
			return err
		}
		c.top().index = i
		if p.isLeaf() {
			return nil
		}
		id = p.branch(i)
	}
}

// push puts page id into the next frame, where it may stand already.
func (c *Cursor) push(id uint64) (page, error) {
	f := c.bucket.f
	// Every page of a tree is met once in a scan, so more pages than there are make a circle.
	if c.reads++; c.depth == maxDepth || c.reads > f.meta.high {
		return nil, damaged("page %d: the tree is a circle", id)
	}
	if c.depth == len(c.frames) {
		c.frames = append(c.frames, frame{})
	}
	fr := &c.frames[c.depth]
	switch {
	case c.depth == 0 && c.bucket.root == 0:
		fr.id, fr.page = 0, c.bucket.inline
	case fr.id == id && id != 0:
	default:
		fr.id = 0
		p, err := f.readPage(id, fr.buf)
		if err != nil {
			return nil, err
		}
		if err := p.rises(); err != nil {
			return nil, err
		}
		fr.id, fr.page, fr.buf = id, p, p
	}
	if err := c.belongs(fr); err != nil {
		return nil, err
	}
	c.depth++
	return fr.page, nil
}

// belongs reports a page that is not the one that the page above it leads to: an old
// page, or one of another tree, in its place. fr is the next frame.
func (c *Cursor) belongs(fr *frame) error {
	fr.high = nil
	if c.depth == 0 {
		return nil
	}
	above := c.top()
	low, err := above.page.key(above.index)
	if err != nil {
		return err
	}
	fr.high = above.high
	if above.index+1 < above.page.count() {
		if fr.high, err = above.page.key(above.index + 1); err != nil {
			return err
		}
	}
	n := fr.page.count()
	if n == 0 {
		return damaged("page %d: empty below another page", fr.id)
	}
	least, err := fr.page.key(0)
	if err != nil {
		return err
	}
	most, err := fr.page.key(n - 1)
	if err != nil {
		return err
	}
	if bytes.Compare(least, low) < 0 || fr.high != nil && bytes.Compare(most, fr.high) >= 0 {
		return damaged("page %d: its keys belong to another place", fr.id)
	}
	return nil
}

// next moves to the following element; beyond the last one depth is 0.
func (c *Cursor) next() error {
	for c.depth > 0 {
		t := c.top()
		if t.index+1 < t.page.count() {
			t.index++
			if t.page.isLeaf() {
				return nil
			}
			return c.descend(t.page.branch(t.index), first)
		}
		c.depth--
	}
	return nil
}

// previous moves to the preceding element; beyond the first one depth is 0.
func (c *Cursor) previous() error {
	for c.depth > 0 {
		t := c.top()
		if t.index > 0 {
			t.index--
			if t.page.isLeaf() {
				return nil
			}
			return c.descend(t.page.branch(t.index), last)
		}
		c.depth--
	}
	return nil
}
