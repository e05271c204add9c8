package manifest

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Visible reports whether r can be shown as it is: it is printable, takes a place of
// its own or joins the character before it, and turns no text around. Controls,
// zero-width and other format characters, fillers and selectors, separators other
// than the ASCII space and unassigned code points are not.
//
// It is the one table of what a terminal gets to see, what a path in an archive may
// hold and what a version may hold.
func Visible(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r <= '~'
	}
	if !strconv.IsPrint(r) {
		return false
	}
	switch {
	case r == 0x034f, // combining grapheme joiner
		r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, // Hangul fillers
		r == 0x17b4, r == 0x17b5, // Khmer inherent vowels
		r >= 0x180b && r <= 0x180f, // Mongolian selectors
		r == 0x2800,                // blank Braille pattern
		r >= 0xfe00 && r <= 0xfe0f, // variation selectors
		r == 0xfffc,                // object replacement
		r >= 0xe0100 && r <= 0xe01ef:
		return false
	}
	return true
}

// standsAlone reports whether a reader sees something where r stands by itself: it is
// visible, no space and no mark that joins another character.
func standsAlone(r rune) bool { return r != ' ' && Visible(r) && !unicode.Is(unicode.M, r) }
