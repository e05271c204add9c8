package call

import (
	"context"
	"errors"
	"strings"
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

func TestForeignTextIsTamed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\x1b[31m\u202eevil\u200b\x00\x07",
		strings.Repeat("世", 500),
		"password=hunter2-canary",
		"x\xff\xfe",
		"a\r\rb\tc",
	} {
		c, p, _ := connect(t)
		p.answers(text + "\n")
		var f *Fault
		if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) {
			t.Fatal(err)
		}
		wantTame(t, f)
		if strings.Contains(f.Error(), "canary") {
			t.Errorf("secret in %q", f.Error())
		}
	}
	// Member names are foreign text too.
	c, _ := open(t, `{"jsonrpc":"2.0","id":2,"\u202e`+strings.Repeat("x", 5000)+"\u200b\":1}\n")
	_, err := c.Health(context.Background())
	var f *Fault
	if !errors.As(err, &f) || f.Code != CodeUnknownField {
		t.Fatal(err)
	}
	wantTame(t, f)
}
