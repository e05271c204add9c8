// Package subset holds the part of JSON Schema 2020-12 in which packages describe
// their settings and payloads, so that every language can check values alike and
// without a dependency. docs/schema-subset.md is its definition.
//
// Check tells where a document leaves the subset. Compile makes a Schema of one that
// does not. Schema.Validate judges a JSON value as it was written, in one walk where
// the schema has no alternatives, and with a bound on its work. Nothing is fetched,
// a document refers only to itself, and no message repeats a value.
package subset

import (
	"fmt"
	"strings"
)

// Dialect is the only value of $schema.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// Bounds of one schema document; those of patterns are in their own file.
const (
	MaxDocument      = 256 << 10 // bytes
	MaxNesting       = 32        // subschemas inside each other
	MaxSubschemas    = 2000
	MaxRefs          = 500
	MaxBranches      = 64   // of one allOf, anyOf, oneOf or prefixItems
	MaxInPlace       = 256  // subschemas that one value meets, through $ref and all alternatives
	MaxNames         = 512  // of one object: properties and required together
	MaxEnum          = 1000 // values of one enum
	MaxPatterns      = 200
	MaxAllPositions  = 16384 // of all patterns together
	MaxURI           = 512   // bytes of an $id or $ref
	MaxAnnotation    = 4096  // bytes of a title, description or other text
	MaxFaults        = 50    // told of one document; the rest is left out
	maxIntegerNumber = 1<<53 - 1
)

// Bounds of one validation.
const (
	MaxDepth    = 64 // of the value
	MaxProblems = 20 // told; the rest is left out
	// A value may cost BaseWork and WorkPerByte steps for each of its bytes. A step is
	// one value or member that meets one subschema, 16 bytes that are passed over, or
	// two bytes that a pattern reads.
	BaseWork    = 100_000
	WorkPerByte = 4
)

// The codes of what Check finds.
const (
	CodeJSON       = "subset.json"       // not one JSON object with every name once
	CodeKeyword    = "subset.keyword"    // a keyword that is not in the subset
	CodeValue      = "subset.value"      // a keyword's value is not of its form
	CodeIdentity   = "subset.id"         // $schema or $id
	CodeRef        = "subset.ref"        // remote, dangling, or round in a circle
	CodePattern    = "subset.pattern"    // not in the common part of the languages
	CodeOpen       = "subset.open"       // an object that does not say what else it may have
	CodeAnnotation = "subset.annotation" // an x- annotation
	CodeDefault    = "subset.default"    // a default that its own schema refuses
	CodeLimit      = "subset.limit"
)

// The codes of what Validate finds.
const (
	CodeSyntax        = "json.syntax" // the value did not pass the value rules
	CodeMismatch      = "schema.mismatch"
	CodeUnknownMember = "schema.unknown_member"
	CodeWork          = "schema.limit" // the work was stopped at its bound
)

// A Problem is one fault of a schema document or of a value. Its message repeats no
// part of a value but names of members.
type Problem struct {
	Pointer string // RFC 6901; in a value, no further than a schema with x-redact
	Code    string
	Message string
	Missing bool // of a value: a member is not there that must be
}

func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Message
	}
	return p.Pointer + ": " + p.Message
}

// Invalid is the error of Compile: everything that keeps a document out.
type Invalid struct {
	ID       string // the document's $id, if it has one
	Problems []Problem
}

func (e *Invalid) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return fmt.Sprintf("schema %q: %s", e.ID, strings.Join(parts, "; "))
}

// Check returns everything that keeps a document out of the subset, nil if nothing
// does. The document must have passed the value rules; one that has not is refused
// or judged, never misread.
func Check(document []byte) []Problem {
	_, problems := build(document)
	return problems
}

// A Schema is one compiled document. It may be used by many goroutines at a time.
type Schema struct {
	id   string
	root *node
}

// ID returns the root's $id.
func (s *Schema) ID() string { return s.id }

// Compile returns the document as a Schema, or an *Invalid. Documents are compiled
// once: it takes milliseconds.
func Compile(document []byte) (*Schema, error) {
	s, problems := build(document)
	if problems != nil {
		return nil, &Invalid{s.id, problems}
	}
	return s, nil
}
