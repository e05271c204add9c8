// Package ijson reads one JSON document strictly, or not at all.
//
// What it accepts is I-JSON (RFC 7493) in UTF-8, narrowed by the value rules of
// the wire protocols: no byte order mark, no duplicate names at any depth, no
// lone surrogates, no noncharacters, numbers that every language reads alike,
// and bounds on depth, strings and members. Into a Go type it reads exactly the
// documents that writing the type can produce: unknown members are refused,
// names match by spelling and case, a member is required unless its json tag
// says omitempty or omitzero, and null is taken only where the type writes
// null: in a pointer or interface that is not omitted when empty, and in raw
// JSON.
//
// It refuses to repair anything, to guess an encoding, to fill in defaults and
// to read from a stream. It quotes no values in its errors, only member names.
// How JSON is spelled and how values become Go values is left to
// go-json-experiment/json; what that library leaves open is decided here.
package ijson

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
)

// The bounds of one document.
const (
	MaxDepth   = 64      // objects and arrays inside each other
	MaxString  = 1 << 20 // bytes of one string or name, unescaped, as UTF-8
	MaxMembers = 100_000 // object members in the whole document
	MaxNumber  = 1<<53 - 1
)

// The codes of Error. Those that begin with "json." condemn the document
// whatever it was meant for; those that begin with "schema." say that it is not
// the document that was expected. A document with faults of both kinds is
// reported by one of the first kind.
const (
	CodeSyntax        = "json.syntax"
	CodeDuplicateName = "json.duplicate_name"
	CodeUnicode       = "json.invalid_unicode"
	CodeLimit         = "json.limit"
	CodeNumber        = "json.number"
	CodeUnknownMember = "schema.unknown_member"
	CodeMismatch      = "schema.mismatch"
)

// An Error is the one fault for which a document was refused.
type Error struct {
	Code    string
	Offset  int64  // bytes before the fault
	Line    int    // from 1
	Column  int    // from 1, in characters
	Pointer string // RFC 6901, to the value or member at fault; "" is the whole document
	Message string // what is wrong there; foreign member names in it are quoted and cut

	cause error
}

// maxShown bounds how much of a foreign name or pointer a message repeats.
const maxShown = 128

func (e *Error) Error() string {
	where := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.Pointer != "" {
		where += ", at " + strconv.QuoteToGraphic(shown(e.Pointer))
	}
	return e.Message + " (" + where + ")"
}

// Unwrap returns the error of a type's own unmarshal method, if that refused
// the value, else nil.
func (e *Error) Unwrap() error { return e.cause }

// Unmarshal reads data into v, which must be a non-nil pointer; anything else
// is a mistake in the program and panics. The error is always an *Error, and
// what v holds after one is unspecified.
//
// Types with an unmarshal method of their own decide about their value, except
// that they are never shown a null. Options of json tags other than omitempty,
// omitzero and string are not supported in types read here.
func Unmarshal(data []byte, v any) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(v).IsNil() {
		panic(fmt.Sprintf("ijson: Unmarshal into %T, not a non-nil pointer", v))
	}
	if f := foreignEncoding(data); f != nil {
		return f.locate(data)
	}
	s := scanner{data: data}
	s.value(edgeOf(t.Elem()))
	schema := s.schema
	if s.fault == nil && schema == nil {
		err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
		if err == nil {
			return nil
		}
		schema = fromSemantic(err)
	}
	return verdict(data, s.fault, schema)
}

// Check applies every rule that does not depend on what the document means.
// The error is always an *Error whose code begins with "json.".
func Check(data []byte) error {
	if f := foreignEncoding(data); f != nil {
		return f.locate(data)
	}
	s := scanner{data: data}
	s.value(edge{null: true})
	if s.fault == nil && json.Unmarshal(data, new(discard)) == nil {
		return nil
	}
	return verdict(data, s.fault, nil)
}
