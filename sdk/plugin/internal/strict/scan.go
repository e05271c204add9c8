// Package strict reads the JSON of the call protocol for the plugin's side:
// one document, by the value rules of docs/protocol-call.md, or not at all.
//
// It imports the standard library only, because everything under sdk/plugin is
// linked into other people's plugins; the host has its own reader for the same
// rules, and a test holds the two together. It repairs nothing, guesses no
// encoding, and never reads from a stream.
package strict

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The bounds of one document.
const (
	MaxDepth   = 64      // objects and arrays inside each other
	MaxString  = 1 << 20 // bytes of one string or name, unescaped
	MaxMembers = 100_000 // object members in the whole document
	MaxNumber  = 1<<53 - 1
)

// The rules that Check applies, as Error.Code names them.
const (
	CodeSyntax        = "json.syntax"
	CodeDuplicateName = "json.duplicate_name"
	CodeUnicode       = "json.invalid_unicode"
	CodeLimit         = "json.limit"
	CodeNumber        = "json.number"
)

// An Error is the first fault of a document.
type Error struct {
	Code    string
	Offset  int // bytes before the fault
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (byte %d)", e.Message, e.Offset) }

// Check returns nil, or the *Error for which doc must be refused.
func Check(doc []byte) error {
	s := scanner{data: doc}
	if len(doc) >= 3 && string(doc[:3]) == "\xEF\xBB\xBF" {
		return s.fail(CodeUnicode, 0, "begins with a byte order mark (BOM)")
	}
	if err := s.value(); err != nil {
		return err
	}
	if s.space(); s.pos < len(s.data) {
		return s.fail(CodeSyntax, s.pos, "more data after the document")
	}
	return nil
}

// A scanner walks one document from its first byte to its last.
type scanner struct {
	data    []byte
	pos     int
	depth   int
	members int
}

func (s *scanner) fail(code string, at int, format string, args ...any) error {
	return &Error{Code: code, Offset: at, Message: fmt.Sprintf(format, args...)}
}

func (s *scanner) syntax(want string) error {
	if s.pos >= len(s.data) {
		return s.fail(CodeSyntax, s.pos, "ends where %s is expected", want)
	}
	if c := s.data[s.pos]; c >= utf8.RuneSelf {
		if r, n := utf8.DecodeRune(s.data[s.pos:]); r == utf8.RuneError && n == 1 {
			return s.fail(CodeUnicode, s.pos, "not UTF-8")
		}
	}
	return s.fail(CodeSyntax, s.pos, "%s is expected", want)
}

func (s *scanner) space() {
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

// value walks one value with the white space before it.
func (s *scanner) value() error {
	s.space()
	if s.pos >= len(s.data) {
		return s.syntax("a value")
	}
	switch c := s.data[s.pos]; {
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array(nil)
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if len(s.data)-s.pos >= len(word) && string(s.data[s.pos:s.pos+len(word)]) == word {
			s.pos += len(word)
			return nil
		}
	}
	return s.syntax("a value")
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail(CodeLimit, s.pos, "more than %d levels of objects and arrays", MaxDepth)
	}
	s.pos++
	return nil
}

func (s *scanner) leave() error {
	s.depth--
	s.pos++
	return nil
}

// object walks an object; member, if not nil, is told each name and value.
func (s *scanner) object(member func(name string, value []byte)) error {
	if err := s.enter(); err != nil {
		return err
	}
	if s.space(); s.at('}') {
		return s.leave()
	}
	var seen names
	for {
		s.space()
		start := s.pos
		if !s.at('"') {
			return s.syntax("a member name")
		}
		name, err := s.text()
		if err != nil {
			return err
		}
		if s.members++; s.members > MaxMembers {
			return s.fail(CodeLimit, start, "more than %d members", MaxMembers)
		}
		if !seen.add(name) {
			return s.fail(CodeDuplicateName, start, "the member %s occurs twice", Quote(name))
		}
		if s.space(); !s.at(':') {
			return s.syntax(`":"`)
		}
		s.pos++
		s.space()
		start = s.pos
		if err := s.value(); err != nil {
			return err
		}
		if member != nil {
			member(name, s.data[start:s.pos])
		}
		s.space()
		switch {
		case s.at('}'):
			return s.leave()
		case !s.at(','):
			return s.syntax(`"," or "}"`)
		}
		s.pos++
	}
}

// array walks an array; element, if not nil, is told each value.
func (s *scanner) array(element func(value []byte)) error {
	if err := s.enter(); err != nil {
		return err
	}
	if s.space(); s.at(']') {
		return s.leave()
	}
	for {
		s.space()
		start := s.pos
		if err := s.value(); err != nil {
			return err
		}
		if element != nil {
			element(s.data[start:s.pos])
		}
		s.space()
		switch {
		case s.at(']'):
			return s.leave()
		case !s.at(','):
			return s.syntax(`"," or "]"`)
		}
		s.pos++
	}
}

// text walks one string and returns it unescaped.
func (s *scanner) text() (string, error) {
	open := s.pos
	s.pos++
	start, escaped := s.pos, false
	var out []byte // the string so far, if it holds escapes
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			raw := s.data[start:s.pos]
			s.pos++
			if escaped {
				raw = out
			}
			if len(raw) > MaxString {
				return "", s.fail(CodeLimit, open, "a string of more than %d bytes", MaxString)
			}
			return string(raw), nil
		case c == '\\':
			if !escaped {
				escaped, out = true, append(out, s.data[start:s.pos]...)
			}
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < 0x20:
			return "", s.fail(CodeSyntax, s.pos, "a control character in a string")
		default:
			n := 1
			if c >= utf8.RuneSelf {
				var r rune
				r, n = utf8.DecodeRune(s.data[s.pos:])
				if r == utf8.RuneError && n == 1 {
					return "", s.fail(CodeUnicode, s.pos, "not UTF-8")
				}
				if IsNoncharacter(r) {
					return "", s.fail(CodeUnicode, s.pos, "the noncharacter %U", r)
				}
			}
			if escaped {
				out = append(out, s.data[s.pos:s.pos+n]...)
			}
			s.pos += n
		}
	}
	return "", s.syntax("the end of a string")
}

// escape walks one escape sequence, or the two of a surrogate pair.
func (s *scanner) escape() (rune, error) {
	start := s.pos
	if start+1 >= len(s.data) {
		s.pos = len(s.data)
		return 0, s.syntax("an escape sequence")
	}
	s.pos += 2
	switch c := s.data[start+1]; c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, s.fail(CodeSyntax, start, "an unknown escape sequence")
	}
	r := hex4(s.data[s.pos:])
	if r < 0 {
		return 0, s.fail(CodeSyntax, start, "four hexadecimal digits are expected")
	}
	s.pos += 4
	if utf16.IsSurrogate(r) {
		rest := s.data[s.pos:]
		low := rune(-1)
		if len(rest) >= 2 && rest[0] == '\\' && rest[1] == 'u' {
			low = hex4(rest[2:])
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, s.fail(CodeUnicode, start, "a surrogate without its other half")
		}
		s.pos += 6
	}
	if IsNoncharacter(r) {
		return 0, s.fail(CodeUnicode, start, "the noncharacter %U", r)
	}
	return r, nil
}

// number walks one number and refuses those that not every language reads
// alike: too large for a double, too close to zero, outside of ±MaxNumber.
func (s *scanner) number() error {
	start := s.pos
	if s.at('-') {
		s.pos++
	}
	switch {
	case s.at('0'):
		s.pos++
	case s.digits() == 0:
		return s.syntax("a digit")
	}
	if s.at('.') {
		if s.pos++; s.digits() == 0 {
			return s.syntax("a digit")
		}
	}
	if s.at('e') || s.at('E') {
		if s.pos++; s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return s.syntax("a digit")
		}
	}
	literal := string(s.data[start:s.pos])
	switch f, err := strconv.ParseFloat(literal, 64); {
	case errors.Is(err, strconv.ErrRange):
		return s.fail(CodeNumber, start, "a number too large for a double")
	case err != nil:
		return s.fail(CodeSyntax, start, "not a number")
	case math.Abs(f) > MaxNumber:
		return s.fail(CodeNumber, start, "a number outside of -(2^53-1) to 2^53-1")
	case f == 0 && !isZero(literal):
		return s.fail(CodeNumber, start, "a number too close to zero for a double")
	}
	return nil
}

func (s *scanner) digits() int {
	n := 0
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
		n++
	}
	return n
}
