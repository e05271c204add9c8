package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Faults of a script's "#!" line. Systems answer them with "no such file" or "exec
// format error", or take the line for another one.
var (
	// ErrCarriageReturn: the line ends with CR LF. The carriage return would be part
	// of the interpreter's name, or of its argument.
	ErrCarriageReturn = errors.New(`its "#!" line ends with a carriage return; lines must end with a line feed alone`)
	// ErrNoInterpreter: nothing, or only spaces and tabs, follows "#!".
	ErrNoInterpreter = errors.New(`its "#!" line names no interpreter`)
	// ErrRelativeInterpreter: what the name means would depend on the working
	// directory, which is the package's.
	ErrRelativeInterpreter = errors.New(`the interpreter that its "#!" line names is not an absolute path`)
	// ErrLongLine: systems read the first 256 bytes of a script, and some run what
	// they have read of the line.
	ErrLongLine = fmt.Errorf(`its "#!" line has more than %d bytes`, scriptHead-1)
	// ErrControl: a system may end the interpreter's name there.
	ErrControl = errors.New(`its "#!" line has a control character`)
	// ErrMarkBeforeLine: the "#!" does not stand at the file's first byte.
	ErrMarkBeforeLine = errors.New(`a byte order mark precedes its "#!" line`)
)

// scriptHead is how much of a script Linux reads; macOS reads 512 bytes.
const scriptHead = 256

// A script is what the first line of a file says.
type script struct{ interpreter string }

// readScript reads the "#!" line of f. The result is nil for a file without one.
func readScript(f *os.File) (*script, error) {
	head := make([]byte, scriptHead)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return parseScript(head[:n])
}

// parseScript reads the line at the beginning of head, the first scriptHead bytes of a
// file, or all of it. What it accepts every Unix reads the same way: spaces and tabs
// around the interpreter, then at most one argument.
func parseScript(head []byte) (*script, error) {
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf#!")) {
		return nil, ErrMarkBeforeLine
	}
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return nil, nil
	}
	line, _, ended := bytes.Cut(line, []byte{'\n'})
	text := strings.Trim(string(line), " \t")
	interpreter := text
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		interpreter = text[:i]
	}
	switch {
	case !ended && len(head) == scriptHead:
		return nil, ErrLongLine
	case strings.HasSuffix(text, "\r"):
		return nil, ErrCarriageReturn
	case interpreter == "":
		return nil, ErrNoInterpreter
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && r < ' ' || r == 0x7f }):
		return nil, ErrControl
	case !path.IsAbs(interpreter):
		return nil, fmt.Errorf("%w: %q", ErrRelativeInterpreter, interpreter)
	}
	return &script{interpreter: interpreter}, nil
}

// missing says why the interpreter cannot be executed, or nil if the system's own
// error has to do.
func (s *script) missing() error {
	info, err := os.Stat(s.interpreter)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("is no program: %w", fs.ErrInvalid)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("may not be executed: %w", fs.ErrPermission)
	}
	return nil
}
