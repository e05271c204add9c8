package versionrange

import "testing"

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		rng, version string
		want         bool
	}{
		{"<1.2.0", "1.1.9", true},
		{"<1.2.0", "1.2.0", false},
		{"<1.2.0", "1.2.0-rc.1", true}, // ordered below 1.2.0
		{">=1 <2", "1.5.0-beta", true},
		{">=1 <2", "2.0.0", false},
		{"1.2.3", "1.2.3", true},
		{"1.2.3", "1.2.3+rebuilt", true},
		{"1.2.3", "1.2.4", false},
		{"^1.2", "v1.3.0", true},
		{"*", "anything at all", true},
		{">=2", "not-a-version", true},
		{"nightly", "nightly", true},
		{"nightly", "1.0.0", false},
		{"=1.0.0 || =1.0.2", "1.0.1", false},
		{"=1.0.0 || =1.0.2", "1.0.2", true},
	} {
		r, err := Parse(c.rng)
		if err != nil {
			t.Fatalf("Parse(%q): %v", c.rng, err)
		}
		if got := r.Covers(c.version); got != c.want {
			t.Errorf("%q covers %q = %v, want %v", c.rng, c.version, got, c.want)
		}
	}
}
