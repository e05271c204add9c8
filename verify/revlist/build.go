package revlist

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// The records are sorted in portions of this many; with bufferSize and the slots
// it bounds the memory that Build takes.
const portion = 256 << 10

const temporaryPrefix = IndexName + ".tmp-"

// Build writes the index of a list to IndexName in dir, durably and in one step:
// under that name there is always a whole index, the old one or the new one. read
// shows every entry in the order of a list, as Read does, and returns its header;
// its error ends the building and is returned as it is.
//
// Memory is bounded (below 64 MiB), whatever the number of entries; the directory
// holds the new index one and a half times while it is made. One process at a time
// may build in a directory: what a killed one left there is removed.
func Build(dir string, read func(visit func(Entry) error) (Header, error)) (err error) {
	if err := removeTemporary(dir); err != nil {
		return fmt.Errorf("revocation index: %w", err)
	}
	out, err := os.CreateTemp(dir, temporaryPrefix+"*")
	if err != nil {
		return fmt.Errorf("revocation index: %w", err)
	}
	defer func() {
		out.Close()
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	unsorted, err := os.CreateTemp(dir, temporaryPrefix+"*")
	if err != nil {
		return fmt.Errorf("revocation index: %w", err)
	}
	defer os.Remove(unsorted.Name())
	defer unsorted.Close()

	b := &builder{
		out:     bufio.NewWriterSize(out, bufferSize),
		records: bufio.NewWriterSize(unsorted, bufferSize),
		counts:  make([]uint32, 1<<maxBits),
	}
	b.write(make([]byte, headerSize)) // until the header is known
	h, err := read(b.add)
	if err != nil {
		return err
	}
	if err := b.finish(h, out, unsorted); err != nil {
		return fmt.Errorf("revocation index: %w", err)
	}
	if err := publish(out, filepath.Join(dir, IndexName)); err != nil {
		return fmt.Errorf("revocation index: %w", err)
	}
	return nil
}

func removeTemporary(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, name := range names {
		if err == nil && strings.HasPrefix(name, temporaryPrefix) {
			err = os.Remove(filepath.Join(dir, name))
		}
	}
	return err
}

func publish(f *os.File, path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// A builder takes entries in order and gathers those of one key.
type builder struct {
	out     *bufio.Writer // header, then bodies
	records *bufio.Writer // unsorted
	counts  []uint32      // records for each prefix of maxBits
	err     error         // the first, of a refused entry or of writing

	order   order
	entries int
	key     Key
	body    []byte
	written int64 // bytes of bodies
	keys    int
}

func (b *builder) write(p []byte) {
	if _, err := b.out.Write(p); b.err == nil {
		b.err = err
	}
}

// add takes the next entry. After an error nothing is built.
func (b *builder) add(e Entry) error {
	if b.err == nil {
		b.err = b.take(e)
	}
	return b.err
}

func (b *builder) take(e Entry) error {
	b.entries++
	p := checkEntry(e)
	if p == nil {
		p = b.order.check(e)
	}
	if p == nil && b.entries > MaxEntries {
		p = tooManyEntries()
	}
	if p != nil {
		return p.in(listKind, b.entries)
	}
	if k := e.Key(); k != b.key {
		if err := b.flush(); err != nil {
			return err
		}
		b.key = k
	} else {
		b.body = append(b.body, ',')
	}
	b.body = appendEntry(b.body, e)
	if len(b.body) > maxBody || b.written+int64(len(b.body)) > MaxBytes {
		return (&problem{reason: tooLarge, message: "the entries are too long to be indexed"}).in(listKind, b.entries)
	}
	return b.err
}

// flush writes the entries of the key that is complete.
func (b *builder) flush() error {
	if b.key == (Key{}) {
		return nil
	}
	h := b.key.hash()
	n := prefix(h[:], maxBits)
	if b.counts[n]++; b.counts[n] > maxPerSlot {
		return (&problem{reason: tooMany, message: "too many subjects have hashes that begin alike"}).in(listKind, b.entries)
	}
	r := newRecord(h, b.written, b.body)
	if _, err := b.records.Write(r[:]); b.err == nil {
		b.err = err
	}
	b.write(b.body)
	b.written += int64(len(b.body))
	b.keys++
	b.body = b.body[:0]
	return b.err
}

// finish sorts the records and writes everything that follows the bodies.
func (b *builder) finish(list Header, out, unsorted *os.File) error {
	if b.err != nil {
		return b.err
	}
	if err := b.flush(); err != nil {
		return err
	}
	if list.Entries != b.entries {
		return fmt.Errorf("%d entries were shown of a list that has %d", b.entries, list.Entries)
	}
	if p := checkHeader(list.Issuer, list.Version, list.IssuedAt, list.ExpiresAt); p != nil {
		return p.in(listKind, 0)
	}
	if !digest.IsCanonical(string(list.Digest)) {
		return errors.New("the list has no digest")
	}
	if err := errors.Join(b.err, b.records.Flush()); err != nil {
		return err
	}
	h := indexHeader{list: list, bits: bitsFor(b.keys), keys: b.keys, bodyBytes: b.written}
	block, seed := h.encode()
	slots, err := b.sortRecords(h, seed, unsorted)
	if err != nil {
		return err
	}
	b.write(slots)
	if err := errors.Join(b.err, b.out.Flush()); err != nil {
		return err
	}
	_, err = out.WriteAt(block, 0)
	return err
}

// sortRecords writes the records in order, a portion of the prefixes at a time, and
// returns the slots.
func (b *builder) sortRecords(h indexHeader, seed hash, unsorted *os.File) ([]byte, error) {
	perPrefix := b.counts
	fold := 1 << (maxBits - h.bits) // counted prefixes in one of the index's
	slots := make([]byte, 0, slotSize<<h.bits)
	batch := make([]record, 0, min(portion, h.keys))
	first := 0
	for from := 0; from < 1<<h.bits; {
		to, wanted := from, 0
		for to < 1<<h.bits {
			n := 0
			for _, c := range perPrefix[to*fold : (to+1)*fold] {
				n += int(c)
			}
			if to > from && wanted+n > portion {
				break
			}
			to, wanted = to+1, wanted+n
		}
		var err error
		if batch, err = pick(batch[:0], unsorted, h.bits, from, to); err != nil {
			return nil, err
		}
		if len(batch) != wanted {
			return nil, fmt.Errorf("%d records came back of %d", len(batch), wanted)
		}
		slices.SortFunc(batch, func(x, y record) int { return slices.Compare(x[:32], y[:32]) })
		for n, i := from, 0; n < to; n++ {
			var records []byte
			for ; i < len(batch) && prefix32(batch[i], h.bits) == n; i++ {
				if i > 0 && slices.Equal(batch[i-1][:32], batch[i][:32]) {
					return nil, errors.New("two subjects have one hash")
				}
				records = append(records, batch[i][:]...)
			}
			slot := newSlot(seed, n, first, records)
			slots = append(slots, slot[:]...)
			b.write(records)
			first += len(records) / recordSize
		}
		from = to
	}
	return slots, b.err
}

func prefix32(r record, bits int) int { return prefix(r[:], bits) }

// pick appends to batch the records whose prefixes lie in [from, to).
func pick(batch []record, unsorted *os.File, bits, from, to int) ([]record, error) {
	if _, err := unsorted.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(unsorted, bufferSize)
	for {
		var r record
		if _, err := io.ReadFull(in, r[:]); err == io.EOF {
			return batch, nil
		} else if err != nil {
			return nil, err
		}
		if n := prefix32(r, bits); from <= n && n < to {
			batch = append(batch, r)
		}
	}
}
