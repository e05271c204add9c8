// Package python_test holds the Python SDK to its tests and to the host's own rules,
// as part of the tests of this module.
package python_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
	"github.com/switchyard-plugins/switchyard/sdk/conformance"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
	"github.com/switchyard-plugins/switchyard/sdk/python/pythontest"
)

// startAlone are the options of a program that imports nothing but the standard library
// and the SDK: what is installed beside it on this machine does not slow its starts.
var startAlone = []string{"-I", "-S", "-B"}

// compiledProgram returns the program that proves the SDK, of a copy that is compiled.
func compiledProgram(t *testing.T) string {
	t.Helper()
	root := pythontest.Compiled(t, "..", "python/switchyard_plugin", "python/tests", "examples/conformance-python")
	return filepath.Join(root, "examples", "conformance-python", "conformance.py")
}

// command is a run of python in this directory that leaves no byte code behind.
func command(interpreter string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(interpreter, arguments...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// TestPython runs the SDK's own tests, one subtest for each of their files.
func TestPython(t *testing.T) {
	t.Parallel()
	interpreter := pythontest.Interpreter(t)
	files, err := filepath.Glob("tests/test_*.py")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d test files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".py")
		t.Run(name, func(t *testing.T) {
			out, err := command(interpreter, "-W", "error", "-m", "unittest", "-v", "tests."+name).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			ran := regexp.MustCompile(`(?m)^Ran ([0-9]+) tests?`).FindSubmatch(out)
			if ran == nil || string(ran[1]) == "0" {
				t.Errorf("no test ran:\n%s", out)
			}
			for line := range bytes.Lines(out) {
				if bytes.Contains(line, []byte("... skipped")) {
					t.Logf("NOTE: %s", bytes.TrimSpace(line))
				}
			}
		})
	}
}

// TestExample runs the tests of the example.
func TestExample(t *testing.T) {
	cmd := command(pythontest.Interpreter(t), "-W", "error", "-m", "unittest", "test_text_search")
	cmd.Dir = filepath.Join("..", "examples", "text-search")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("OK")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSource compiles every file with warnings as errors.
func TestSource(t *testing.T) {
	interpreter := pythontest.Interpreter(t)
	program := `
import pathlib, sys, warnings
warnings.simplefilter("error")
count = 0
for root in sys.argv[1:]:
    for path in sorted(pathlib.Path(root).rglob("*.py")):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
        count += 1
print(count)
`
	out, err := command(interpreter, "-c", program, "switchyard_plugin", "tests", "bench", "../examples").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) == "0" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestConformance holds the program that proves the SDK to the corpus: to every tenth
// case, and with SWITCHYARD_TEST_LONG, which takes minutes, to all of them.
func TestConformance(t *testing.T) {
	t.Parallel()
	interpreter := pythontest.Interpreter(t)
	list, err := conformance.Cases()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SWITCHYARD_TEST_LONG") == "" {
		t.Logf("NOTE: every tenth of %d cases runs; SWITCHYARD_TEST_LONG runs all", len(list))
		some := list[:0:0]
		for i := 0; i < len(list); i += 10 {
			some = append(some, list[i])
		}
		list = some
	}
	runner := &conformance.Runner{Command: slices.Concat([]string{interpreter}, startAlone, []string{compiledProgram(t)})}
	results, err := runner.Run(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if f := r.Failure; f != nil {
			t.Errorf("%s line %d: %s %s\nwant %s\ngot %s", r.Case.Name, f.Line, f.Step, f.Fault, f.Expected, f.Received)
		}
	}
	if len(results) < 80 {
		t.Errorf("only %d cases ran", len(results))
	}
}

// tables is what both SDKs have as data.
type tables struct {
	Codes    [][4]string // code, retry, fatal, blame
	Features map[string]string
	Messages map[string][2]string
	States   map[string][][2]string
}

// TestTables holds the tables of the Python SDK to those of package wire.
func TestTables(t *testing.T) {
	program := `
import json
from switchyard_plugin.wire import codes, envelope, features, states
print(json.dumps({
    "codes": [[r.code, r.retry, str(r.fatal).lower(), r.blame] for r in codes.CODES.values()],
    "features": {f: features.format_version(v) for f, v in features.FEATURES.items()},
    "messages": envelope.MESSAGE_TYPES,
    "states": {t.name: sorted(t.edges) for t in states.TABLES},
}))
`
	out, err := command(pythontest.Interpreter(t), "-c", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got tables
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := tables{Features: map[string]string{}, Messages: map[string][2]string{}, States: map[string][][2]string{}}
	for _, c := range wire.Codes {
		blame := string(c.Blame)
		if c.Blame == wire.BlameSender {
			blame = "sender"
		}
		want.Codes = append(want.Codes, [4]string{string(c.Code), string(c.Retry), strconv.FormatBool(c.Fatal), blame})
	}
	for _, f := range wire.Features {
		want.Features[string(f.Feature)] = f.Since.String()
	}
	for _, m := range wire.Messages {
		from := "either"
		if len(m.From) == 1 {
			from = string(m.From[0])
		}
		want.Messages[string(m.Type)] = [2]string{from, string(m.Feature)}
	}
	for _, table := range wire.Tables {
		edges := [][2]string{}
		for _, e := range table.Edges {
			edges = append(edges, [2]string{string(e.From), string(e.To)})
		}
		slices.SortFunc(edges, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
		want.States[table.Name] = edges
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Python has\n%v\nGo has\n%v", got, want)
	}
}

// TestFeatures ties the three lists of features to each other: package wire has the
// protocol's, package sessionmanifest those that a manifest may name, and the Python SDK
// (TestTables) those of package wire. Order counts where order is told.
func TestFeatures(t *testing.T) {
	var inWire, inManifests []string
	for _, f := range wire.Features {
		inWire = append(inWire, string(f.Feature)+" "+f.Since.String())
	}
	for _, f := range sessionmanifest.Features {
		inManifests = append(inManifests, f.Token+" "+wire.Version{Major: 1, Minor: f.Minor}.String())
	}
	if !slices.Equal(inWire, inManifests) {
		t.Errorf("package wire has\n%v\npackage sessionmanifest has\n%v", inWire, inManifests)
	}
	page, err := os.ReadFile("../../docs/protocol-session.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := command(pythontest.Interpreter(t), "-c", "from switchyard_plugin.wire import features as f\nfor n, v in f.FEATURES.items(): print(n, f.format_version(v))").Output()
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || !slices.Equal(got, inWire) {
		t.Errorf("the Python SDK has\n%v (%v)\npackage wire has\n%v", got, err, inWire)
	}
	for _, f := range inWire {
		token, _, _ := strings.Cut(f, " ")
		if !bytes.Contains(page, []byte("`"+token+"`")) {
			t.Errorf("docs/protocol-session.md does not tell of %s", token)
		}
	}
}

// head begins the schema documents of tests/data.
const head = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x:test:1"`

func document(members string) []byte {
	if members != "" {
		members = "," + members
	}
	return []byte(head + members + "}")
}

func problems(list []subset.Problem) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = p.Pointer + " " + p.Code
	}
	return strings.Join(words, " ")
}

func cases[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("tests", "data", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	if err := json.Unmarshal(text, &list); err != nil || len(list) < 50 {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	return list
}

// TestSchemas holds the host's validator to the cases that the Python tests use, so
// that both SDKs judge schemas, patterns and values alike.
func TestSchemas(t *testing.T) {
	for _, c := range cases[struct{ Members, Problems string }](t, "documents") {
		if got := problems(subset.Check(document(c.Members))); got != c.Problems {
			t.Errorf("%s: %q, want %q", c.Members, got, c.Problems)
		}
	}
	for _, c := range cases[struct{ Pattern, Says string }](t, "patterns") {
		quoted, _ := json.Marshal(c.Pattern)
		found := subset.Check(document(`"pattern":` + string(quoted)))
		refused := slices.ContainsFunc(found, func(p subset.Problem) bool { return strings.Contains(p.Message, c.Says) })
		if (c.Says == "") != (found == nil) || c.Says != "" && !refused {
			t.Errorf("%s: %v, want %q", c.Pattern, found, c.Says)
		}
	}
	for _, c := range cases[struct{ Members, Value, Problems, Says string }](t, "values") {
		s, err := subset.Compile(document(c.Members))
		if err != nil {
			t.Errorf("%s: %v", c.Members, err)
			continue
		}
		found := s.Validate([]byte(c.Value))
		if got := problems(found); got != c.Problems || len(found) > 0 && !strings.Contains(found[0].Message, c.Says) {
			t.Errorf("%s, %s: %q, want %q that says %q", c.Members, c.Value, got, c.Problems, c.Says)
		}
	}
}
