package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Command returns words as one line that a POSIX shell reads back as exactly
// these words.
func Command(words ...string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(Word(w))
	}
	return b.String()
}

// Word returns s as one shell word: bare where that is safe, in single quotes
// where it is not, and in $'…' where s holds something that a terminal would not
// show as it is.
func Word(s string) string {
	if bareWord(s) {
		return s
	}
	hidden := false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !Visible(r) || r == utf8.RuneError && size == 1 {
			hidden = true
			break
		}
		i += size
	}
	if !hidden {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case Visible(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		default: // byte by byte in octal: three digits always, so that no digit after it joins in
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
		i += size
	}
	b.WriteByte('\'')
	return b.String()
}

func bareWord(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-_./:@%+,=", c) >= 0:
		case c == '~' && i > 0:
		default:
			return false
		}
	}
	// zsh expands a leading "=" to the path of a command.
	return s[0] != '='
}
