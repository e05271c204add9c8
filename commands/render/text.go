// Package render turns values into text for a terminal: foreign strings with
// everything invisible made visible, tables that fit the width, shell words
// that can be copied, and colour.
//
// Every string that comes from a package, a plugin, a lock, a certificate or a
// list goes through Text before it reaches a terminal. The package knows nothing
// of plugins, reads no environment and writes nowhere.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"golang.org/x/text/width"
)

// Text returns s with every character escaped that a terminal would obey or not
// show: control characters (C0, C1, escape sequences with them), bidirectional
// controls, zero-width and other format characters, line and paragraph
// separators, unassigned code points, and bytes that are not UTF-8. A backslash
// is doubled, so that two different strings never look the same. The result is
// one line.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\':
			b.WriteString(`\\`)
		case Visible(r):
			b.WriteString(s[i : i+size])
		default:
			b.WriteString(escape(r))
		}
		i += size
	}
	return b.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

func escape(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	if r < 0x10000 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Visible reports whether r shows as itself and does nothing else: it is
// printable and none of the printable characters that have no picture or change
// their neighbour's (fillers, variation selectors, joiners). The table is the one that
// manifests and paths are judged by.
func Visible(r rune) bool { return manifest.Visible(r) }

// Width returns the number of terminal cells that s takes; s is text that Text
// returned.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns s shortened to at most cells cells, with "…" as its last one where
// something was left out. s is text that Text returned.
func Cut(s string, cells int) string {
	if cells <= 0 {
		return ""
	}
	if Width(s) <= cells {
		return s
	}
	n := 0
	for i, r := range s {
		w := runeWidth(r)
		if n+w > cells-1 {
			return s[:i] + "…"
		}
		n += w
	}
	return s
}

// Wrap breaks prose at spaces into lines of at most cells cells; a word that is
// longer stays whole. cells < 1 means one line.
func Wrap(s string, cells int) []string {
	words := strings.Fields(s)
	if len(words) == 0 {
		return nil
	}
	if cells < 1 {
		return []string{strings.Join(words, " ")}
	}
	lines := make([]string, 0, 1+len(s)/cells)
	line, n := words[0], Width(words[0])
	for _, word := range words[1:] {
		w := Width(word)
		if n+1+w > cells {
			lines = append(lines, line)
			line, n = word, w
			continue
		}
		line += " " + word
		n += 1 + w
	}
	return append(lines, line)
}
