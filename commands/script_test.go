package commands

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// scripts is where the command line's scripts are.
const scripts = "../testdata/script"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"switchyard": func() { os.Exit(Main(OSEnv())) },
	})
}

// TestScripts runs every script. Beside testscript's own commands there are
//
//	switchyard ARGS…           must exit 0
//	exits CODE PROGRAM ARGS…   must exit with CODE
//	plugin DIR ID VERSION [MODE [ARGUMENT…]]
//	                           writes a plugin package; plugin_test.go lists the modes
//	capture NAME PATTERN       sets a variable to the first group of PATTERN in stdout
//	await FIFO                 waits until something opens the named pipe for writing
//
// Whatever `switchyard … --json` prints is checked against its schema.
func TestScripts(t *testing.T) {
	schemas := publishedSchemas(t)
	testscript.Run(t, testscript.Params{
		Dir:                 scripts,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_DATA_HOME", "")
			env.Setenv("SWITCHYARD_DATA_DIR", filepath.Join(home, "data"))
			env.Setenv("NO_COLOR", "")
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   func(ts *testscript.TestScript, neg bool, args []string) { exits(ts, schemas, neg, args) },
			"plugin":  writePlugin,
			"capture": capture,
			"await":   await,
		},
	})
}

func exits(ts *testscript.TestScript, schemas *schemaSet, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGUMENT…")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %q is not an exit code", args[0])
	}
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("exits: %v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if args[1] == "switchyard" && wantsJSON(args[2:]) {
		if err := schemas.check([]byte(ts.ReadFile("stdout")), want == 0); err != nil {
			ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
		}
	}
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATTERN")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("capture: %q does not match", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// await blocks until a plugin opens the pipe, which is how a script learns that
// a call has come so far.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FIFO")
	}
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Close())
}

// Every command has a script that runs it, and every exit code is produced by one.
func TestScriptsAreComplete(t *testing.T) {
	text := allScripts(t)
	for _, e := range table() {
		if !regexp.MustCompile(`(?m)^(\[[^\]]*\] )?(exits \d+|! exec|exec) switchyard ` + regexp.QuoteMeta(e.name) + `( |$)`).MatchString(text) {
			t.Errorf("no script runs `switchyard %s`", e.name)
		}
	}
	for name, code := range exitCodes(t) {
		produced := regexp.MustCompile(`(?m)^(\[[^\]]*\] )?exits ` + strconv.Itoa(code) + ` `).MatchString(text)
		if unreachable := slices.Contains(withoutScript, name); produced == unreachable {
			t.Errorf("exit code %d (%s): a script produces it: %t, listed as out of reach: %t", code, name, produced, unreachable)
		}
	}
	if regexp.MustCompile(`(?m)^(! )?exec switchyard [^&\n]*$`).MatchString(text) {
		t.Error("a script says `exec switchyard`, which checks neither exit code nor JSON: say `exits CODE switchyard`")
	}
}

// withoutScript names the exit codes that nothing can produce yet: signatures,
// provenance, SBOMs and policies are not looked at.
var withoutScript = []string{"exitEvidence"}

func allScripts(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(scripts, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", scripts, err)
	}
	var all bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
		all.WriteByte('\n')
	}
	return all.String()
}

// exitCodes reads the constants of exit.go.
func exitCodes(t *testing.T) map[string]int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[string]int)
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "exit") {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Atoi(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[spec.Names[0].Name] = code
		}
		return true
	})
	if len(codes) < 14 {
		t.Fatalf("exit.go has %d exit codes, want at least 14", len(codes))
	}
	return codes
}

// The documented table of exit codes and the constants are the same.
func TestExitCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, defined []int
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllSubmatch(doc, -1) {
		code, _ := strconv.Atoi(string(m[1]))
		documented = append(documented, code)
	}
	for _, code := range exitCodes(t) {
		defined = append(defined, code)
	}
	slices.Sort(documented)
	slices.Sort(defined)
	if !slices.Equal(documented, defined) {
		t.Errorf("docs/exit-codes.md lists %v, exit.go has %v", documented, defined)
	}
}

// errorCodes returns the stable error codes that docs/exit-codes.md lists.
var errorCodes = sync.OnceValues(func() ([]string, error) {
	doc, err := os.ReadFile("../docs/exit-codes.md")
	if err != nil {
		return nil, err
	}
	var codes []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllSubmatch(doc, -1) {
		codes = append(codes, string(m[1]))
	}
	if len(codes) == 0 {
		return nil, fmt.Errorf("docs/exit-codes.md lists no error codes")
	}
	return codes, nil
})
