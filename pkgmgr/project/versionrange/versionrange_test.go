package versionrange

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

func TestContains(t *testing.T) {
	for _, c := range []struct {
		text    string
		in, out string // versions, separated by spaces
	}{
		{"1.2.3", "1.2.3", "1.2.3+b 1.2.4 v1.2.3 1.2"},
		{"1.2.3-rc.1", "1.2.3-rc.1", "1.2.3 1.2.3-rc.2"},
		{"1.2.3+b1", "1.2.3+b1", "1.2.3 1.2.3+b2"},
		{"nightly", "nightly", "1.0.0 Nightly"},
		{"2024-01-31", "2024-01-31", "2024-01-30 2024.1.0"},
		{"v1.2.3", "v1.2.3", "1.2.3"},
		{"1", "1.0.0 1.9.9 1 1.2 v1.3.0", "2.0.0 0.9.0 1.0.0-rc.1 nightly"},
		{"1.2", "1.2.0 1.2.9 1.2.3+b", "1.3.0 1.1.9"},
		{"1.x", "1.0.0 1.9.0", "2.0.0"},
		{"*", "0.0.0 9.9.9", "1.0.0-a nightly"},
		{"^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0 1.3.0-rc.1"},
		{"^0.2.3", "0.2.3 0.2.9", "0.3.0 1.0.0"},
		{"^0.0.3", "0.0.3", "0.0.4 0.1.0"},
		{"^0.0", "0.0.1 0.0.9", "0.1.0"},
		{"^0", "0.9.1", "1.0.0"},
		{"~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"},
		{"~0.0.0", "0.0.0 0.0.5", "0.1.0 7.0.0"},
		{">1.2", "1.3.0 2.0.0", "1.2.0 1.2.9"},
		{">1", "2.0.0", "1.9.9"},
		{"<=1.2", "1.2.9 0.1.0", "1.3.0"},
		{"<=1", "1.9.9", "2.0.0"},
		{"<1.2", "1.1.9", "1.2.0"},
		{">=1.2 <2, !=1.4.0", "1.2.0 1.4.1", "1.4.0 2.0.0 1.1.0"},
		{"> 1.0.0", "1.0.1", "1.0.0"},
		{"!=1.2", "1.3.0", "1.2.7"},
		{"1.2 - 1.9", "1.2.0 1.9.9", "1.1.9 2.0.0"},
		{"^1 || ^3", "1.5.0 3.1.0", "2.0.0"},
		{"^1.2.3-rc.1", "1.2.3-rc.1 1.2.3-rc.2 1.2.3", "1.2.3-beta 2.0.0-a"},
		{">=1.0.0-2", "1.0.0-10 1.0.0-a", "1.0.0-1"},
	} {
		r, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for v := range strings.FieldsSeq(c.in) {
			if !r.Contains(v) {
				t.Errorf("%q does not contain %q", c.text, v)
			}
		}
		for v := range strings.FieldsSeq(c.out) {
			if r.Contains(v) {
				t.Errorf("%q contains %q", c.text, v)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "1.2.3 beta", ">=", "> ", "^", "^nightly", "1.2.3,", "||", "^1 ||", ">>1", "=>1",
		"1.x.3 ", "^*", "!=*", "^1.2-rc.1", ">=1.2+b", "^01.0.0", "^1.2.3-01", "1.2 - ", "é",
		"^1.2.3.4", strings.Repeat("9", MaxBytes+1), "^99999999999999999999.0.0", "a/b", "~-1",
	} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q is accepted as %+v", text, r)
		} else if !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v is no ErrSyntax", text, err)
		}
	}
	if (Range{}).Contains("1.0.0") {
		t.Error("the zero range contains a version")
	}
}

func TestCompare(t *testing.T) {
	order := []string{
		"alpha", "nightly", "0.0.1", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1",
		"1.0.0-beta", "1.0.0", "1.0.0+a", "1.0.0+b", "v1.0.1", "1.2", "1.10.0", "2.0.0",
	}
	for i, a := range order {
		for j, b := range order {
			if got, want := sign(Compare(a, b)), sign(i-j); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// deviates names where a range means here what its notation says and the library
// says otherwise: it takes any version for ~0.0.0, and pre-releases of 1.2.z for
// !=1.2.
func deviates(r Range, v string) bool {
	for _, group := range r.groups {
		for _, c := range group {
			if c.op == "~" && c.parts == 3 && c.to.major+c.to.minor+c.to.patch == 0 ||
				c.op == "!=" && c.parts < 3 && strings.Contains(v, "-") {
				return true
			}
		}
	}
	return false
}

// TestAgreesWithLibrary compares random ranges and versions with
// Masterminds/semver, which many Go tools use.
func TestAgreesWithLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[rnd.IntN(len(s))] }
	number := func() string { return pick("0", "0", "1", "1", "2", "3", "10") }
	pre := func() string { return pick("", "", "", "-1", "-2", "-10", "-a", "-a.1", "-a.b", "-b") }
	whole := func() string { return number() + "." + number() + "." + number() + pre() }
	term := func() string {
		return pick("", "=", "!=", ">", ">=", "<", "<=", "~", "^") + pick("", " ") +
			pick(whole(), whole(), number(), number()+"."+number(), number()+".x", number()+"."+number()+".X")
	}
	group := func() string {
		switch rnd.IntN(5) {
		case 0:
			return number() + " - " + number() + "." + number()
		case 1:
			return term() + pick(" ", ", ") + term()
		case 2:
			return "*"
		}
		return term()
	}
	compared, contained := 0, 0
	for range 15_000 {
		text := group()
		if rnd.IntN(4) == 0 {
			text += " || " + group()
		}
		r, err := Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if _, exact := r.Exact(); exact {
			continue
		}
		want, err := semver.NewConstraint(text)
		if err != nil {
			t.Fatalf("%q: the library says %v", text, err)
		}
		for range 5 {
			v := whole()
			if deviates(r, v) {
				continue
			}
			if got, want := r.Contains(v), want.Check(semver.MustParse(v)); got != want {
				t.Fatalf("%q contains %q: %v, the library says %v", text, v, got, want)
			} else if got {
				contained++
			}
			compared++
		}
	}
	if compared < 25_000 || contained < 2_500 {
		t.Fatalf("only %d comparisons, %d of them true", compared, contained)
	}
}

func FuzzParse(f *testing.F) {
	seeds := []string{"1.2.3", "^1", ">=1 <2 || 3.x", "1.2 - 2", "nightly", "*", "~0.0.0-a", "1.2.3+b.-"}
	for _, s := range seeds {
		f.Add(s, "1.2.3-a.1")
	}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, text, v string) {
		r, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatal(err)
			}
			return
		}
		if exact, ok := r.Exact(); ok && (!r.Contains(exact) || exact != text) {
			t.Fatalf("%q does not contain itself", text)
		}
		r.Contains(v)
		if fmt.Sprint(r) != text {
			t.Fatalf("%q became %q", text, r)
		}
	})
}
