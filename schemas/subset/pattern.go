package subset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of one pattern.
const (
	MaxPattern   = 512  // characters
	MaxRepeat    = 1000 // of one {…}, and of nested ones multiplied
	MaxPositions = 512  // characters that it can match, with repeats written out
	MaxClasses   = 64   // different characters and classes
	MaxWays      = 64   // ways in which the same characters can be read at the same time
	MaxGroups    = 32   // groups inside each other
)

// A patternError says where a pattern leaves the subset.
type patternError struct {
	at      int // characters before the fault
	message string
}

func (e *patternError) Error() string {
	return fmt.Sprintf("character %d: %s", e.at+1, e.message)
}

// compilePattern parses a pattern of the subset (docs/schema-subset.md, "Patterns")
// and returns a matcher of whole strings and the number of positions it has.
func compilePattern(text string) (*regexp.Regexp, int, error) {
	p := patternParser{text: []rune(text)}
	e, err := p.parse()
	if err != nil {
		return nil, 0, err
	}
	n := e.size()
	if n > MaxPositions {
		return nil, 0, &patternError{0, fmt.Sprintf("with its repeats written out it has more than %d characters", MaxPositions)}
	}
	if err := checkAmbiguity(e); err != nil {
		return nil, 0, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, 0, &patternError{0, "is refused by RE2"}
	}
	return re, n, nil
}

// An expression is a parsed pattern, or a part of one.
type expression struct {
	op    byte          // 'c' class, '.' sequence, '|' alternatives, '*' repeat
	parts []*expression // of a sequence or alternatives; the one of a repeat
	class class
	min   int
	max   int // -1: without bound
	empty bool
	at    int
}

// size returns the positions with repeats written out, at most MaxPositions+1.
func (e *expression) size() int {
	n := 0
	switch e.op {
	case 'c':
		return 1
	case '*':
		n = e.parts[0].size() * max(e.min, e.max, 1)
	default:
		for _, p := range e.parts {
			n += p.size()
		}
	}
	return min(n, MaxPositions+1)
}

// repeats returns the product of the bounds of nested repeats.
func (e *expression) repeats() int {
	n := 1
	for _, p := range e.parts {
		n = max(n, p.repeats())
	}
	if e.op == '*' {
		n *= max(e.min, e.max, 1)
	}
	return min(n, MaxRepeat+1)
}

// A class is a set of characters as sorted ranges that do not touch.
type class []span

type span struct{ lo, hi rune }

func newClass(spans []span, negated bool) class {
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var c class
	for _, s := range spans {
		if n := len(c); n > 0 && s.lo <= c[n-1].hi+1 {
			c[n-1].hi = max(c[n-1].hi, s.hi)
			continue
		}
		c = append(c, s)
	}
	if !negated {
		return c
	}
	var rest class
	next := rune(0)
	for _, s := range c {
		if s.lo > next {
			rest = append(rest, span{next, s.lo - 1})
		}
		next = s.hi + 1
	}
	return append(rest, span{next, utf8.MaxRune})
}

func (c class) overlaps(d class) bool {
	for i, j := 0, 0; i < len(c) && j < len(d); {
		switch {
		case c[i].hi < d[j].lo:
			i++
		case d[j].hi < c[i].lo:
			j++
		default:
			return true
		}
	}
	return false
}

// A patternParser reads
//
//	pattern     = "^" sequence "$"
//	alternation = sequence *("|" sequence)
//	sequence    = 1*(atom [repeat])                  ; at the top it may be empty
//	atom        = literal / escape / class / "(" ["?:"] alternation ")"
//	repeat      = "*" / "+" / "?" / "{" n ["," [m]] "}"
//	class       = "[" ["^"] 1*(member ["-" member]) "]"
type patternParser struct {
	text  []rune
	pos   int
	depth int
}

func (p *patternParser) fail(at int, format string, args ...any) error {
	return &patternError{at, fmt.Sprintf(format, args...)}
}

func (p *patternParser) parse() (*expression, error) {
	if n := len(p.text); n > MaxPattern {
		return nil, p.fail(0, "a pattern has at most %d characters, not %d", MaxPattern, n)
	}
	if !p.at('^') {
		return nil, p.fail(0, `a pattern begins with "^" and ends with "$": it is about the whole string`)
	}
	p.pos++
	e, err := p.sequence(true)
	if err != nil {
		return nil, err
	}
	if p.at('|') {
		return nil, p.fail(p.pos, `alternatives stand in a group: "^(a|b)$"`)
	}
	if p.at(')') {
		return nil, p.fail(p.pos, `")" without "("; the character itself is "\)"`)
	}
	if !p.at('$') || p.pos != len(p.text)-1 {
		return nil, p.fail(p.pos, `a pattern begins with "^" and ends with "$", and has neither elsewhere`)
	}
	if e.repeats() > MaxRepeat {
		return nil, p.fail(0, "repeats inside each other come to more than %d", MaxRepeat)
	}
	return e, nil
}

func (p *patternParser) at(c rune) bool { return p.pos < len(p.text) && p.text[p.pos] == c }

func (p *patternParser) alternation() (*expression, error) {
	e := &expression{op: '|', at: p.pos}
	for {
		s, err := p.sequence(false)
		if err != nil {
			return nil, err
		}
		e.parts = append(e.parts, s)
		e.empty = e.empty || s.empty
		if !p.at('|') {
			return e, nil
		}
		p.pos++
	}
}

func (p *patternParser) sequence(top bool) (*expression, error) {
	e := &expression{op: '.', empty: true, at: p.pos}
	for p.pos < len(p.text) && !p.at('|') && !p.at(')') && !p.at('$') {
		atom, err := p.repeated()
		if err != nil {
			return nil, err
		}
		e.parts = append(e.parts, atom)
		e.empty = e.empty && atom.empty
	}
	if len(e.parts) == 0 && !top {
		return nil, p.fail(p.pos, `an alternative is empty; write "?" after the group`)
	}
	return e, nil
}

// repeated reads an atom and the repeat after it.
func (p *patternParser) repeated() (*expression, error) {
	at := p.pos
	negated := p.at('[') && p.pos+1 < len(p.text) && p.text[p.pos+1] == '^'
	atom, err := p.atom()
	if err != nil {
		return nil, err
	}
	rep := &expression{op: '*', parts: []*expression{atom}, min: 1, max: 1, at: p.pos}
	switch {
	case p.at('*'):
		rep.min, rep.max = 0, -1
		p.pos++
	case p.at('+'):
		rep.max = -1
		p.pos++
	case p.at('?'):
		rep.min = 0
		p.pos++
	case p.at('{'):
		if err := p.bounds(rep); err != nil {
			return nil, err
		}
	default:
		rep = nil
	}
	if negated && (rep == nil || rep.max >= 0 || rep.min > 1) {
		return nil, p.fail(at, `a negated class is followed by "*" or "+": alone or counted it means something else where characters are counted as UTF-16`)
	}
	if rep == nil {
		return atom, nil
	}
	if p.at('*') || p.at('+') || p.at('?') || p.at('{') {
		return nil, p.fail(p.pos, "a repeat follows a repeat (lazy and possessive ones are not in the subset)")
	}
	if atom.empty {
		return nil, p.fail(rep.at, "a repeat of what can be empty")
	}
	if rep.max == 0 {
		return nil, p.fail(rep.at, "a repeat of at most 0")
	}
	rep.empty = rep.min == 0
	return rep, nil
}

// bounds reads {n}, {n,} or {n,m}.
func (p *patternParser) bounds(rep *expression) error {
	at := p.pos
	p.pos++
	n, ok := p.count()
	rep.min, rep.max = n, n
	if ok && p.at(',') {
		p.pos++
		if rep.max = -1; !p.at('}') {
			rep.max, ok = p.count()
		}
	}
	if !ok || !p.at('}') {
		return p.fail(at, `a repeat is {n}, {n,} or {n,m}; the character itself is "\{"`)
	}
	p.pos++
	if rep.min > MaxRepeat || rep.max > MaxRepeat {
		return p.fail(at, "a repeat of more than %d", MaxRepeat)
	}
	if rep.max >= 0 && rep.max < rep.min {
		return p.fail(at, "a repeat whose bounds are the wrong way round")
	}
	return nil
}

// count reads a number without leading zeros.
func (p *patternParser) count() (int, bool) {
	begin, n := p.pos, 0
	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		n = min(n*10+int(p.text[p.pos]-'0'), MaxRepeat+1)
		p.pos++
	}
	digits := p.pos - begin
	return n, digits == 1 || digits > 1 && p.text[begin] != '0'
}

func (p *patternParser) atom() (*expression, error) {
	at := p.pos
	switch c := p.text[p.pos]; {
	case c == '(':
		p.pos++
		if p.at('?') {
			if p.pos++; !p.at(':') {
				return nil, p.fail(at, `only "(…)" and "(?:…)" are groups here: no names, flags, look-around or atomic groups`)
			}
			p.pos++
		}
		if p.depth++; p.depth > MaxGroups {
			return nil, p.fail(at, "more than %d groups inside each other", MaxGroups)
		}
		e, err := p.alternation()
		if err != nil {
			return nil, err
		}
		if !p.at(')') {
			return nil, p.fail(at, `"(" without ")"; the character itself is "\("`)
		}
		p.pos++
		p.depth--
		return e, nil
	case c == '[':
		return p.class()
	case c == '\\':
		c, err := p.escape()
		return &expression{op: 'c', class: class{{c, c}}, at: at}, err
	case c == '.':
		return nil, p.fail(at, `"." leaves out other characters in each language; write a class, or "\." for the character itself`)
	case strings.ContainsRune("*+?{", c):
		return nil, p.fail(at, "a repeat follows nothing")
	case strings.ContainsRune("]}^", c):
		return nil, p.fail(at, `%q stands for itself only as "\%c"`, c, c)
	default:
		if err := p.literal(c); err != nil {
			return nil, err
		}
		p.pos++
		return &expression{op: 'c', class: class{{c, c}}, at: at}, nil
	}
}

// literal refuses characters that count as two in UTF-16, and those that nobody sees.
func (p *patternParser) literal(c rune) error {
	switch {
	case c < ' ' || c == 0x7f || 0x80 <= c && c <= 0x9f || c == 0x2028 || c == 0x2029 || c == 0xfeff:
		return p.fail(p.pos, "the control or invisible character %U; of ASCII write the escape", c)
	case c > 0xffff || c == utf8.RuneError:
		return p.fail(p.pos, "the character %U, which is not one character in every language", c)
	}
	return nil
}

// escape reads a backslash and what follows; the result is one character.
func (p *patternParser) escape() (rune, error) {
	at := p.pos
	if p.pos++; p.pos >= len(p.text) {
		return 0, p.fail(at, "ends after a backslash")
	}
	c := p.text[p.pos]
	p.pos++
	switch {
	case c < 0x80 && c > ' ' && c != '_' && !isWord(c):
		return c, nil
	case c == 'n':
		return '\n', nil
	case c == 'r':
		return '\r', nil
	case c == 't':
		return '\t', nil
	case c == 'f':
		return '\f', nil
	case c == 'v':
		return '\v', nil
	case c == 'x':
		var r rune
		for i := range 2 {
			if p.pos+i >= len(p.text) || !strings.ContainsRune("0123456789abcdefABCDEF", p.text[p.pos+i]) {
				return 0, p.fail(at, `"\x" has two hexadecimal digits`)
			}
			r = r<<4 | rune(hexValue(byte(p.text[p.pos+i])))
		}
		p.pos += 2
		return r, nil
	}
	switch c {
	case 'd', 'D', 'w', 'W', 's', 'S', 'b', 'B':
		return 0, p.fail(at, `"\%c" means other characters in each language; write the class, as [0-9]`, c)
	case 'p', 'P':
		return 0, p.fail(at, `"\%c" is not known in every language; write the class`, c)
	}
	if c >= '0' && c <= '9' {
		return 0, p.fail(at, "a backreference, or an octal escape")
	}
	return 0, p.fail(at, "an escape that is not in the subset")
}

func isWord(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func hexValue(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// class reads […]. "-" stands for itself only as "\-".
func (p *patternParser) class() (*expression, error) {
	at := p.pos
	p.pos++
	negated := p.at('^')
	if negated {
		p.pos++
	}
	var spans []span
	for !p.at(']') {
		lo, err := p.member(at)
		if err != nil {
			return nil, err
		}
		s := span{lo, lo}
		if p.at('-') {
			from := p.pos
			p.pos++
			if s.hi, err = p.member(at); err != nil {
				return nil, err
			}
			if s.hi < s.lo {
				return nil, p.fail(from, "a range that is the wrong way round")
			}
			if s.lo < 0xd800 && s.hi > 0xdfff {
				return nil, p.fail(from, "a range across the surrogates, which UTF-16 does not tell from characters")
			}
		}
		spans = append(spans, s)
	}
	if len(spans) == 0 {
		return nil, p.fail(at, `an empty class; "]" in a class is "\]"`)
	}
	p.pos++
	return &expression{op: 'c', class: newClass(spans, negated), at: at}, nil
}

// member reads one character of a class.
func (p *patternParser) member(open int) (rune, error) {
	if p.pos >= len(p.text) {
		return 0, p.fail(open, `"[" without "]"`)
	}
	switch c := p.text[p.pos]; {
	case c == '\\':
		return p.escape()
	case strings.ContainsRune("[]-^&~|", c):
		return 0, p.fail(p.pos, `in a class %q stands for itself only as "\%c"`, c, c)
	default:
		if err := p.literal(c); err != nil {
			return 0, err
		}
		p.pos++
		return c, nil
	}
}
