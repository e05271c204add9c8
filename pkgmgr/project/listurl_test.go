package project

import (
	"net/url"
	"strings"
	"testing"
)

func TestParseListURL(t *testing.T) {
	for text, want := range map[string][2]string{
		"https://a.example":                     {"https://a.example/", "https://a.example/list.json"},
		"https://a.example/":                    {"https://a.example/", "https://a.example/list.json"},
		"https://A.example:8443/lists":          {"https://a.example:8443/lists/", "https://a.example:8443/lists/list.json"},
		"https://a.example/lists/":              {"https://a.example/lists/", "https://a.example/lists/list.json"},
		"https://a.example/lists/list.json":     {"https://a.example/lists/", "https://a.example/lists/list.json"},
		"https://a.example/lists/b.json":        {"https://a.example/lists/b.json", "https://a.example/lists/b.json"},
		"https://a.example/b.json/":             {"https://a.example/b.json/", "https://a.example/b.json/list.json"},
		"https://a.example//b.example/b.json":   {"https://a.example//b.example/b.json", "https://a.example//b.example/b.json"},
		"https://a.example/a%20b/%63.json":      {"https://a.example/a%20b/c.json", "https://a.example/a%20b/c.json"},
		"https://[2001:db8::1]/lists/list.json": {"https://[2001:db8::1]/lists/", "https://[2001:db8::1]/lists/list.json"},
	} {
		u, err := ParseListURL(text)
		if err != nil || u.String() != want[0] || u.File(u.Name) != want[1] {
			t.Errorf("%s: %q, %q, %v", text, u, u.File(u.Name), err)
			continue
		}
		if again, err := ParseListURL(u.String()); err != nil || again != u {
			t.Errorf("%s: read again it is %q, %v", text, again, err)
		}
		if got, want := u.File("root.2.json"), strings.TrimSuffix(want[1], u.File(u.Name)[strings.LastIndex(u.File(u.Name), "/")+1:])+"root.2.json"; got != want {
			t.Errorf("%s: the root is %s, want %s", text, got, want)
		}
	}
	for text, says := range map[string]string{
		"":                                  "not a valid URL",
		"https://":                          "not a valid URL",
		"https:///lists":                    "not a valid URL",
		"https://:443/":                     "not a valid URL",
		"https:lists":                       "not a valid URL",
		"https://a.example/\x00":            "not a valid URL",
		"https://a.example/a b":             "not a valid URL",
		"https://ä.example/":                "not a valid URL",
		"https://a.example/a%2fb.json":      "not a valid URL",
		"http://a.example/":                 "only",
		"HTTP://a.example/":                 "only",
		"file:///etc/passwd":                "not a valid URL",
		"oci://a.example/":                  "only",
		"https://u:p@a.example/":            "user name",
		"https://u@a.example/":              "user name",
		"https://a.example/?v=1":            "query",
		"https://a.example/?":               "query",
		"https://a.example/#x":              "fragment",
		"https://a.example/list.json#":      "fragment",
		"https://a/" + longPath(MaxListURL): "more than",
	} {
		if u, err := ParseListURL(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %q, %v", text, u, err)
		}
	}
}

// FuzzParseListURL holds that whatever is read is https, names no user, and is read again as
// the same.
func FuzzParseListURL(f *testing.F) {
	for _, seed := range []string{"https://a.example/lists/", "https://a.example//b/c.json", "https://[::1]:1/%2e%2e/", "https://a@b/", "https://a/\\b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseListURL(text)
		if err != nil {
			return
		}
		for _, name := range []string{u.Name, "root.json"} {
			at, err := url.Parse(u.File(name))
			if err != nil || at.Scheme != "https" || at.User != nil || at.Host == "" || at.RawQuery != "" || at.Fragment != "" {
				t.Errorf("%q: %s is %+v, %v", text, name, at, err)
			}
		}
		if again, err := ParseListURL(u.String()); err != nil || again != u {
			t.Errorf("%q is %q, and that is %q, %v", text, u, again, err)
		}
	})
}

func longPath(n int) string { return strings.Repeat("a", n) }
