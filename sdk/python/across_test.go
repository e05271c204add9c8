package python_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/python/pythontest"
)

// TestReceiptsAcrossSDKs has the Go SDK tell again what the Python SDK recorded, and
// the other way round: the same directory, the same keys, one effect.
func TestReceiptsAcrossSDKs(t *testing.T) {
	interpreter := pythontest.Interpreter(t)
	goProgram := filepath.Join(t.TempDir(), "conformance-go")
	if out, err := exec.Command("go", "build", "-o", goProgram, "../examples/conformance-go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	absolute := func(path string) string {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return abs
	}
	inGo := []string{goProgram}
	inPython := []string{interpreter, "-I", "-B", absolute("../examples/conformance-python/conformance.py")}
	corpusPackage := absolute("../conformance/corpus/package")
	for _, c := range []struct {
		name           string
		writer, reader []string
	}{
		{"written by Python, read by Go", inPython, inGo},
		{"written by Go, read by Python", inGo, inPython},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory := filepath.Join(t.TempDir(), "package")
			if err := os.CopyFS(directory, os.DirFS(corpusPackage)); err != nil {
				t.Fatal(err)
			}
			arguments := append([]string{"-m", "tests.across", directory, filepath.Join(t.TempDir(), "state")}, c.writer...)
			arguments = append(append(arguments, "--"), c.reader...)
			cmd := command(interpreter, arguments...)
			var trouble strings.Builder
			cmd.Stderr = &trouble
			if out, err := cmd.Output(); err != nil || string(out) != "ok\n" {
				t.Errorf("%v\n%s%s", err, out, trouble.String())
			}
		})
	}
}
