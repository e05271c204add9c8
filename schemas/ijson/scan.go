package ijson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// A scanner walks a document once, before it is decoded, and looks for what the
// decoder does not refuse: noncharacters, numbers, bounds, and members that are
// missing, unknown or null against the shape of the Go type.
//
// It is not a judge of syntax. Where the bytes stop being JSON it stops too,
// without a verdict, because the decoder is bound to refuse them; on a document
// that the decoder accepts it sees every token.
type scanner struct {
	data    []byte
	pos     int
	depth   int
	members int
	fault   *fault // the first fault of the document itself; ends the walk
	schema  *fault // the first fault against the shape; the walk goes on
}

// value walks one value and reports whether the walk goes on.
func (s *scanner) value(e edge) bool {
	s.space()
	if s.pos >= len(s.data) {
		return false
	}
	switch c := s.data[s.pos]; c {
	case '"':
		_, _, ok := s.text()
		return ok
	case '{':
		return s.enter() && s.object(e.to) && s.leave()
	case '[':
		return s.enter() && s.array(e.to) && s.leave()
	case 't':
		return s.skip(len("true"))
	case 'f':
		return s.skip(len("false"))
	case 'n':
		if !e.null {
			s.against(CodeMismatch, s.pos, "null is not allowed here")
		}
		return s.skip(len("null"))
	default:
		return (c == '-' || isDigit(c)) && s.number()
	}
}

func (s *scanner) enter() bool {
	s.depth++
	if s.depth > MaxDepth {
		return s.refuse(CodeLimit, s.pos, "more than %d levels of objects and arrays", MaxDepth)
	}
	s.pos++
	return true
}

func (s *scanner) leave() bool {
	s.depth--
	s.pos++
	return true
}

// object walks the members of an object up to its closing brace.
func (s *scanner) object(sh *shape) bool {
	open := s.pos - 1
	if s.space(); s.at('}') {
		return s.complete(sh, open, 0)
	}
	for next, required := 0, 0; ; {
		s.space()
		if !s.at('"') {
			return false
		}
		start := s.pos
		name, escaped, ok := s.text()
		if !ok {
			return false
		}
		if s.members++; s.members > MaxMembers {
			return s.refuse(CodeLimit, start, "more than %d members", MaxMembers)
		}
		e := edge{null: true}
		if sh != nil {
			if sh.members != nil {
				if escaped {
					name = unescape(s.data[start:s.pos])
				}
				if i := sh.find(name, next); i >= 0 {
					m := &sh.members[i]
					e, next = m.edge, i+1
					if m.required {
						required++
					}
				} else {
					s.unknown(sh, name, start)
				}
			} else {
				e = sh.elem
			}
		}
		if s.space(); !s.at(':') {
			return false
		}
		s.pos++
		if !s.value(e) {
			return false
		}
		s.space()
		switch {
		case s.at('}'):
			return s.complete(sh, open, required)
		case !s.at(','):
			return false
		}
		s.pos++
	}
}

// complete compares the number of required members that an object had with what
// its shape asks for. Names are unique in whatever the decoder accepts.
func (s *scanner) complete(sh *shape, open, required int) bool {
	if sh == nil || required >= sh.required || s.schema != nil {
		return true
	}
	if name := s.missing(sh, open); name != "" {
		s.against(CodeMismatch, open, "member %q is missing", name)
	}
	return true
}

// missing returns the first required member that the object at open lacks.
func (s *scanner) missing(sh *shape, open int) string {
	seen := make([]bool, len(sh.members))
	again := scanner{data: s.data, pos: open + 1}
	for again.space(); again.at('"') || again.at(','); again.space() {
		if again.at(',') {
			again.pos++
			again.space()
		}
		start := again.pos
		if _, _, ok := again.text(); !ok {
			break
		}
		if i := sh.find(unescape(s.data[start:again.pos]), 0); i >= 0 {
			seen[i] = true
		}
		if again.space(); !again.at(':') {
			break
		}
		again.pos++
		if !again.value(edge{null: true}) {
			break
		}
	}
	for i, m := range sh.members {
		if m.required && !seen[i] {
			return m.name
		}
	}
	return ""
}

func (s *scanner) unknown(sh *shape, name []byte, at int) {
	if s.schema != nil {
		return
	}
	if m := sh.alike(name); m != "" {
		s.against(CodeUnknownMember, at, "unknown member %s; the member %q is spelled differently", quoted(name), m)
		return
	}
	s.against(CodeUnknownMember, at, "unknown member %s", quoted(name))
}

// array walks the elements of an array up to its closing bracket.
func (s *scanner) array(sh *shape) bool {
	if s.space(); s.at(']') {
		return true
	}
	e := edge{null: true}
	if sh != nil {
		e = sh.elem
	}
	for s.value(e) {
		s.space()
		if s.at(']') {
			return true
		}
		if !s.at(',') {
			return false
		}
		s.pos++
	}
	return false
}

// text walks one string and returns what stands between its quotes and whether
// that holds escapes.
func (s *scanner) text() (raw []byte, escaped, ok bool) {
	data, start := s.data, s.pos+1
	for i := start; ; {
		i = plain(data, i)
		if i >= len(data) {
			return nil, false, false
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			raw = data[start:i]
			if len(raw) > MaxString && unescapedLen(raw) > MaxString {
				return nil, false, s.refuse(CodeLimit, start-1, "a string of more than %d bytes", MaxString)
			}
			return raw, escaped, true
		case c == '\\':
			escaped = true
			r, n := escape(data[i:])
			if isNoncharacter(r) {
				return nil, false, s.refuse(CodeUnicode, i, "the noncharacter %U", r)
			}
			i += n
		case c < 0xE0:
			i += 2
		case c < 0xEF:
			i += 3
		default:
			r, n := utf8.DecodeRune(data[i:])
			if isNoncharacter(r) {
				return nil, false, s.refuse(CodeUnicode, i, "the noncharacter %U", r)
			}
			i += n
		}
	}
}

// plain returns the index, from i on, of the first byte inside a string that
// needs a second look: a quote, a backslash, or the begin of a character beyond
// ASCII. It looks at eight bytes at a time (a byte of x is zero where the high
// bit of (x-ones)&^x is set; above the first such byte that may be wrong).
func plain(data []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		if hits := (w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// number walks one number. A number is refused if the nearest double is not
// finite, is zero although the number is not, or lies outside of ±MaxNumber:
// from there on every double is integral and neighbours are more than 1 apart.
func (s *scanner) number() bool {
	data, start := s.data, s.pos
	i := start
	if data[i] == '-' {
		i++
	}
	whole := i
	for i < len(data) && isDigit(data[i]) {
		i++
	}
	small := i-whole <= 15
	if i < len(data) && data[i] == '.' {
		for i++; i < len(data) && isDigit(data[i]); i++ {
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		small = false
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		for i < len(data) && isDigit(data[i]) {
			i++
		}
	}
	s.pos = i
	if small && i-start <= 300 { // too short to be below the smallest double
		return true
	}
	literal := data[start:i]
	switch f, err := strconv.ParseFloat(string(literal), 64); {
	case errors.Is(err, strconv.ErrRange):
		return s.refuse(CodeNumber, start, "a number too large for a double")
	case err != nil:
		return true // not a number; the decoder says so
	case math.Abs(f) > MaxNumber:
		return s.refuse(CodeNumber, start, "a number outside of -(2^53-1) to 2^53-1")
	case f == 0 && !isZero(literal):
		return s.refuse(CodeNumber, start, "a number too close to zero for a double")
	}
	return true
}

func (s *scanner) space() {
	if s.pos < len(s.data) && s.data[s.pos] <= ' ' {
		s.spaces()
	}
}

func (s *scanner) spaces() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }

func (s *scanner) skip(n int) bool {
	s.pos += n
	return s.pos <= len(s.data)
}

// refuse records a fault of the document and ends the walk.
func (s *scanner) refuse(code string, at int, format string, args ...any) bool {
	s.fault = &fault{code: code, offset: at, message: fmt.Sprintf(format, args...)}
	return false
}

// against records a fault against the shape, if it is the first.
func (s *scanner) against(code string, at int, format string, args ...any) {
	if s.schema == nil {
		s.schema = &fault{code: code, offset: at, message: fmt.Sprintf(format, args...)}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isZero reports whether all digits before an exponent are 0.
func isZero(literal []byte) bool {
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		literal = literal[:i]
	}
	return !bytes.ContainsAny(literal, "123456789")
}
