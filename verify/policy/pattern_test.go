package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

func TestIDPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, id string
		want        bool
	}{
		{"repo-facts", "repo-facts", true},
		{"repo-facts", "repo-facts2", false},
		{"repo-facts", "a.repo-facts", false},
		{"repo-facts", "repo-facts.a", false},
		{"com.example.*", "com.example.a", true},
		{"com.example.*", "com.example.a.b", true},
		{"com.example.*", "com.example", false},
		{"com.example.*", "com.example.", false},
		{"com.example.*", "com.examples.a", false},
		{"com.example.*", "xcom.example.a", false},
		{"com.example.*", "com-example.a", false},
		{"*", "anything.at-all", true},
		{"*", "", false},
		{"*", "Upper", false},
		{"*", "a b", false},
		{"*", "../a", false},
		{"repo-facts", "Repo-facts", false},
		{"repo-facts", "repo-facts\n", false},
		{"repo-facts", "rep\u043e-facts", false}, // a Cyrillic o
		{"", "", false},
	} {
		if got := IDPattern(c.pattern).Match(c.id); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.id, got)
		}
	}
}

func TestIDPatternOrder(t *testing.T) {
	order := []IDPattern{"com.example.a", "com.example.*", "com.*", "*"}
	for i, a := range order {
		for j, b := range order {
			if got := a.compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
}

const workflow = "https://github.com/example/plugins/.github/workflows/release.yml@refs/tags/*"

func TestIdentityPattern(t *testing.T) {
	const good = "https://github.com/example/plugins/.github/workflows/release.yml@refs/tags/v1.2.3"
	for _, c := range []struct {
		what, pattern, identity string
		want                    bool
	}{
		{"itself", workflow, good, true},
		{"an empty run", workflow, strings.TrimSuffix(good, "v1.2.3"), true},
		{"a prefix of it", workflow, "https://github.com/example/plugins", false},
		{"a prefix as the pattern", "https://github.com/example/plugins", good, false},
		{"a suffix of it", workflow, strings.TrimPrefix(good, "https://"), false},
		{"contained in a longer one", workflow, "https://evil.example/?" + good, false},
		{"contained in a path", workflow, "https://evil.example/" + good, false},
		{"something behind it", workflow, good + "/x", false},
		{"another case", workflow, strings.Replace(good, "example", "Example", 1), false},
		{"another case of the host", workflow, strings.Replace(good, "github.com", "GitHub.com", 1), false},
		{"another host that starts alike", workflow, strings.Replace(good, "github.com", "github.com.evil.example", 1), false},
		{"another organisation that starts alike", workflow, strings.Replace(good, "/example/", "/example-evil/", 1), false},
		{"a trailing dot in the host", workflow, strings.Replace(good, "github.com", "github.com.", 1), false},
		{"a trailing dot of an address", "ops@example.com", "ops@example.com.", false},
		{"a newline behind it", workflow, good + "\n", false},
		{"a newline before it", workflow, "\n" + good, false},
		{"a newline and another identity", workflow, "https://evil.example/\n" + good, false},
		{"a NUL behind it", workflow, good + "\x00.evil.example", false},
		{"a Cyrillic letter in the literal part", workflow, strings.Replace(good, "example", "ex\u0430mple", 1), false},
		{"a Cyrillic letter in the run", workflow, good + "\u0430", false},
		{"a full-width slash in the run", workflow, good + "\uff0fx", false},
		{"a zero-width space", workflow, good + "\u200b", false},
		{"a space in the run", workflow, good + " x", false},
		{"invalid UTF-8 in the run", workflow, good + "\xff", false},
		{"a slash in the run", workflow, good + "/../main", false},
		{"another workflow", workflow, strings.Replace(good, "release", "test", 1), false},
		{"a branch", workflow, strings.Replace(good, "refs/tags", "refs/heads", 1), false},
		{"nothing", workflow, "", false},
		{"nothing for nothing", "", "", false},
		{"an address", "*@example.com", "ops@example.com", true},
		{"a subdomain of it", "*@example.com", "ops@evil.example.com", false},
		{"a domain that ends alike", "*@example.com", "ops@evil-example.com", false},
		{"an address in front", "*@example.com", "ops@example.com@evil.example", false},
		{"two runs", "a*b*c@example.com", "aXbXc@example.com", true},
		{"two runs, the end missing", "a*b*c@example.com", "aXbX@example.com", false},
		{"runs that need the last place", "*ab*ab@x", "abab@x", true},
		{"runs that overlap", "*ab*ab@x", "ab@x", false},
		{"prefix and suffix that overlap", "aba*aba", "aba", false},
		{"a dot is a dot", "a.b@x", "aXb@x", false},
		{"regular expressions mean nothing", "(a|b)+@x", "aaa@x", false},
		{"nor does a question mark", "?@x", "a@x", false},
		{"nor a backslash", `\*@x`, "*@x", false},
		{"nor a class", "[ab]@x", "a@x", false},
	} {
		if got := IdentityPattern(c.pattern).Match(c.identity); got != c.want {
			t.Errorf("%s: %q matches %q: %v", c.what, c.pattern, c.identity, got)
		}
	}
}

func TestSignerPattern(t *testing.T) {
	key := verify.Signer{Key: keyA}
	person := verify.Signer{Identity: "ops@example.com", Issuer: "https://accounts.example.com"}
	for _, c := range []struct {
		pattern SignerPattern
		signer  verify.Signer
		want    bool
	}{
		{keyA, key, true},
		{keyB, key, false},
		{keyA, verify.Signer{Key: keyA, Identity: "ops@example.com"}, false},
		{keyA, verify.Signer{Identity: keyA}, false},
		{"*@example.com", person, true},
		{"*@example.com", verify.Signer{Identity: "ops@example.com", Key: keyA}, false},
		{"*@example.com", key, false},
		{"", verify.Signer{}, false},
	} {
		if got := c.pattern.Match(c.signer); got != c.want {
			t.Errorf("%q matches %+v: %v", c.pattern, c.signer, got)
		}
	}
}

func TestPublisherAllows(t *testing.T) {
	const issuer = "https://accounts.example.com"
	byKey := Publisher{Key: keyA}
	byIdentity := Publisher{Identity: "*@example.com", Issuer: issuer}
	for _, c := range []struct {
		what      string
		publisher Publisher
		signer    verify.Signer
		want      bool
	}{
		{"its key", byKey, verify.Signer{Key: keyA}, true},
		{"another key", byKey, verify.Signer{Key: keyB}, false},
		{"nobody", byKey, verify.Signer{}, false},
		{"its key and an identity", byKey, verify.Signer{Key: keyA, Identity: "x", Issuer: issuer}, false},
		{"its identity", byIdentity, verify.Signer{Identity: "ops@example.com", Issuer: issuer}, true},
		{"another issuer", byIdentity, verify.Signer{Identity: "ops@example.com", Issuer: issuer + "/"}, false},
		{"no issuer", byIdentity, verify.Signer{Identity: "ops@example.com"}, false},
		{"its identity and a key", byIdentity, verify.Signer{Identity: "ops@example.com", Issuer: issuer, Key: keyA}, false},
		{"a publisher without issuer", Publisher{Identity: "*@example.com"}, verify.Signer{Identity: "ops@example.com"}, false},
		{"a publisher of nothing", Publisher{}, verify.Signer{}, false},
		{"a publisher of both", Publisher{Key: keyA, Identity: "x", Issuer: issuer}, verify.Signer{Key: keyA}, false},
	} {
		if got := c.publisher.allows(c.signer); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestPrefixPattern(t *testing.T) {
	const sources = "git+https://github.com/example/*"
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{sources, "git+https://github.com/example/plugins@refs/tags/v1", true},
		{sources, "git+https://github.com/example/", true},
		{sources, "git+https://github.com/example", false},
		{sources, "git+https://github.com/example-evil/plugins", false},
		{sources, "git+https://github.com/example/../evil/plugins", false},
		{sources, "git+https://github.com/example/./x", false},
		{sources, "git+https://github.com/example/%2e%2e/evil", false},
		{sources, `git+https://github.com/example/..\evil`, false},
		{sources, "git+https://github.com/Example/plugins", false},
		{sources, "git+https://github.com/example/plugins\n", false},
		{sources, "git+https://github.com/example/pl\u0430gins", false},
		{sources, "", false},
		{"*", "anything", true},
		{"*", "", false},
		{"git+https://x/a", "git+https://x/a", true},
		{"git+https://x/a", "git+https://x/a/b", false},
		{"", "", false},
	} {
		if got := PrefixPattern(c.pattern).Match(c.value); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.value, got)
		}
	}
}

// TestMatchTime: patterns that make a backtracking matcher take years.
func TestMatchTime(t *testing.T) {
	pattern := IdentityPattern(strings.Repeat("*a", maxValue/2-2) + "*b")
	value := strings.Repeat("a", maxValue)
	done := make(chan bool, 1)
	go func() {
		matched := false
		for range 200 {
			matched = matched || pattern.Match(value)
		}
		done <- matched
	}()
	select {
	case matched := <-done:
		if matched {
			t.Error("matched")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("200 matches of 2 kB take longer than 30 s")
	}
	if IdentityPattern("*@x").Match(strings.Repeat("a", maxValue) + "@x") {
		t.Error("a value over the bound matches")
	}
}

// oracle matches by the definition: every cell says whether the rest of the pattern
// matches the rest of the value.
func oracle(pattern, value string) bool {
	if value == "" {
		return false
	}
	for _, c := range []byte(value) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	next := make([]bool, len(value)+1)
	next[len(value)] = true
	for i := len(pattern) - 1; i >= 0; i-- {
		row := make([]bool, len(value)+1)
		for j := len(value); j >= 0; j-- {
			if pattern[i] == '*' {
				row[j] = next[j] || j < len(value) && value[j] != '/' && row[j+1]
			} else {
				row[j] = j < len(value) && value[j] == pattern[i] && next[j+1]
			}
		}
		next = row
	}
	return next[0]
}

// FuzzMatch compares the matchers with their definitions.
func FuzzMatch(f *testing.F) {
	seeds := 0
	for _, s := range [][2]string{
		{workflow, "https://github.com/example/plugins/.github/workflows/release.yml@refs/tags/v1"},
		{"*@example.com", "ops@example.com"},
		{"a*b*c", "aXbXc"},
		{"*ab*ab", "abab"},
		{"**/*", "a/b"},
		{"com.example.*", "com.example.a"},
		{"git+https://github.com/example/*", "git+https://github.com/example/../x"},
		{keyA, keyA},
		{"", ""},
	} {
		f.Add(s[0], s[1])
		seeds++
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 300 || len(value) > 300 {
			return
		}
		if got, want := IdentityPattern(pattern).Match(value), oracle(pattern, value); got != want {
			t.Fatalf("identity %q matches %q: %v, want %v", pattern, value, got, want)
		}
		if p, err := ParseIdentityPattern(pattern); err == nil && !strings.Contains(pattern, "*") && !p.Match(pattern) {
			t.Fatalf("identity %q does not match itself", pattern)
		}
		if p, err := ParseIDPattern(pattern); err == nil && p.Match(value) {
			prefix, open := strings.CutSuffix(pattern, "*")
			if open && !strings.HasPrefix(value, prefix) || !open && value != pattern {
				t.Fatalf("id %q matches %q", pattern, value)
			}
		}
		if p, err := ParsePrefixPattern(pattern); err == nil && p.Match(value) {
			if prefix, _ := strings.CutSuffix(pattern, "*"); !strings.HasPrefix(value, prefix) {
				t.Fatalf("prefix %q matches %q", pattern, value)
			}
		}
		if p, err := ParseSignerPattern(pattern); err == nil && p.Match(verify.Signer{}) {
			t.Fatalf("signer %q matches nobody", pattern)
		}
	})
}
