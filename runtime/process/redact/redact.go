// Package redact masks secrets in text that a foreign program wrote: tokens of
// well-known services, authorization headers, password-like assignments, URLs
// with credentials and PEM blocks.
//
// It errs on the side of masking: a harmless value after "token:" is masked
// too. It recognises what the table in rules.go and assign.go describes and
// nothing else; it is a net under careless logging, not a guarantee, and it
// does not look for secrets that a program hides on purpose. It masks values
// and leaves control characters to whoever displays the text.
package redact

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Mask replaces every secret.
const Mask = "[redacted]"

// span is a half-open range of bytes of a line.
type span struct{ start, end int }

// Line returns the line with every recognised secret replaced by Mask. The line
// must be valid UTF-8 without a line feed; the result is valid UTF-8.
func Line(line string) string {
	lower := lowerASCII(line)
	var found []span
	found = appendTokens(found, line, lower)
	found = appendAssignments(found, line, lower)
	found = appendURLs(found, line)
	found = appendBlocks(found, line)
	if len(found) == 0 {
		return line
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for i := 0; i < len(found); {
		start, end := found[i].start, found[i].end
		for i++; i < len(found) && found[i].start <= end; i++ {
			end = max(end, found[i].end)
		}
		b.WriteString(line[at:start])
		b.WriteString(Mask)
		at = end
	}
	b.WriteString(line[at:])
	return b.String()
}

// lowerASCII lowers A–Z only, so that offsets stay those of s.
func lowerASCII(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// maxBlockLines bounds a block whose end never comes. A PEM block of a
// 16,384-bit RSA key has about 200 lines.
const maxBlockLines = 400

// Blocks follows secrets that span lines: PEM and SSH2 blocks between BEGIN and
// END, and the private lines of a PuTTY key. The zero value is ready.
type Blocks struct {
	left    int  // lines until the block is given up or, if counted, has ended
	counted bool // the block has no end marker
}

// Next takes the next line and reports whether it lies inside a block, so that
// nothing of it may be shown. The line on which a block begins does not: Line
// masks it from the marker on.
func (b *Blocks) Next(line []byte) (inside bool) {
	inside = b.left > 0
	if inside {
		b.left--
		if b.counted || len(line) < len("END ") {
			return true
		}
		end := bytes.LastIndex(line, []byte("END "))
		if end < 0 {
			return true
		}
		b.left = 0
		line = line[end:]
	}
	if len(line) < len("BEGIN ") {
		return inside
	}
	if _, after, ok := bytes.Cut(line, []byte("Private-Lines: ")); ok {
		digits := after[:len(after)-len(bytes.TrimLeft(after, "0123456789"))]
		if n, err := strconv.Atoi(string(digits)); err == nil {
			b.left, b.counted = min(n, maxBlockLines), true
		}
		return inside
	}
	if begin := bytes.LastIndex(line, []byte("BEGIN ")); begin >= 0 && dashesBefore(line[:begin]) &&
		!bytes.Contains(line[begin:], []byte("END ")) {
		b.left, b.counted = maxBlockLines, false
	}
	return inside
}

// dashesBefore reports whether s ends with the dashes of a BEGIN marker:
// "-----" of PEM or "---- " of SSH2.
func dashesBefore[T string | []byte](s T) bool {
	t := strings.TrimSuffix(string(s[max(len(s)-8, 0):]), " ")
	return strings.HasSuffix(t, "----")
}

// appendBlocks masks from each BEGIN marker to its END marker, or to the end of
// the line.
func appendBlocks(found []span, line string) []span {
	for at := 0; ; {
		i := strings.Index(line[at:], "BEGIN ")
		if i < 0 {
			return found
		}
		begin := at + i
		at = begin + len("BEGIN ")
		if !dashesBefore(line[:begin]) {
			continue
		}
		start := begin
		for start > 0 && (line[start-1] == '-' || line[start-1] == ' ' && start > 1 && line[start-2] == '-') {
			start--
		}
		end := len(line)
		if j := strings.Index(line[at:], "END "); j >= 0 && dashesBefore(line[:at+j]) {
			end = at + j + len("END ")
			if k := strings.Index(line[end:], "----"); k >= 0 {
				end += k
			}
			for end < len(line) && line[end] == '-' {
				end++
			}
		}
		found = append(found, span{start, end})
		at = end
	}
}
