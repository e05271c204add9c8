package policy

import (
	"strings"
	"testing"
)

func TestDeniedLicence(t *testing.T) {
	denied := []string{"AGPL-3.0-only", "SSPL-1.0", "GPL-2.0"}
	for _, c := range []struct{ expression, want string }{
		{"MIT", ""},
		{"AGPL-3.0-only", "AGPL-3.0-only"},
		{"agpl-3.0-ONLY", "AGPL-3.0-only"},
		{"AGPL-3.0-or-later", ""}, // another id
		{"LicenseRef-AGPL-3.0-only", ""},
		{"GPL-2.0+", "GPL-2.0"},
		{"MIT AND AGPL-3.0-only", "AGPL-3.0-only"},
		{"MIT OR AGPL-3.0-only", ""},
		{"SSPL-1.0 OR AGPL-3.0-only", "SSPL-1.0"},
		{"(MIT OR SSPL-1.0) AND AGPL-3.0-only", "AGPL-3.0-only"},
		{"(MIT AND SSPL-1.0) OR AGPL-3.0-only", "SSPL-1.0"},
		{"MIT OR SSPL-1.0 AND AGPL-3.0-only", ""}, // AND binds closer
		{"MIT AND SSPL-1.0 OR Apache-2.0", ""},
		{"AGPL-3.0-only WITH Classpath-exception-2.0", "AGPL-3.0-only"},
		{"MIT WITH AGPL-3.0-only", ""}, // the name of an exception is no licence
		{"(MIT)", ""},
		{"((SSPL-1.0))", "SSPL-1.0"},
		{"mit or sspl-1.0", ""},
		// What cannot be read is denied by what it mentions.
		{"MIT OR", ""},
		{"MIT OR OR SSPL-1.0", "SSPL-1.0"},
		{"(MIT OR SSPL-1.0", "SSPL-1.0"},
		{"MIT SSPL-1.0", "SSPL-1.0"},
		{"MIT OR SSPL-1.0)", "SSPL-1.0"},
		{"", ""},
		{strings.Repeat("(", 40) + "MIT OR SSPL-1.0" + strings.Repeat(")", 40), "SSPL-1.0"},
		{strings.Repeat("(", 30) + "MIT OR SSPL-1.0" + strings.Repeat(")", 30), ""},
	} {
		if got := deniedLicence(c.expression, denied); got != c.want {
			t.Errorf("%q: %q, want %q", c.expression, got, c.want)
		}
	}
}

// FuzzLicence: an expression without a denied id is never denied, and denying more
// never admits more.
func FuzzLicence(f *testing.F) {
	seeds := 0
	for _, s := range []string{"MIT", "MIT OR (SSPL-1.0 AND X)", "A WITH B", "((", "GPL-2.0+ AND MIT"} {
		f.Add(s)
		seeds++
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, expression string) {
		few, many := []string{"SSPL-1.0"}, []string{"SSPL-1.0", "GPL-2.0", "MIT"}
		first := deniedLicence(expression, few)
		if first != "" && !strings.Contains(strings.ToLower(expression), "sspl-1.0") && isASCII(expression) {
			t.Fatalf("%q is denied", expression)
		}
		if first != "" && deniedLicence(expression, many) == "" {
			t.Fatalf("%q is admitted once more is denied", expression)
		}
		if id := deniedLicence(expression, nil); id != "" {
			t.Fatalf("%q denied by nothing: %q", expression, id)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
