package archive

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// TestNames accepts what is ordinary. What is refused is among the refusals.
func TestNames(t *testing.T) {
	for raw, want := range map[string]string{
		"a":                      "a",
		"./a":                    "a",
		"a/b":                    "a/b",
		"...a":                   "...a",
		"..a/b..c":               "..a/b..c",
		".hidden":                ".hidden",
		"a b":                    "a b",
		" leading":               " leading",
		"console":                "console",
		"com10":                  "com10",
		"nul-1":                  "nul-1",
		"a.nul":                  "a.nul",
		"größe":                  "größe",
		"e\u0301":                "e\u0301",
		"日本語/ファイル":               "日本語/ファイル",
		"😀":                      "😀",
		"~tilde'quote`$(x);&#!":  "~tilde'quote`$(x);&#!",
		strings.Repeat("a", 240): strings.Repeat("a", 240),
	} {
		if got, r := cleanPath(raw, false); r != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", raw, got, r, want)
		}
		if got, r := cleanPath(raw+"/", true); r != nil || got != want {
			t.Errorf("%q as a directory: got %q, %v; want %q", raw, got, r, want)
		}
	}
	for _, root := range []string{".", "./"} {
		if got, r := cleanPath(root, true); r != nil || got != "" {
			t.Errorf("%q: got %q, %v; want the root", root, got, r)
		}
	}
}

// TestFold compares foldComponent with Unicode's own definition of a caseless
// compatibility match, character by character: two are folded to one here if
// and only if they are there.
func TestFold(t *testing.T) {
	full := cases.Fold()
	definition := func(s string) string {
		s = norm.NFKD.String(full.String(norm.NFKD.String(full.String(norm.NFD.String(s)))))
		return s
	}
	ours, theirs := map[string]rune{}, map[string]rune{}
	checked := 0
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || isIgnorable(r) || !unicode.IsPrint(r) {
			continue
		}
		checked++
		if unicode.Is(unicode.Cherokee, r) {
			continue // whose cases the x/text folding does not know; CaseFolding.txt does
		}
		a, b := foldComponent(string(r)), definition(string(r))
		first, known := ours[a]
		second, alike := theirs[b]
		if known != alike || first != second {
			t.Errorf("%U %q: folded here like %q, by definition like %q", r, r, first, second)
		}
		if !known {
			ours[a] = r
		}
		if !alike {
			theirs[b] = r
		}
		if again := foldComponent(a); again != a {
			t.Errorf("%U: folding twice gives %q, then %q", r, a, again)
		}
	}
	if checked < 100_000 {
		t.Errorf("only %d characters checked", checked)
	}
}

// TestFoldPlain holds that the shortcut for plain names is none in effect.
func TestFoldPlain(t *testing.T) {
	for b := rune(0x20); b < 0x7f; b++ {
		s := string(b)
		if got := foldComponent(s); got != strings.ToLower(s) {
			t.Errorf("%q folds to %q", s, got)
		}
		if got := foldPath("ä/" + s); b != '/' && got != norm.NFKD.String("ä")+"/"+strings.ToLower(s) {
			t.Errorf("%q in a path folds to %q", s, got)
		}
	}
}

// TestFoldCherokee checks the one script that TestFold leaves out.
func TestFoldCherokee(t *testing.T) {
	if foldComponent("\u13f8") != foldComponent("\u13f0") || foldComponent("\uab70") != foldComponent("\u13a0") {
		t.Error("Cherokee cases are told apart")
	}
}
