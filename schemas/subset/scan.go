package subset

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions here walk JSON that has passed the value rules. Of anything else they
// return -1 or less than the whole, and never read outside of it.

// spaced returns the first position from pos on that is no white space.
func spaced(data []byte, pos int) int {
	for pos < len(data) && (data[pos] == ' ' || data[pos] == '\n' || data[pos] == '\t' || data[pos] == '\r') {
		pos++
	}
	return pos
}

// pastString returns the position after the string that begins at pos, and whether it
// has escapes.
func pastString(data []byte, pos int) (end int, escaped bool) {
	for pos++; pos < len(data); {
		switch data[pos] {
		case '"':
			return pos + 1, escaped
		case '\\':
			escaped = true
			pos += 2
		default:
			pos++
		}
	}
	return -1, escaped
}

// pastValue returns the position after the value that begins at pos.
func pastValue(data []byte, pos int) int {
	depth := 0
	for pos < len(data) {
		switch data[pos] {
		case '"':
			if pos, _ = pastString(data, pos); pos < 0 {
				return -1
			}
		case '{', '[':
			depth++
			pos++
			continue
		case '}', ']':
			depth--
			pos++
			if depth < 0 {
				return -1
			}
		case ' ', '\n', '\t', '\r', ',', ':':
			if depth == 0 {
				return -1
			}
			pos++
			continue
		default:
			pos = pastScalar(data, pos)
		}
		if depth == 0 {
			return pos
		}
	}
	return -1
}

// pastScalar returns the position after a number or literal.
func pastScalar(data []byte, pos int) int {
	for pos < len(data) {
		switch data[pos] {
		case ',', '}', ']', ' ', '\n', '\t', '\r', ':', '"', '{', '[':
			return pos
		}
		pos++
	}
	return pos
}

// appendUnescaped appends the text of a string's inside. Escapes that are none, and
// halves of pairs, become U+FFFD.
func appendUnescaped(out, inside []byte) []byte {
	for {
		i := bytes.IndexByte(inside, '\\')
		if i < 0 || i+1 >= len(inside) {
			return append(out, inside...)
		}
		out = append(out, inside[:i]...)
		c := inside[i+1]
		inside = inside[i+2:]
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(inside)
			inside = inside[min(4, len(inside)):]
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if len(inside) >= 6 && inside[0] == '\\' && inside[1] == 'u' {
					low = hex4(inside[2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					inside = inside[6:]
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = utf8.AppendRune(out, utf8.RuneError)
		}
	}
}

// hex4 returns the number of four hexadecimal digits, or -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		if !isWord(rune(c)) || c > 'f' || c > 'F' && c < 'a' {
			return -1
		}
		r = r<<4 | rune(hexValue(c))
	}
	return r
}
