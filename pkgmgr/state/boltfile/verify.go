package boltfile

import "bytes"

// Verify reads the whole tree and returns the first fault of its structure: a page
// that is used twice, or neither used nor free, keys out of order or outside of what
// the page above says, anything that points outside of its page. It says nothing about
// what keys and values mean.
func (f *File) Verify() error {
	v := verification{f: f, met: make([]bool, f.meta.high)}
	v.met[0], v.met[1] = true, true
	if err := v.freelist(); err != nil {
		return err
	}
	if err := v.tree(f.meta.root, nil, nil); err != nil {
		return err
	}
	if f.meta.freelist == noFreelist {
		return nil
	}
	for id, met := range v.met {
		if !met {
			return damaged("page %d is neither used nor free", id)
		}
	}
	return nil
}

// A verification knows which pages were met.
type verification struct {
	f   *File
	met []bool
}

// meet notes pages as met, which must be there and not have been met.
func (v *verification) meet(id, pages uint64) error {
	for end := id + pages; id < end; id++ {
		if id >= uint64(len(v.met)) {
			return damaged("page %d of %d", id, len(v.met))
		}
		if v.met[id] {
			return damaged("page %d is in two places", id)
		}
		v.met[id] = true
	}
	return nil
}

// freelist notes the pages of the list of free pages and those that it lists.
func (v *verification) freelist() error {
	if v.f.meta.freelist == noFreelist {
		return nil
	}
	p, err := v.f.readAnyPage(v.f.meta.freelist, nil)
	if err != nil {
		return err
	}
	if p.flags() != flagFreelist {
		return damaged("page %d: its kind is %#x and not a list of free pages", p.id(), p.flags())
	}
	if err := v.meet(p.id(), p.overflow()+1); err != nil {
		return err
	}
	ids, count := p[headerSize:], uint64(p.count())
	if count == 0xFFFF { // the number did not fit; it stands before the list
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("page %d: a list of %d free pages", p.id(), count)
	}
	for i := range count {
		if err := v.meet(order.Uint64(ids[8*i:]), 1); err != nil {
			return err
		}
	}
	return nil
}

// tree verifies the tree from page id down. Its keys are from low and below high; nil
// is no bound. It ends because no page is met twice.
func (v *verification) tree(id uint64, low, high []byte) error {
	p, err := v.f.readPage(id, nil)
	if err != nil {
		return err
	}
	if err := v.meet(id, p.overflow()+1); err != nil {
		return err
	}
	if p.isLeaf() {
		if p.count() == 0 && low != nil {
			return damaged("page %d: empty below another page", id)
		}
		return v.leaf(p, low, high)
	}
	keys := make([][]byte, p.count()+1)
	for i := range p.count() {
		if keys[i], err = p.key(i); err != nil {
			return err
		}
	}
	if err := ordered(id, keys[:p.count()], low, high); err != nil {
		return err
	}
	keys[p.count()] = high
	for i := range p.count() {
		if err := v.tree(p.branch(i), keys[i], keys[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// leaf verifies a leaf page and the buckets in it.
func (v *verification) leaf(p page, low, high []byte) error {
	keys := make([][]byte, p.count())
	for i := range keys {
		key, value, isBucket, err := p.leaf(i)
		if err != nil {
			return err
		}
		keys[i] = key
		if !isBucket {
			continue
		}
		b, err := openBucket(v.f, value)
		if err == nil && b.root == 0 {
			err = v.leaf(b.inline, nil, nil)
		} else if err == nil {
			err = v.tree(b.root, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return ordered(p.id(), keys, low, high)
}

// ordered reports keys that do not rise or are out of bounds.
func ordered(id uint64, keys [][]byte, low, high []byte) error {
	for i, k := range keys {
		switch {
		case i > 0 && bytes.Compare(keys[i-1], k) >= 0,
			i == 0 && bytes.Compare(k, low) < 0,
			high != nil && bytes.Compare(k, high) >= 0:
			return damaged("page %d: key %d is out of order", id, i)
		}
	}
	return nil
}
