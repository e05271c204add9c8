package boltfile

import (
	"bytes"
	"io"
)

// A page is the bytes of one page with its overflow, or of a page inside a
// bucket's value. Nothing in it is trusted.
type page []byte

func (p page) id() uint64       { return order.Uint64(p) }
func (p page) flags() uint16    { return order.Uint16(p[8:]) }
func (p page) count() int       { return int(order.Uint16(p[10:])) }
func (p page) overflow() uint64 { return uint64(order.Uint32(p[12:])) }
func (p page) isLeaf() bool     { return p.flags() == flagLeaf }

// readPage reads page id into buf, which is grown where that is needed, and
// returns it. It is a branch or a leaf page with room for its elements.
func (f *File) readPage(id uint64, buf []byte) (page, error) {
	p, err := f.readAnyPage(id, buf)
	if err != nil {
		return nil, err
	}
	return p, p.check(id)
}

func (p page) check(id uint64) error {
	switch {
	case p.flags() != flagLeaf && p.flags() != flagBranch:
		return damaged("page %d: its kind is %#x", id, p.flags())
	case len(p) < headerSize+p.count()*elementSize:
		return damaged("page %d: %d elements", id, p.count())
	case p.count() == 0 && !p.isLeaf():
		return damaged("page %d: an empty branch", id)
	}
	return nil
}

// readAnyPage reads a page of any kind with its overflow.
func (f *File) readAnyPage(id uint64, buf []byte) (page, error) {
	if id < 2 || id >= f.meta.high {
		return nil, damaged("page %d of %d", id, f.meta.high)
	}
	if int64(cap(buf)) < f.pageSize {
		buf = make([]byte, f.pageSize)
	}
	buf = buf[:f.pageSize]
	if err := f.readFull(buf, id); err != nil {
		return nil, err
	}
	p := page(buf)
	switch more := p.overflow(); {
	case p.id() != id:
		return nil, damaged("page %d: it says it is %d", id, p.id())
	case more == 0:
		return p, nil
	case more >= f.meta.high-id:
		return nil, damaged("page %d: %d pages of overflow", id, more)
	default:
		size := int64(more+1) * f.pageSize
		if int64(cap(buf)) < size {
			buf = append(make([]byte, 0, size), buf...)
		}
		buf = buf[:size]
		return page(buf), f.readFull(buf[f.pageSize:], id+1)
	}
}

func (f *File) readFull(buf []byte, id uint64) error {
	n, err := f.r.ReadAt(buf, int64(id)*f.pageSize)
	if n == len(buf) {
		return nil
	}
	if err == io.EOF || err == nil {
		return damaged("page %d: the file ends in it", id)
	}
	return err
}

// key returns the key of element i, of either kind of page.
func (p page) key(i int) ([]byte, error) {
	e := headerSize + i*elementSize
	pos, size := order.Uint32(p[e+4:]), order.Uint32(p[e+8:])
	if !p.isLeaf() {
		pos, size = order.Uint32(p[e:]), order.Uint32(p[e+4:])
	}
	return p.slice(i, uint64(e)+uint64(pos), uint64(size))
}

// rises reports keys that do not rise.
func (p page) rises() error {
	var last []byte
	for i := range p.count() {
		key, err := p.key(i)
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return damaged("page %d: key %d is out of order", p.id(), i)
		}
		last = key
	}
	return nil
}

// leaf returns the key, the value and whether the value is a bucket.
func (p page) leaf(i int) (key, value []byte, isBucket bool, err error) {
	e := headerSize + i*elementSize
	flags, pos := order.Uint32(p[e:]), order.Uint32(p[e+4:])
	keySize, valueSize := order.Uint32(p[e+8:]), order.Uint32(p[e+12:])
	at := uint64(e) + uint64(pos)
	if key, err = p.slice(i, at, uint64(keySize)); err != nil {
		return nil, nil, false, err
	}
	value, err = p.slice(i, at+uint64(keySize), uint64(valueSize))
	return key, value, flags&flagBucket != 0, err
}

// branch returns the number of the page that element i leads to.
func (p page) branch(i int) uint64 { return order.Uint64(p[headerSize+i*elementSize+8:]) }

func (p page) slice(i int, at, size uint64) ([]byte, error) {
	if at+size > uint64(len(p)) || at < headerSize+uint64(p.count())*elementSize {
		return nil, damaged("page %d: element %d points outside", p.id(), i)
	}
	return p[at : at+size : at+size], nil
}
