package revlist

import (
	"fmt"
	"strconv"
	"strings"
)

// A Code says why a document was refused. What stands before its dot names the
// kind of document: "list", "root" or "dissent".
type Code string

// The reasons for which a document is refused, without the document's kind.
const (
	truncated       = "truncated"        // it ends too early
	tooLarge        = "too_large"        // more bytes than allowed
	tooMany         = "too_many"         // more elements than allowed
	tooLong         = "too_long"         // a string is longer than allowed
	malformed       = "malformed"        // not JSON, or not JSON of this shape
	notCanonical    = "not_canonical"    // JSON, but not as RFC 8785 writes it
	invalidUnicode  = "invalid_unicode"  // not UTF-8, or a noncharacter
	badNumber       = "number"           // out of range
	unknownMember   = "unknown_member"   // a name that the format does not define
	duplicateMember = "duplicate_member" // a name that occurs twice in an object
	missingMember   = "missing_member"   // a required name does not occur
	badValue        = "value"            // the value breaks the member's rule
	schemaVersion   = "schema_version"   // another format, or another version of it
	trailingData    = "trailing_data"    // something follows the document
	notSorted       = "not_sorted"       // elements are not in byte order
	duplicate       = "duplicate"        // an element occurs twice
)

// kind is a kind of document.
type kind struct{ prefix, name string }

var (
	listKind    = kind{"list", "revocation list"}
	rootKind    = kind{"root", "revocation root"}
	dissentKind = kind{"dissent", "dissent file"}
)

func (k kind) code(reason string) Code { return Code(k.prefix + "." + reason) }

// An Error is the one fault for which a document, or an edit of one, was refused.
type Error struct {
	Code    Code
	Offset  int64  // bytes before the fault; -1 where no bytes were read
	Entry   int    // the element at fault, counted from 1; 0 is none
	Message string // foreign text in it is quoted and cut

	document string
	cause    error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.document)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ": byte %d", e.Offset)
	}
	if e.Entry > 0 {
		fmt.Fprintf(&b, ": entry %d", e.Entry)
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns what caused the fault, where something else did.
func (e *Error) Unwrap() error { return e.cause }

// problem is a broken rule about a value, before it is known where it stands.
type problem struct {
	reason, message string
	cause           error
}

func broken(format string, args ...any) *problem {
	return &problem{reason: badValue, message: fmt.Sprintf(format, args...)}
}

// in makes a problem of a value in memory an error.
func (p *problem) in(k kind, entry int) error {
	return &Error{Code: k.code(p.reason), Offset: -1, Entry: entry, Message: p.message, document: k.name, cause: p.cause}
}

const maxShown = 64 // bytes of foreign text in a message

// shown renders foreign text for a message.
func shown(s string) string {
	if len(s) > maxShown {
		return strconv.QuoteToASCII(strings.ToValidUTF8(s[:maxShown], "")) + "…"
	}
	return strconv.QuoteToASCII(s)
}
