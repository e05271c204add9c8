// Package boltfile reads a bbolt database file, version 2, without bbolt.
//
// bbolt maps the file and follows what stands in it. For a program that opens the
// database once, reads five records and ends, that is slow: each part of the mapping
// that is touched costs a page fault and the unmapping costs more than all else.
// And it is unsafe on a damaged file: a wrong length leads out of the mapping, a
// wrong page number in a circle, and either ends the process. This package reads
// single pages by position into reused buffers and believes no number in them.
//
// It never writes, takes no lock and keeps no state of its own: the caller keeps
// writers away while a File is in use. A File and what comes from it belong to one
// goroutine. The format is described in bbolt's internal/common; numbers are in
// the byte order of the machine that wrote them.
package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// ErrDamaged is matched by every error about the contents of the file.
var ErrDamaged = errors.New("not a sound bbolt database")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Numbers of the format.
const (
	magic   = 0xED0CDAED
	version = 2

	minPage = 1 << 10
	maxPage = 1 << 24

	headerSize  = 16 // of a page: id, flags, count, overflow
	elementSize = 16 // of an entry in a page, before keys and values
	bucketSize  = 16 // of a bucket's value: root, sequence

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	flagBucket = 0x01 // of a leaf element: the value is a bucket

	noFreelist = ^uint64(0)

	metaSize     = 64 // of a meta page's body
	metaChecksum = 56 // where in it the checksum stands
)

var order = binary.NativeEndian

// A File is one snapshot of a database.
type File struct {
	r        io.ReaderAt
	pageSize int64
	meta     meta
	root     Bucket
	finder   Cursor // for single look-ups in any bucket; lends its buffers to cursors
}

type meta struct {
	root     uint64
	freelist uint64
	high     uint64 // the first page number that is not in use
	txid     uint64
}

// Open reads the newest sound meta page of a file of size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r}
	err0 := f.readMeta(0, 0)
	var err1 error
	if err0 == nil {
		_ = f.readMeta(f.pageSize, f.pageSize)
	} else {
		// The second meta page stands at an unknown page size.
		for at := int64(minPage); at <= maxPage && f.pageSize == 0; at *= 2 {
			err1 = f.readMeta(at, at)
		}
	}
	if f.pageSize == 0 {
		return nil, errors.Join(err0, err1)
	}
	if used := f.Size(); used > size {
		return nil, damaged("the file has %d bytes of %d", size, used)
	}
	f.root = Bucket{f: f, root: f.meta.root}
	f.finder = Cursor{bucket: &f.root}
	return f, nil
}

// readMeta takes the meta page at an offset over if it is sound and newer than the one
// at hand. pageSize is what it must say, or 0.
func (f *File) readMeta(at, pageSize int64) error {
	var buf [headerSize + metaSize]byte
	if n, err := f.r.ReadAt(buf[:], at); n < len(buf) {
		if err != nil && err != io.EOF {
			return err
		}
		return damaged("the file ends before its meta page")
	}
	m, size, err := parseMeta(buf[headerSize:])
	switch {
	case err != nil:
		return err
	case pageSize != 0 && size != pageSize:
		return damaged("a page size of %d in the meta page at %d", size, at)
	case f.pageSize == 0 || m.txid > f.meta.txid:
		f.pageSize, f.meta = size, m
	}
	return nil
}

// parseMeta reads the body of a meta page.
func parseMeta(b []byte) (meta, int64, error) {
	h := fnv.New64a()
	_, _ = h.Write(b[:metaChecksum])
	pageSize := int64(order.Uint32(b[8:]))
	m := meta{root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]), high: order.Uint64(b[40:]), txid: order.Uint64(b[48:])}
	switch {
	case order.Uint32(b) != magic:
		return meta{}, 0, damaged("no bbolt meta page")
	case order.Uint32(b[4:]) != version:
		return meta{}, 0, damaged("bbolt format %d", order.Uint32(b[4:]))
	case order.Uint64(b[metaChecksum:]) != h.Sum64():
		return meta{}, 0, damaged("the checksum of a meta page")
	case pageSize < minPage || pageSize > maxPage || pageSize&(pageSize-1) != 0:
		return meta{}, 0, damaged("a page size of %d", pageSize)
	case m.high < 4 || m.high > uint64(1<<62/pageSize) || m.root < 2 || m.root >= m.high:
		return meta{}, 0, damaged("a root page %d of %d", m.root, m.high)
	}
	return m, pageSize, nil
}

// Size returns the number of bytes that the snapshot uses; the file may be longer.
func (f *File) Size() int64 { return int64(f.meta.high) * f.pageSize }

// Bucket returns a bucket of the root, or nil if there is none of that name.
func (f *File) Bucket(name []byte) (*Bucket, error) { return f.root.Bucket(name) }
