package call

import (
	"bytes"
	"errors"
	"io"
)

var errOversized = errors.New("message too large")

// lines reads messages that end with a line feed. It never holds more than one
// message of MaxMessage bytes and what came with it in the same read.
type lines struct {
	r          Reader
	buf        []byte
	start, end int // what was read and not returned is buf[start:end]
}

// rest returns what was read and not returned yet.
func (l *lines) rest() []byte { return l.buf[l.start:l.end] }

// next returns the next line without its line feed. It is valid until the
// following call. On an error it returns what there is of the line: errOversized
// after MaxMessage bytes without a line feed, io.EOF at the end, or what the
// reader says.
func (l *lines) next() ([]byte, error) {
	for searched := 0; ; {
		rest := l.rest()
		if i := bytes.IndexByte(rest[searched:], '\n'); i >= 0 {
			line := rest[:searched+i]
			if len(line) > MaxMessage {
				return line, errOversized
			}
			l.start += len(line) + 1
			return line, nil
		}
		if len(rest) > MaxMessage {
			return rest, errOversized
		}
		searched = len(rest)
		if err := l.fill(); err != nil {
			return l.rest(), err
		}
	}
}

// fill reads once. It returns an error only when nothing was read.
func (l *lines) fill() error {
	const smallest = 4 << 10
	if l.start == l.end {
		l.start, l.end = 0, 0
	}
	if l.end == len(l.buf) {
		held := l.rest()
		target := l.buf
		if 2*len(held) >= len(l.buf) {
			target = make([]byte, min(max(2*len(l.buf), smallest), MaxMessage+1+smallest))
		}
		l.start, l.end = 0, copy(target, held)
		l.buf = target
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
