package state

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// Records that are read on the way to a call, and those that there are many of, are
// stored as a sequence of fields without names: text as a length and its bytes,
// numbers as varints, times as nanoseconds since 1970 in UTC (0 is the zero time).
// Their layout belongs to the database's format version: a field is added by a
// migration. Digests stay text, so that the file can be read with bbolt's own tool.

type encoder struct{ b []byte }

func newEncoder(size int) *encoder { return &encoder{b: make([]byte, 0, size)} }

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }
func (e *encoder) int(n int64)   { e.b = binary.AppendVarint(e.b, n) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) digest(d digest.Digest) { e.text(string(d)) }

func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.int(0)
		return
	}
	e.int(t.UnixNano())
}

func encodeTexts[S ~string](e *encoder, list []S) {
	e.uint(uint64(len(list)))
	for _, s := range list {
		e.text(string(s))
	}
}

// A decoder reads what an encoder wrote. It copies the value once; every text
// is a part of that copy. After the first fault it returns zeros.
type decoder struct {
	s   string
	bad bool
}

var errEncoding = errors.New("the value does not decode")

func newDecoder(value []byte) *decoder { return &decoder{s: string(value)} }

// err returns errEncoding if something was malformed or left over.
func (d *decoder) err() error {
	if d.bad || d.s != "" {
		return errEncoding
	}
	return nil
}

func (d *decoder) uint() uint64 {
	var n uint64
	for i := 0; i < len(d.s) && i < binary.MaxVarintLen64; i++ {
		c := d.s[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.s = d.s[i+1:]
			return n
		}
	}
	d.fail()
	return 0
}

func (d *decoder) int() int64 {
	n := d.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.s)) {
		d.fail()
		return ""
	}
	s := d.s[:n]
	d.s = d.s[n:]
	return s
}

func (d *decoder) digest() digest.Digest { return digest.Digest(d.text()) }

func (d *decoder) time() time.Time {
	n := d.int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// count reads the number of elements that follow, each of at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.s)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func decodeTexts[S ~string](d *decoder) []S { return appendTexts[S](nil, d) }

func appendTexts[S ~string](list []S, d *decoder) []S {
	n := d.count(1)
	list = slices.Grow(list, n)
	for range n {
		list = append(list, S(d.text()))
	}
	return list
}

// must fails where what was read cannot have been written.
func (d *decoder) must(ok bool) {
	if !ok {
		d.fail()
	}
}

// isDigests reports whether each is a digest or none.
func isDigests(list ...digest.Digest) bool {
	for _, d := range list {
		if d != "" && !digest.IsCanonical(string(d)) {
			return false
		}
	}
	return true
}

// isTexts reports whether each can come from a manifest.
func isTexts(list ...string) bool {
	for _, s := range list {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return false
		}
	}
	return true
}

func isScopes(list []manifest.Scope) bool {
	for _, s := range list {
		if !slices.Contains(manifest.Scopes, s) && !slices.Contains(sessionmanifest.Scopes, sessionmanifest.Scope(s)) {
			return false
		}
	}
	return true
}

func (d *decoder) fail() { d.s, d.bad = "", true }
