package versionrange

import "strings"

// Covers reports whether a denial of the range concerns version. It errs towards
// yes: pre-releases count as what they are ordered as, build metadata is no way
// out of an exact version, and a version that cannot be compared is covered by
// every range that is not a single word.
func (r Range) Covers(v string) bool {
	have, parts, ok := parseVersion(strings.TrimPrefix(v, "v"))
	comparable := ok && parts == 3
	if r.exact {
		want, wantParts, ok := parseVersion(strings.TrimPrefix(r.text, "v"))
		return v == r.text || comparable && ok && wantParts == 3 && have.compare(want) == 0
	}
	if !comparable {
		return len(r.groups) > 0
	}
	for _, group := range r.groups {
		all := true
		for _, c := range group {
			all = all && c.holds(have)
		}
		if all {
			return true
		}
	}
	return false
}
