package commands

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ args, message, hint string }{
		{"", "no command given", "switchyard help"},
		{"frobnicate", `unknown command "frobnicate"`, "switchyard help"},
		{"attest x", `unknown command "attest"`, "switchyard help"},
		{"bogus", `unknown command "bogus"`, "switchyard help"},
		{"unpn x", `did you mean "unpin"?`, "switchyard help unpin"},
		{"rn demo health", `did you mean "run"?`, "switchyard help run"},
		{"project turst .", `did you mean "trust"?`, "switchyard help project trust"},
		{"project lst", `did you mean "list"?`, "switchyard project list"},
		{"verson --json", `did you mean "version"?`, "switchyard version --json"},
		{"--json verson", `did you mean "version"?`, "switchyard --json version"},
		{"version extra --json", `unexpected argument "extra"`, "switchyard help version"},
		{"version --jsno", "did you mean --json?", "switchyard version --json"},
		{"--scope x version", "unknown flag --scope", "switchyard help"},
		{"version --json=perhaps", "perhaps", "switchyard help version"},
		{"help frobnicate", `no command "frobnicate"`, "switchyard help"},
	} {
		env := newFakeEnv(t, strings.Fields(c.args)...)
		code, stdout, stderr := env.run()
		said := stderr
		if strings.Contains(c.args, "--json ") || strings.HasSuffix(c.args, "--json") {
			var doc failed
			if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
				t.Errorf("%q: standard output is not one JSON document: %v\n%s", c.args, err, stdout)
				continue
			}
			if doc.OK || doc.Error.Code != "usage" || stderr != "" {
				t.Errorf("%q: %+v, standard error %q", c.args, doc, stderr)
			}
			said = doc.Error.Message + "\n" + doc.Error.Hint
		} else if stdout != "" {
			t.Errorf("%q: standard output holds %q", c.args, stdout)
		}
		if code != exitUsage || !strings.Contains(said, c.message) || !strings.Contains(said, c.hint) {
			t.Errorf("%q: exit %d, %q; want exit 2, %q and %q", c.args, code, said, c.message, c.hint)
		}
	}
}

// Every command's help says what it does, has an example, and fits 80 columns.
func TestHelpFits(t *testing.T) {
	topics := []string{""}
	for _, e := range table() {
		topics = append(topics, e.name)
		if first, _, two := cutSpace(e.name); two {
			topics = append(topics, first)
		}
	}
	for _, topic := range topics {
		for _, form := range [][]string{append([]string{"help"}, strings.Fields(topic)...), append(strings.Fields(topic), "--help")} {
			code, stdout, stderr := newFakeEnv(t, form...).run()
			if code != exitOK || stderr != "" {
				t.Errorf("%q: exit %d, %s", form, code, stderr)
			}
			for _, l := range strings.Split(stdout, "\n") {
				if render.Width(l) > 80 {
					t.Errorf("%q: %d columns: %s", form, render.Width(l), l)
				}
			}
			if find(topic) != nil && !strings.Contains(stdout, "\nExamples\n  switchyard "+topic) &&
				!strings.Contains(stdout, "\nExamples\n  source <(switchyard "+topic) {
				t.Errorf("%q: no example of %s:\n%s", form, topic, stdout)
			}
		}
	}
}

// Completion builds commands but never runs one, wherever its flag stands.
func TestCompletionRunsNothing(t *testing.T) {
	for _, e := range table() {
		words := strings.Fields(e.name)
		for _, line := range [][]string{
			append([]string{completionFlag}, append(words, "")...),
			append([]string{completionFlag}, append(words, "--")...),
			append([]string{completionFlag}, append(words, "--", "x", "-")...),
			append(append([]string{}, words...), completionFlag),
			append(append([]string{}, words...), "--", completionFlag),
			append(append([]string{}, words...), "x", completionFlag, "y"),
			append(append([]string{"--json"}, words...), "--data-dir", completionFlag),
		} {
			env := newFakeEnv(t, line...)
			env.Stdin = untouchable{t, line}
			env.Now = nil        // no command runs without a clock
			env.Interrupts = nil // nor waits without signals
			code, _, stderr := env.run()
			if code != exitOK || stderr != "" {
				t.Errorf("%q: exit %d, %s", line, code, stderr)
			}
		}
	}
}

type untouchable struct {
	t    *testing.T
	line []string
}

func (u untouchable) Read([]byte) (int, error) {
	u.t.Errorf("%q: standard input was read", u.line)
	return 0, io.EOF
}

func TestCompletions(t *testing.T) {
	for _, c := range []struct {
		line string // "|" stands for the end of what was typed
		want []string
		not  []string
	}{
		{"|", []string{"version\t", "completion\t"}, []string{"--json"}},
		{"ver|", []string{"version\t"}, []string{"completion"}},
		{"--data-dir x ver|", []string{"version\t"}, nil},
		{"--|", []string{"--json\t", "--data-dir\t"}, nil},
		{"version --js|", []string{"--json\t"}, []string{"--quiet"}},
		{"version --data-dir |", []string{filesMark}, []string{"--json", "version"}},
		{"version --data-dir=|", []string{filesMark}, nil},
		{"completion |", []string{"bash\t", "zsh\t", "fish\t"}, nil},
		{"completion f|", []string{"fish\t"}, []string{"bash"}},
		{"help com|", []string{"completion\t"}, []string{"version"}},
		{"nonsense |", nil, []string{"version"}},
	} {
		typed := strings.TrimSuffix(c.line, "|")
		words := strings.Fields(typed)
		if typed == "" || strings.HasSuffix(typed, " ") {
			words = append(words, "")
		}
		code, stdout, stderr := newFakeEnv(t, append([]string{completionFlag}, words...)...).run()
		if code != exitOK || stderr != "" {
			t.Errorf("%q: exit %d, %s", c.line, code, stderr)
		}
		for _, w := range c.want {
			if !strings.Contains("\n"+stdout, "\n"+w) {
				t.Errorf("%q: no %q in\n%s", c.line, w, stdout)
			}
		}
		for _, w := range c.not {
			if strings.Contains("\n"+stdout, "\n"+w) {
				t.Errorf("%q: %q in\n%s", c.line, w, stdout)
			}
		}
	}
}

func TestColourOnlyWhereWanted(t *testing.T) {
	coloured := func(change func(*fakeEnv)) bool {
		env := newFakeEnv(t, "help")
		env.terminal, env.width = true, 80
		if change != nil {
			change(env)
		}
		_, stdout, stderr := env.run()
		return strings.Contains(stdout+stderr, "\x1b[")
	}
	if !coloured(nil) {
		t.Error("no colour on a terminal")
	}
	for name, change := range map[string]func(*fakeEnv){
		"no terminal": func(f *fakeEnv) { f.terminal = false },
		"NO_COLOR":    func(f *fakeEnv) { f.vars["NO_COLOR"] = "1" },
		"TERM=dumb":   func(f *fakeEnv) { f.vars["TERM"] = "dumb" },
		"--no-color":  func(f *fakeEnv) { f.Args = []string{"version", "--no-color", "extra"} },
		"--json":      func(f *fakeEnv) { f.Args = []string{"help", "--json"} },
	} {
		if coloured(change) {
			t.Errorf("%s: colour", name)
		}
	}
}

func TestForeignStringsInErrorsAreEscaped(t *testing.T) {
	evil := "x\x1b[2J\u202e\u200b"
	env := newFakeEnv(t, evil)
	code, _, stderr := env.run()
	if code != exitUsage || strings.ContainsAny(stderr, "\x1b\u202e\u200b") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	env = newFakeEnv(t, evil, "--json")
	_, stdout, _ := env.run()
	if strings.ContainsAny(stdout, "\x1b\u202e\u200b") {
		t.Errorf("%q", stdout)
	}
	var doc failed
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestResultThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}} {
		env := newFakeEnv(t, args...)
		env.Stdout = fullDisk{}
		code := Main(env.Env)
		if code != exitFailed || !strings.Contains(env.err.String(), "no space left on device") {
			t.Errorf("%q: exit %d, %q", args, code, env.err.String())
		}
	}
}

func TestNextCommandKeepsTheDataDirectory(t *testing.T) {
	in := newInvocation(newFakeEnv(t).Env)
	in.globals.dataDir = "/tmp/it's here"
	want := `switchyard trust repo-facts --data-dir '/tmp/it'\''s here'`
	if got := in.next("trust", "repo-facts"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The flag parser itself must not print, exit or split.
func TestFlagParserIsKeptQuiet(t *testing.T) {
	old := cli.OsExiter
	cli.OsExiter = func(code int) { t.Errorf("the flag parser exited with %d", code) }
	defer func() { cli.OsExiter = old }()
	code, stdout, _ := newFakeEnv(t, "version", "--quiet=perhaps").run()
	if code != exitUsage || stdout != "" {
		t.Errorf("exit %d, standard output %q", code, stdout)
	}
}
