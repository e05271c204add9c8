package tomlstrict

import (
	"bytes"
	"strings"
)

// origin says how a table came to be; it decides what may be added to it later.
type origin uint8

const (
	originImplicit origin = iota // implied by a longer header: [a.b] implies a
	originHeader                 // [a]
	originElement                // one [[a]]
	originDotted                 // a.b = 1 makes a
	originInline                 // a = { }
)

// A segment is one part of a dotted key.
type segment struct {
	name       string
	start, end int
}

// scanner builds the tree with spans. It checks structure only; what a scalar
// means is left to the library. It stops at the first fault, by panic(stop{}).
type scanner struct {
	*Document
	i       int
	members int
}

type stop struct{}

func (d *Document) scan() {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(stop); !ours {
				panic(r)
			}
		}
	}()
	d.Root = &Node{Kind: Table, End: len(d.text), origin: originHeader}
	s := &scanner{Document: d}
	table := d.Root
	for s.blank(); s.i < len(s.text); s.blank() {
		if s.text[s.i] == '[' {
			table = s.header()
		} else {
			s.member(table, 1)
		}
		s.lineEnd()
	}
}

func (s *scanner) fail(offset int, format string, args ...any) {
	s.fault(offset, nil, format, args...)
	panic(stop{})
}

func (s *scanner) limit(offset int, format string, args ...any) {
	s.fault(offset, ErrTooLarge, format, args...)
	panic(stop{})
}

func (s *scanner) count(offset int) {
	if s.members++; s.members > MaxMembers {
		s.limit(offset, "more than %d members", MaxMembers)
	}
}

func (s *scanner) deep(offset, depth int) {
	if depth > MaxDepth {
		s.limit(offset, "nested deeper than %d levels", MaxDepth)
	}
}

func (s *scanner) at(text string) bool { return bytes.HasPrefix(s.text[s.i:], []byte(text)) }

func (s *scanner) spaces() {
	for s.i < len(s.text) && (s.text[s.i] == ' ' || s.text[s.i] == '\t') {
		s.i++
	}
}

func (s *scanner) comment() {
	if s.i < len(s.text) && s.text[s.i] == '#' {
		for s.i < len(s.text) && s.text[s.i] != '\n' {
			s.i++
		}
	}
}

// blank skips white space, line ends and comments.
func (s *scanner) blank() {
	for s.i < len(s.text) {
		switch s.text[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		case '#':
			s.comment()
		default:
			return
		}
	}
}

// lineEnd requires that nothing but a comment follows on the line.
func (s *scanner) lineEnd() {
	s.spaces()
	s.comment()
	if s.i < len(s.text) && s.text[s.i] != '\n' && s.text[s.i] != '\r' {
		s.fail(s.i, "expected the end of the line")
	}
}

// header reads [a.b] or [[a.b]] and returns the table that now collects members.
func (s *scanner) header() *Node {
	start, brackets := s.i, "]"
	s.i++
	if s.at("[") {
		brackets = "]]"
		s.i++
	}
	key := s.key()
	if !s.at(brackets) {
		s.fail(s.i, "expected \"%s\" after the table's name", brackets)
	}
	s.i += len(brackets)
	s.count(start)

	parent := s.Root
	for _, part := range key[:len(key)-1] {
		parent = s.enter(parent, part, start)
	}
	last := key[len(key)-1]
	if brackets == "]]" {
		return s.element(parent, last, start)
	}
	if m := parent.Member(last.name); m != nil {
		if m.Value.Kind != Table || m.Value.origin != originImplicit {
			s.duplicate(last, m)
		}
		m.Value.origin, m.Value.Start, m.Value.End = originHeader, start, s.i
		m.Key, m.NameStart, m.NameEnd = start, last.start, last.end
		return m.Value
	}
	n := &Node{Kind: Table, Start: start, End: s.i, origin: originHeader}
	s.add(parent, last, start, n)
	return n
}

// element appends one [[name]] to the array of that name.
func (s *scanner) element(parent *Node, name segment, start int) *Node {
	n := &Node{Kind: Table, Start: start, End: s.i, origin: originElement}
	m := parent.Member(name.name)
	switch {
	case m == nil:
		array := &Node{Kind: Array, Start: start, End: s.i, origin: originElement}
		m = s.add(parent, name, start, array)
	case m.Value.Kind != Array || m.Value.origin != originElement:
		s.duplicate(name, m)
	}
	m.Value.Items = append(m.Value.Items, n)
	return n
}

// enter finds or makes the table that a header's inner part names.
func (s *scanner) enter(parent *Node, part segment, start int) *Node {
	m := parent.Member(part.name)
	if m == nil {
		n := &Node{Kind: Table, Start: start, End: s.i, origin: originImplicit}
		s.add(parent, part, start, n)
		return n
	}
	switch {
	case m.Value.Kind == Array && m.Value.origin == originElement:
		return m.Value.Items[len(m.Value.Items)-1]
	case m.Value.Kind == Table && m.Value.origin != originInline:
		return m.Value
	}
	s.duplicate(part, m)
	return nil
}

// member reads "key = value" into table.
func (s *scanner) member(table *Node, depth int) {
	start := s.i
	key := s.key()
	if !s.at("=") {
		s.fail(s.i, "expected \"%s\" after the name \"%s\"", "=", key[len(key)-1].name)
	}
	s.i++
	s.spaces()
	for _, part := range key[:len(key)-1] {
		m := table.Member(part.name)
		if m == nil {
			m = s.add(table, part, start, &Node{Kind: Table, Start: start, End: s.i, origin: originDotted})
		}
		if m.Value.Kind != Table || m.Value.origin != originDotted {
			s.duplicate(part, m)
		}
		table = m.Value
	}
	last := key[len(key)-1]
	if m := table.Member(last.name); m != nil {
		s.duplicate(last, m)
	}
	s.add(table, last, start, s.value(depth+len(key)-1))
}

func (s *scanner) add(table *Node, name segment, key int, value *Node) *Member {
	s.count(name.start)
	m := &Member{Name: name.name, Value: value, Key: key, NameStart: name.start, NameEnd: name.end}
	if table.index == nil {
		table.index = make(map[string]*Member)
	}
	table.index[m.Name] = m
	table.Members = append(table.Members, m)
	return m
}

// duplicate fails at a name that is taken. Where tables' names differ in case only, one
// of them is misspelt, and what is defined twice is a consequence of that.
func (s *scanner) duplicate(again segment, first *Member) {
	if s.misspelt(s.Root) {
		panic(stop{})
	}
	s.fail(again.start, "\"%s\" is already defined in line %d", again.name, s.Line(first.NameStart))
}

// misspelt records a fault at every table, or array of tables, whose name stands beside
// it in lower case, too, and reports whether there is any.
func (s *scanner) misspelt(n *Node) (found bool) {
	for _, m := range n.Members {
		if !m.Value.structural() {
			continue
		}
		lower := strings.ToLower(m.Name)
		if right := n.Member(lower); lower != m.Name && right != nil && right.Value.structural() {
			s.fault(m.NameStart, nil, "unknown member \"%s\"; names are case-sensitive: write \"%s\"", m.Name, lower)
			found = true
		}
		for _, table := range append([]*Node{m.Value}, m.Value.Items...) {
			found = s.misspelt(table) || found
		}
	}
	return found
}

// structural reports whether a node is a table or an array of tables with headers.
func (n *Node) structural() bool {
	return n.Kind == Table && n.origin != originInline || n.Kind == Array && n.origin == originElement
}

// key reads the parts of a dotted key and the spaces after it.
func (s *scanner) key() []segment {
	var parts []segment
	for {
		s.spaces()
		parts = append(parts, s.name())
		s.deep(parts[len(parts)-1].start, len(parts))
		s.spaces()
		if !s.at(".") {
			return parts
		}
		s.i++
	}
}

func (s *scanner) name() segment {
	start := s.i
	if s.at(`"`) || s.at(`'`) {
		quote := s.text[s.i]
		for s.i++; s.i < len(s.text) && s.text[s.i] != quote; s.i++ {
			switch s.text[s.i] {
			case '\n', '\r':
				s.fail(start, "the quoted name is not closed on its line")
			case '\\':
				if quote == '"' {
					s.fail(s.i, "names are written without escapes")
				}
			}
		}
		if s.i == len(s.text) {
			s.fail(start, "the quoted name is not closed on its line")
		}
		s.i++
		return segment{string(s.text[start+1 : s.i-1]), start, s.i}
	}
	for s.i < len(s.text) && bareKeyByte(s.text[s.i]) {
		s.i++
	}
	if s.i == start {
		s.fail(start, "expected a name")
	}
	return segment{string(s.text[start:s.i]), start, s.i}
}

func bareKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func (s *scanner) value(depth int) *Node {
	s.deep(s.i, depth)
	start := s.i
	switch {
	case s.at("["):
		return s.array(depth)
	case s.at("{"):
		return s.inline(depth)
	case s.at(`"`), s.at(`'`):
		s.quoted()
	default:
		s.word()
		if date := s.text[start:s.i]; len(date) == 10 && date[4] == '-' && s.at(" ") {
			s.i++ // a time may follow a date after one space
			if time := s.i; s.word() == 0 {
				s.i = time - 1
			}
		}
		if s.i == start {
			s.fail(start, "expected a value")
		}
	}
	return &Node{Start: start, End: s.i}
}

// word passes over a scalar that is no string and returns its length.
func (s *scanner) word() int {
	start := s.i
	for s.i < len(s.text) && !bytes.ContainsRune([]byte(" \t,]}#\r\n"), rune(s.text[s.i])) {
		s.i++
	}
	return s.i - start
}

// quoted passes over one string of any of the four kinds.
func (s *scanner) quoted() {
	start, quote := s.i, s.text[s.i]
	if triple := string([]byte{quote, quote, quote}); s.at(triple) {
		for s.i += 3; !s.at(triple); s.i++ {
			if quote == '"' && s.at(`\`) {
				s.i++
			}
			if s.i >= len(s.text) {
				s.fail(start, "the string is not closed")
			}
		}
		s.i += 3
		for extra := 0; extra < 2 && s.at(triple[:1]); extra++ {
			s.i++ // up to two quotes before the closing three belong to the string
		}
		return
	}
	for s.i++; s.i < len(s.text) && s.text[s.i] != quote; s.i++ {
		if quote == '"' && s.text[s.i] == '\\' && s.i+1 < len(s.text) {
			s.i++
		}
		if s.text[s.i] == '\n' || s.text[s.i] == '\r' {
			s.fail(start, "the string is not closed on its line")
		}
	}
	if s.i >= len(s.text) {
		s.fail(start, "the string is not closed on its line")
	}
	s.i++
}

func (s *scanner) array(depth int) *Node {
	n := &Node{Kind: Array, Start: s.i, Items: []*Node{}}
	for s.i++; ; {
		s.blank()
		if s.at("]") {
			break
		}
		s.count(s.i)
		n.Items = append(n.Items, s.value(depth+1))
		s.blank()
		if s.at(",") {
			s.i++
		} else if !s.at("]") {
			s.fail(s.i, "expected \"%s\" or \"%s\" in the array that starts in line %d", ",", "]", s.Line(n.Start))
		}
	}
	s.i++
	n.End = s.i
	return n
}

func (s *scanner) inline(depth int) *Node {
	n := &Node{Kind: Table, Start: s.i, origin: originInline}
	for s.i++; ; {
		s.blank()
		if s.at("}") {
			break
		}
		s.member(n, depth+1)
		s.blank()
		if s.at(",") {
			s.i++
		} else if !s.at("}") {
			s.fail(s.i, "expected \"%s\" or \"%s\" in the table that starts in line %d", ",", "}", s.Line(n.Start))
		}
	}
	s.i++
	n.End = s.i
	return n
}
