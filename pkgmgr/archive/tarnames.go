package archive

import (
	"strings"
	"unicode/utf8"
)

// sharedName is the length in bytes up to which every writer puts the whole of a name
// into an entry's own header. Beyond it writers cut the name, each its own way, or put
// something else in its place.
const sharedName = 96

// namesAgree reports whether own, the name in an entry's own header, may stand beside
// the name that an extended header gives it. What is not ASCII is left out, replaced or
// written in another encoding by some writers: it agrees with anything, and so does the
// letter before it, which may be the base of an accent.
func namesAgree(own, name string) bool {
	own, name = bareName(own), bareName(name)
	if own == name || len(name) > sharedName {
		return true
	}
	// The pieces of ASCII in name, in their order, with anything in between.
	var pieces []string
	start := 0
	for i := 0; i < len(name); {
		if name[i] < utf8.RuneSelf {
			i++
			continue
		}
		pieces = append(pieces, name[start:max(start, i-1)])
		for i < len(name) && name[i] >= utf8.RuneSelf {
			i++
		}
		start = i
	}
	if pieces == nil {
		return false
	}
	rest, ok := strings.CutPrefix(own, pieces[0])
	for _, p := range pieces[1:] {
		if ok {
			_, rest, ok = strings.Cut(rest, p)
		}
	}
	return ok && strings.HasSuffix(rest, name[start:])
}

// bareName is a name without what says only that it is relative, or a directory.
func bareName(name string) string {
	return strings.TrimRight(strings.TrimPrefix(name, "./"), "/")
}
