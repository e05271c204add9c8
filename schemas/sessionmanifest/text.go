package sessionmanifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ErrID is returned by CheckID.
var ErrID = errors.New("must begin with a letter, have at most 64 bytes and be a legal directory name on every system")

// CheckID applies the rule for pluginId: reverse-DNS, and fit to name a directory and
// to stand in a lock file, like the id of a call-protocol plugin.
func CheckID(id string) error {
	if !isReverseDNS(id) || manifest.CheckID(id) != nil {
		return ErrID
	}
	return nil
}

// isReverseDNS matches ^[a-z0-9]+(\.[a-z0-9-]+)+$.
func isReverseDNS(s string) bool {
	labels := strings.Split(s, ".")
	for i, l := range labels {
		if l == "" || !only(l, func(c byte) bool { return lower(c) || digit(c) || i > 0 && c == '-' }) {
			return false
		}
	}
	return len(labels) > 1
}

// isName matches ^[a-z][a-z0-9._-]{1,63}$.
func isName(s string) bool {
	return len(s) >= 2 && len(s) <= 64 && lower(s[0]) &&
		only(s, func(c byte) bool { return lower(c) || digit(c) || c == '.' || c == '_' || c == '-' })
}

// isLanguageTag matches ^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$.
func isLanguageTag(s string) bool {
	for i, part := range strings.Split(s, "-") {
		most, alphabet := 8, func(c byte) bool { return letter(c) || digit(c) }
		if i == 0 {
			most, alphabet = 3, letter
		}
		if len(part) < 2 || len(part) > most || !only(part, alphabet) {
			return false
		}
	}
	return true
}

// isDigest matches ^sha256:[A-Fa-f0-9]{64}$.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && only(hex, func(c byte) bool { return digit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' })
}

func only(s string, in func(byte) bool) bool {
	for i := range len(s) {
		if !in(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) bool  { return 'a' <= c && c <= 'z' }
func letter(c byte) bool { return lower(c) || 'A' <= c && c <= 'Z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }

func (v *validation) name(at, s string) bool {
	if !isName(s) {
		v.mismatch(at, "must match ^[a-z][a-z0-9._-]{1,63}$")
		return false
	}
	return true
}

// displayName is one line that people can see.
func (v *validation) displayName(at, s string) {
	if n := utf8.RuneCountInString(s); n < 1 || n > MaxDisplayName {
		v.mismatch(at, "must have 1 to %d characters, has %d", MaxDisplayName, n)
		return
	}
	switch {
	case strings.ContainsFunc(s, unicode.IsControl):
		v.add(at, CodeText, "must not contain control characters")
	case !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && manifest.Visible(r) }):
		v.add(at, CodeText, "must have a visible character")
	}
}

func (v *validation) characters(at, s string, most int) {
	if n := utf8.RuneCountInString(s); n > most {
		v.mismatch(at, "must have at most %d characters, has %d", most, n)
	}
}

// semver checks the pattern of the schema, then SemVer 2.0.0 itself.
func (v *validation) semver(at, s string) {
	switch {
	case !looksLikeSemVer(s):
		v.mismatch(at, "must be a semantic version, as 1.4.2 or 1.5.0-rc.1")
	case !IsSemVer(s):
		v.add(at, CodeVersion, "is no semantic version: an identifier is empty, or a number has leading zeros")
	case len(s) > MaxVersion:
		v.add(at, CodeVersion, "must have at most %d bytes, has %d", MaxVersion, len(s))
	}
}

// splitSemVer cuts MAJOR.MINOR.PATCH[-PRE][+BUILD].
func splitSemVer(s string) (core, pre, build string, hasPre, hasBuild bool) {
	core, build, hasBuild = strings.Cut(s, "+")
	core, pre, hasPre = strings.Cut(core, "-")
	return core, pre, build, hasPre, hasBuild
}

func identifiers(s string) bool {
	return s != "" && only(s, func(c byte) bool { return letter(c) || digit(c) || c == '.' || c == '-' })
}

// looksLikeSemVer matches the schema's pattern, which lets identifiers be empty.
func looksLikeSemVer(s string) bool {
	core, pre, build, hasPre, hasBuild := splitSemVer(s)
	numbers := strings.Split(core, ".")
	return len(numbers) == 3 && !slices.ContainsFunc(numbers, func(n string) bool { return !isNumber(n) }) &&
		(!hasPre || identifiers(pre)) && (!hasBuild || identifiers(build))
}

// isNumber matches ^(0|[1-9][0-9]*)$.
func isNumber(s string) bool { return s != "" && only(s, digit) && (s == "0" || s[0] != '0') }

// IsSemVer reports whether s is a semantic version 2.0.0.
func IsSemVer(s string) bool {
	_, pre, build, hasPre, hasBuild := splitSemVer(s)
	return looksLikeSemVer(s) &&
		(!hasPre || !slices.ContainsFunc(strings.Split(pre, "."), func(id string) bool { return id == "" || only(id, digit) && !isNumber(id) })) &&
		(!hasBuild || !slices.Contains(strings.Split(build, "."), ""))
}

// minor checks a version MAJOR.MINOR: the schema's pattern, then that there is no
// other spelling of it.
func (v *validation) minor(at, s string) bool {
	major, minor, ok := strings.Cut(s, ".")
	switch {
	case !ok || major == "" || minor == "" || !only(major, digit) || !only(minor, digit):
		v.mismatch(at, "must be MAJOR.MINOR, as 1.2")
	case !isNumber(major) || !isNumber(minor) || len(major) > 9 || len(minor) > 9:
		v.add(at, CodeVersion, "must have no leading zeros and at most nine digits each")
	default:
		return true
	}
	return false
}

// CompareMinor compares two versions MAJOR.MINOR as numbers: -1, 0 or 1. Parts that
// are no numbers count as 0.
func CompareMinor(a, b string) int {
	aMajor, aMinor, _ := strings.Cut(a, ".")
	bMajor, bMinor, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(atoi(aMajor), atoi(bMajor)), cmp.Compare(atoi(aMinor), atoi(bMinor)))
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// insidePackage says what is wrong with a path that must name a file of the package.
func insidePackage(p string) string {
	switch {
	case len(p) > MaxPath:
		return fmt.Sprintf("must have at most %d bytes, has %d", MaxPath, len(p))
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return "must be UTF-8 without control characters"
	case strings.ContainsAny(p, `\:`):
		return `must use "/" and no drive or stream name`
	case path.IsAbs(p):
		return "must be relative to the package"
	}
	switch clean := path.Clean(p); {
	case clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.HasSuffix(p, "/"):
		return "must name a file inside the package"
	case clean == FileName:
		return "must not be the manifest itself"
	}
	return ""
}

// CheckHostPattern checks a host that a plugin declares: a lower-case DNS name, "*."
// before one of at least two labels, an IPv4 address, or an IPv6 address in brackets.
func CheckHostPattern(s string) error {
	if len(s) > MaxHostPattern {
		return fmt.Errorf("must have at most %d bytes, has %d", MaxHostPattern, len(s))
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" || addr.String() != inner {
			return errors.New("must be an IPv6 address in its shortest form between the brackets")
		}
		return nil
	}
	name, wild := strings.CutPrefix(s, "*.")
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || !only(l, func(c byte) bool { return lower(c) || digit(c) || c == '-' }) {
			return errors.New(`must be a lower-case DNS name, an address, or "*." and a name; of international names the ASCII form`)
		}
	}
	if wild && len(labels) < 2 {
		return errors.New(`"*." needs a name of at least two labels after it`)
	}
	if only(labels[len(labels)-1], digit) {
		if addr, err := netip.ParseAddr(name); wild || err != nil || !addr.Is4() {
			return errors.New("ends like an IPv4 address and is none")
		}
	}
	return nil
}
