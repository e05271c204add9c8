package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Faults in a case are told with file and line.
func TestParseErrors(t *testing.T) {
	const head = "# Title.\nrule S-1\nsource x\n\n"
	for text, want := range map[string]string{
		"":                                    "g/c.case:1: the first line is",
		"# T.\nsource x\n\nready\n":           "no rule is named",
		"# T.\nrule S-1\n\nready\n":           "no source is named",
		"# T.\nrule S-1 S-1\n":                "g/c.case:2: rule S-1 is named twice",
		"# T.\nmood calm\n":                   "g/c.case:2: \"mood\" is no line of a header",
		"# T.\nrule\n":                        "g/c.case:2: \"rule\" needs a value",
		"# T.\nprotocol smoke\n":              "protocol is session or call",
		"# T.\ndeadline soon\n":               "\"soon\" is no duration",
		"# T.\ntransport pigeon\n":            "the only other transport is unix",
		"# T.\nmanifest bend /x 1\n":          "changes nothing of a package",
		"# T.\nrule S-1\nsource x\n\n":        "no steps follow",
		head + "  value 1\n":                  "g/c.case:5: an indented line belongs to a step",
		head + "ready\n\ndance\n":             "g/c.case:7: \"dance\" is no step",
		head + "silence 1s\n  x 1\n":          "g/c.case:6: \"silence\" takes no indented lines",
		head + "send hullo\n":                 "\"hullo\" is no message type",
		head + "expect hello\n":               "no message type that a program sends",
		head + "expect response\n  payload\n": "g/c.case:6: what must it be?",
		head + "expect response\n  a match\n": "wrong number of arguments",
		head + "expect error x y\n":           "no call is named \"x\"",
		head + "repeat 3\nready\n":            "repeat without done",
		head + "ready\ndone\n":                "g/c.case:6: done without repeat",
		head + "repeat 2\ndance\ndone\n":      "g/c.case:6: \"dance\" is no step",
		head + "line {}\n":                    "is a step of the protocol switchyard.plugin/v1",
		head + "wait long\n":                  "g/c.case:5: wait:",
		head + "exit soon\n":                  "want a status",
	} {
		_, err := Parse("g/c.case", text)
		var parse *ParseError
		if !errors.As(err, &parse) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	v := variables{"a": `"x"`, "r.requestId": `"id"`, "n": "7"}
	for text, want := range map[string]string{
		"$a":                `"x"`,
		"a ${a} $$5":        "a x $5",
		"$r.requestId.":     `"id".`,
		"[$n,$n]":           "[7,7]",
		`⟨EF BB BF⟩`:        "\xef\xbb\xbf",
		`⟨"ab"*3⟩⟨"\\"*2⟩`:  `ababab\\`,
		"{⟨members 2⟩}":     `{"m0":0,"m1":0}`,
		"no references, 1$": "no references, 1$",
	} {
		got, err := v.expand(text)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"$unknown", "$n+3s", "⟨xyz⟩", "⟨members 0⟩", `⟨"x"*999999999999⟩`} {
		if got, err := v.expand(text); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestExpectations(t *testing.T) {
	list := []*Case{{Name: "a/one"}, {Name: "a/two"}, {Name: "a/three"}}
	e, err := ReadExpectations("f", "# known\na/one\na/two # later\n\n", list)
	if err != nil || len(e) != 2 {
		t.Fatal(e, err)
	}
	failed, stale := e.Compare([]Result{{Case: list[0], Failure: &Failure{}}, {Case: list[1]}, {Case: list[2], Failure: &Failure{}}})
	if len(failed) != 1 || failed[0].Case.Name != "a/three" || !slices.Equal(stale, []string{"a/two"}) {
		t.Errorf("failed %v, stale %v", failed, stale)
	}
	for _, text := range []string{"a/four\n", "a/one\na/one\n"} {
		if _, err := ReadExpectations("f", text, list); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestJUnit(t *testing.T) {
	c := &Case{Name: "g/c", Group: "g", Title: "<&>", Rules: []string{"S-1"}}
	text := string(JUnit([]Result{{Case: c}, {Case: c, Failure: &Failure{Expected: "\"a\"", Received: "b\x00"}}}))
	for _, want := range []string{`tests="2" failures="1"`, "expected &quot;a&quot;; received b\uFFFD", "&lt;&amp;&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// hostRules bind the host; its own tests hold them.
var hostRules = []string{"S-1", "S-57", "S-106"}

// TestRulesAndCases holds that every rule of the normative pages has a case, and
// that no case names a rule that is not there.
func TestRulesAndCases(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol-session.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`\*\*(S-\d+)\*\*`).FindAllStringSubmatch(string(page), -1) {
		if known[m[1]] {
			t.Errorf("docs/protocol-session.md has two rules %s", m[1])
		}
		known[m[1]] = true
	}
	if len(known) < 50 {
		t.Fatalf("docs/protocol-session.md has %d rules", len(known))
	}
	call, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol-call.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(string(call), -1) {
		anchor := strings.ToLower(strings.ReplaceAll(strings.Trim(m[1], "`"), " ", "-"))
		sections["C-"+strings.ReplaceAll(anchor, ".", "")] = true
	}
	list, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	titles := map[string]string{}
	for _, c := range list {
		for _, r := range c.Rules {
			has[r] = true
			if !known[r] && !sections[r] {
				t.Errorf("%s names the rule %s, which is on no page", c.Name, r)
			}
			if strings.HasPrefix(r, "C-") != (c.Protocol == Call) {
				t.Errorf("%s speaks %s and names %s", c.Name, c.Protocol, r)
			}
		}
		body := c.Text[strings.Index(c.Text, "\n\n"):] + c.Text[strings.Index(c.Text, "source"):]
		if other, twice := titles[body]; twice {
			t.Errorf("%s and %s have the same steps", c.Name, other)
		}
		titles[body] = c.Name
	}
	for r := range known {
		if has[r] == slices.Contains(hostRules, r) {
			t.Errorf("the rule %s has a case: %v; it binds the host alone: %v", r, has[r], slices.Contains(hostRules, r))
		}
	}
}
