// Package format decides about strings that have a form of their own on the wire
// and in packages: timestamps, UUIDs, URIs, exact integers, decimals and bytes.
//
// It answers yes or no and makes no value. The standard library's parsers are not
// used where they take more than the value rules do (docs/schema-subset.md, section
// "Formats"). It imports the standard library only: plugin authors link it.
package format

import (
	"net/netip"
	"strings"
)

// Bytes is text as Go programs hold it.
type Bytes interface{ ~string | ~[]byte }

// Bounds of the forms that have one.
const (
	MaxDecimal  = 128 // characters of a decimal
	MaxFraction = 9   // digits of a second's fraction
)

// DateTime reports whether s is an RFC 3339 timestamp with upper-case T and Z (or a
// numeric offset up to 23:59), a date that exists in the years 0001 to 9999, no leap
// second and at most MaxFraction digits of a second.
func DateTime[S Bytes](s S) bool {
	end, ok := dateTimeUntilZone(s)
	if !ok {
		return false
	}
	if len(s) == end+1 {
		return s[end] == 'Z'
	}
	return len(s) == end+6 && (s[end] == '+' || s[end] == '-') && s[end+3] == ':' &&
		number(s, end+1, 2) >= 0 && number(s, end+1, 2) <= 23 && number(s, end+4, 2) >= 0 && number(s, end+4, 2) <= 59
}

// UTC reports whether s is a DateTime with Z and at most fraction digits of a second.
func UTC[S Bytes](s S, fraction int) bool {
	end, ok := dateTimeUntilZone(s)
	return ok && len(s) == end+1 && s[end] == 'Z' && end-len("2006-01-02T15:04:05.") <= fraction
}

// dateTimeUntilZone returns where the zone of a timestamp begins.
func dateTimeUntilZone[S Bytes](s S) (int, bool) {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, month, day := number(s, 0, 4), number(s, 5, 2), number(s, 8, 2)
	if year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	hour, minute, second := number(s, 11, 2), number(s, 14, 2), number(s, 17, 2)
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return 0, false
	}
	end := seconds
	if s[end] == '.' {
		end++
		for end < len(s) && digit(s[end]) {
			end++
		}
		if n := end - seconds - 1; n < 1 || n > MaxFraction {
			return 0, false
		}
	}
	return end, end < len(s)
}

// number returns the n digits of s from at as a number, or -1.
func number[S Bytes](s S, at, n int) int {
	v := 0
	for i := at; i < at+n; i++ {
		if !digit(s[i]) {
			return -1
		}
		v = v*10 + int(s[i]-'0')
	}
	return v
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// UUID reports whether s is spelled like a UUID of RFC 9562, of any version and in
// either case.
func UUID[S Bytes](s S) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !hex(s[i]) {
			return false
		}
	}
	return true
}

// Int64 reports whether s is an integer from -2^63 to 2^63-1 in its only spelling: no
// plus sign, no leading zeros, no "-0".
func Int64[S Bytes](s S) bool {
	digits, limit := 0, "9223372036854775807"
	if len(s) > 0 && s[0] == '-' {
		digits, limit = 1, "9223372036854775808"
	}
	n := len(s) - digits
	if n < 1 || n > len(limit) || s[digits] == '0' && len(s) > 1 {
		return false
	}
	below := n < len(limit)
	for i := range n {
		switch c := s[digits+i]; {
		case !digit(c), !below && c > limit[i]:
			return false
		case c < limit[i]:
			below = true
		}
	}
	return true
}

// Decimal reports whether s is a decimal number without exponent: an optional minus
// sign, an integer without leading zeros, and optionally a point and digits; at most
// MaxDecimal characters. Trailing zeros are kept: they can mean precision.
func Decimal[S Bytes](s S) bool {
	i := 0
	if len(s) > 0 && s[0] == '-' {
		i = 1
	}
	whole := i
	for i < len(s) && digit(s[i]) {
		i++
	}
	if n := i - whole; len(s) > MaxDecimal || n == 0 || n > 1 && s[whole] == '0' {
		return false
	}
	if i == len(s) {
		return true
	}
	if s[i] != '.' || i+1 == len(s) {
		return false
	}
	for i++; i < len(s); i++ {
		if !digit(s[i]) {
			return false
		}
	}
	return true
}

// Base64URL reports whether s is base64url (RFC 4648 section 5) without padding whose
// unused bits are zero, so that bytes have one spelling only.
func Base64URL[S Bytes](s S) bool {
	last := 0
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			last = int(c - 'A')
		case 'a' <= c && c <= 'z':
			last = int(c-'a') + 26
		case digit(c):
			last = int(c-'0') + 52
		case c == '-':
			last = 62
		case c == '_':
			last = 63
		default:
			return false
		}
	}
	switch len(s) % 4 {
	case 1:
		return false
	case 2:
		return last&15 == 0
	case 3:
		return last&3 == 0
	}
	return true
}

// URI reports whether s is a URI of RFC 3986 with a scheme: ASCII, with nothing to
// resolve it against. IP literals are IPv6 addresses without a zone.
func URI[S Bytes](s S) bool {
	i := 0
	for i < len(s) && (letter(s[i]) || i > 0 && (digit(s[i]) || s[i] == '+' || s[i] == '-' || s[i] == '.')) {
		i++
	}
	if i == 0 || i == len(s) || s[i] != ':' {
		return false
	}
	i++
	if i+1 < len(s) && s[i] == '/' && s[i+1] == '/' {
		begin := i + 2
		for i = begin; i < len(s) && s[i] != '/' && s[i] != '?' && s[i] != '#'; i++ {
		}
		if !authority(string(s[begin:i])) {
			return false
		}
	}
	return characters(s[i:], "/?:@", true)
}

func authority(s string) bool {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		if !characters(s[:at], ":", false) {
			return false
		}
		s = s[at+1:]
	}
	host, port := s, ""
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return false
		}
		addr, err := netip.ParseAddr(s[1:end])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return false
		}
		if host, port = "", s[end+1:]; port != "" && port[0] != ':' {
			return false
		}
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 {
		host, port = s[:colon], s[colon:]
	}
	return characters(host, "", false) && (port == "" || strings.Trim(port[1:], "0123456789") == "")
}

// characters reports whether s has only unreserved characters, sub-delims, escapes,
// those in more, and where a fragment may follow one "#".
func characters[S Bytes](s S, more string, fragment bool) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case letter(c), digit(c), strings.IndexByte("-._~!$&'()*+,;=", c) >= 0, strings.IndexByte(more, c) >= 0:
		case c == '%':
			if i+2 >= len(s) || !hex(s[i+1]) || !hex(s[i+2]) {
				return false
			}
			i += 2
		case c == '#' && fragment:
			fragment = false
		default:
			return false
		}
	}
	return true
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func hex(c byte) bool    { return digit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
