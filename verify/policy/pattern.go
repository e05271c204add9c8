package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// maxValue bounds, in bytes, what a pattern is and what it can match.
const maxValue = 2048

// An IDPattern matches plugin ids: an id itself, "prefix.*" for what stands below a
// prefix at any depth (not the prefix itself), or "*" for every id.
type IDPattern string

// ParseIDPattern checks a pattern of plugin ids.
func ParseIDPattern(s string) (IDPattern, error) {
	if s == "*" {
		return IDPattern(s), nil
	}
	prefix, below := strings.CutSuffix(s, ".*")
	switch {
	case strings.Contains(prefix, "*"):
		return "", errors.New(`has a "*" elsewhere than alone or at the end as ".*"`)
	case manifest.CheckID(prefix) != nil && below:
		return "", errors.New(`does not start with a plugin id before ".*"`)
	case manifest.CheckID(prefix) != nil:
		return "", errors.New(`is neither a plugin id nor an id with ".*" behind it nor "*"`)
	}
	return IDPattern(s), nil
}

// Match reports whether id is a plugin id that the pattern matches.
func (p IDPattern) Match(id string) bool {
	if manifest.CheckID(id) != nil {
		return false
	}
	if p == "*" {
		return true
	}
	if prefix, below := strings.CutSuffix(string(p), "*"); below {
		return strings.HasSuffix(prefix, ".") && strings.HasPrefix(id, prefix)
	}
	return id == string(p)
}

// compare orders patterns from the most to the least specific: ids, long prefixes,
// short ones, "*".
func (p IDPattern) compare(other IDPattern) int {
	rank := func(p IDPattern) int {
		if prefix, below := strings.CutSuffix(string(p), "*"); below {
			return len(prefix)
		}
		return maxValue
	}
	return cmp.Compare(rank(other), rank(p))
}

// An IdentityPattern matches the whole of a certificate's identity, byte for byte.
// "*" stands for any run, also an empty one, of visible ASCII characters without
// "/"; nothing else has a meaning of its own.
type IdentityPattern string

// ParseIdentityPattern checks a pattern of identities. It refuses a "*" in the host
// of a URL or the domain of an address: whoever registers a name would match.
func ParseIdentityPattern(s string) (IdentityPattern, error) {
	if err := checkVisible(s); err != nil {
		return "", err
	}
	if strings.Trim(s, "*/:@.") == "" {
		return "", errors.New("names nobody: write the literal parts of the identity")
	}
	if scheme, rest, url := strings.Cut(s, "://"); url {
		host, _, _ := strings.Cut(rest, "/")
		if strings.Contains(scheme, "*") || strings.Contains(host, "*") {
			return "", errors.New(`has a "*" in the scheme or host of its URL, so that anybody's host could match`)
		}
		if host == "" {
			return "", errors.New("is a URL without a host, which names nobody")
		}
	} else if at := strings.LastIndexByte(s, '@'); strings.Contains(s[at+1:], "*") {
		return "", errors.New(`has a "*" outside the path of a URL and the local part of an address, so that anybody could match`)
	}
	return IdentityPattern(s), nil
}

// Match reports whether the pattern matches the whole of identity, in time linear in
// the length of both.
func (p IdentityPattern) Match(identity string) bool {
	if identity == "" || !visible(identity) {
		return false
	}
	// A run never crosses "/", so that the parts between slashes match one by one.
	pattern, value := string(p), identity
	for {
		part, restOfPattern, more := strings.Cut(pattern, "/")
		segment, restOfValue, moreValue := strings.Cut(value, "/")
		if more != moreValue || !matchSegment(part, segment) {
			return false
		}
		if !more {
			return true
		}
		pattern, value = restOfPattern, restOfValue
	}
}

// matchSegment matches where runs are free: the literal before the first "*" is a
// prefix, the one after the last a suffix, and those between are taken leftmost.
func matchSegment(pattern, value string) bool {
	literal, rest, more := strings.Cut(pattern, "*")
	if !more {
		return literal == value
	}
	value, ok := strings.CutPrefix(value, literal)
	for ok {
		literal, rest, more = strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(value, literal)
		}
		_, value, ok = strings.Cut(value, literal)
	}
	return false
}

// A SignerPattern is a key id or an IdentityPattern, by which a project names
// publishers of its user.
type SignerPattern string

// ParseSignerPattern checks a pattern of signers.
func ParseSignerPattern(s string) (SignerPattern, error) {
	if strings.HasPrefix(s, digest.Prefix) {
		if !digest.IsCanonical(s) {
			return "", fmt.Errorf("is no key id: %q and 64 lower-case hex digits", digest.Prefix)
		}
		return SignerPattern(s), nil
	}
	_, err := ParseIdentityPattern(s)
	return SignerPattern(s), err
}

// Match reports whether the pattern matches a signer, whoever its issuer is: the
// user's publishers say that.
func (p SignerPattern) Match(s verify.Signer) bool {
	if strings.HasPrefix(string(p), digest.Prefix) {
		return s.Key == string(p) && s.Identity == "" && s.Issuer == ""
	}
	return s.Key == "" && IdentityPattern(p).Match(s.Identity)
}

// allows reports whether p is the signer. A signer that is a key and an identity at
// once is nobody.
func (p Publisher) allows(s verify.Signer) bool {
	if p.Key != "" {
		return p.Identity == "" && s.Key == p.Key && s.Identity == "" && s.Issuer == ""
	}
	return p.Issuer != "" && s.Key == "" && s.Issuer == p.Issuer && p.Identity.Match(s.Identity)
}

// A PrefixPattern matches builders and sources: exactly, or, with a "*" at the end,
// whatever has the rest of it as its beginning.
type PrefixPattern string

// ParsePrefixPattern checks a pattern of builders or sources. It refuses a "*" that
// follows anything but "/", "@" or "#": it would also match longer names.
func ParsePrefixPattern(s string) (PrefixPattern, error) {
	if err := checkVisible(s); err != nil {
		return "", err
	}
	prefix, open := strings.CutSuffix(s, "*")
	switch {
	case strings.Contains(prefix, "*"):
		return "", errors.New(`has a "*" elsewhere than at the end`)
	case open && prefix != "" && !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, "@") && !strings.HasSuffix(prefix, "#"):
		return "", errors.New(`has a "*" that does not follow "/", "@" or "#", so that longer names would match`)
	case open && (strings.HasSuffix(prefix, "://") || prefix == "/"):
		return "", errors.New(`has a "*" in place of a host, so that anybody's host would match`)
	}
	return PrefixPattern(s), nil
}

// Match reports whether the pattern matches the whole of value. What "*" stands for
// must not lead out of the prefix: no "." or ".." between slashes, no percent
// encoding, no backslash.
func (p PrefixPattern) Match(value string) bool {
	if value == "" || !visible(value) {
		return false
	}
	prefix, open := strings.CutSuffix(string(p), "*")
	if !open {
		return value == string(p)
	}
	rest, ok := strings.CutPrefix(value, prefix)
	if !ok || strings.ContainsAny(rest, `%\`) {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}

// matchesAll reports whether value matches one pattern of every set.
func matchesAll(sets [][]PrefixPattern, value string) bool {
	for _, set := range sets {
		matched := false
		for _, p := range set {
			matched = matched || p.Match(value)
		}
		if !matched {
			return false
		}
	}
	return true
}

func checkVisible(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxValue:
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(s), maxValue)
	case !visible(s):
		return errors.New("holds a space or a character outside ASCII, which no identity, builder or source here has")
	}
	return nil
}

// visible reports whether s is short enough and all its bytes are visible ASCII.
func visible(s string) bool {
	if len(s) > maxValue {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
