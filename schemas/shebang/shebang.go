// Package shebang reads the "#!" line at the beginning of a script as every Unix
// reads it alike, or not at all.
//
// It accepts one absolute interpreter and what follows it. It opens no file, looks
// for no program and knows nothing of what is no script.
package shebang

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Head is how much of a file Parse needs, in bytes: as much as Linux reads of a
// script. macOS reads 512.
const Head = 256

// Faults of a line. Systems answer them with "no such file" or "exec format error",
// or take the line for another one.
var (
	// ErrCarriageReturn: the line ends with CR LF. The carriage return would be part
	// of the interpreter's name, or of its argument.
	ErrCarriageReturn = errors.New(`its "#!" line ends with a carriage return; lines must end with a line feed alone`)
	// ErrNoInterpreter: nothing, or only spaces and tabs, follows "#!".
	ErrNoInterpreter = errors.New(`its "#!" line names no interpreter`)
	// ErrRelative: what the name means would depend on the working directory, which
	// is the package's.
	ErrRelative = errors.New(`the interpreter that its "#!" line names is not an absolute path`)
	// ErrLong: systems read the first 256 bytes of a script, and some run what they
	// have read of the line.
	ErrLong = errors.New(`its "#!" line has more than 255 bytes`)
	// ErrControl: a system may end the interpreter's name there.
	ErrControl = errors.New(`its "#!" line has a control character`)
	// ErrMark: the "#!" does not stand at the file's first byte.
	ErrMark = errors.New(`a byte order mark precedes its "#!" line`)
)

// A Line is what a script's first line says.
type Line struct {
	Interpreter string // absolute
	Command     string // the interpreter and its argument, as they stand there
}

// Parse reads the line at the beginning of head, the first Head bytes of a file, or
// all of it. ok is false for a file that has none. What it accepts every Unix reads
// the same way: spaces and tabs around the interpreter, then at most one argument.
func Parse(head []byte) (_ Line, ok bool, _ error) {
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf#!")) {
		return Line{}, true, ErrMark
	}
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return Line{}, false, nil
	}
	line, _, ended := bytes.Cut(line, []byte{'\n'})
	text := strings.Trim(string(line), " \t")
	interpreter := text
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		interpreter = text[:i]
	}
	switch {
	case !ended && len(head) >= Head:
		return Line{}, true, ErrLong
	case strings.HasSuffix(text, "\r"):
		return Line{}, true, ErrCarriageReturn
	case interpreter == "":
		return Line{}, true, ErrNoInterpreter
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && r < ' ' || r == 0x7f }):
		return Line{}, true, ErrControl
	case !path.IsAbs(interpreter):
		return Line{}, true, fmt.Errorf("%w: %q", ErrRelative, interpreter)
	}
	return Line{Interpreter: interpreter, Command: text}, true, nil
}
