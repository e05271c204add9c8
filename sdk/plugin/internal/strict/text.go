package strict

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// IsNoncharacter reports whether Unicode reserves r for ever.
func IsNoncharacter(r rune) bool {
	return r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF
}

// Clean returns s as a string that the value rules accept: bytes that are not
// UTF-8 and noncharacters become U+FFFD.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, IsNoncharacter) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if IsNoncharacter(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Cut returns the longest prefix of s that has at most max bytes and ends with
// a whole character.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// Quote renders a foreign name for a message: quoted, printable, bounded.
func Quote(name string) string {
	const shown = 64
	if len(name) > shown {
		return strconv.QuoteToASCII(Cut(name, shown) + "…")
	}
	return strconv.QuoteToASCII(name)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isZero reports whether every digit before an exponent is 0.
func isZero(literal string) bool {
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		literal = literal[:i]
	}
	return !strings.ContainsAny(literal, "123456789")
}

// hex4 returns the number that four hexadecimal digits at the start of b spell,
// else -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
