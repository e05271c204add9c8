package revlist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
)

// An Index answers whether a list names a subject. It reads what an answer needs
// and no more: three small pieces of the file, however long the list is. It may be
// used by several goroutines at once.
type Index struct {
	file *os.File // to be closed
	in   io.ReaderAt
	head indexHeader
	seed hash
}

// Open opens an index that Build wrote. A missing file is fs.ErrNotExist; a file
// that is not whole is ErrIndexDamaged.
func Open(path string) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("revocation index: %w", err)
	}
	x, err := openFile(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

func openFile(f *os.File) (*Index, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, damaged("it is not a regular file")
	}
	x, err := newIndex(f, info.Size())
	if err == nil {
		x.file = f
	}
	return x, err
}

func newIndex(in io.ReaderAt, size int64) (*Index, error) {
	x := &Index{in: in}
	block, err := x.piece(0, headerSize)
	if err != nil {
		return nil, err
	}
	x.head, x.seed, err = decodeHeader(block, size)
	return x, err
}

// Close closes the file.
func (x *Index) Close() error { return x.file.Close() }

// Header returns the header of the list that was indexed.
func (x *Index) Header() Header { return x.head.list }

// Lookup returns the entries with the given keys. Empty means that the list names
// none of them; an index that cannot be believed is an error.
func (x *Index) Lookup(keys ...Key) ([]Entry, error) {
	var out []Entry
	for _, k := range keys {
		entries, err := x.lookup(k)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", k.Kind, err)
		}
		out = append(out, entries...)
	}
	return out, nil
}

func (x *Index) lookup(k Key) ([]Entry, error) {
	h := k.hash()
	records, err := x.records(prefix(h[:], x.head.bits))
	if err != nil {
		return nil, err
	}
	at := func(i int) []byte { return records[i*recordSize:][:recordSize] }
	n := len(records) / recordSize
	i := sort.Search(n, func(i int) bool { return bytes.Compare(at(i)[:32], h[:]) >= 0 })
	if i == n || !bytes.Equal(at(i)[:32], h[:]) {
		return nil, nil
	}
	return x.body(k, at(i))
}

// records returns the checked records of a prefix.
func (x *Index) records(n int) ([]byte, error) {
	slot, err := x.piece(x.head.slotsAt()+int64(n)*slotSize, slotSize)
	if err != nil {
		return nil, err
	}
	if sum := slotSum(x.seed, n, slot[:24]); !bytes.Equal(sum[:8], slot[24:]) {
		return nil, damaged("the checksum of slot %d differs", n)
	}
	first, count := int64(binary.LittleEndian.Uint32(slot)), int64(binary.LittleEndian.Uint32(slot[4:]))
	if count > maxPerSlot<<(maxBits-x.head.bits) || first+count > int64(x.head.keys) {
		return nil, damaged("slot %d points outside the records", n)
	}
	records, err := x.piece(x.head.recordsAt()+first*recordSize, count*recordSize)
	if err != nil {
		return nil, err
	}
	if sum := recordsSum(x.seed, records); !bytes.Equal(sum[:16], slot[8:24]) {
		return nil, damaged("the checksum of the records of slot %d differs", n)
	}
	for i := int64(0); i < count; i++ {
		r := records[i*recordSize:]
		if prefix(r, x.head.bits) != n || i > 0 && bytes.Compare(r[:32], records[(i-1)*recordSize:][:32]) <= 0 {
			return nil, damaged("the records of slot %d are not in order", n)
		}
	}
	return records, nil
}

// body returns the entries of a key whose record was found.
func (x *Index) body(k Key, r []byte) ([]Entry, error) {
	offset, length := binary.LittleEndian.Uint64(r[32:]), int64(binary.LittleEndian.Uint32(r[40:]))
	if length > maxBody || offset > uint64(x.head.bodyBytes) || length > x.head.bodyBytes-int64(offset) {
		return nil, damaged("a record points outside the entries")
	}
	body, err := x.piece(x.head.bodiesAt()+int64(offset), length)
	if err != nil {
		return nil, err
	}
	if sum := bodySum(r[:32], body); !bytes.Equal(sum[:8], r[44:recordSize]) {
		return nil, damaged("the checksum of an entry differs")
	}
	s := scanBytes(listKind, body)
	var entries []Entry
	var bounds order
	for { // order bounds the number of entries
		s.entry++
		e := s.readEntry()
		if s.err == nil {
			s.broke(s.offset(), checkEntry(e))
			s.broke(s.offset(), bounds.check(e))
		}
		if s.err == nil && e.Key() != k {
			return nil, damaged("an entry lies under another subject")
		}
		entries = append(entries, e)
		if s.err != nil || s.pos == len(body) {
			break
		}
		s.expect(',', "','")
	}
	if s.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndexDamaged, s.err)
	}
	return entries, nil
}

// piece reads a part of the file whose bounds were checked.
func (x *Index) piece(offset, length int64) ([]byte, error) {
	b := make([]byte, length)
	if _, err := x.in.ReadAt(b, offset); errors.Is(err, io.EOF) {
		return nil, damaged("it ends before byte %d", offset+length)
	} else if err != nil {
		return nil, err
	}
	return b, nil
}
