package revlist

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// An index file is
//
//	header   512 bytes; the last 32 are SHA-256 of those before
//	bodies   for each key its entries, as in the list, separated by commas
//	records  52 bytes for each key, sorted by the key's SHA-256
//	slots    32 bytes for each of 1<<bits prefixes of a key's SHA-256: where its records lie
//
// with little-endian numbers. Every byte that an answer rests on is covered by a
// checksum that is checked first: a slot by its own, a prefix's records by their
// slot, a body by its record. Checksums of slots and records include the header's,
// so that parts of two indexes do not mix. They find damage; against somebody who
// may write the file there is no protection in it.

// IndexName is the name of the index in its directory.
const IndexName = "index"

// ErrIndexDamaged is wrapped by every error about an index that is not what Build
// wrote. It is never the answer that nothing is revoked: build the index again.
var ErrIndexDamaged = errors.New("revocation index is damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrIndexDamaged, fmt.Sprintf(format, args...))
}

const (
	indexMagic   = "swyrevix"
	indexVersion = 1

	headerSize = 512
	recordSize = 32 + 8 + 4 + 8 // the key's hash; its body's offset, length and checksum
	slotSize   = 4 + 4 + 16 + 8 // first record, number of records, their checksum; the slot's

	maxBits    = 18      // of a prefix
	perSlot    = 8       // records that a prefix has on average, at most twice as many
	maxPerSlot = 1 << 16 // records of one prefix; no honest list comes near
	maxBody    = 8 << 20 // bytes of one key's entries
)

type hash = [sha256.Size]byte

func (k Key) hash() hash {
	b := make([]byte, 0, 256)
	b = append(b, k.Kind...)
	b = append(b, 0)
	return sha256.Sum256(append(b, k.Subject...))
}

// prefix returns the first bits of a hash.
func prefix(h []byte, bits int) int {
	return int(binary.BigEndian.Uint32(h) >> (32 - bits))
}

// An indexHeader says what an index holds.
type indexHeader struct {
	list      Header
	bits      int
	keys      int
	bodyBytes int64
}

func (h indexHeader) bodiesAt() int64  { return headerSize }
func (h indexHeader) recordsAt() int64 { return h.bodiesAt() + h.bodyBytes }
func (h indexHeader) slotsAt() int64   { return h.recordsAt() + int64(h.keys)*recordSize }
func (h indexHeader) fileSize() int64  { return h.slotsAt() + slotSize<<h.bits }

// encode returns the header's bytes and their checksum, which seeds the others.
func (h indexHeader) encode() (block []byte, seed hash) {
	le := binary.LittleEndian
	b := append(make([]byte, 0, headerSize), indexMagic...)
	b = le.AppendUint32(b, indexVersion)
	b = le.AppendUint32(b, uint32(h.bits))
	b = le.AppendUint64(b, uint64(h.keys))
	b = le.AppendUint64(b, uint64(h.bodyBytes))
	b = le.AppendUint64(b, uint64(h.list.Entries))
	b = le.AppendUint64(b, h.list.Version)
	b = le.AppendUint64(b, uint64(h.list.IssuedAt.Unix()))
	b = le.AppendUint64(b, uint64(h.list.ExpiresAt.Unix()))
	b = le.AppendUint64(b, uint64(h.list.Bytes))
	b = append(b, h.list.Digest...)
	b = append(b, byte(len(h.list.Issuer)))
	b = append(b, h.list.Issuer...)
	b = b[:headerSize-sha256.Size]
	seed = sha256.Sum256(b)
	return append(b, seed[:]...), seed
}

// decodeHeader is the inverse of encode; size is the file's.
func decodeHeader(block []byte, size int64) (indexHeader, hash, error) {
	var h indexHeader
	le := binary.LittleEndian
	covered := block[:headerSize-sha256.Size]
	seed := sha256.Sum256(covered)
	switch {
	case string(block[:8]) != indexMagic:
		return h, seed, damaged("it does not begin as an index does")
	case le.Uint32(block[8:]) != indexVersion:
		return h, seed, damaged("its format has the number %d, not %d", le.Uint32(block[8:]), indexVersion)
	case !bytes.Equal(seed[:], block[len(covered):]):
		return h, seed, damaged("the checksum of its header differs")
	}
	bits, keys, body, entries := le.Uint32(block[12:]), le.Uint64(block[16:]), le.Uint64(block[24:]), le.Uint64(block[32:])
	if bits > maxBits || entries > MaxEntries || keys > entries || body > MaxBytes {
		return h, seed, damaged("a number in its header is out of range")
	}
	h.bits, h.keys, h.bodyBytes = int(bits), int(keys), int64(body)
	if h.fileSize() != size {
		return h, seed, damaged("it is %d bytes long, not %d", size, h.fileSize())
	}
	const digestAt, digestSize = 72, len(digest.Prefix) + 2*sha256.Size
	issuer := block[digestAt+digestSize+1 : len(covered)]
	if n := int(block[digestAt+digestSize]); n > MaxID {
		return h, seed, damaged("a number in its header is out of range")
	} else {
		issuer = issuer[:n]
	}
	h.list = Header{
		Issuer:    string(issuer),
		Version:   le.Uint64(block[40:]),
		IssuedAt:  time.Unix(int64(le.Uint64(block[48:])), 0).UTC(),
		ExpiresAt: time.Unix(int64(le.Uint64(block[56:])), 0).UTC(),
		Entries:   int(entries),
		Bytes:     int64(le.Uint64(block[64:])),
		Digest:    digest.Digest(block[digestAt : digestAt+digestSize]),
	}
	if p := checkHeader(h.list.Issuer, h.list.Version, h.list.IssuedAt, h.list.ExpiresAt); p != nil || !digest.IsCanonical(string(h.list.Digest)) {
		return h, seed, damaged("its header describes no list")
	}
	return h, seed, nil
}

type record [recordSize]byte

func newRecord(key hash, offset int64, body []byte) record {
	var r record
	copy(r[:], key[:])
	binary.LittleEndian.PutUint64(r[32:], uint64(offset))
	binary.LittleEndian.PutUint32(r[40:], uint32(len(body)))
	sum := bodySum(key[:], body)
	copy(r[44:], sum[:8])
	return r
}

func bodySum(key, body []byte) hash { return sumOf(key, body) }

func recordsSum(seed hash, records []byte) hash { return sumOf(seed[:], records) }

// newSlot describes the records of prefix n.
func newSlot(seed hash, n, first int, records []byte) [slotSize]byte {
	var s [slotSize]byte
	binary.LittleEndian.PutUint32(s[0:], uint32(first))
	binary.LittleEndian.PutUint32(s[4:], uint32(len(records)/recordSize))
	sum := recordsSum(seed, records)
	copy(s[8:24], sum[:])
	check := slotSum(seed, n, s[:24])
	copy(s[24:], check[:8])
	return s
}

func slotSum(seed hash, n int, content []byte) hash {
	return sumOf(seed[:], binary.LittleEndian.AppendUint32(nil, uint32(n)), content)
}

func sumOf(parts ...[]byte) hash {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	var sum hash
	h.Sum(sum[:0])
	return sum
}

// bitsFor returns how long a prefix is in an index of so many keys.
func bitsFor(keys int) int {
	bits := 0
	for bits < maxBits && keys>>bits > perSlot*2 {
		bits++
	}
	return bits
}
