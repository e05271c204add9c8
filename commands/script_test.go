package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
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

	"github.com/switchyard-plugins/switchyard/sdk/conformance/mutant"
)

// scripts is where the command line's scripts are.
const scripts = "../testdata/script"

func TestMain(m *testing.M) {
	sessionPluginMain()
	testscript.Main(m, map[string]func(){
		"switchyard": func() { os.Exit(Main(OSEnv())) },
		"tamper":     tamper,

		"reference-plugin": func() { os.Exit(mutant.Main(os.Args[1:]...)) },
	})
}

// TestScripts runs every script. Beside testscript's own commands there are
//
//	switchyard ARGS…           must exit 0
//	exits CODE PROGRAM ARGS…   must exit with CODE
//	reference-plugin FAULTS…   the plugin that conformance is tried on, with faults switched on
//	plugin DIR ID VERSION [MODE [ARGUMENT…]]
//	                           writes a plugin package; plugin_test.go lists the modes
//	session-plugin DIR CONTROL
//	                           writes a session package; CONTROL is the directory in which
//	                           it leaves traces, see package sessiontest
//	trusted ID                 trusts an installed plugin as its review shows it
//	approved ID DIR            installs, trusts and enables a plugin with all it asks for
//	tamper DIR                 appends to a file of an installed package
//	interrupts CODE FIFO PROGRAM ARGS…
//	                           as exits, with an interrupt once something opens the pipe
//	capture NAME PATTERN       sets a variable to the first group of PATTERN in stdout
//	worker                     puts the verify worker beside switchyard
//	sigstore DIR               serves an instance of Sigstore; sigstore-local says what it
//	                           writes into DIR
//	tuf DIR TRUSTED_ROOT [NAME=VALUE…]
//	                           writes a TUF repository; tuf-local says how
//	serve NAME DIR [BEHAVIOUR FILE [ARGUMENT]]
//	                           serves a directory over https; server_test.go lists the behaviours
//	await FIFO                 waits until something opens the named pipe for writing
//
// Whatever `switchyard … --json` prints is checked against its schema.
func TestScripts(t *testing.T) {
	schemas := publishedSchemas(t)
	goCache, goModCache := goEnv("GOCACHE"), goEnv("GOMODCACHE")
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
			env.Setenv("EVIL", "x\u202e\u200b")
			env.Setenv("GOCACHE", goCache)
			env.Setenv("GOMODCACHE", goModCache)
			source, err := filepath.Abs("..")
			if err != nil {
				return err
			}
			env.Setenv("SOURCE", source)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":          func(ts *testscript.TestScript, neg bool, args []string) { exits(ts, schemas, neg, args) },
			"plugin":         writePlugin,
			"capture":        capture,
			"await":          await,
			"trusted":        trusted,
			"approved":       approved,
			"interrupts":     interruptsAfter,
			"worker":         besideWorker,
			"sigstore":       serveSigstore,
			"serve":          serveFiles,
			"tuf":            writeTUF,
			"session-plugin": writeSessionPlugin,
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

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// trusted trusts what the review of an installed plugin shows.
func trusted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: trusted ID")
	}
	r := review(ts, args[0])
	ts.Check(ts.Exec("switchyard", "trust", args[0], "--fingerprint", string(r.Package)))
}

func approved(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: approved ID DIR")
	}
	ts.Check(ts.Exec("switchyard", "install", args[1]))
	trusted(ts, false, args[:1])
	enable := []string{"enable", args[0]}
	for _, s := range review(ts, args[0]).Scopes {
		enable = append(enable, "--scope", s.Scope)
	}
	ts.Check(ts.Exec("switchyard", enable...))
}

func review(ts *testscript.TestScript, id string) reviewData {
	ts.Check(ts.Exec("switchyard", "review", id, "--json"))
	var doc struct {
		Data reviewData `json:"data"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc))
	return doc.Data
}

// tamper changes an installed package as its owner could.
func tamper() {
	dir := os.Args[1]
	path := filepath.Join(dir, "bin", "plugin")
	for _, p := range []string{filepath.Dir(path), path} {
		if err := os.Chmod(p, 0o755); err != nil {
			log.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.WriteString("# changed\n"); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}

// interruptsAfter starts a program, waits until it has come so far that the pipe
// is opened, interrupts it, and expects an exit code.
func interruptsAfter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupts CODE FIFO PROGRAM ARGUMENT…")
	}
	program, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(program, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "SWITCHYARD_DATA_DIR", "SSL_CERT_FILE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ts.Check(cmd.Start())
	await(ts, false, args[1:2])
	ts.Check(cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	ts.Logf("[stdout]\n%s[stderr]\n%s", out.String(), errs.String())
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), errs.String())
}

// Every command has a script that runs it, and every exit code is produced by one.
func TestScriptsAreComplete(t *testing.T) {
	text := allScripts(t)
	for _, e := range table() {
		if !regexp.MustCompile(`(?m)^(\[[^\]]*\] )?(exits \d+|interrupts \d+ \S+|exec) switchyard ` + regexp.QuoteMeta(e.name) + `( |$)`).MatchString(text) {
			t.Errorf("no script runs `switchyard %s`", e.name)
		}
	}
	for name, code := range exitCodes(t) {
		if !regexp.MustCompile(`(?m)^(\[[^\]]*\] )?(exits ` + strconv.Itoa(code) + `|interrupts ` + strconv.Itoa(code) + ` \S+) switchyard `).MatchString(text) {
			t.Errorf("no script produces exit code %d (%s)", code, name)
		}
	}
	if regexp.MustCompile(`(?m)^(! )?exec switchyard [^&\n]*$`).MatchString(text) {
		t.Error("a script says `exec switchyard`, which checks neither exit code nor JSON: say `exits CODE switchyard`")
	}
}

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
