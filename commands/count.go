package commands

import "strconv"

// count spells a number of things: "1 process", "2 processes". more is the plural
// where an s at the end does not make one.
func count(n int, one string, more ...string) string {
	word := one + "s"
	switch {
	case n == 1:
		word = one
	case len(more) > 0:
		word = more[0]
	}
	return strconv.Itoa(n) + " " + word
}
