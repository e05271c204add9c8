package redact_test

import (
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
)

func TestValues(t *testing.T) {
	v := redact.NewValues([]string{"canary", "canary-and-more", "quo\"te", "first line of it\nshort\nsecond line of it", ""})
	for text, want := range map[string]string{
		"nothing":                    "nothing",
		"a canary.":                  "a [redacted].",
		"canary-and-more":            "[redacted]",
		`{"x":"quo\"te"} quo"te`:     `{"x":"[redacted]"} [redacted]`,
		"the second line of it ends": "the [redacted] ends",
		"short":                      "short",
	} {
		if got := v.Hide(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if v.Longest() < len("second line of it") {
		t.Error(v.Longest())
	}
	var none *redact.Values
	if redact.NewValues([]string{""}) != nil || none.Hide("x") != "x" || none.Longest() != 0 {
		t.Error("no secrets mask something")
	}
	if got := redact.NewValues([]string{strings.Repeat("k", 300)}).Longest(); got != 300 {
		t.Error(got)
	}
}
