// Package versionrange decides whether a package's version is one that was
// asked for: an exact version, or a range of semantic versions as users of npm
// and cargo write them.
//
//	1.2.3  nightly     exactly this text
//	^1.2   ~1.2.3      the same major version; the same minor version
//	1.2  1.x  *        a partial version: any 1.2.z; any 1.y.z; any version
//	>=1.2 <2, !=1.4.0  all of these; spaces or commas between
//	1.2 - 1.9          from 1.2.0 up to any 1.9.z
//	^1 || ^3           one of these
//
// A pre-release is in a range only if a comparison next to it names one. Build
// metadata counts in exact versions and nowhere else. Ranges mean what
// Masterminds/semver makes of them (a test holds that and names two exceptions);
// that library is not linked, because it compiles its expressions at the start
// of every process that links it.
package versionrange

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxBytes bounds the text of a range.
const MaxBytes = 256

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("neither a version nor a range of versions")

// A Range is a set of versions. The zero value contains none.
type Range struct {
	text   string
	exact  bool
	groups [][]comparison // any of these, each all of its comparisons
}

// A comparison is an operator and a version of which only parts numbers were
// written: 0 for "*", 1 for "1", 2 for "1.2", 3 for a whole version.
type comparison struct {
	op    string
	to    version
	parts int
}

// Parse reads an exact version or a range.
func Parse(text string) (Range, error) {
	r := Range{text: text}
	if len(text) > MaxBytes {
		return Range{}, fmt.Errorf("%w: more than %d bytes", ErrSyntax, MaxBytes)
	}
	if _, parts, ok := parseVersion(text); ok && parts == 3 {
		r.exact = true
		return r, nil
	}
	for group := range strings.SplitSeq(text, "||") {
		comparisons, err := parseGroup(group)
		if err != nil {
			if isWord(text) {
				return Range{text: text, exact: true}, nil
			}
			return Range{}, fmt.Errorf("%w: \"%s\"", ErrSyntax, text)
		}
		r.groups = append(r.groups, comparisons)
	}
	return r, nil
}

// isWord accepts exact versions that are not semantic ones.
func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(".+_-", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// String is the text that was parsed.
func (r Range) String() string { return r.text }

// Exact returns the one version that is meant, if the text is an exact version.
func (r Range) Exact() (string, bool) { return r.text, r.exact }

// Contains reports whether a version is meant. A version that is not a semantic
// one is in no range and equals an exact version letter by letter.
func (r Range) Contains(v string) bool {
	if r.exact {
		return v == r.text
	}
	have, parts, ok := parseVersion(strings.TrimPrefix(v, "v"))
	if !ok || parts == 0 {
		return false
	}
	for _, group := range r.groups {
		if inGroup(have, group) {
			return true
		}
	}
	return false
}

// Compare orders two versions: semantic versions by their precedence, before
// them all others, in byte order. Versions of equal precedence are in byte order.
func Compare(a, b string) int {
	x, _, okA := parseVersion(strings.TrimPrefix(a, "v"))
	y, _, okB := parseVersion(strings.TrimPrefix(b, "v"))
	switch {
	case okA && okB:
		return cmp.Or(x.compare(y), strings.Compare(a, b))
	case okA:
		return 1
	case okB:
		return -1
	}
	return strings.Compare(a, b)
}

func inGroup(v version, group []comparison) bool {
	named := false
	for _, c := range group {
		named = named || c.to.pre != ""
	}
	if v.pre != "" && !named {
		return false
	}
	for _, c := range group {
		if !c.holds(v) {
			return false
		}
	}
	return true
}

// holds evaluates one comparison. A partial version stands for all versions that
// start with it, so that ">1.2" begins at 1.3.0 and "<=1.2" includes 1.2.9.
func (c comparison) holds(v version) bool {
	order := v.compare(c.to)
	within := c.parts == 0 ||
		v.major == c.to.major && (c.parts < 2 || v.minor == c.to.minor) && (c.parts < 3 || order == 0)
	switch c.op {
	case "", "=":
		return within && order >= 0
	case "!=":
		return !within
	case ">":
		return order > 0 && (c.parts == 3 || v.major > c.to.major || !within && v.major == c.to.major && v.minor > c.to.minor)
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0 || within
	case "~":
		return order >= 0 && v.major == c.to.major && (c.parts < 2 || v.minor == c.to.minor)
	}
	// "^": nothing may change left of the first number that is not zero.
	switch {
	case order < 0 || v.major != c.to.major:
		return false
	case c.to.major > 0 || c.parts < 2:
		return true
	case v.minor != c.to.minor:
		return false
	case c.to.minor > 0 || c.parts < 3:
		return true
	}
	return v.patch == c.to.patch
}

// parseGroup reads comparisons that must all hold.
func parseGroup(s string) ([]comparison, error) {
	if low, high, ok := strings.Cut(s, " - "); ok {
		from, err1 := parseComparison(">=", strings.TrimSpace(low))
		to, err2 := parseComparison("<=", strings.TrimSpace(high))
		return []comparison{from, to}, errors.Join(err1, err2)
	}
	var group []comparison
	for rest := strings.TrimLeft(s, " \t"); ; {
		op := operator(rest)
		rest = strings.TrimLeft(rest[len(op):], " \t")
		end := strings.IndexAny(rest, " \t,")
		if end < 0 {
			end = len(rest)
		}
		c, err := parseComparison(op, rest[:end])
		if err != nil {
			return nil, err
		}
		group = append(group, c)
		rest = strings.TrimLeft(rest[end:], " \t")
		if rest == "" {
			return group, nil
		}
		rest = strings.TrimLeft(strings.TrimPrefix(rest, ","), " \t")
	}
}

func operator(s string) string {
	for _, op := range []string{">=", "<=", "!=", ">", "<", "=", "~", "^"} {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

func parseComparison(op, text string) (comparison, error) {
	v, parts, ok := parseVersion(text)
	switch {
	case !ok, parts == 0 && op != "", parts < 3 && (v.pre != "" || strings.Contains(text, "+")):
		return comparison{}, ErrSyntax
	}
	return comparison{op: op, to: v, parts: parts}, nil
}

// A version is a semantic version without its build metadata.
type version struct {
	major, minor, patch uint64
	pre                 string
}

// parseVersion reads "1.2.3-pre+build" or a beginning of it, where "x", "X" or
// "*" ends the numbers; parts counts the numbers.
func parseVersion(s string) (v version, parts int, ok bool) {
	s, build, hasBuild := strings.Cut(s, "+")
	s, pre, hasPre := strings.Cut(s, "-")
	if hasBuild && !identifiers(build, false) || hasPre && !identifiers(pre, true) {
		return version{}, 0, false
	}
	v.pre = pre
	numbers := strings.Split(s, ".")
	if len(numbers) > 3 {
		return version{}, 0, false
	}
	for i, n := range numbers {
		if n == "x" || n == "X" || n == "*" {
			for _, later := range numbers[i:] {
				if later != "x" && later != "X" && later != "*" {
					return version{}, 0, false
				}
			}
			break
		}
		value, err := strconv.ParseUint(n, 10, 64)
		if err != nil || n[0] == '+' || len(n) > 1 && n[0] == '0' {
			return version{}, 0, false
		}
		*[]*uint64{&v.major, &v.minor, &v.patch}[i] = value
		parts++
	}
	return v, parts, true
}

// identifiers checks dot-separated identifiers; in a pre-release, numbers have no
// leading zero.
func identifiers(s string, pre bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		digits := id != ""
		for i := range len(id) {
			c := id[i]
			digit := c >= '0' && c <= '9'
			digits = digits && digit
			if !(digit || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-') {
				return false
			}
		}
		if id == "" || pre && digits && len(id) > 1 && id[0] == '0' {
			return false
		}
	}
	return true
}

func (v version) compare(w version) int {
	return cmp.Or(
		cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch),
		comparePre(v.pre, w.pre),
	)
}

// comparePre orders pre-releases: none is highest, numbers are below words, and
// of two where one begins the other the longer is higher.
func comparePre(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		if c := compareIdentifier(x[i], y[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

func compareIdentifier(a, b string) int {
	numA, numB := isNumber(a), isNumber(b)
	switch {
	case numA && numB:
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // no leading zeros
	case numA:
		return -1
	case numB:
		return 1
	}
	return strings.Compare(a, b)
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
