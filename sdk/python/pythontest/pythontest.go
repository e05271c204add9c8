// Package pythontest starts Python in tests at no more cost than is needed.
package pythontest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// find returns the program that python3 is, or why there is none that fits.
var find = sync.OnceValues(func() (string, error) {
	if runtime.GOOS == "windows" {
		return "", errors.New("the Python SDK does not claim windows")
	}
	out, err := exec.Command("python3", "-c", "import sys; print(sys.version_info >= (3, 11), sys.executable)").Output()
	if err != nil {
		return "", fmt.Errorf("python3 does not run: %w", err)
	}
	fits, executable, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if fits != "True" {
		return "", errors.New("the Python SDK needs Python 3.11")
	}
	return executable, nil
})

// Interpreter returns the program that python3 is, which starts in a fraction of the time
// where python3 is a script that looks for it. It skips where there is none that fits.
func Interpreter(t testing.TB) string {
	t.Helper()
	executable, err := find()
	if err != nil {
		t.Skip(err)
	}
	return executable
}

// PutFirst puts the directory of Interpreter first in PATH, for programs that start
// python3 by its name. Where python3 does not fit, or is not called so there, it leaves
// PATH alone. It is for TestMain.
func PutFirst() error {
	executable, err := find()
	if err != nil {
		return nil
	}
	directory := filepath.Dir(executable)
	if _, err := exec.LookPath(filepath.Join(directory, "python3")); err != nil {
		return nil
	}
	return os.Setenv("PATH", directory+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Compiled copies directories of the directory root, at their places, to a new one, and
// compiles what is in them, so that programs do not do so at each start. It returns the
// new directory.
func Compiled(t testing.TB, root string, directories ...string) string {
	t.Helper()
	copied := t.TempDir()
	for _, d := range directories {
		if err := os.CopyFS(filepath.Join(copied, d), os.DirFS(filepath.Join(root, d))); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(Interpreter(t), "-I", "-S", "-m", "compileall", "-q", copied).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return copied
}
