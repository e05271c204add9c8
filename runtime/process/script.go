package process

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/switchyard-plugins/switchyard/schemas/shebang"
)

// A script is what the first line of a file says.
type script struct{ interpreter string }

// readScript reads the "#!" line of f. The result is nil for a file without one.
func readScript(f *os.File) (*script, error) {
	head := make([]byte, shebang.Head)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	line, ok, err := shebang.Parse(head[:n])
	if err != nil || !ok {
		return nil, err
	}
	return &script{interpreter: line.Interpreter}, nil
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
