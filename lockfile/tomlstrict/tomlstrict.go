// Package tomlstrict reads one TOML document into a tree that knows where every
// key and value stands, and lets a reader of a fixed format report each fault
// with its line and column.
//
// The values come from BurntSushi/toml. Around it stands a scan of our own, for
// what that library does not give or does not refuse: positions of all keys and
// values, exact spelling of names (the library folds case when it fills a
// struct), duplicate and reopened tables, bounds on size, depth and members
// before the library sees the text, byte order marks, merge conflict markers,
// and control or bidirectional characters. A document is accepted only if both
// read it, and read the same shape.
//
// It knows no format but that tables are named in lower case: which members exist is
// said by the callers, lockfile and pkgmgr/project. It opens no file and repairs
// nothing.
package tomlstrict

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Bounds that hold for every document, whatever its format.
const (
	MaxDepth   = 16      // tables and arrays inside each other, and parts of one key
	MaxMembers = 200_000 // keys, array elements and table headers in all
)

// What a hostile text can make a reader say: messages may quote values.
const (
	maxRecorded = 1000 // faults, of which MaxFaults are reported
	maxMessage  = 400  // bytes
)

// A Kind is what a Node holds.
type Kind uint8

// The kinds of TOML.
const (
	String Kind = iota + 1
	Integer
	Float
	Boolean
	Datetime
	Array
	Table
)

// String names the kind as messages do.
func (k Kind) String() string {
	switch k {
	case String:
		return "a string"
	case Integer:
		return "an integer"
	case Float:
		return "a float"
	case Boolean:
		return "a boolean"
	case Datetime:
		return "a date or time"
	case Array:
		return "an array"
	case Table:
		return "a table"
	}
	return "nothing"
}

// A Node is one value and the bytes that it stands in.
type Node struct {
	Kind  Kind
	Start int // first byte of the value; of the header for [table] and [[table]]
	End   int // byte after the value or header

	Text    string  // of a String
	Integer int64   // of an Integer
	Items   []*Node // of an Array, in order

	// Members of a Table, in the order of their first appearance.
	Members []*Member

	origin origin
	index  map[string]*Member
}

// A Member is one named value of a table.
type Member struct {
	Name  string
	Value *Node

	// Key is the first byte of the whole key (as "a.b.c" or the header that
	// created the member), NameStart and NameEnd bound this name within it.
	Key, NameStart, NameEnd int
}

// Member returns the member of exactly this name, or nil.
func (n *Node) Member(name string) *Member { return n.index[name] }

// Inline reports whether a Table is written in braces.
func (n *Node) Inline() bool { return n.origin == originInline }

// Header reports whether a Table has a [header] of its own; Start and End then
// bound that header, and otherwise the first key that implied the table.
func (n *Node) Header() bool { return n.origin == originHeader }

// A Document is a tree and the faults that its reader finds.
type Document struct {
	Root *Node

	file   string
	text   []byte
	lines  []int // offsets of line starts
	faults Faults
}

// Parse reads data, at most maxBytes long, or returns Faults. The file's name
// is used in messages only. data must not be modified while the Document lives.
func Parse(file string, data []byte, maxBytes int) (*Document, error) {
	d := &Document{file: file, text: data, lines: []int{0}}
	if len(data) > maxBytes {
		d.fault(0, ErrTooLarge, "the file has %d bytes; at most %d are read", len(data), maxBytes)
		return nil, d.faults
	}
	for i, c := range data {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	d.checkEncoding()
	if len(d.faults) == 0 {
		d.checkConflict()
	}
	if len(d.faults) == 0 {
		d.checkCharacters()
	}
	if len(d.faults) == 0 {
		d.scan()
	}
	if len(d.faults) == 0 {
		d.decode()
	}
	if len(d.faults) > 0 {
		return nil, d.faults.sorted()
	}
	return d, nil
}

// Faultf records a fault at a byte of the text; a reader goes on after it.
func (d *Document) Faultf(offset int, format string, args ...any) {
	d.fault(offset, nil, format, args...)
}

// FaultCause is Faultf with a cause for errors.Is.
func (d *Document) FaultCause(offset int, cause error, format string, args ...any) {
	d.fault(offset, cause, format, args...)
}

// Err returns the recorded faults as Faults, or nil.
func (d *Document) Err() error {
	if len(d.faults) == 0 {
		return nil
	}
	return d.faults.sorted()
}

func (d *Document) fault(offset int, cause error, format string, args ...any) {
	if len(d.faults) == maxRecorded {
		return
	}
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	line, column := d.Position(offset)
	d.faults = append(d.faults, &SyntaxError{File: d.file, Line: line, Column: column, Message: message, Err: cause})
}

// Position translates a byte offset into line and column, both from 1, the
// column in characters.
func (d *Document) Position(offset int) (line, column int) {
	offset = max(0, min(offset, len(d.text)))
	line = sort.Search(len(d.lines), func(i int) bool { return d.lines[i] > offset })
	return line, utf8.RuneCount(d.text[d.lines[line-1]:offset]) + 1
}

// Line is the line of a byte offset, from 1.
func (d *Document) Line(offset int) int {
	line, _ := d.Position(offset)
	return line
}

func (d *Document) checkEncoding() {
	switch {
	case bytes.HasPrefix(d.text, []byte("\xef\xbb\xbf")):
		d.fault(0, ErrEncoding, "the file starts with a byte order mark; save it as UTF-8 without one")
	case bytes.HasPrefix(d.text, []byte("\xff\xfe")), bytes.HasPrefix(d.text, []byte("\xfe\xff")):
		d.fault(0, ErrEncoding, "the file is UTF-16; save it as UTF-8 without a byte order mark")
	case !utf8.Valid(d.text):
		i := 0
		for {
			r, size := utf8.DecodeRune(d.text[i:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			i += size
		}
		d.fault(i, ErrEncoding, "byte 0x%02x is not UTF-8", d.text[i])
	}
}

// checkConflict names what a merge left behind. A line of "<<<<<<<" or
// ">>>>>>>" is never TOML, so nothing valid is refused.
func (d *Document) checkConflict() {
	for _, start := range d.lines {
		line := d.text[start:]
		if bytes.HasPrefix(line, []byte("<<<<<<<")) || bytes.HasPrefix(line, []byte(">>>>>>>")) {
			d.fault(start, ErrConflict, "the file holds the markers of an unresolved merge conflict")
			return
		}
	}
}

// checkCharacters refuses what a person cannot see: control characters, also in
// comments, and characters that turn the reading direction.
func (d *Document) checkCharacters() {
	for i := 0; i < len(d.text); {
		c := d.text[i]
		if c < utf8.RuneSelf {
			crlf := c == '\r' && i+1 < len(d.text) && d.text[i+1] == '\n'
			if (c < ' ' && c != '\t' && c != '\n' && !crlf) || c == 0x7f {
				d.fault(i, nil, "control character 0x%02x", c)
				return
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(d.text[i:])
		if r <= 0x9f || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			d.fault(i, nil, "invisible control character U+%04X", r)
			return
		}
		i += size
	}
}

// decode lets the library read the text and puts its values into the tree. The
// library sees LF line ends only, so that CRLF cannot change a value or message.
func (d *Document) decode() {
	var values map[string]any
	text := strings.ReplaceAll(string(d.text), "\r\n", "\n")
	if err := libraryDecode(text, &values); err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			before := text[:max(0, min(pe.Position.Start, len(text)))]
			line := strings.Count(before, "\n")
			column := len(before) - (strings.LastIndexByte(before, '\n') + 1)
			d.fault(d.lines[line]+column, nil, "%s", pe.Message)
		} else {
			d.fault(0, nil, "%v", err)
		}
		return
	}
	d.attach(d.Root, values)
}

// libraryDecode turns the library's internal panics into errors: it raises them
// for texts that its own lexer and parser understand differently.
func libraryDecode(text string, into *map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not valid TOML: %v", r)
		}
	}()
	_, err = toml.Decode(text, into)
	return err
}

func (d *Document) attach(n *Node, value any) {
	agree := true
	switch v := value.(type) {
	case map[string]any:
		agree = n.Kind == Table && len(v) == len(n.Members)
		if !agree {
			break
		}
		for _, m := range n.Members {
			child, ok := v[m.Name]
			if !ok {
				d.disagree(m.Key)
				return
			}
			d.attach(m.Value, child)
		}
	case []map[string]any:
		if agree = n.Kind == Array && len(v) == len(n.Items); agree {
			for i, item := range n.Items {
				d.attach(item, v[i])
			}
		}
	case []any:
		if agree = n.Kind == Array && len(v) == len(n.Items); agree {
			for i, item := range n.Items {
				d.attach(item, v[i])
			}
		}
	default:
		if agree = n.Kind == 0; agree {
			d.scalar(n, value)
		}
	}
	if !agree {
		d.disagree(n.Start)
	}
}

func (d *Document) scalar(n *Node, value any) {
	switch v := value.(type) {
	case string:
		n.Kind, n.Text = String, v
		for _, r := range v {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 {
				d.fault(n.Start, nil, "the string holds the invisible character U+%04X", r)
				return
			}
		}
	case int64:
		n.Kind, n.Integer = Integer, v
	case float64:
		n.Kind = Float
	case bool:
		n.Kind = Boolean
	case time.Time:
		n.Kind = Datetime
	default:
		d.disagree(n.Start)
	}
}

func (d *Document) disagree(offset int) {
	d.fault(offset, nil, "this part can be read in more than one way; write it more plainly")
}
