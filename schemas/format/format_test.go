package format_test

import (
	"encoding/base64"
	"math/big"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/format"
)

var forms = []struct {
	name  string
	is    func(string) bool
	right []string
	wrong []string
}{
	{"date-time", format.DateTime[string],
		[]string{"2026-01-02T03:04:05Z", "2024-02-29T23:59:59.123456789Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59", "2000-02-29T00:00:00-00:00", "2026-07-11T16:20:00.5+01:00"},
		[]string{"", "2026-01-02", "2026-01-02t03:04:05Z", "2026-01-02T03:04:05z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T03:04Z", "2026-02-29T00:00:00Z",
			"1900-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2016-12-31T23:59:60Z", "2026-01-02T24:00:00Z",
			"2026-01-02T03:60:05Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234567890Z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+01:60",
			"2026-01-02T03:04:05+0100", "2026-01-02T03:04:05ZZ", "0000-01-01T00:00:00Z", "+2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z\n", "２026-01-02T03:04:05Z", "2026-1-2T3:4:5Z"}},
	{"utc, microseconds", func(s string) bool { return format.UTC(s, 6) },
		[]string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.123456Z"},
		[]string{"2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05", "2026-01-02T03:04:60Z", "2026-02-30T00:00:00Z"}},
	{"utc, seconds", func(s string) bool { return format.UTC(s, 0) }, []string{"2026-01-02T03:04:05Z"}, []string{"2026-01-02T03:04:05.1Z"}},
	{"uuid", format.UUID[string],
		[]string{"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19", "00000000-0000-0000-0000-000000000000", "0197F9D2-6F31-7CB1-A612-5F5B7F7B8D19"},
		[]string{"", "0197f9d26f317cb1a6125f5b7f7b8d19", "{0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1}", "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1g", "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1",
			"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d199", "0197f9d26-f31-7cb1-a612-5f5b7f7b8d19", "urn:uuid:0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"}},
	{"int64", format.Int64[string],
		[]string{"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993", "1000000000000000000", "999999999999999999"},
		[]string{"", "-", "-0", "+1", "01", "00", "1.0", "1e3", " 1", "9223372036854775808", "-9223372036854775809", "10000000000000000000", "9999999999999999999", "١", "1_0"}},
	{"decimal", format.Decimal[string],
		[]string{"0", "-0", "1.10", "-12.000", "0.1", strings.Repeat("9", 128)},
		[]string{"", "-", ".5", "5.", "+1", "01", "00.1", "1e3", "1,5", "NaN", "1.2.3", " 1", "1.-1", strings.Repeat("9", 129), "Infinity"}},
	{"base64url", format.Base64URL[string],
		[]string{"", "AA", "AAA", "AAAA", "_-8", "Zm9v", "Zg"},
		[]string{"A", "AA==", "AB", "AAB", "+/8", "Zm9v\n", "Zm 9v", "Zm9vA", "é"}},
	{"uri", format.URI[string],
		[]string{"urn:switchyard:schemas:x:1", "https://example.org", "https://u:p@example.org:8080/a/b;c?d=e/f?g#h/i?j", "http://[2001:db8::1]:80/", "mailto:a@b", "file:///etc/x", "a:", "x:?q#f", "urn:a%20b", "https://example.org:/", "https://a%00b.example/"},
		[]string{"", ":", "a", "/a/b", "//host/a", "1a:b", "a b:c", "urn:a b", "urn:é", "urn:a%2", "urn:a%zz", "https://exa mple.org", "https://[::1", "https://[::1%25eth0]/", "https://[v1.a]/", "https://[1.2.3.4]/", "https://h:8x/", "https://a@b@c/",
			"urn:a#b#c", "urn:a[b]", "urn:a\\b", "urn:<a>", "urn:a\n", "https://h[0]/", "http://[::1]x/"}},
}

func TestForms(t *testing.T) {
	for _, f := range forms {
		for _, s := range f.right {
			if !f.is(s) {
				t.Errorf("%s: refused %q", f.name, s)
			}
		}
		for _, s := range f.wrong {
			if f.is(s) {
				t.Errorf("%s: accepted %q", f.name, s)
			}
		}
	}
	if !format.UUID([]byte("0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19")) || !format.URI([]byte("http://[::1]/")) {
		t.Error("bytes are judged differently")
	}
}

var escapedASCII = regexp.MustCompile(`%[0-7][0-9A-Fa-f]`)

// FuzzForms holds that what is accepted is also accepted by parsers that were written
// by others, and means there what it must mean.
func FuzzForms(f *testing.F) {
	n := 0
	for _, form := range forms {
		for _, s := range append(form.right, form.wrong...) {
			f.Add(s)
			n++
		}
	}
	if n < 100 {
		f.Fatalf("%d seeds", n)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if format.DateTime(s) {
			at, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				t.Errorf("date-time %q: %v", s, err)
			}
			if utc := at.UTC().Format(time.RFC3339Nano); at.UTC().Year() >= 1 && at.UTC().Year() <= 9999 && !format.UTC(utc, 9) {
				t.Errorf("date-time %q: its UTC form %q is refused", s, utc)
			}
		}
		if v, err := strconv.ParseInt(s, 10, 64); format.Int64(s) != (err == nil && strconv.FormatInt(v, 10) == s) {
			t.Errorf("int64 %q: %v, %v", s, v, err)
		}
		if format.Decimal(s) {
			if _, ok := new(big.Rat).SetString(s); !ok {
				t.Errorf("decimal %q is no number", s)
			}
		}
		b, err := base64.RawURLEncoding.Strict().DecodeString(s)
		if want := err == nil && base64.RawURLEncoding.EncodeToString(b) == s; format.Base64URL(s) != want {
			t.Errorf("base64url %q: want %v", s, want)
		}
		if format.URI(s) {
			// net/url takes no escaped ASCII in a host; RFC 3986 does.
			if u, err := url.Parse(escapedASCII.ReplaceAllString(s, "a")); err != nil || !u.IsAbs() {
				t.Errorf("uri %q: %v", s, err)
			}
		}
	})
}
