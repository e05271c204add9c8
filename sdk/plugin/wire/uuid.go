package wire

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// A UUID of any version (RFC 9562). It is written in lower case and compared by
// value, not by spelling.
type UUID [16]byte

func (u UUID) String() string { return string(u.append(make([]byte, 0, 36))) }

func (u UUID) append(dst []byte) []byte {
	const digits = "0123456789abcdef"
	var text [36]byte
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	for i, at := range uuidDigits {
		text[at], text[at+1] = digits[u[i]>>4], digits[u[i]&15]
	}
	return append(dst, text[:]...)
}

// uuidDigits are the places of a UUID's bytes in its text.
var uuidDigits = [16]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// ParseUUID reads the 36 characters of a UUID, hexadecimal digits in any case.
func ParseUUID(s string) (UUID, bool) { return parseUUID(s) }

func parseUUID[T string | []byte](s T) (u UUID, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	for i, at := range uuidDigits {
		high, low := nibbles[s[at]], nibbles[s[at+1]]
		if high == 0 || low == 0 {
			return UUID{}, false
		}
		u[i] = (high-1)<<4 | (low - 1)
	}
	return u, true
}

// nibbles maps a hexadecimal digit to one more than its value and any other byte to 0.
var nibbles = [256]byte{
	'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16,
	'A': 11, 'B': 12, 'C': 13, 'D': 14, 'E': 15, 'F': 16,
}

// A NullUUID is a UUID or null.
type NullUUID struct {
	UUID UUID
	Set  bool
}

// Some returns u as a NullUUID that is not null.
func Some(u UUID) NullUUID { return NullUUID{UUID: u, Set: true} }

// uuids makes the random part of many UUIDs from one read.
var uuids struct {
	sync.Mutex
	pool [1024]byte
	left int
	last uint64 // 48 bits of milliseconds and 12 of sequence
}

// NewUUID returns a UUID of version 7 that is greater than every one that this
// process made before, even where the clock goes back.
func NewUUID() UUID { return NewUUIDAt(time.Now()) }

// NewUUIDAt is NewUUID for a caller that has just looked at the clock.
func NewUUIDAt(at time.Time) UUID {
	var u UUID
	uuids.Lock()
	defer uuids.Unlock()
	if uuids.left < 8 {
		rand.Read(uuids.pool[:]) // never fails
		uuids.left = len(uuids.pool)
	}
	uuids.left -= 8
	copy(u[8:], uuids.pool[uuids.left:uuids.left+8])
	// RFC 9562 §6.2 method 3: the 12 bits after the milliseconds are a fraction
	// of one; where the clock has not moved on, the next value is taken.
	now := uint64(at.UnixNano())
	stamp := now/1e6<<12 | now%1e6*4096/1e6
	uuids.last = max(stamp, uuids.last+1)
	binary.BigEndian.PutUint64(u[:8], uuids.last>>12<<16|0x7000|uuids.last&0xFFF)
	u[8] = u[8]&0x3F | 0x80
	return u
}

// A TraceID is 32 hexadecimal digits as they were sent; the zero value is null.
type TraceID [32]byte

// IsNull reports whether there is no trace.
func (t TraceID) IsNull() bool { return t == TraceID{} }

// String returns the digits, or "" for null.
func (t TraceID) String() string {
	if t.IsNull() {
		return ""
	}
	return string(t[:])
}

// ParseTraceID reads 32 hexadecimal digits.
func ParseTraceID(s string) (TraceID, bool) { return parseTraceID(s) }

func parseTraceID[T string | []byte](s T) (t TraceID, ok bool) {
	if len(s) != len(t) {
		return t, false
	}
	for i := range len(s) {
		if nibbles[s[i]] == 0 {
			return TraceID{}, false
		}
		t[i] = s[i]
	}
	return t, true
}
