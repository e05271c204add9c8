package call

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// wantTame holds that a fault is bounded text.
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
	// Nothing is escaped here: that is the display's, once.
	const wild = `a\b` + "\x1b[31m\nnope\u202e"
	c, _ := open(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"a\\b\u001b[31m\nnope\u202e"}}`+"\n")
	var refused *Fault
	if _, err := c.Health(context.Background()); !errors.As(err, &refused) || !strings.Contains(refused.Error(), wild+" (code") {
		t.Errorf("%q does not hold %q", err, wild)
	}
	c, p, _ := connect(t)
	p.answers("ba\x1bnner `a\\b`\n")
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &refused) || refused.Excerpt != "ba\x1bnner `a\\b`" {
		t.Errorf("%q", err)
	}
	// Member names are foreign text too.
	c, _ = open(t, `{"jsonrpc":"2.0","id":2,"\u202e`+strings.Repeat("x", 5000)+"\u200b\":1}\n")
	_, err := c.Health(context.Background())
	var f *Fault
	if !errors.As(err, &f) || f.Code != CodeUnknownField {
		t.Fatal(err)
	}
	wantTame(t, f)
}
