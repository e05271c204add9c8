package ijson

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A fault is an Error before its place is worked out.
type fault struct {
	code    string
	offset  int
	pointer string
	message string
	pointed bool // pointer is known
	cause   error
}

// locate makes the Error.
func (f *fault) locate(data []byte) *Error {
	if !f.pointed {
		f.pointer = pointerAt(data, f.offset)
	}
	before := data[:min(max(f.offset, 0), len(data))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &Error{
		Code:    f.code,
		Offset:  int64(len(before)),
		Line:    1 + bytes.Count(before, []byte{'\n'}),
		Column:  1 + utf8.RuneCount(line),
		Pointer: f.pointer,
		Message: f.message,
		cause:   f.cause,
	}
}

// pointerAt returns the JSON pointer of the token at offset, as far as the
// bytes before it are JSON.
func pointerAt(data []byte, offset int) string {
	d := jsontext.NewDecoder(bytes.NewReader(data),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for d.InputOffset() <= int64(offset) {
		if _, err := d.ReadToken(); err != nil {
			break
		}
	}
	return string(d.StackPointer())
}

// verdict picks the one fault to report of a document that is refused: first
// its encoding, then the earliest fault of the document itself, then the fault
// against the shape.
func verdict(data []byte, value, schema *fault) *Error {
	if f := invalidUTF8(data); f != nil {
		return f.locate(data)
	}
	syntax := syntaxFault(data)
	switch {
	case syntax != nil && (value == nil || syntax.offset < value.offset):
		return syntax.locate(data)
	case value != nil:
		return value.locate(data)
	case schema != nil:
		return schema.locate(data)
	}
	// The decoder refused the document with an error of no known kind.
	return (&fault{code: CodeMismatch, message: "the document cannot be read", pointed: true}).locate(data)
}

// foreignEncoding names a document that begins with a byte order mark or is in
// UTF-16 or UTF-32, which its zero bytes give away: JSON begins in ASCII. It
// returns nil for every document that begins like JSON in UTF-8.
func foreignEncoding(data []byte) *fault {
	if len(data) < 2 || data[0] != 0 && data[0] < 0xEF && data[1] != 0 {
		return nil
	}
	message := ""
	switch {
	case bytes.HasPrefix(data, []byte{0xEF, 0xBB, 0xBF}):
		message = "the document begins with a byte order mark (BOM); save it as UTF-8 without one"
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(data, []byte{0, 0, 0xFE, 0xFF}),
		len(data)%4 == 0 && (data[0] == 0 && data[1] == 0 && data[2] == 0 || data[1] == 0 && data[2] == 0 && data[3] == 0):
		message = "the document is in UTF-32, not UTF-8"
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), bytes.HasPrefix(data, []byte{0xFE, 0xFF}),
		len(data)%2 == 0 && (data[0] == 0) != (data[1] == 0):
		message = "the document is in UTF-16, not UTF-8"
	default:
		return nil
	}
	return &fault{code: CodeUnicode, message: message, pointed: true}
}

func invalidUTF8(data []byte) *fault {
	if utf8.Valid(data) {
		return nil
	}
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return &fault{code: CodeUnicode, offset: at, message: "a byte that is not UTF-8"}
}

// syntaxFault returns what the decoder finds wrong with a document that is
// UTF-8, whatever it is read into.
func syntaxFault(data []byte) *fault {
	if len(bytes.Trim(data, " \t\r\n")) == 0 {
		return &fault{code: CodeSyntax, message: "the document is empty", pointed: true}
	}
	var syn *jsontext.SyntacticError
	if !errors.As(decodeNothing(data), &syn) {
		return nil
	}
	f := &fault{
		code:    CodeSyntax,
		offset:  int(syn.ByteOffset),
		pointer: string(syn.JSONPointer),
		pointed: true,
	}
	switch {
	case errors.Is(syn.Err, jsontext.ErrDuplicateName):
		f.code = CodeDuplicateName
		f.message = "the member " + quoted([]byte(syn.JSONPointer.LastToken())) + " occurs twice"
	case errors.Is(syn.Err, io.ErrUnexpectedEOF):
		f.message = "the document ends too early"
	case onlyWithoutSurrogates(data, f.offset):
		f.code = CodeUnicode
		f.message = "a surrogate without its other half"
	case trailing(data, f.offset):
		f.message = "more data after the end of the document"
	default:
		f.message = syn.Err.Error()
	}
	return f
}

// onlyWithoutSurrogates reports whether a decoder that lets lone surrogates
// pass gets beyond offset. The document is UTF-8, so nothing else can be it.
func onlyWithoutSurrogates(data []byte, offset int) bool {
	err := decodeNothing(data, jsontext.AllowInvalidUTF8(true))
	var syn *jsontext.SyntacticError
	return err == nil || errors.As(err, &syn) && syn.ByteOffset > int64(offset)
}

// trailing reports whether a whole value ends before offset.
func trailing(data []byte, offset int) bool {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	return d.SkipValue() == nil && d.InputOffset() <= int64(offset)
}

// discard takes any value and keeps nothing of it.
type discard struct{}

func (*discard) UnmarshalJSONFrom(d *jsontext.Decoder) error { return d.SkipValue() }

func decodeNothing(data []byte, options ...json.Options) error {
	return json.Unmarshal(data, new(discard), options...)
}

// fromSemantic returns the fault against the Go type that the decoder found,
// or nil if it found one of syntax.
func fromSemantic(err error) *fault {
	var sem *json.SemanticError
	if !errors.As(err, &sem) {
		return nil
	}
	f := &fault{
		code:    CodeMismatch,
		offset:  int(sem.ByteOffset),
		pointer: string(sem.JSONPointer),
		pointed: true,
	}
	var inner *Error
	switch {
	case errors.As(sem.Err, &inner): // a method that read its value with this package
		f.code, f.message, f.cause = inner.Code, inner.Message, inner.cause
		f.offset += int(inner.Offset)
		f.pointer += inner.Pointer
	case errors.Is(sem.Err, json.ErrUnknownName):
		f.code = CodeUnknownMember
		f.message = "unknown member " + quoted([]byte(sem.JSONPointer.LastToken()))
	case sem.GoType != nil && sem.GoType != reflect.TypeFor[time.Time]() && readsItself(sem.GoType) && sem.Err != nil:
		f.message, f.cause = sem.Err.Error(), sem.Err
	default:
		f.message = "want " + wanted(sem.GoType) + found(sem.JSONKind)
	}
	return f
}

// wanted names the JSON that a Go type is read from.
func wanted(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	if t == reflect.TypeFor[time.Time]() {
		return "an RFC 3339 timestamp"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "an integer of the type's range, written without fraction or exponent"
	case reflect.Float32, reflect.Float64:
		return "a number of the type's range"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		if t.Kind() == reflect.Array {
			return "an array of the type's length"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "another value"
}

func found(k jsontext.Kind) string {
	switch k {
	case 'n':
		return ", found null"
	case 't', 'f':
		return ", found a boolean"
	case '"':
		return ", found a string"
	case '0':
		return ", found a number"
	case '{', '}':
		return ", found an object"
	case '[', ']':
		return ", found an array"
	}
	return ""
}
