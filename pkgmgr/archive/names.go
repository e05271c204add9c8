package archive

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	manifestrules "github.com/switchyard-plugins/switchyard/schemas/manifest"
	"golang.org/x/text/unicode/norm"
)

// cleanPath returns the path of an entry relative to the package's root, with
// one leading "./" and a directory's trailing slash removed, or the refusal of
// its spelling. The root itself, which only a directory can be, is "".
func cleanPath(raw string, dir bool) (string, *Refusal) {
	path := raw
	switch {
	case path == "":
		return "", refuse(raw, RuleForm, "the name is empty")
	case path[0] == '/':
		return "", refuse(raw, RuleAbsolute, "the name starts with a slash")
	case len(path) > 2 && path[1] == ':' && isLetter(path[0]) && (path[2] == '/' || path[2] == '\\'):
		return "", refuse(raw, RuleAbsolute, "the name starts with a drive letter")
	}
	if dir {
		path = strings.TrimSuffix(path, "/")
	}
	if dir && path == "." {
		return "", nil
	}
	path = strings.TrimPrefix(path, "./")
	for rest, more := path, true; more; {
		var c string
		c, rest, more = strings.Cut(rest, "/")
		switch c {
		case "":
			return "", refuse(raw, RuleForm, "the path has an empty component")
		case ".":
			return "", refuse(raw, RuleForm, `the path has a "." component`)
		case "..":
			return "", refuse(raw, RuleParent, `the path has a ".." component`)
		}
		if rule, why := checkComponent(c); rule != "" {
			return "", refuse(raw, rule, "%s", why)
		}
	}
	return path, nil
}

// checkComponent judges one component of a path, which is neither empty, "."
// nor "..", as every supported system would, and in its compatibility form as
// well: a full-width solidus is a slash to a reader that normalizes.
func checkComponent(c string) (Rule, string) {
	if ascii, rule, why := checkASCII(c); ascii || rule != "" {
		return rule, why
	}
	if !utf8.ValidString(c) {
		return RuleEncoding, "the name is not UTF-8"
	}
	for _, r := range c {
		switch {
		case unicode.IsControl(r):
			return RuleControl, fmt.Sprintf("the name has the control character %U", r)
		case isIgnorable(r), unicode.IsPrint(r) && !manifestrules.Visible(r):
			return RuleInvisible, fmt.Sprintf("the name has the invisible character %U", r)
		case !unicode.IsPrint(r):
			return RuleInvisible, fmt.Sprintf("the name has the unprintable or unknown character %U", r)
		}
	}
	k := norm.NFKC.String(c)
	if k == c {
		return "", ""
	}
	if k == "." || k == ".." || strings.Contains(k, "/") {
		return RuleReserved, fmt.Sprintf("the name's compatibility form \"%s\" is not one name", k)
	}
	if _, rule, why := checkASCII(k); rule != "" {
		return rule, why + ", in its compatibility form"
	}
	return "", ""
}

// checkASCII applies the rules that need no Unicode tables and reports whether
// c is ASCII throughout.
func checkASCII(c string) (ascii bool, rule Rule, why string) {
	ascii = true
	for i := range len(c) {
		switch b := c[i]; {
		case b >= utf8.RuneSelf:
			ascii = false
		case b < 0x20 || b == 0x7f:
			return ascii, RuleControl, fmt.Sprintf("the name has the control character %U", b)
		case b == '\\':
			return ascii, RuleBackslash, "the name has a backslash"
		case b == '<' || b == '>' || b == ':' || b == '"' || b == '|' || b == '?' || b == '*':
			return ascii, RuleReserved, fmt.Sprintf("the name has %q, which Windows does not allow", b)
		}
	}
	switch c[len(c)-1] {
	case '.', ' ':
		return ascii, RuleReserved, "a name in the path ends in a dot or a space, which Windows drops"
	}
	if isDevice(c) {
		return ascii, RuleReserved, fmt.Sprintf("\"%s\" is a device on Windows", c)
	}
	return ascii, "", ""
}

// isDevice reports whether Windows takes c for a device: the part before the
// first dot counts, without the spaces that end it.
func isDevice(c string) bool {
	base, _, _ := strings.Cut(c, ".")
	base = strings.TrimRight(base, " ")
	switch len(base) {
	case 3:
		return equalASCII(base, "con") || equalASCII(base, "prn") || equalASCII(base, "aux") || equalASCII(base, "nul")
	case 4:
		digit := base[3] >= '0' && base[3] <= '9'
		return digit && (equalASCII(base[:3], "com") || equalASCII(base[:3], "lpt"))
	case 6:
		return equalASCII(base, "conin$") || equalASCII(base, "clock$")
	case 7:
		return equalASCII(base, "conout$")
	}
	return false
}

// equalASCII compares s with a lower-case string, ignoring ASCII case.
func equalASCII(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		b := s[i]
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// isIgnorable reports characters that a reader may show as nothing or that turn
// the direction of what follows: Unicode's default-ignorable code points.
func isIgnorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// foldComponent maps two names to the same string if and only if a file system
// that ignores case, normalization or both could take them for one: Unicode's
// full case folding of the compatibility decomposition.
func foldComponent(c string) string {
	ascii, upper := true, false
	for i := range len(c) {
		ascii = ascii && c[i] < utf8.RuneSelf
		upper = upper || c[i] >= 'A' && c[i] <= 'Z'
	}
	switch {
	case ascii && !upper:
		return c
	case ascii:
		return strings.ToLower(c)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(c) {
		// The full folding of every other character is the simple folding of
		// its decomposition.
		if r == 'ß' || r == 'ẞ' {
			b.WriteString("ss")
			continue
		}
		b.WriteRune(foldRune(r))
	}
	return norm.NFKD.String(b.String())
}

// foldRune returns the same rune for all that differ in case only.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		return unicode.ToLower(r)
	}
	least := r
	for s := unicode.SimpleFold(r); s != r; s = unicode.SimpleFold(s) {
		least = min(least, s)
	}
	if least < utf8.RuneSelf {
		return unicode.ToLower(least)
	}
	return least
}
