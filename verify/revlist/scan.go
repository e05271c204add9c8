package revlist

import (
	"errors"
	"fmt"
	gohash "hash"
	"io"
	"math/bits"
	"unicode/utf8"
)

// maxInteger is the largest integer that RFC 8785 writes in plain digits and every
// reader reads back.
const maxInteger = 1<<53 - 1

// A scanner reads one canonical document from a stream. After its first fault every
// method returns a zero value; loops end because of that fault.
//
// It holds one buffer and one string, whatever the length of the document.
type scanner struct {
	kind  kind
	in    io.Reader   // nil: the document is buf
	limit int64       // of bytes
	sum   gohash.Hash // of all bytes read; nil: not wanted

	buf   []byte
	pos   int
	read  int64 // bytes of the document read so far, those in buf included
	ended bool

	text  []byte // of the last string
	entry int    // the element being read, from 1
	err   error
}

const bufferSize = 64 << 10

func newScanner(k kind, r io.Reader, limit int64, sum gohash.Hash) *scanner {
	return &scanner{kind: k, in: r, limit: limit, sum: sum, buf: make([]byte, 0, bufferSize)}
}

func scanBytes(k kind, b []byte) *scanner {
	return &scanner{kind: k, limit: int64(len(b)), buf: b, read: int64(len(b))}
}

func (s *scanner) offset() int64 { return s.read - int64(len(s.buf)-s.pos) }

func (s *scanner) failAt(offset int64, reason, format string, args ...any) {
	if s.err == nil {
		s.err = &Error{Code: s.kind.code(reason), Offset: offset, Entry: s.entry,
			Message: fmt.Sprintf(format, args...), document: s.kind.name}
	}
}

func (s *scanner) fail(reason, format string, args ...any) {
	s.failAt(s.offset(), reason, format, args...)
}

// broke reports a broken rule about a value that began at offset.
func (s *scanner) broke(offset int64, p *problem) {
	if p == nil || s.err != nil {
		return
	}
	s.failAt(offset, p.reason, "%s", p.message)
	s.err.(*Error).cause = p.cause
}

// more fills the buffer; false at the end of the input and after a fault.
func (s *scanner) more() bool {
	if s.err != nil || s.ended {
		return false
	}
	if s.in == nil {
		s.ended = true
		return false
	}
	n, err := 0, error(nil)
	room := min(int64(cap(s.buf)), s.limit+1-s.read)
	for tries := 0; n == 0 && err == nil; tries++ {
		if tries == 100 {
			err = io.ErrNoProgress
			break
		}
		n, err = s.in.Read(s.buf[:room])
	}
	s.buf, s.pos = s.buf[:n], 0
	s.read += int64(n)
	if s.sum != nil {
		s.sum.Write(s.buf)
	}
	if s.read > s.limit {
		s.failAt(s.limit, tooLarge, "the document is longer than %d bytes", s.limit)
		return false
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		s.ended = true
	case n > 0: // the next read meets the error again
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.failAt(s.read, truncated, "the document is cut off after %d bytes", s.read)
		s.err.(*Error).cause = err
	default:
		s.err = fmt.Errorf("%s: read at byte %d: %w", s.kind.name, s.read, err)
		return false
	}
	return n > 0
}

// peek returns the next byte without taking it. The document's end is a fault.
func (s *scanner) peek() (byte, bool) {
	if s.err != nil {
		return 0, false
	}
	if s.pos == len(s.buf) && !s.more() {
		s.fail(truncated, "the document is cut off after %d bytes", s.read)
		return 0, false
	}
	return s.buf[s.pos], true
}

func (s *scanner) next() (byte, bool) {
	c, ok := s.peek()
	if ok {
		s.pos++
	}
	return c, ok
}

// expect takes the byte c.
func (s *scanner) expect(c byte, what string) bool {
	got, ok := s.peek()
	if !ok {
		return false
	}
	if got != c {
		s.unexpected(got, what)
		return false
	}
	s.pos++
	return true
}

func (s *scanner) unexpected(c byte, what string) {
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.fail(notCanonical, "white space where %s should stand: the canonical form has none", what)
	case c == 0xEF && s.offset() == 0:
		s.fail(notCanonical, "a byte order mark: the canonical form has none")
	case c < 0x20 || c >= 0x7F:
		s.fail(malformed, "byte 0x%02x where %s should stand", c, what)
	default:
		s.fail(malformed, "%q where %s should stand", c, what)
	}
}

// end demands that nothing follows.
func (s *scanner) end() {
	if s.err == nil && (s.pos < len(s.buf) || s.more()) {
		s.fail(trailingData, "something follows the document")
	}
}

// object reads an object whose members are named, in order, by names; value reads
// the value of names[i]. Bit i of required demands names[i].
func (s *scanner) object(names []string, required uint, what string, value func(i int)) {
	if !s.expect('{', what) {
		return
	}
	var seen uint
	if c, _ := s.peek(); c == '}' {
		s.pos++
	} else {
		for last := -1; ; {
			i, ok := s.member(names, last, seen)
			if !ok {
				return
			}
			last, seen = i, seen|1<<i
			value(i)
			c, ok := s.peek()
			if !ok {
				return
			}
			if c != ',' && c != '}' {
				s.unexpected(c, "',' or '}'")
				return
			}
			s.pos++
			if c == '}' {
				break
			}
		}
	}
	if missing := required &^ seen; s.err == nil && missing != 0 {
		s.failAt(s.offset()-1, missingMember, "member %q is missing", names[bits.TrailingZeros(missing)])
	}
}

// member reads a name and its colon.
func (s *scanner) member(names []string, last int, seen uint) (int, bool) {
	at := s.offset()
	if !s.str(maxName, "a member's name") {
		return 0, false
	}
	for i, name := range names {
		switch {
		case name != string(s.text):
		case seen&(1<<i) != 0:
			s.failAt(at, duplicateMember, "member %q occurs twice", name)
			return 0, false
		case i < last:
			s.failAt(at, notCanonical, "member %q stands after %q", name, names[last])
			return 0, false
		default:
			return i, s.expect(':', "':'")
		}
	}
	s.failAt(at, unknownMember, "member %s is not defined", shown(string(s.text)))
	return 0, false
}

const maxName = 128 // bytes of a member's name

// array reads an array of at most most elements; element reads one.
func (s *scanner) array(what string, most int, element func()) {
	if !s.expect('[', what) {
		return
	}
	if c, _ := s.peek(); c == ']' {
		s.pos++
		return
	}
	for n := 1; ; n++ {
		if n > most {
			s.fail(tooMany, "%s has more than %d elements", what, most)
			return
		}
		element()
		c, ok := s.peek()
		if !ok {
			return
		}
		if c != ',' && c != ']' {
			s.unexpected(c, "',' or ']'")
			return
		}
		s.pos++
		if c == ']' {
			return
		}
	}
}

// str reads a string of at most most bytes into s.text.
func (s *scanner) str(most int, what string) bool {
	if !s.expect('"', what) {
		return false
	}
	s.text = s.text[:0]
	for {
		if s.pos == len(s.buf) && !s.fillString() {
			return false
		}
		rest := s.buf[s.pos:]
		n := 0
		for n < len(rest) && plain(rest[n]) {
			n++
		}
		if len(s.text)+n > most {
			s.pos += most - len(s.text)
			s.fail(tooLong, "%s is longer than %d bytes", what, most)
			return false
		}
		s.text = append(s.text, rest[:n]...)
		s.pos += n
		if n == len(rest) {
			continue
		}
		if rest[n] == '"' {
			s.pos++
			return true
		}
		if !s.special() {
			return false
		}
		if len(s.text) > most {
			s.fail(tooLong, "%s is longer than %d bytes", what, most)
			return false
		}
	}
}

func (s *scanner) fillString() bool { _, ok := s.peek(); return ok }

// plain reports whether a byte stands for itself in a string.
func plain(c byte) bool { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' }

// special reads one character of a string that is not plain.
func (s *scanner) special() bool {
	at := s.offset()
	c, _ := s.next()
	if c < 0x20 {
		s.failAt(at, malformed, "control character 0x%02x in a string", c)
		return false
	}
	if c == '\\' {
		return s.escape(at)
	}
	char := [utf8.UTFMax]byte{c}
	n := 1
	for !utf8.FullRune(char[:n]) {
		if char[n], _ = s.next(); s.err != nil {
			return false
		}
		n++
	}
	r, size := utf8.DecodeRune(char[:n])
	switch {
	case r == utf8.RuneError && size == 1:
		s.failAt(at, invalidUnicode, "a string is not UTF-8")
	case r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF:
		s.failAt(at, invalidUnicode, "noncharacter U+%04X in a string", r)
	}
	s.text = append(s.text, char[:size]...)
	return s.err == nil
}

// escape reads what follows a backslash: exactly the escapes that RFC 8785 writes.
func (s *scanner) escape(at int64) bool {
	c, ok := s.next()
	if !ok {
		return false
	}
	switch c {
	case '"', '\\':
		s.text = append(s.text, c)
	case 'b':
		s.text = append(s.text, '\b')
	case 't':
		s.text = append(s.text, '\t')
	case 'n':
		s.text = append(s.text, '\n')
	case 'f':
		s.text = append(s.text, '\f')
	case 'r':
		s.text = append(s.text, '\r')
	case 'u':
		var digits [4]byte
		for i := range digits {
			if digits[i], ok = s.next(); !ok {
				return false
			}
		}
		r := byte(hexValue(digits[2])<<4 | hexValue(digits[3]))
		if string(digits[:3]) != "000" && string(digits[:3]) != "001" || hexValue(digits[3]) < 0 ||
			r == '\b' || r == '\t' || r == '\n' || r == '\f' || r == '\r' {
			s.failAt(at, notCanonical, "escape \\u%s, which the canonical form does not write", shownBytes(digits[:]))
			return false
		}
		s.text = append(s.text, r)
	case '/':
		s.failAt(at, notCanonical, "an escaped '/', which the canonical form does not write")
		return false
	default:
		s.failAt(at, malformed, "an escape that JSON does not have")
		return false
	}
	return true
}

func shownBytes(b []byte) string { q := shown(string(b)); return q[1 : len(q)-1] }

// hexValue returns the value of a lower-case hex digit, else -1.
func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// integer reads an integer from 1 to most.
func (s *scanner) integer(most uint64, what string) uint64 {
	at := s.offset()
	var n uint64
	for digits := 0; ; digits++ {
		c, ok := s.peek()
		if !ok {
			return 0
		}
		switch {
		case '0' <= c && c <= '9':
			if digits == 1 && n == 0 {
				s.failAt(at, notCanonical, "%s begins with a zero", what)
				return 0
			}
			if n = n*10 + uint64(c-'0'); n > most {
				s.failAt(at, badNumber, "%s is larger than %d", what, most)
				return 0
			}
		case c == '-' && digits == 0:
			s.failAt(at, badNumber, "%s is negative", what)
			return 0
		case digits > 0 && (c == '.' || c == 'e' || c == 'E'):
			s.failAt(at, notCanonical, "%s is not written in plain digits", what)
			return 0
		case digits == 0:
			s.unexpected(c, what)
			return 0
		case n == 0:
			s.failAt(at, badNumber, "%s is 0", what)
			return 0
		default:
			return n
		}
		s.pos++
	}
}
