package session

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// readNumbered reads frames until the stream ends and returns how many came; each must
// have the number after the one before.
func readNumbered(t *testing.T, r io.Reader) (frames uint64) {
	t.Helper()
	in := wire.NewFrameReader(r)
	for {
		frame, err := in.Next(nil)
		if err == io.EOF {
			return frames
		}
		if err != nil {
			t.Errorf("after %d frames: %v", frames, err)
			return frames
		}
		var e wire.Envelope
		if err := wire.Scan(frame, &e); err != nil {
			t.Errorf("after %d frames: %v", frames, err)
			return frames
		}
		if frames++; e.Sequence != frames {
			t.Errorf("sequence %d where %d comes next", e.Sequence, frames)
			return frames
		}
	}
}

func itemOf(size int) *wire.StreamItem {
	return &wire.StreamItem{Payload: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}
}

// TestPushNeverWaits holds that a push into a pipe that nobody reads returns, and that
// what the pipe did not take is written later, whole and in order.
func TestPushNeverWaits(t *testing.T) {
	host, plugin := systemPipes(t)
	conn := Stdio{Stdin: host.out, Stdout: host.in}
	out := newOutbox(conn, time.Now, func(err error) { t.Error(err) })
	out.agree(wire.MaxVersion, wire.DefaultMaxFrame)
	if out.direct == nil {
		t.Skip("this system cannot write without waiting")
	}
	const frames = 40
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		for range frames { // 400 KB: more than a pipe holds
			if _, err := out.queue(itemOf(10_000), wire.TraceID{}, wire.NullUUID{}, nil); err != nil {
				t.Error(err)
			}
			out.push()
		}
	}()
	select {
	case <-pushed:
	case <-time.After(time.Minute):
		t.Fatal("a push waits for a reader")
	}
	go func() {
		out.close()
		<-out.gone
		conn.CloseWrite()
	}()
	if n := readNumbered(t, plugin.in); n != frames {
		t.Errorf("%d of %d frames came", n, frames)
	}
	conn.Close()
	plugin.Close()
}

// TestPushBesideWriter holds that frames from pushes and from the writer never mix.
func TestPushBesideWriter(t *testing.T) {
	host, plugin := systemPipes(t)
	conn := Stdio{Stdin: host.out, Stdout: host.in}
	out := newOutbox(conn, time.Now, func(err error) { t.Error(err) })
	out.agree(wire.MaxVersion, wire.DefaultMaxFrame)
	const senders, each = 6, 500
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			for n := range each {
				size := (i*each + n) % 5000
				var err error
				if i%2 == 0 {
					_, err = out.queue(itemOf(size), wire.TraceID{}, wire.NullUUID{}, nil)
					out.push()
				} else {
					_, err = out.add(itemOf(size), wire.TraceID{}, wire.NullUUID{})
				}
				if err != nil {
					t.Error(fmt.Errorf("sender %d: %w", i, err))
				}
			}
		})
	}
	go func() {
		all.Wait()
		out.close()
		<-out.gone
		conn.CloseWrite()
	}()
	if n := readNumbered(t, plugin.in); n != senders*each {
		t.Errorf("%d of %d frames came", n, senders*each)
	}
	conn.Close()
	plugin.Close()
}
