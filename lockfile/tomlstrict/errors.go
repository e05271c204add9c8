package tomlstrict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Causes that callers ask for with errors.Is. A SyntaxError without a cause is
// an ordinary fault of the text.
var (
	// ErrConflict: the file holds the markers of an unfinished merge.
	ErrConflict = errors.New("unresolved merge conflict")
	// ErrTooLarge: a bound on bytes, depth or members is exceeded.
	ErrTooLarge = errors.New("too large")
	// ErrEncoding: the file is not UTF-8 without a byte order mark.
	ErrEncoding = errors.New("not plain UTF-8")
)

// A SyntaxError is one fault of a file and where it stands.
type SyntaxError struct {
	File    string // as the caller named it
	Line    int    // from 1
	Column  int    // from 1, in characters
	Message string // lower-case, without position
	Err     error  // one of the causes, or nil
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// Faults is the error of every reader here: all faults that were found, in the
// order of the text, at most MaxFaults. It is never empty. errors.As with a
// **SyntaxError yields the first.
type Faults []*SyntaxError

// MaxFaults bounds how many faults one reading reports.
const MaxFaults = 20

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, e := range f {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is and errors.As look at every fault.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, e := range f {
		errs[i] = e
	}
	return errs
}

// sorted returns the faults in the order of the text, cut at MaxFaults.
func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b *SyntaxError) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f[:min(len(f), MaxFaults)]
}
