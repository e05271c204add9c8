//go:build unix

package process_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/schemas/shebang"
)

func TestScript(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	s.Path, s.Args = filepath.Join(s.Dir, "script"), []string{"a b", "*"}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(s.Path, "#!/bin/sh\n. \"${0%/*}/beside\"\nprintf '%s\\n' \"$PWD|$0|$*|$#\"\n")
	write(filepath.Join(s.Dir, "beside"), "test \"$SWITCHYARD_PLUGIN_PROTOCOL\" = switchyard.plugin/v1 || exit 9\n")
	open := func() *os.File {
		t.Helper()
		f, err := os.Open(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	s.Executable = open()
	c := start(t, s)
	line, _ := bufio.NewReader(c.Stdout).ReadString('\n')
	if exit := finish(c); !exit.Clean() {
		t.Errorf("exit: %+v", exit)
	}
	if want := s.Dir + "|" + s.Path + "|a b *|2\n"; line != want {
		t.Errorf("script says %q, want %q", line, want)
	}

	// Another file under the same name is refused.
	write(s.Path+"2", "#!/bin/sh\n")
	if err := os.Rename(s.Path+"2", s.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := process.Start(s); !errors.Is(err, process.ErrChanged) {
		t.Errorf("replaced script: %v", err)
	}
}

// TestScriptLines starts scripts and other files by their first line: each either runs
// as it is meant on every Unix, or fails for a reason of its own.
func TestScriptLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "bin/sh": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	const body = "\nprintf %s ran\n"
	plain := filepath.Join(dir, "plain")
	for _, c := range []struct {
		name, text  string
		err         error  // nil: it runs
		interpreter string // of the error
	}{
		{"plain", "#!/bin/sh" + body, nil, ""},
		{"padded", "#! \t /bin/sh \t " + body, nil, ""},
		{"argument, padded", "#!/bin/sh \t -e\t " + body, nil, ""},
		{"longest", "#!/bin/sh" + strings.Repeat(" ", 246) + body, nil, ""},
		{"one byte longer", "#!/bin/sh" + strings.Repeat(" ", 247) + body, shebang.ErrLong, ""},
		{"padded beyond what is read", "#!" + strings.Repeat("\t", 300) + "/bin/sh" + body, shebang.ErrLong, ""},
		{"endless", "#!/bin/sh " + strings.Repeat("x", 10000), shebang.ErrLong, ""},
		{"CR LF", "#!/bin/sh\r\nprintf ran\r\n", shebang.ErrCarriageReturn, ""},
		{"CR LF after an argument", "#!/bin/sh -e\r\nprintf ran\r\n", shebang.ErrCarriageReturn, ""},
		{"CR LF alone", "#!\r\n", shebang.ErrCarriageReturn, ""},
		{"nothing", "#!" + body, shebang.ErrNoInterpreter, ""},
		{"nothing at all", "#!", shebang.ErrNoInterpreter, ""},
		{"spaces and tabs", "#! \t " + body, shebang.ErrNoInterpreter, ""},
		{"relative", "#!bin/sh" + body, shebang.ErrRelative, ""},
		{"relative, dotted", "#!./bin/sh" + body, shebang.ErrRelative, ""},
		{"found by a shell only", "#!sh" + body, shebang.ErrRelative, ""},
		{"NUL", "#!/bin/sh\x00-e" + body, shebang.ErrControl, ""},
		{"byte order mark", "\ufeff#!/bin/sh" + body, shebang.ErrMark, ""},
		{"missing", "#!/nonexistent/interpreter -x" + body, fs.ErrNotExist, "/nonexistent/interpreter"},
		{"missing, padded", "#! \t/nonexistent/interpreter\t" + body, fs.ErrNotExist, "/nonexistent/interpreter"},
		{"a directory", "#!" + dir + body, fs.ErrInvalid, dir},
		{"not executable", "#!" + plain + body, fs.ErrPermission, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t, "good")
			s.Dir, s.Path, s.Args = dir, filepath.Join(t.TempDir(), "script"), nil
			if err := os.WriteFile(s.Path, []byte(c.text), 0o755); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(s.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			s.Executable = f
			child, err := process.Start(s)
			if err == nil {
				out, _ := bufio.NewReader(child.Stdout).ReadString('\n')
				child.Stdout.Close()
				if exit := finish(child); c.err != nil || out != "ran" || !exit.Clean() {
					t.Errorf("it ran, %v, and said %q", exit, out)
				}
				return
			}
			var start *process.StartError
			if c.err == nil || !errors.Is(err, c.err) || !errors.As(err, &start) || start.Path != s.Path || start.Interpreter != c.interpreter ||
				c.interpreter != "" && !strings.Contains(err.Error(), c.interpreter) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNoProgram starts what is neither a program nor a script.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "just text", "MZ not here", "\x7fELF and no more"} {
		s := spec(t, "good")
		s.Path = filepath.Join(s.Dir, "file")
		if err := os.WriteFile(s.Path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s.Executable = f
		var start *process.StartError
		if _, err := process.Start(s); !errors.As(err, &start) || start.Interpreter != "" ||
			!strings.Contains(err.Error(), "neither a program") && !strings.Contains(err.Error(), "another system") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
