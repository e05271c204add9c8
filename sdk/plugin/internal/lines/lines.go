// Package lines splits a stream into lines of bounded length in bounded memory.
// It knows nothing of what the lines hold.
package lines

import (
	"bufio"
	"errors"
	"io"
)

// A Line is one line of a stream without its line feed.
type Line struct {
	Text    []byte // nil if TooLong; belongs to the receiver
	TooLong bool   // longer than the limit; its bytes are gone
}

// A Reader reads lines.
type Reader struct {
	r   *bufio.Reader
	max int
}

// NewReader returns a Reader of r. Lines have at most max bytes without their
// line feed.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), max: max}
}

// Next returns the next line. What stands after the last line feed is a line
// too, unless it is empty. The error is io.EOF at the end of the stream, and
// then there is no line.
func (l *Reader) Next() (Line, error) {
	var out Line
	started := false
	for {
		chunk, err := l.r.ReadSlice('\n')
		started = started || len(chunk) > 0
		ended := err == nil
		if ended {
			chunk = chunk[:len(chunk)-1]
		}
		switch {
		case out.TooLong:
		case len(out.Text)+len(chunk) > l.max:
			out = Line{TooLong: true}
		default:
			out.Text = append(out.Text, chunk...)
		}
		switch {
		case ended:
			return out, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && started:
			return out, nil
		default:
			return Line{}, err
		}
	}
}
