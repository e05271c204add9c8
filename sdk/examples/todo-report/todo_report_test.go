// Package todoreport holds only tests: the sample plugin itself is the Python
// script in package/.
package todoreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
	"github.com/switchyard-plugins/switchyard/sdk/python/pythontest"
)

// TestMain has the first line of the plugin find the interpreter itself.
func TestMain(m *testing.M) {
	if err := pythontest.PutFirst(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// needPython skips the test where the plugin cannot run.
func needPython(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("windows does not start scripts by their first line")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not on the path")
	}
}

func config() plugintest.Config { return plugintest.Config{Package: "package"} }

func TestProtocol(t *testing.T) {
	needPython(t)
	plugintest.Run(t, config())
}

// TestBareEnvironment holds that the plugin needs nothing of its environment
// but the path: no LANG, no TMPDIR, no home.
func TestBareEnvironment(t *testing.T) {
	needPython(t)
	t.Setenv("LANG", "C")
	os.Unsetenv("LANG") // Setenv above puts it back
	t.Setenv("TMPDIR", "")
	os.Unsetenv("TMPDIR")
	root := project(t, map[string]string{"ä/é.txt": "TODO: größer\n"})
	r := look(t, root)
	if got := facts(r)["file"]; got != "ä/é.txt: 1" {
		t.Errorf("file %q", got)
	}
}

func project(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func look(t *testing.T, root string) plugin.InspectResult {
	t.Helper()
	c := plugintest.Open(t, config(), plugin.ScopeMetadataRead, plugin.ScopeFilesRead)
	r, err := c.Inspect(t.Context(), plugin.Project{ID: "p", DisplayName: "P", Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func facts(r plugin.InspectResult) map[string]string {
	m := map[string]string{}
	for _, f := range r.Facts {
		if m[f.ID] != "" {
			m[f.ID] += "; "
		}
		m[f.ID] += f.Value
	}
	return m
}

var sources = map[string]string{
	"a.go":                "// TODO: one\n// FIXME and TODO two\n// TODOS and AUTODO and todo are other words\n",
	"b/c.py":              "# HACK\xff\n",
	"binary":              "\x00TODO",
	".git/x":              "TODO",
	"node_modules/m/i.js": "TODO",
}

func TestInspect(t *testing.T) {
	needPython(t)
	root := project(t, sources)
	if err := os.Symlink(filepath.Join(root, "a.go"), filepath.Join(root, "link.go")); err != nil {
		t.Fatal(err)
	}
	r := look(t, root)
	got := facts(r)
	for id, want := range map[string]string{"word.todo": "2", "word.fixme": "1", "word.hack": "1", "word.xxx": "", "file": "a.go: 3; b/c.py: 1"} {
		if got[id] != want {
			t.Errorf("%s: %q, want %q", id, got[id], want)
		}
	}
	if r.Summary != "4 places in 2 text files" || len(r.Actions) != 1 || r.Actions[0].ID != "write-report" {
		t.Errorf("%+v", r)
	}
}

// operator returns a function that runs the action on root.
func operator(t *testing.T, root string) func(input any) (plugin.OperateResult, error) {
	t.Helper()
	c := plugintest.Open(t, config(), plugin.ScopeFilesRead, plugin.ScopeOperate)
	return func(input any) (plugin.OperateResult, error) {
		return c.Operate(t.Context(), plugin.Project{ID: "p", DisplayName: "P", Root: root}, "write-report", input)
	}
}

func TestReport(t *testing.T) {
	needPython(t)
	root := project(t, sources)
	operate := operator(t, root)
	for range 2 { // the second report replaces the first and does not list it
		r, err := operate(map[string]any{"path": "b/left.md"})
		if err != nil || r.Status != plugin.Succeeded || r.Summary != "wrote b/left.md with 4 places" {
			t.Fatalf("%+v, %v", r, err)
		}
		text, err := os.ReadFile(filepath.Join(root, "b", "left.md"))
		if err != nil {
			t.Fatal(err)
		}
		want := "<!-- todo-report -->\n# Work that is left\n4 places in 2 text files; looked for TODO, FIXME, HACK, XXX.\n\n" +
			"## `a.go` (3)\n\n- line 1: `// TODO: one`\n- line 2: `// FIXME and TODO two`\n- line 2: `// FIXME and TODO two`\n\n" +
			"## `b/c.py` (1)\n\n- line 1: `# HACK\uFFFD`\n"
		if string(text) != want {
			t.Errorf("report:\n%s\nwant:\n%s", text, want)
		}
		var output struct {
			Path          string
			Places, Bytes int
		}
		if err := json.Unmarshal(r.Output, &output); err != nil || output.Path != "b/left.md" || output.Places != 4 || output.Bytes != len(text) {
			t.Errorf("output %s, %v", r.Output, err)
		}
	}
	r, err := operate(map[string]any{"words": []string{"TODOS", "AUTODO"}})
	if err != nil || r.Summary != "wrote todo-report.md with 2 places" {
		t.Errorf("own words: %+v, %v", r, err)
	}
	left, err := filepath.Glob(filepath.Join(root, "b", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestReportRefusals(t *testing.T) {
	needPython(t)
	outside := t.TempDir()
	root := project(t, sources)
	if err := errors.Join(os.Symlink(outside, filepath.Join(root, "out")), os.Symlink(filepath.Join(outside, "x"), filepath.Join(root, "link.md"))); err != nil {
		t.Fatal(err)
	}
	operate := operator(t, root)
	for _, tc := range []struct {
		input any
		code  plugin.Code
		says  string
	}{
		{map[string]any{"path": "../x.md"}, plugin.CodeBadParams, "inside the project"},
		{map[string]any{"path": "/tmp/x.md"}, plugin.CodeBadParams, "inside the project"},
		{map[string]any{"path": "a//b"}, plugin.CodeBadParams, "inside the project"},
		{map[string]any{"path": ".GIT/x"}, plugin.CodeBadParams, "must not lead into"},
		{map[string]any{"path": 7}, plugin.CodeBadParams, "input.path has the wrong type"},
		{map[string]any{"Path": "x"}, plugin.CodeBadParams, `unknown member "Path"`},
		{map[string]any{"words": []string{}}, plugin.CodeBadParams, "1 to 20 words"},
		{map[string]any{"words": []string{"a.*"}}, plugin.CodeBadParams, "ASCII letters"},
		{[]int{}, plugin.CodeBadParams, "input must be an object"},
		{map[string]any{"path": "a.go"}, plugin.CodeApplication, "is not a report; it is left alone"},
		{map[string]any{"path": "b"}, plugin.CodeApplication, ""},
		{map[string]any{"path": "out/x.md"}, plugin.CodeApplication, ""},
		{map[string]any{"path": "link.md"}, plugin.CodeApplication, ""},
		{map[string]any{"path": "none/x.md"}, plugin.CodeApplication, "No such file"},
	} {
		_, err := operate(tc.input)
		var fault *plugin.Error
		if !errors.As(err, &fault) || fault.Code != tc.code || !strings.Contains(fault.Message, tc.says) {
			t.Errorf("%v: %v, want code %d and %q", tc.input, err, tc.code, tc.says)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside of the project: %v, %v", entries, err)
	}
}
