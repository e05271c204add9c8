package session

import (
	"io"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// highWater is how many bytes may wait for the plugin before streams and requests wait
// too. Frames of control, which are few and small, go beyond it.
const highWater = 1 << 20

// An outbox numbers frames and writes them in that order. Whoever adds one never waits:
// one goroutine writes what has gathered, with one call. push spares the change to that
// goroutine where the connection takes everything at once.
type outbox struct {
	w      io.Writer
	direct func([]byte) int // writes what w takes without waiting; nil if w cannot
	now    func() time.Time
	failed func(error)
	wake   chan struct{} // of the writer
	gone   chan struct{} // the writer has ended

	mu       sync.Mutex
	version  wire.Version
	limit    int
	sequence uint64
	pending  []byte
	spare    []byte
	writing  bool          // by the writer or a push; who writes sees to what is added meanwhile
	drained  chan struct{} // closed when pending is taken; nil while nobody waits
	closing  bool          // nothing more is added
	broken   bool          // nothing more is written
}

func newOutbox(w io.Writer, now func() time.Time, failed func(error)) *outbox {
	o := &outbox{w: w, direct: direct(w), now: now, failed: failed, wake: make(chan struct{}, 1), gone: make(chan struct{}), limit: wire.DefaultMaxFrame}
	go o.run()
	return o
}

// A sent frame: its id, its number and N.
type sent struct {
	id       wire.UUID
	sequence uint64
	size     int
}

// agree sets the version and the limit of the frames to come.
func (o *outbox) agree(v wire.Version, limit int) {
	o.mu.Lock()
	o.version, o.limit = v, limit
	o.mu.Unlock()
}

// add queues one message. The error is a *wire.Fault with frame.too_large, or ErrClosed.
func (o *outbox) add(body wire.Body, trace wire.TraceID, cause wire.NullUUID) (sent, error) {
	return o.addIf(body, trace, cause, nil)
}

// addIf queues one message if ok, asked with its N, agrees; else its size is 0.
func (o *outbox) addIf(body wire.Body, trace wire.TraceID, cause wire.NullUUID, ok func(size int) bool) (sent, error) {
	s, err := o.queue(body, trace, cause, ok)
	if s.size > 0 {
		o.rouse()
	}
	return s, err
}

// queue is addIf without waking the writer: push must follow.
func (o *outbox) queue(body wire.Body, trace wire.TraceID, cause wire.NullUUID, ok func(size int) bool) (sent, error) {
	e := wire.Envelope{MessageID: wire.NewUUID(), Timestamp: o.now(), TraceID: trace, CausationID: cause}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing || o.broken {
		return sent{}, ErrClosed
	}
	e.Version, e.Sequence = o.version, o.sequence+1
	out, start := wire.BeginFrame(o.pending)
	out = wire.AppendMessage(out, &e, body)
	if err := wire.EndFrame(out, start, o.limit); err != nil {
		o.pending = out[:start]
		return sent{}, err
	}
	size := len(out) - start - wire.HeaderSize
	if ok != nil && !ok(size) {
		o.pending = out[:start]
		return sent{}, nil
	}
	o.pending = out
	o.sequence++
	return sent{e.MessageID, e.Sequence, size}, nil
}

// room returns a channel that is closed when less than highWater bytes may wait, or nil
// if that is so.
func (o *outbox) room() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pending) < highWater || o.closing || o.broken {
		return nil
	}
	if o.drained == nil {
		o.drained = make(chan struct{})
	}
	return o.drained
}

// close ends the outbox: what waits is still written. It does not wait for that.
func (o *outbox) close() {
	o.mu.Lock()
	o.closing = true
	o.mu.Unlock()
	o.rouse()
}

func (o *outbox) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// push writes what waits, as far as that needs no waiting, and leaves the rest to the
// writer.
func (o *outbox) push() {
	if o.direct == nil {
		o.rouse()
		return
	}
	o.mu.Lock()
	batch := o.take()
	o.mu.Unlock()
	if len(batch) == 0 {
		return // or somebody writes, who takes it along
	}
	n := o.direct(batch)
	o.mu.Lock()
	if n < len(batch) {
		rest := append(batch[:0], batch[n:]...)
		o.spare, o.pending = o.pending, append(rest, o.pending...)
	} else {
		o.keep(batch)
	}
	o.writing = false
	more := len(o.pending) > 0 || o.closing
	o.mu.Unlock()
	if more {
		o.rouse()
	}
}

// take returns what is to be written and makes its caller the one who writes; nothing if
// somebody else is. The caller holds mu.
func (o *outbox) take() []byte {
	if o.writing || o.broken || len(o.pending) == 0 {
		return nil
	}
	batch := o.pending
	o.pending, o.spare, o.writing = o.spare[:0], nil, true
	o.free()
	return batch
}

// keep puts the memory of what was written by for what comes. The caller holds mu.
func (o *outbox) keep(batch []byte) {
	const most = 2 * highWater // of memory between two writes
	if cap(batch) <= most {
		o.spare = batch
	}
}

// free lets those go on who wait for room. The caller holds mu.
func (o *outbox) free() {
	if o.drained != nil {
		close(o.drained)
		o.drained = nil
	}
}

func (o *outbox) run() {
	defer close(o.gone)
	for range o.wake {
		for {
			o.mu.Lock()
			batch := o.take()
			closing, over := o.closing, o.closing && !o.writing
			o.mu.Unlock()
			if len(batch) == 0 {
				if over {
					return
				}
				break // who writes wakes this one when there is more
			}
			_, err := o.w.Write(batch)
			o.mu.Lock()
			o.writing = false
			o.keep(batch)
			if err != nil {
				o.broken, o.pending = true, nil
				o.free()
			}
			o.mu.Unlock()
			if err != nil {
				if !closing {
					o.failed(err)
				}
				return
			}
		}
	}
}
