package process

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
)

const (
	// MaxLines is how many of the newest stderr lines are kept.
	MaxLines = 1000
	// MaxLineBytes is where a kept line is cut.
	MaxLineBytes = 2048

	// heldBytes is how much of a line is held for redaction, so that a secret
	// that the cut would split is still recognised.
	heldBytes = 2 * MaxLineBytes
	// blindBytes at the end of an overlong line's held part are never shown: a
	// secret that begins there may be too short to be recognised. No rule of the
	// redaction table needs more of a secret than this.
	blindBytes = 256
)

// A Line is one redacted line of stderr without its line end. Text is valid
// UTF-8; control characters are left for the renderer to escape.
type Line struct {
	Seq  uint64 // from 1; a gap means that older lines were dropped
	At   time.Time
	Text string
	Cut  int // bytes that are missing at the line's end; those of masked secrets count as their mask
}

// A Log keeps the newest MaxLines lines of a child's stderr in bounded memory.
// Redaction happens when lines are read out, never while the child writes, so
// that it cannot slow the child down.
type Log struct {
	mu    sync.Mutex
	ring  []entry // entry of Seq n is at (n-1) % MaxLines
	next  uint64  // lines so far
	bytes int64
	known *redact.Values // secrets that the child was given; set before it starts

	// Only the draining goroutine uses these.
	partial  []byte
	overflow int
	blocks   redact.Blocks
}

type entry struct {
	at       time.Time
	raw      []byte // the held part; reused when the slot is
	overflow int    // bytes beyond the held part
	secret   bool   // the line is part of a multi-line secret
	redacted bool   // text and cut are valid
	text     string
	cut      int
}

// Lines returns the kept lines with Seq greater than after, oldest first.
func (l *Log) Lines(after uint64) []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := max(after, l.next-uint64(len(l.ring)))
	if first >= l.next {
		return nil
	}
	lines := make([]Line, 0, l.next-first)
	for seq := first + 1; seq <= l.next; seq++ {
		e := &l.ring[(seq-1)%MaxLines]
		e.redact(l.known)
		lines = append(lines, Line{Seq: seq, At: e.at, Text: e.text, Cut: e.cut})
	}
	return lines
}

// Size returns how many lines and bytes the child has written so far, whether
// they are kept or not.
func (l *Log) Size() (lines uint64, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next, l.bytes
}

func (e *entry) redact(known *redact.Values) {
	if e.redacted {
		return
	}
	e.redacted = true
	if e.secret {
		e.text, e.cut = redact.Mask, 0
		return
	}
	raw, cut := e.raw, e.overflow
	if e.overflow > 0 {
		whole := wholeRunes(raw)
		raw, cut = raw[:whole], cut+len(raw)-whole
	}
	text := redact.Line(known.Hide(strings.ToValidUTF8(string(raw), "\uFFFD")))
	if e.overflow > 0 {
		keep := runeFloor(text, max(len(text)-max(blindBytes, known.Longest()), 0))
		cut += len(text) - keep
		text = text[:keep]
	}
	if len(text) > MaxLineBytes {
		keep := runeFloor(text, MaxLineBytes)
		cut += len(text) - keep
		text = strings.Clone(text[:keep])
	}
	e.text, e.cut = text, cut
}

// wholeRunes returns the length of b without a character that its end splits.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// runeFloor returns the largest rune boundary of s that is not beyond n.
func runeFloor(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// drain reads r to its end, whatever it holds. Lines get their time from now.
func (l *Log) drain(r io.Reader, now func() time.Time) {
	buf := make([]byte, 2<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			l.write(buf[:n], now())
		}
		if err != nil {
			break
		}
		if n == len(buf) && n < 64<<10 { // a torrent: fewer, larger reads
			buf = make([]byte, 4*n)
		}
	}
	if len(l.partial) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.commit(now())
	}
}

// write takes in what one read brought, so that the lock and the clock cost nothing
// for each line of a torrent of short ones.
func (l *Log) write(p []byte, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += int64(len(p))
	// The first of very many lines are gone when this write is done.
	gone := bytes.Count(p, []byte{'\n'}) - MaxLines
	if gone > 0 && len(l.ring) < MaxLines {
		l.ring = append(l.ring, make([]entry, MaxLines-len(l.ring))...)
	}
	for ; ; gone-- {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		room := min(len(line), heldBytes-len(l.partial))
		l.partial = append(l.partial, line[:room]...)
		l.overflow += len(line) - room
		switch {
		case !ended:
			return
		case gone > 0:
			l.skip()
		default:
			l.commit(at)
		}
		p = rest
	}
}

// skip counts the current line and keeps nothing of it but the secret that it may
// begin or end.
func (l *Log) skip() {
	l.blocks.Next(l.line())
	l.next++
	l.partial, l.overflow = l.partial[:0], 0
}

// commit moves the current line into the ring. The caller holds the lock.
func (l *Log) commit(at time.Time) {
	line := l.line()
	secret := l.blocks.Next(line)
	if len(l.ring) < MaxLines {
		l.ring = append(l.ring, entry{})
	}
	e := &l.ring[l.next%MaxLines]
	*e = entry{at: at, raw: append(e.raw[:0], line...), overflow: l.overflow, secret: secret}
	l.next++
	l.partial, l.overflow = l.partial[:0], 0
}

// line is what is held of the current line, without its carriage return.
func (l *Log) line() []byte {
	if l.overflow == 0 {
		return bytes.TrimSuffix(l.partial, []byte{'\r'})
	}
	return l.partial
}
