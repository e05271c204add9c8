package plugin

import (
	"io"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// An outbox numbers frames and writes them in their order. What is queued while a
// write is under way goes out with the next one.
type outbox struct {
	w      io.Writer
	failed func(error) // told once, without locks

	mu       sync.Mutex
	changed  sync.Cond // waits for writing to become false, or for room
	version  wire.Version
	limit    int // bytes of a frame
	sequence uint64
	queued   []byte
	spare    []byte
	writing  bool
	closed   bool // nothing more is taken
	broken   bool // nothing more can be written
}

// crowded is the number of queued bytes from which on a sender waits, so that a host
// that does not read slows its plugin instead of filling its memory.
const crowded = 1 << 20

func newOutbox(w io.Writer, version wire.Version, failed func(error)) *outbox {
	o := &outbox{w: w, version: version, limit: wire.DefaultMaxFrame, failed: failed}
	o.changed.L = &o.mu
	return o
}

// agree sets what the frames to come are held to.
func (o *outbox) agree(version wire.Version, limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version, o.limit = version, limit
}

// A dispatch is what surrounds a body.
type dispatch struct {
	trace wire.TraceID
	cause wire.NullUUID
	// admit, if not nil, is asked with the size of the frame before it is sent.
	admit func(size int64) error
	// later: more frames are likely to follow soon, so that the write need not
	// happen on the caller's goroutine.
	later bool
	// answer: the caller is who reads frames; it waits for a host that does not read
	// only when there is no other way.
	answer bool
}

// send queues a frame, in the order of the calls. The error is a *wire.Fault for a
// body that does not fit into a frame, or what admit said; nothing is sent then. A
// frame for a closed outbox is dropped.
func (o *outbox) send(body wire.Body, d dispatch) error {
	o.mu.Lock()
	room := crowded
	if d.answer {
		room *= 8
	}
	for len(o.queued) > room && !o.closed && !o.broken {
		o.changed.Wait()
	}
	if o.closed || o.broken {
		o.mu.Unlock()
		return nil
	}
	begin := len(o.queued)
	now := time.Now()
	e := wire.Envelope{Version: o.version, MessageID: wire.NewUUIDAt(now), Sequence: o.sequence + 1, Timestamp: now, TraceID: d.trace, CausationID: d.cause}
	out, start := wire.BeginFrame(o.queued)
	out = wire.AppendMessage(out, &e, body)
	err := wire.EndFrame(out, start, o.limit)
	if err == nil && d.admit != nil {
		err = d.admit(int64(len(out) - start - wire.HeaderSize))
	}
	if err != nil {
		o.queued = out[:begin]
		o.mu.Unlock()
		return err
	}
	o.queued = out
	o.sequence++
	if !o.writing {
		o.writing = true
		if !d.later {
			o.batch()
		}
		if len(o.queued) > 0 && !o.broken {
			go o.write()
		} else {
			o.written()
		}
	}
	o.mu.Unlock()
	return nil
}

// write writes until nothing is queued. Its caller has set writing.
func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queued) > 0 && !o.broken {
		o.batch()
	}
	o.written()
}

func (o *outbox) written() {
	o.writing = false
	o.changed.Broadcast()
}

// batch writes what is queued with one call of Write. o.mu is held, but not
// meanwhile.
func (o *outbox) batch() {
	const kept = 4 << 20 // a larger buffer is not kept for the next time
	batch := o.queued
	o.queued = o.spare[:0]
	o.mu.Unlock()
	_, err := o.w.Write(batch)
	if err != nil {
		o.failed(err)
	}
	o.mu.Lock()
	if o.spare = batch; cap(batch) > kept {
		o.spare = nil
	}
	o.broken = o.broken || err != nil
	o.changed.Broadcast()
}

// last sends a frame and takes no more after it.
func (o *outbox) last(body wire.Body, d dispatch) {
	d.later, d.answer = true, true
	o.send(body, d)
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
}

// close takes no more frames and waits until all are written, or the time is over.
func (o *outbox) close(limit time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	over := false
	timer := time.AfterFunc(limit, func() {
		o.mu.Lock()
		over = true
		o.mu.Unlock()
		o.changed.Broadcast()
	})
	defer timer.Stop()
	for o.writing && !over {
		o.changed.Wait()
	}
}
