// Package strict reads the JSON of both plugin protocols for the plugin's side:
// one document, by the value rules of docs/protocol-call.md and
// docs/protocol-session.md, or not at all.
//
// It imports the standard library only, because everything under sdk/plugin is
// linked into other people's plugins; the host has its own reader for the same
// rules, and a test holds the two together. It repairs nothing, guesses no
// encoding, and never reads from a stream.
package strict

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
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
	s := Scanner{Data: doc}
	return s.document()
}

// CheckFinite is Check with wider numbers: any that a double holds, as RFC 8785
// writes them.
func CheckFinite(doc []byte) error {
	s := Scanner{Data: doc, finite: true}
	return s.document()
}

// A Scanner walks one document from its first byte to its last, once. It
// allocates nothing for a document of usual size that keeps the rules. Pos is
// where it stands; its methods move it. After an error it is of no more use.
type Scanner struct {
	Data []byte
	Pos  int

	finite  bool // numbers need only be finite
	depth   int
	members int
	names   names
}

func (s *Scanner) document() error {
	err := s.Begin()
	if err == nil {
		err = s.Value()
	}
	if err == nil {
		err = s.End()
	}
	return s.Verdict(err)
}

// Verdict returns err, with which a walk over the document ended, or the fault that
// comes before it: bytes that are not UTF-8, wherever they are, make it no text, of
// which nobody can say how it is spelled.
func (s *Scanner) Verdict(err error) error {
	if e, ok := err.(*Error); ok && e.Code == CodeSyntax {
		if at := invalidUTF8(s.Data); at >= 0 {
			return s.fail(CodeUnicode, at, "not UTF-8")
		}
	}
	return err
}

// invalidUTF8 returns where data stops being UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// Begin refuses a byte order mark.
func (s *Scanner) Begin() error {
	if len(s.Data) >= 3 && string(s.Data[:3]) == "\xEF\xBB\xBF" {
		return s.fail(CodeUnicode, 0, "begins with a byte order mark (BOM)")
	}
	return nil
}

// Inside says that Pos stands inside so many objects and arrays of the document, which
// has so many members beside those that are walked from here on.
func (s *Scanner) Inside(depth, members int) { s.depth, s.members, s.names.n = depth, members, 0 }

// End refuses what stands after the document.
func (s *Scanner) End() error {
	if s.Space(); s.Pos < len(s.Data) {
		return s.fail(CodeSyntax, s.Pos, "more data after the document")
	}
	return nil
}

func (s *Scanner) fail(code string, at int, format string, args ...any) error {
	return &Error{Code: code, Offset: at, Message: fmt.Sprintf(format, args...)}
}

func (s *Scanner) syntax(want string) error {
	if s.Pos >= len(s.Data) {
		return s.fail(CodeSyntax, s.Pos, "ends where %s is expected", want)
	}
	if c := s.Data[s.Pos]; c >= utf8.RuneSelf {
		if r, n := utf8.DecodeRune(s.Data[s.Pos:]); r == utf8.RuneError && n == 1 {
			return s.fail(CodeUnicode, s.Pos, "not UTF-8")
		}
	}
	return s.fail(CodeSyntax, s.Pos, "%s is expected", want)
}

// Space skips white space.
func (s *Scanner) Space() {
	for s.Pos < len(s.Data) && s.Data[s.Pos] <= ' ' {
		switch s.Data[s.Pos] {
		case ' ', '\t', '\n', '\r':
			s.Pos++
		default:
			return
		}
	}
}

// At reports whether the next byte is c.
func (s *Scanner) At(c byte) bool { return s.Pos < len(s.Data) && s.Data[s.Pos] == c }

// Value walks one value with the white space before it.
func (s *Scanner) Value() error {
	s.Space()
	if s.Pos >= len(s.Data) {
		return s.syntax("a value")
	}
	switch c := s.Data[s.Pos]; {
	case c == '"':
		_, _, err := s.Text()
		return err
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array(nil)
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if len(s.Data)-s.Pos >= len(word) && string(s.Data[s.Pos:s.Pos+len(word)]) == word {
			s.Pos += len(word)
			return nil
		}
	}
	return s.syntax("a value")
}

func (s *Scanner) enter() error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail(CodeLimit, s.Pos, "more than %d levels of objects and arrays", MaxDepth)
	}
	s.Pos++
	return nil
}

func (s *Scanner) leave() error {
	s.depth--
	s.Pos++
	return nil
}

// object walks an object; member, if not nil, is told each name and value.
func (s *Scanner) object(member func(name string, value []byte)) error {
	o, more, err := s.Open()
	for more {
		var raw []byte
		var escaped bool
		if raw, escaped, err = s.Name(&o); err != nil {
			return err
		}
		s.Space()
		start := s.Pos
		if err = s.Value(); err != nil {
			return err
		}
		if member != nil {
			member(string(Unescape(raw, escaped)), s.Data[start:s.Pos])
		}
		more, err = s.More(&o)
	}
	return err
}

// An Open object is one whose closing brace has not been read.
type Open struct {
	first int // its first name in Scanner.names
	many  map[string]struct{}
}

// Open walks the brace that an object begins with, and the one that ends it if
// it has no members: then more is false.
func (s *Scanner) Open() (o Open, more bool, err error) {
	if !s.At('{') {
		return o, false, s.syntax("an object")
	}
	if err := s.enter(); err != nil {
		return o, false, err
	}
	o.first = s.names.n
	if s.Space(); s.At('}') {
		return o, false, s.leave()
	}
	return o, true, nil
}

// Name walks the name of a member and the colon after it. It returns what stands
// between the quotes and whether that holds escapes.
func (s *Scanner) Name(o *Open) (raw []byte, escaped bool, err error) {
	s.Space()
	start := s.Pos
	if !s.At('"') {
		return nil, false, s.syntax("a member name")
	}
	if raw, escaped, err = s.Text(); err != nil {
		return nil, false, err
	}
	if s.members++; s.members > MaxMembers {
		return nil, false, s.fail(CodeLimit, start, "more than %d members", MaxMembers)
	}
	if !s.names.add(s.Data, o, start+1, len(raw), escaped) {
		return nil, false, s.fail(CodeDuplicateName, start, "the member %s occurs twice", Quote(string(Unescape(raw, escaped))))
	}
	if s.Space(); !s.At(':') {
		return nil, false, s.syntax(`":"`)
	}
	s.Pos++
	return raw, escaped, nil
}

// More walks what stands after a member: a comma, and there is another, or the
// brace that ends the object.
func (s *Scanner) More(o *Open) (bool, error) {
	switch s.Space(); {
	case s.At(','):
		s.Pos++
		return true, nil
	case s.At('}'):
		s.names.n = o.first
		return false, s.leave()
	}
	return false, s.syntax(`"," or "}"`)
}

// array walks an array; element, if not nil, is told each value.
func (s *Scanner) array(element func(value []byte)) error {
	if err := s.enter(); err != nil {
		return err
	}
	if s.Space(); s.At(']') {
		return s.leave()
	}
	for {
		s.Space()
		start := s.Pos
		if err := s.Value(); err != nil {
			return err
		}
		if element != nil {
			element(s.Data[start:s.Pos])
		}
		s.Space()
		switch {
		case s.At(']'):
			return s.leave()
		case !s.At(','):
			return s.syntax(`"," or "]"`)
		}
		s.Pos++
	}
}

// Text walks one string. It returns what stands between the quotes, a part of
// Data, and whether that holds escapes.
func (s *Scanner) Text() (raw []byte, escaped bool, err error) {
	data, open := s.Data, s.Pos
	for i := open + 1; ; {
		if i = plain(data, i); i >= len(data) {
			s.Pos = len(data)
			return nil, false, s.syntax("the end of a string")
		}
		switch c := data[i]; {
		case c == '"':
			s.Pos = i + 1
			raw = data[open+1 : i]
			if len(raw) > MaxString && (!escaped || len(Unescape(raw, true)) > MaxString) {
				return nil, false, s.fail(CodeLimit, open, "a string of more than %d bytes", MaxString)
			}
			return raw, escaped, nil
		case c == '\\':
			escaped = true
			s.Pos = i
			if _, err := s.escape(); err != nil {
				return nil, false, err
			}
			i = s.Pos
		case c < 0x20:
			return nil, false, s.fail(CodeSyntax, i, "a control character in a string")
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				return nil, false, s.fail(CodeUnicode, i, "not UTF-8")
			}
			if IsNoncharacter(r) {
				return nil, false, s.fail(CodeUnicode, i, "the noncharacter %U", r)
			}
			i += n
		}
	}
}

// plain returns the index, from i on, of the first byte inside a string that
// needs a second look: a quote, a backslash, a control character, or the begin
// of a character beyond ASCII. It looks at eight bytes at a time: the high bit of
// (x-n)&^x is set in each byte of x below n, and where a lower byte was, perhaps
// in one above it.
func plain(data []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		if hits := (w | (w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// escape walks one escape sequence, or the two of a surrogate pair.
func (s *Scanner) escape() (rune, error) {
	start := s.Pos
	if start+1 >= len(s.Data) {
		s.Pos = len(s.Data)
		return 0, s.syntax("an escape sequence")
	}
	s.Pos += 2
	switch c := s.Data[start+1]; c {
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
	r := hex4(s.Data[s.Pos:])
	if r < 0 {
		return 0, s.fail(CodeSyntax, start, "four hexadecimal digits are expected")
	}
	s.Pos += 4
	if utf16.IsSurrogate(r) {
		rest := s.Data[s.Pos:]
		low := rune(-1)
		if len(rest) >= 2 && rest[0] == '\\' && rest[1] == 'u' {
			low = hex4(rest[2:])
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, s.fail(CodeUnicode, start, "a surrogate without its other half")
		}
		s.Pos += 6
	}
	if IsNoncharacter(r) {
		return 0, s.fail(CodeUnicode, start, "the noncharacter %U", r)
	}
	return r, nil
}

// number walks one number and refuses those that not every language reads
// alike: too large for a double, too close to zero, outside of ±MaxNumber.
func (s *Scanner) number() error {
	start := s.Pos
	if s.At('-') {
		s.Pos++
	}
	whole := s.Pos
	switch {
	case s.At('0'):
		s.Pos++
	case s.digits() == 0:
		return s.syntax("a digit")
	}
	short := s.Pos-whole <= 15
	if s.At('.') {
		if s.Pos++; s.digits() == 0 {
			return s.syntax("a digit")
		}
	}
	if s.At('e') || s.At('E') {
		short = false
		if s.Pos++; s.At('+') || s.At('-') {
			s.Pos++
		}
		if s.digits() == 0 {
			return s.syntax("a digit")
		}
	}
	if short && s.Pos-start <= 300 { // below 10^15, and too few digits to be near zero
		return nil
	}
	literal := string(s.Data[start:s.Pos])
	switch f, err := strconv.ParseFloat(literal, 64); {
	case errors.Is(err, strconv.ErrRange):
		return s.fail(CodeNumber, start, "a number too large for a double")
	case err != nil:
		return s.fail(CodeSyntax, start, "not a number")
	case math.Abs(f) > MaxNumber && !s.finite:
		return s.fail(CodeNumber, start, "a number outside of -(2^53-1) to 2^53-1")
	case f == 0 && !isZero(literal):
		return s.fail(CodeNumber, start, "a number too close to zero for a double")
	}
	return nil
}

func (s *Scanner) digits() int {
	start := s.Pos
	for s.Pos < len(s.Data) && isDigit(s.Data[s.Pos]) {
		s.Pos++
	}
	return s.Pos - start
}

// Unescape returns the text of a string that Text has walked: raw itself, if it
// holds no escapes.
func Unescape(raw []byte, escaped bool) []byte {
	if !escaped {
		return raw
	}
	out := make([]byte, 0, len(raw))
	s := Scanner{Data: raw}
	for s.Pos < len(raw) {
		if raw[s.Pos] != '\\' {
			out = append(out, raw[s.Pos])
			s.Pos++
			continue
		}
		r, err := s.escape()
		if err != nil {
			return out
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}
