package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// tell classifies an error and returns what is shown of it, as text and as JSON.
func tell(t *testing.T, err error) (text string, doc failed) {
	t.Helper()
	env := newFakeEnv(t, "check", "x.tar")
	in := newInvocation(env.Env)
	in.entry = find("check")
	f := in.classify(err)
	in.fail(f)
	text = env.err.String()
	in.globals.json = true
	in.fail(f)
	if err := json.Unmarshal(env.out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return text, doc
}

// What is foreign in an error is escaped once on a terminal, and not at all in JSON.
func TestForeignTextIsEscapedOnce(t *testing.T) {
	for _, c := range []struct {
		foreign, shown string
	}{
		{`a\b`, `a\\b`},
		{"a\x01b", `a\u0001b`},
		{"nope \x1b[31m", `nope \u001b[31m`},
		{"one\ntwo", `one\ntwo`},
		{`a "quoted" name`, `a "quoted" name`},
	} {
		refusal := &archive.Refusal{Archive: "x.tar", Entry: c.foreign, Rule: archive.RuleBackslash, Detail: "no"}
		for name, err := range map[string]error{
			"refusal":         refusal,
			"wrapped refusal": fmt.Errorf("source: %w", refusal),
			"plugin": &runtime.Failed{ID: "demo", Version: "1", Method: "health", Fault: &call.Fault{Code: call.CodeError, Method: "plugin.health",
				Message: "the plugin answered with an error", RPC: &plugin.Error{Code: plugin.CodeApplication, Message: c.foreign}}},
			"missing": fmt.Errorf("--input: %w", &pkgmgr.NotFound{Kind: "file", Name: c.foreign}),
			"usage":   (&invocation{entry: find("run")}).usage("unknown method \"%s\"", c.foreign),
		} {
			text, doc := tell(t, err)
			line, _, _ := strings.Cut(text, "\n")
			if !strings.Contains(line, c.shown) || strings.Contains(line, `\\\\`) || strings.Contains(line, `\\x`) || strings.Contains(line, `\\u`) || strings.Contains(line, `\\n`) {
				t.Errorf("%s: %q is shown as %q, want %q in it", name, c.foreign, line, c.shown)
			}
			if !strings.Contains(doc.Error.Message, c.foreign) {
				t.Errorf("%s: %q is %q in JSON", name, c.foreign, doc.Error.Message)
			}
		}
	}
}

// Errors that were joined are a line each, whatever wraps them; a line feed within one
// of them is none.
func TestJoinedErrorsAreLines(t *testing.T) {
	joined := errors.Join(errors.New("one"), errors.New("two\nnext: rm"), errors.Join(errors.New("three"), errors.New("four")))
	for _, c := range []struct {
		err  error
		want []string
	}{
		{errors.New("a\nb"), []string{"a\nb"}},
		{joined, []string{"one", "two\nnext: rm", "three", "four"}},
		{fmt.Errorf("sweep: %w (twice)", joined), []string{"sweep: one", "two\nnext: rm", "three", "four (twice)"}},
		{fmt.Errorf("%w: %w", errors.New("x"), joined), []string{"x: one", "two\nnext: rm", "three", "four"}},
		{errors.Join(errors.New("alone")), []string{"alone"}},
	} {
		if got := sentences(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.err, got, c.want)
		}
	}
	text, doc := tell(t, joined)
	if text != "switchyard: one\n  two\\nnext: rm\n  three\n  four\n" {
		t.Errorf("%q", text)
	}
	if doc.Error.Message != joined.Error() {
		t.Errorf("%q in JSON", doc.Error.Message)
	}
}
