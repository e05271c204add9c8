package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A MemberError says which member of a document, otherwise sound, is not what
// the protocol asks for.
type MemberError struct {
	Path    string // as "project.id" or "facts[3].label"; "" is the document itself
	Message string // as `must be a string`
}

func (e *MemberError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + " " + e.Message
}

func wrong(format string, args ...any) error {
	return &MemberError{Message: fmt.Sprintf(format, args...)}
}

// within puts the place of err, a *MemberError, below name.
func within(name string, err error) error {
	m, ok := err.(*MemberError)
	if !ok {
		return err
	}
	switch {
	case m.Path == "":
		return &MemberError{Path: name, Message: m.Message}
	case strings.HasPrefix(m.Path, "["):
		return &MemberError{Path: name + m.Path, Message: m.Message}
	}
	return &MemberError{Path: name + "." + m.Path, Message: m.Message}
}

// A Field is one member that an object has.
type Field struct {
	Name     string
	Optional bool
	Read     func(value []byte) error
}

// Required is a member that must be present.
func Required(name string, read func([]byte) error) Field { return Field{Name: name, Read: read} }

// Optional is a member that may be absent; null is not absence.
func Optional(name string, read func([]byte) error) Field {
	return Field{Name: name, Optional: true, Read: read}
}

// Object reads an object with exactly these members, names compared by spelling
// and case. The value must have passed Check. The error is a *MemberError.
func Object(value []byte, fields ...Field) error {
	members, err := Members(value)
	if err != nil {
		return err
	}
	present := make([]bool, len(fields))
	for _, m := range members {
		i := indexOf(fields, m.Name)
		if i < 0 {
			return &MemberError{Path: "", Message: "has the unknown member " + Quote(m.Name)}
		}
		present[i] = true
		if err := fields[i].Read(m.Value); err != nil {
			return within(m.Name, err)
		}
	}
	for i, f := range fields {
		if !present[i] && !f.Optional {
			return &MemberError{Path: f.Name, Message: "is required"}
		}
	}
	return nil
}

func indexOf(fields []Field, name string) int {
	for i, f := range fields {
		if f.Name == name {
			return i
		}
	}
	return -1
}

// usual is room for the members of most objects of the protocol.
const usual = 12

// A Member is one name of an object with its value as written.
type Member struct {
	Name  string
	Value []byte
}

// Members splits an object that has passed Check.
func Members(value []byte) ([]Member, error) {
	s := Scanner{Data: bytes.TrimLeft(value, " \t\r\n")}
	if !s.At('{') {
		return nil, wrong("must be an object")
	}
	members := make([]Member, 0, usual)
	err := s.object(func(name string, v []byte) { members = append(members, Member{Name: name, Value: v}) })
	return members, err
}

// List reads an array, element by element.
func List(element func(value []byte) error) func([]byte) error {
	return func(value []byte) error {
		s := Scanner{Data: value}
		if !s.At('[') {
			return wrong("must be an array")
		}
		elements := make([][]byte, 0, usual)
		if err := s.array(func(v []byte) { elements = append(elements, v) }); err != nil {
			return err
		}
		for i, e := range elements {
			if err := element(e); err != nil {
				return within(fmt.Sprintf("[%d]", i), err)
			}
		}
		return nil
	}
}

// Strings reads an array of strings; *p is never nil afterwards.
func Strings[T ~string](p *[]T) func([]byte) error {
	return func(value []byte) error {
		*p = []T{}
		return List(func(v []byte) error {
			var s T
			if err := String(&s)(v); err != nil {
				return err
			}
			*p = append(*p, s)
			return nil
		})(value)
	}
}

// String reads a string.
func String[T ~string](p *T) func([]byte) error {
	return func(value []byte) error {
		s := Scanner{Data: value}
		if !s.At('"') {
			return wrong("must be a string")
		}
		raw, escaped, err := s.Text()
		*p = T(Unescape(raw, escaped))
		return err
	}
}

// Text reads a string that is not blank.
func Text[T ~string](p *T) func([]byte) error {
	return func(value []byte) error {
		if err := String(p)(value); err != nil {
			return err
		}
		if strings.TrimSpace(string(*p)) == "" {
			return wrong("must not be blank")
		}
		return nil
	}
}

// Exactly reads one fixed string.
func Exactly(want string) func([]byte) error {
	return func(value []byte) error {
		var got string
		if err := String(&got)(value); err != nil {
			return err
		}
		if got != want {
			return wrong("must be %q", want)
		}
		return nil
	}
}

// Time reads an RFC 3339 time.
func Time(p *time.Time) func([]byte) error {
	return func(value []byte) error {
		var text string
		if err := String(&text)(value); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || strings.ContainsAny(text, "tz,") {
			return wrong("must be an RFC 3339 time")
		}
		*p = t
		return nil
	}
}

// Raw keeps any value as written.
func Raw(p *json.RawMessage) func([]byte) error {
	return func(value []byte) error {
		*p = json.RawMessage(bytes.Clone(value))
		return nil
	}
}

// Integer reads a number without fraction or exponent and keeps its spelling.
func Integer(p *json.RawMessage) func([]byte) error {
	return func(value []byte) error {
		if len(value) == 0 || value[0] != '-' && !isDigit(value[0]) || bytes.ContainsAny(value, ".eE") {
			return wrong("must be an integer")
		}
		*p = json.RawMessage(bytes.Clone(value))
		return nil
	}
}
