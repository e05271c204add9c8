package ijson

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// isNoncharacter reports whether Unicode reserves r for ever (66 code points).
func isNoncharacter(r rune) bool {
	return r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF
}

// escape reads the escape sequence that b begins with. It returns 0 as the
// character of every sequence that cannot be a noncharacter, including one that
// is malformed, and the number of bytes to skip (at least 1).
func escape(b []byte) (r rune, n int) {
	r = hex4(b)
	if r < 0 {
		return 0, min(2, len(b))
	}
	if utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, hex4(b[6:])); pair != utf8.RuneError {
			return pair, 12
		}
		return 0, 6
	}
	return r, 6
}

// hex4 returns the code unit of the \uXXXX that b begins with, else -1.
func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
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

// unescapedLen returns the length in bytes of a string as UTF-8, given what
// stands between its quotes.
func unescapedLen(raw []byte) int {
	n := 0
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			i, n = i+1, n+1
			continue
		}
		r, skip := escape(raw[i:])
		i += skip
		if skip > 2 {
			n += max(1, utf8.RuneLen(r))
		} else {
			n++
		}
	}
	return n
}

// unescape returns the content of a quoted string. What is malformed in it
// comes out in some form; the decoder refuses it later.
func unescape(quoted []byte) []byte {
	b, _ := jsontext.AppendUnquote(nil, quoted)
	return b
}

// quoted renders a foreign name for a message.
func quoted(name []byte) string { return strconv.QuoteToGraphic(shown(string(name))) }

func shown(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
