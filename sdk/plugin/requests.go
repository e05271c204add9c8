package plugin

import (
	"context"
	"io"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/lines"
)

// requests reads what the host writes, line by line. Between calls it reads on
// the caller's goroutine, which costs no other; a call that is watched has the
// next line read beside it, so that the end of the input is noticed.
type requests struct {
	lines *lines.Reader
	next  chan read // holds the line that is read beside, if one is
	ended func()    // told when the input ended beside a call
}

// A read is one line, or why there is none.
type read struct {
	line lines.Line
	err  error
}

func newRequests(in io.Reader, ended func()) *requests {
	return &requests{lines: lines.NewReader(in, MaxMessageBytes), ended: ended}
}

// ahead begins to read the next line, once.
func (r *requests) ahead() {
	if r.next != nil {
		return
	}
	next := make(chan read, 1)
	r.next = next
	go func() {
		line, err := r.lines.Next()
		if err != nil {
			r.ended()
		}
		next <- read{line, err}
	}()
}

// wait returns the next line, or the cause for which ctx ended; a read that is
// blocked is then left behind. The error is io.EOF at the end of the input.
func (r *requests) wait(ctx context.Context) (lines.Line, error) {
	if err := context.Cause(ctx); err != nil {
		return lines.Line{}, err
	}
	r.ahead()
	select {
	case <-ctx.Done():
		return lines.Line{}, context.Cause(ctx)
	case got := <-r.next:
		r.next = nil
		return got.line, got.err
	}
}

// take returns the next line where nothing but the end of the input can end the
// wait.
func (r *requests) take() (lines.Line, error) {
	if r.next != nil {
		return r.wait(context.Background())
	}
	return r.lines.Next()
}
