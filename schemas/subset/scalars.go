package subset

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// typed judges the type of a value.
func (r *run) typed(n *node, k kinds) bool {
	if n.types == 0 || n.types&k != 0 {
		return true
	}
	return r.fail(CodeMismatch, "must be %v", n.types)
}

func (r *run) wordAt(n *node, pos int) (end int, ok bool) {
	word, kind := "null", isNull
	switch r.data[pos] {
	case 't':
		word, kind = "true", isBoolean
	case 'f':
		word, kind = "false", isBoolean
	}
	end = pos + len(word)
	if end > len(r.data) || string(r.data[pos:end]) != word {
		r.broken()
		return pos, false
	}
	if !r.typed(n, kind) {
		return end, false
	}
	return end, r.listed(n, r.data[pos], nil, 0)
}

// listed judges a value by enum and const.
func (r *run) listed(n *node, kind byte, text []byte, number float64) bool {
	if n.enum == nil {
		return true
	}
	for i := range n.enum {
		if e := &n.enum[i]; e.kind == kind && (kind != '"' || e.text == string(text)) && (kind != '0' || e.number == number) {
			return true
		}
	}
	return r.fail(CodeMismatch, "must be one of %s", n.allowed)
}

// fraction reports whether a number is written as more than digits.
func fraction(raw []byte) bool {
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' {
			return true
		}
	}
	return false
}

// numeric returns the value of a number's text.
func numeric(raw []byte) (f float64, ok bool) {
	if len(raw) <= 15 && !fraction(raw) {
		negative, v := false, int64(0)
		for i, c := range raw {
			switch {
			case c == '-' && i == 0:
				negative = true
			case c >= '0' && c <= '9':
				v = v*10 + int64(c-'0')
			default:
				return 0, false
			}
		}
		if negative {
			v = -v
		}
		return float64(v), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

func (r *run) numberAt(n *node, pos int) (end int, ok bool) {
	end = pastScalar(r.data, pos)
	raw := r.data[pos:end]
	if n.types != 0 && n.types&(isNumber|isInteger) == 0 {
		return end, r.typed(n, isNumber)
	}
	if n.types == 0 && !n.number && n.enum == nil {
		return end, true
	}
	f, ok := numeric(raw)
	if !ok {
		r.broken()
		return end, false
	}
	if n.types != 0 && n.types&isNumber == 0 && f != math.Trunc(f) {
		return end, r.typed(n, isNumber)
	}
	ok = r.listed(n, '0', nil, f)
	if !n.number || !ok && r.quiet > 0 {
		return end, ok
	}
	if n.minimum != nil && f < *n.minimum {
		ok = r.fail(CodeMismatch, "must be at least %v", *n.minimum)
	}
	if n.above != nil && f <= *n.above {
		ok = r.fail(CodeMismatch, "must be more than %v", *n.above)
	}
	if n.maximum != nil && f > *n.maximum {
		ok = r.fail(CodeMismatch, "must be at most %v", *n.maximum)
	}
	if n.below != nil && f >= *n.below {
		ok = r.fail(CodeMismatch, "must be less than %v", *n.below)
	}
	if n.multipleOf != 0 && math.Mod(f, n.multipleOf) != 0 {
		ok = r.fail(CodeMismatch, "must be a multiple of %v", n.multipleOf)
	}
	return end, ok
}

func (r *run) textAt(n *node, pos int) (end int, ok bool) {
	end, escaped := pastString(r.data, pos)
	if end < 0 || end > len(r.data) {
		r.broken()
		return pos, false
	}
	if !r.spend((end - pos) / 16) {
		return end, false
	}
	if !r.typed(n, isString) {
		return end, false
	}
	if !n.text && n.enum == nil {
		return end, true
	}
	inside := r.data[pos+1 : end-1]
	if escaped {
		r.scratch = appendUnescaped(r.scratch[:0], inside)
		inside = r.scratch
	}
	ok = r.listed(n, '"', inside, 0)
	if n.minLength > 0 || n.maxLength >= 0 {
		ok = r.long(n, inside) && ok
	}
	if n.formed != nil && !n.formed(inside) {
		ok = r.fail(CodeMismatch, "is not of the format %s", n.format)
	}
	if n.pattern != nil && (ok || r.quiet == 0) && r.spend(len(inside)/2) && !n.pattern.Match(inside) {
		ok = r.fail(CodeMismatch, "must match %s", n.pattern)
	}
	return end, ok && !r.stopped
}

// long judges how many characters a string has. A character is one to four bytes, so
// that most are not counted.
func (r *run) long(n *node, text []byte) bool {
	if (len(text)+3)/4 >= n.minLength && (n.maxLength < 0 || len(text) <= n.maxLength) {
		return true
	}
	length, ok := utf8.RuneCount(text), true
	if length < n.minLength {
		ok = r.fail(CodeMismatch, "must have at least %s", characters(n.minLength))
	}
	if n.maxLength >= 0 && length > n.maxLength {
		ok = r.fail(CodeMismatch, "must have at most %s", characters(n.maxLength))
	}
	return ok
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.Itoa(n) + " characters"
}
