package plugin

import (
	"bufio"
	"errors"
	"io"
)

// A line is one line of input without its line feed.
type line struct {
	text    []byte // nil if tooLong
	tooLong bool   // more than MaxMessageBytes; the bytes are gone
}

// A lineReader splits a stream into lines in bounded memory.
type lineReader struct{ r *bufio.Reader }

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 32<<10)} }

// next returns the next line. A last line without line feed counts as one. The
// error is io.EOF at the end, and then there is no line.
func (l *lineReader) next() (line, error) {
	var out line
	started := false
	for {
		chunk, err := l.r.ReadSlice('\n')
		started = started || len(chunk) > 0
		ended := err == nil
		if ended {
			chunk = chunk[:len(chunk)-1]
		}
		switch {
		case out.tooLong:
		case len(out.text)+len(chunk) > MaxMessageBytes:
			out = line{tooLong: true}
		default:
			out.text = append(out.text, chunk...)
		}
		switch {
		case ended:
			return out, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && started:
			return out, nil
		default:
			return line{}, err
		}
	}
}
