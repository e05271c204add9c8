package call

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// wantTame holds that a fault can be printed: bounded, and nothing invisible in
// it.
func wantTame(t testing.TB, f *Fault) {
	t.Helper()
	for name, s := range map[string]string{"Error": f.Error(), "Message": f.Message, "Field": f.Field,
		"Expected": f.Expected, "Found": f.Found, "Excerpt": f.Excerpt} {
		limit := maxExcerpt
		switch name {
		case "Error":
			limit = 2500
		case "Message":
			limit = 800
		}
		if len(s) > limit {
			t.Errorf("%s has %d bytes: %q", name, len(s), s)
		}
		if !utf8.ValidString(s) {
			t.Errorf("%s is not UTF-8: %q", name, s)
		}
		for _, r := range s {
			if !unicode.IsPrint(r) {
				t.Errorf("%s has %U: %q", name, r, s)
				break
			}
		}
	}
}
