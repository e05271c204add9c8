package commands

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

// What commands print fits a terminal of 80 columns and cuts nothing off; without a
// terminal each row is one line.
func TestTablesFitTheTerminal(t *testing.T) {
	env := sandbox(t)
	do := func(want int, args ...string) string {
		t.Helper()
		env.Args = args
		code, stdout, stderr := env.run()
		if code != want {
			t.Fatalf("%q: exit %d\n%s\n%s", args, code, stdout, stderr)
		}
		return stdout
	}
	env.Stdin = strings.NewReader("y\ny\ny\n")
	do(exitOK, "approve", "demo")
	project := filepath.Join(t.TempDir(), "short")
	if err := makePlugin(project, "other", "1.0.0", "good"); err != nil {
		t.Fatal(err)
	}
	do(exitOK, "project", "trust", project)
	do(exitOK, "run", "demo", "operate", "a-name-as-long-as-they-come", "--project", project)
	for _, args := range [][]string{
		{"operations", "list"},
		{"actions", "demo", "--project", project},
		{"history"},
		{"verify"},
		{"doctor"},
	} {
		env.terminal = true
		text := do(exitOK, args...)
		if n := widest(text); n > 80 || strings.Contains(text, "…") {
			t.Errorf("%q: %d columns, or something was cut:\n%s", args, n, text)
		}
		env.terminal = false
		if text := do(exitOK, args...); strings.Contains(text, "\n    ") {
			t.Errorf("%q: lines broken without a terminal:\n%s", args, text)
		}
	}
	// A path that does not fit is left whole, so that it can be copied.
	env.terminal, env.width = true, 40
	if text := do(exitOK, "project", "list"); !strings.Contains(text, project) {
		t.Errorf("no %s in\n%s", project, text)
	}
}

// widest returns the number of cells of the widest line.
func widest(text string) int {
	n := 0
	for _, l := range strings.Split(text, "\n") {
		n = max(n, render.Width(l))
	}
	return n
}
