package wire

import "strconv"

// A Version of the protocol. Versions of one major version understand each other.
type Version struct{ Major, Minor int }

func (v Version) String() string { return string(v.append(nil)) }

func (v Version) append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, int64(v.Major), 10)
	dst = append(dst, '.')
	return strconv.AppendInt(dst, int64(v.Minor), 10)
}

// Compare returns a negative number if v is before w, 0 if they are equal, and a
// positive one if v is after w.
func (v Version) Compare(w Version) int {
	if v.Major != w.Major {
		return v.Major - w.Major
	}
	return v.Minor - w.Minor
}

// ParseVersion reads "MAJOR.MINOR": two numbers of at most six digits without
// needless zeros.
func ParseVersion(s string) (Version, bool) { return parseVersion(s) }

func parseVersion[T string | []byte](s T) (v Version, ok bool) {
	n, i := parseNumber(s, 0)
	if i <= 0 || i >= len(s) || s[i] != '.' {
		return v, false
	}
	m, j := parseNumber(s, i+1)
	return Version{n, m}, j == len(s)
}

// parseNumber returns the number at i and the index after it, or -1.
func parseNumber[T string | []byte](s T, i int) (n, end int) {
	const digits = 6
	start := i
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		if i++; i-start > digits {
			return 0, -1
		}
	}
	if i == start || s[start] == '0' && i > start+1 {
		return 0, -1
	}
	return n, i
}

// A VersionRange is every version from Min to Max.
type VersionRange struct{ Min, Max Version }
