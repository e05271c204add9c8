package python_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/conformance"
	"github.com/switchyard-plugins/switchyard/sdk/python/pythontest"
)

// testedBy names, for what no case of the corpus reaches, a test that calls it: of the
// Go SDK by its name, of the Python SDK as FILE.CLASS.METHOD.
var testedBy = map[string]map[string]string{
	"Go": {
		"Code.String":                "TestErrorsOfHandlers",
		"Granted":                    "TestGranted",
		"MustParseManifest":          "TestErrorTexts",
		"NotGranted":                 "TestErrorTexts",
		"OperateRequest.DecodeInput": "TestDecodeInput",
		"Operation.Settings":         "TestSessionValues",
		"Serve":                      "TestServeRefusesToStart",
		"Operation.Limits":           "TestSessionValues",
		"Operation.Secrets":          "TestSessionValues",
		"PackageManifest":            "TestPackageManifest",
		"PluginError.Error":          "TestErrorTexts",
		"SessionPlugin.Health":       "TestSessionValues",
		"SettingsError.Error":        "TestErrorTexts",
	},
	"Python": {
		"CallPlugin.health":      "test_call.CallTest.test_health",
		"InspectRequest.granted": "test_call.CallTest.test_granted",
		"OperateRequest.granted": "test_call.CallTest.test_granted",
		"Operation.grants":       "test_requests.RequestTest.test_context",
		"Operation.limits":       "test_requests.RequestTest.test_context",
		"Operation.secrets":      "test_requests.RequestTest.test_context",
		"SessionPlugin.health":   "test_session.HealthTest.test_a_handler_of_ones_own",
		"Schema.defaults":        "test_schema.SubsetTest.test_defaults_are_for_readers",
		"format_time":            "test_requests.RequestTest.test_context",
		"not_granted":            "test_call.CallTest.test_errors",
	},
}

// An implementation is an SDK with the program that proves it.
type implementation struct {
	name    string
	publics []string // functions and methods, as the document has them
	// command runs the program so that called can tell, by the directory, what it called.
	command func(directory string) []string
	called  func(t *testing.T, directory string) map[string]bool
	// mentions reports whether a test exists and has a word in it.
	mentions func(t *testing.T, test, word string) bool
}

func goImplementation(t *testing.T) implementation {
	t.Helper()
	const module = "github.com/switchyard-plugins/switchyard/sdk/"
	program := filepath.Join(t.TempDir(), "conformance-go")
	build := exec.Command("go", "build", "-cover", "-coverpkg="+module+"plugin,"+module+"examples/conformance-go", "-o", program, "../examples/conformance-go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	api := readGo(t)
	publics := slices.Collect(maps.Keys(api.functions))
	for of, members := range api.members {
		if _, isInterface := api.types[of].(*ast.InterfaceType); isInterface {
			continue // the plugin's own
		}
		for name, what := range members {
			if what == nil {
				publics = append(publics, of+"."+name)
			}
		}
	}
	line := regexp.MustCompile(`(?m)/sdk/plugin/[a-z_]+\.go:[0-9]+:\s+\*?([A-Za-z.]+)\s+([0-9.]+)%$`)
	return implementation{
		name: "Go", publics: publics,
		command: func(directory string) []string { return []string{"env", "GOCOVERDIR=" + directory, program} },
		called: func(t *testing.T, directory string) map[string]bool {
			out, err := exec.Command("go", "tool", "covdata", "func", "-i="+directory).Output()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, m := range line.FindAllStringSubmatch(string(out), -1) {
				if m[2] != "0.0" {
					found[m[1]] = true
				}
			}
			return found
		},
		mentions: func(t *testing.T, test, word string) bool {
			word = word[strings.LastIndex(word, ".")+1:]
			found := false
			for _, file := range parseFiles(t, "../plugin", func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == test {
						ast.Inspect(f, func(n ast.Node) bool {
							name, ok := n.(*ast.Ident)
							found = found || ok && name.Name == word
							return true
						})
					}
				}
			}
			return found
		},
	}
}

func pythonImplementation(t *testing.T) implementation {
	t.Helper()
	interpreter, program := pythontest.Interpreter(t), compiledProgram(t)
	tracer := filepath.Join(filepath.Dir(program), "../../python/tests/traced.py") // it looks for the SDK beside it
	var publics []string
	for name, n := range readPython(t).Names {
		if n.Kind == "function" {
			publics = append(publics, name)
		}
		for member, kind := range n.Members {
			if kind == "method" && !strings.HasPrefix(name, "ReceiptStore") {
				publics = append(publics, name+"."+member)
			}
		}
	}
	return implementation{
		name: "Python", publics: publics,
		command: func(directory string) []string {
			return slices.Concat([]string{interpreter}, startAlone, []string{tracer, filepath.Join(directory, "called"), program})
		},
		called: func(t *testing.T, directory string) map[string]bool {
			text, err := os.ReadFile(filepath.Join(directory, "called"))
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for name := range strings.Lines(string(text)) {
				found[strings.TrimSpace(name)] = true
			}
			return found
		},
		mentions: func(t *testing.T, test, word string) bool {
			file, method, _ := strings.Cut(test, ".")
			text, err := os.ReadFile(filepath.Join("tests", file+".py"))
			if err != nil {
				return false
			}
			class, method, _ := strings.Cut(method, ".")
			_, body, found := strings.Cut(string(text), "\nclass "+class+"(")
			if found {
				_, body, found = strings.Cut(body, "    def "+method+"(")
			}
			body, _, _ = strings.Cut(body, "\n    def ")
			return found && strings.Contains(body, word[strings.LastIndex(word, ".")+1:])
		},
	}
}

// trace runs cases, one at a time, and returns what the program called in them.
func (i implementation) trace(t *testing.T, cases ...*conformance.Case) map[string]bool {
	t.Helper()
	directory := t.TempDir()
	runner := &conformance.Runner{Command: i.command(directory), Unprobed: true}
	results, err := runner.Run(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Failure != nil {
			t.Errorf("%s: %s fails", i.name, r.Case.Name)
		}
	}
	return i.called(t, directory)
}

const casesHead = `# What proves each function of the SDKs

Each public function and method of ` + "`sdk/plugin` and of `switchyard_plugin`" + ` with a case of [the conformance corpus](conformance.md) in which it is called, found by running it, or,
where no case can reach it, with a test of the SDK that calls it. A test runs the cases and fails for a function that has neither.
` + "`ReceiptStore`" + `, which Python alone shows, is held by the tests of ` + "`test_receipts.py`" + `.
`

// TestEveryFunctionHasACase runs the cases that docs/sdk-cases.md names and looks
// whether they call what they are said to. With -args -update it finds them anew.
func TestEveryFunctionHasACase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program and runs some cases")
	}
	list, err := conformance.Cases()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*conformance.Case{}
	for _, c := range list {
		byName[c.Name] = c
	}
	const document = "../../docs/sdk-cases.md"
	text, err := os.ReadFile(document)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(casesHead)
	for _, i := range []implementation{goImplementation(t), pythonImplementation(t)} {
		slices.Sort(i.publics)
		named := map[string]string{}
		_, section, _ := strings.Cut(string(text), "\n## "+i.name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`/]+/[^`]+)` \\|$").FindAllStringSubmatch(section, -1) {
			named[m[1]] = m[2]
		}
		if *update {
			i.find(t, list, named)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| function | case or test |\n| --- | --- |\n", i.name)
		traces := map[string]map[string]bool{}
		for _, name := range i.publics {
			if at, ok := named[name]; ok {
				if byName[at] == nil {
					t.Errorf("%s: %s is said to be called in %s, which is no case", i.name, name, at)
					continue
				}
				if traces[at] == nil {
					traces[at] = i.trace(t, byName[at])
				}
				if !traces[at][name] {
					t.Errorf("%s: %s is not called in %s", i.name, name, at)
				}
				fmt.Fprintf(&b, "| `%s` | `%s` |\n", name, at)
				continue
			}
			test := testedBy[i.name][name]
			if test == "" || !i.mentions(t, test, name) {
				t.Errorf("%s: %s is called in no case, and in no test: %q", i.name, name, test)
			}
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", name, test)
		}
		for name := range testedBy[i.name] {
			if _, ok := named[name]; ok || !slices.Contains(i.publics, name) {
				t.Errorf("%s: %s needs no test of its own, or does not exist", i.name, name)
			}
		}
	}
	holdDocument(t, document, b.String())
}

// find names a case for each public function that has neither a case nor a test. It
// runs the corpus group by group, and stops when nothing is left to find.
func (i implementation) find(t *testing.T, list []*conformance.Case, named map[string]string) {
	byGroup := map[string][]*conformance.Case{}
	for _, c := range list {
		byGroup[c.Group] = append(byGroup[c.Group], c)
	}
	missing := func(called map[string]bool) bool {
		return slices.ContainsFunc(i.publics, func(name string) bool {
			return named[name] == "" && testedBy[i.name][name] == "" && (called == nil || called[name])
		})
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		if !missing(nil) {
			return
		}
		whole := i.trace(t, byGroup[group]...)
		for _, c := range byGroup[group] {
			if !missing(whole) {
				break
			}
			called := i.trace(t, c)
			for _, name := range i.publics {
				if named[name] == "" && called[name] {
					named[name] = c.Name
				}
			}
		}
	}
}
