package pkgmgr

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// newUUID returns a version 7 UUID (RFC 9562, section 5.7): 48 bits of milliseconds,
// then random bits. Ids made later order later, to the millisecond. It is written
// here because the usual library links net and database/sql, which every start of
// the program would pay for.
func newUUID(now time.Time) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	text := make([]byte, 36)
	hex.Encode(text[0:8], b[0:4])
	hex.Encode(text[9:13], b[4:6])
	hex.Encode(text[14:18], b[6:8])
	hex.Encode(text[19:23], b[8:10])
	hex.Encode(text[24:36], b[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text)
}

// isUUID reports whether s is spelled like a UUID, in lower case: an id of a call
// becomes a file name.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
