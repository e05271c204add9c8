package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// toRequest passes on a frame that belongs to a request.
func (s *session) toRequest(e *envelope, size int) error {
	var b struct {
		RequestID, OperationID   string
		Index, ItemCount         int64
		ByteCount                int64
		CreditItems, CreditBytes int64
		Payload                  json.RawMessage
	}
	if p := s.body(e, &b); p != nil {
		return s.complain(e, p.code, p.Error())
	}
	s.mu.Lock()
	o, running := s.ops[b.RequestID]
	_, past := s.past[b.RequestID]
	s.mu.Unlock()
	if !running && !past && !s.p.has("ignores-unknown-requests") {
		return &fatal{code: "state.violation", message: "a requestId that was never sent"}
	}
	if e.kind == "cancel" && !s.p.has("acknowledges-no-cancel") {
		s.acknowledge(e, b.RequestID)
	}
	if !running {
		if e.kind != "cancel" && s.p.has("late-frames-are-fatal") {
			return &fatal{code: "state.violation", message: "the request has ended"}
		}
		return nil
	}
	switch e.kind {
	case "cancel":
		o.mu.Lock()
		o.cancelled = true
		o.mu.Unlock()
		if !s.p.has("ignores-cancel") {
			o.cancel(errCancelled)
		}
	case "flow":
		if !o.o.Streaming.Response {
			o.refuse("invalid_argument", "credit for a request without a stream")
			return nil
		}
		o.mu.Lock()
		o.items, o.bytes, o.widest = o.items+b.CreditItems, o.bytes+b.CreditBytes, max(o.widest, b.CreditBytes)
		if s.p.has("credit-replaces") {
			o.items, o.bytes = b.CreditItems, b.CreditBytes
		}
		o.wake()
		o.mu.Unlock()
	default:
		if !o.o.Streaming.Request {
			o.refuse("invalid_argument", "an item for a request without a stream")
			return nil
		}
		o.receive(e.kind, b.Index, b.ItemCount, b.ByteCount, b.Payload, int64(size))
	}
	return nil
}

// acknowledge answers a cancel, with the trace of its request.
func (s *session) acknowledge(e *envelope, requestID string) {
	trace := e.trace
	s.mu.Lock()
	if t, known := s.past[requestID]; known {
		trace = t
	}
	if o, known := s.ops[requestID]; known {
		trace = o.trace
	}
	s.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.write(s.compose("cancelAck", e.id, `{"requestId":`+quote(requestID)+`}`, trace))
}

// wake tells whoever waits that something changed; mu is held.
func (o *op) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// refuse ends the request because the host broke a rule of its streams.
func (o *op) refuse(code, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refuseLocked(code, message)
}

func (o *op) refuseLocked(code, message string) {
	if o.broken == nil && !o.s.p.has("forgives-stream-faults") {
		o.broken = &pluginError{code, message, false}
		o.cancel(errClosed)
	}
}

// receive takes an item, or the end, of the host's stream.
func (o *op) receive(kind string, index, count, total int64, payload json.RawMessage, size int64) {
	p := o.s.p
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return
	}
	if o.endOfIn {
		o.refuseLocked("invalid_argument", "something after the stream's end")
		return
	}
	if kind == "streamEnd" {
		if (count != o.gotItems || total != o.gotBytes) && !p.has("counts-no-items") {
			o.refuseLocked("invalid_argument", "the stream's end counts other items")
			return
		}
		o.endOfIn = true
		o.wake()
		return
	}
	if index != o.gotItems && !p.has("takes-items-in-any-order") {
		o.refuseLocked("invalid_argument", "an item out of order")
		return
	}
	covered := o.given >= 1 && o.givenB >= size
	if !covered && o.overdrawn && !p.has("tolerates-credit-abuse") {
		o.refuseLocked("flow_control_violation", "a second item beyond the credit")
		return
	}
	if !covered && p.has("tolerates-no-buffered-item") {
		o.refuseLocked("flow_control_violation", "an item beyond the credit")
		return
	}
	o.overdrawn = !covered
	o.given, o.givenB = o.given-1, o.givenB-size
	o.gotItems, o.gotBytes = o.gotItems+1, o.gotBytes+size
	if bad := o.s.m.schemas[o.o.RequestSchema.URI].check(payload); bad != nil && !p.has("checks-no-items") {
		o.refuseLocked(bad.code, "an item of the host is not valid: "+bad.Error())
		return
	}
	o.queue = append(o.queue, payload)
	o.wake()
}

// next returns the next item of the host's stream; ok is false at its end.
func (o *op) next() (item json.RawMessage, ok bool, err error) {
	for {
		o.mu.Lock()
		if len(o.queue) > 0 {
			item, o.queue = o.queue[0], o.queue[1:]
			low := o.given < 4 || o.givenB < 512<<10
			o.mu.Unlock()
			if low && !o.s.p.has("gives-credit-once") {
				o.giveCredit(8, 1<<20)
			}
			return item, true, nil
		}
		end, changed := o.endOfIn, o.changed
		o.mu.Unlock()
		if end {
			return nil, false, nil
		}
		select {
		case <-changed:
		case <-o.ctx.Done():
			return nil, false, context.Cause(o.ctx)
		}
	}
}

func (o *op) giveCredit(items, bytes int64) {
	o.mu.Lock()
	o.given, o.givenB = o.given+items, o.givenB+bytes
	if o.given >= 0 && o.givenB >= 0 {
		o.overdrawn = false
	}
	o.mu.Unlock()
	o.send("flow", "", fmt.Sprintf(`{"requestId":%s,"creditItems":%d,"creditBytes":%d}`, quote(o.b.RequestID), items, bytes))
}

// item sends the next item of the response stream when its credit is there.
func (o *op) item(payload string) error {
	s := o.s
	if p := s.m.schemas[o.o.ResponseSchema.URI].check([]byte(payload)); p != nil && !s.p.has("checks-no-results") {
		return &pluginError{p.code, "an item is not valid: " + p.Error(), false}
	}
	for {
		if o.ctx.Err() != nil {
			return context.Cause(o.ctx)
		}
		s.writing.Lock()
		o.mu.Lock()
		index := o.sentItems
		if s.p.has("numbers-items-from-1") {
			index++
		}
		frame := s.compose("streamItem", "", fmt.Sprintf(`{"requestId":%s,"operationId":%s,"index":%d,"payload":%s}`, quote(o.b.RequestID), quote(o.b.OperationID), index, payload), o.trace)
		size := int64(len(frame))
		covered := o.items >= 1 && o.bytes >= size
		if s.p.has("counts-items-only") {
			covered = o.items >= 1
		}
		if s.p.has("counts-bytes-only") {
			covered = o.bytes >= size
		}
		if int(size) > s.maxOut {
			covered = false
		}
		if covered {
			o.items, o.bytes = o.items-1, o.bytes-size
			o.sentItems, o.sentBytes = o.sentItems+1, o.sentBytes+size
			o.mu.Unlock()
			s.write(frame)
			s.writing.Unlock()
			return nil
		}
		changed, widest := o.changed, o.widest
		o.mu.Unlock()
		s.sequence--
		s.writing.Unlock()
		if int(size) > s.maxOut || widest > 0 && size > widest {
			if !s.p.has("waits-for-impossible-credit") {
				return &pluginError{"resource_exhausted", "an item larger than any grant", true}
			}
		}
		select {
		case <-changed:
		case <-o.ctx.Done():
		}
	}
}

func (o *op) streamEnd() {
	items, bytes := o.sentItems, o.sentBytes
	if o.s.p.has("counts-wrong") {
		items++
	}
	o.send("streamEnd", "", fmt.Sprintf(`{"requestId":%s,"operationId":%s,"itemCount":%d,"byteCount":%d}`, quote(o.b.RequestID), quote(o.b.OperationID), items, bytes))
}

// progress is at most one frame each 50 ms; the newest wins.
type progress struct {
	last    time.Time
	waiting string
	done    bool
}

const progressEvery = 50 * time.Millisecond

func (o *op) tell(message string, more string) {
	s := o.s
	if !s.enabled["progress.v1"] && !s.p.has("tells-progress-anyway") || s.p.has("tells-no-progress") {
		return
	}
	body := fmt.Sprintf(`{"requestId":%s,"operationId":%s,"message":%s%s}`, quote(o.b.RequestID), quote(o.b.OperationID), quote(message), more)
	o.telling.Lock()
	defer o.telling.Unlock()
	if wait := progressEvery - time.Since(o.progress.last); wait > 0 && !s.p.has("floods-progress") {
		if o.progress.waiting == "" {
			time.AfterFunc(wait, o.late)
		}
		o.progress.waiting = body
		return
	}
	o.progress.last = time.Now()
	o.send("progress", "", body)
}

// lastProgress sends what still waits and ends the progress.
func (o *op) lastProgress() {
	o.telling.Lock()
	defer o.telling.Unlock()
	if o.s.p.has("tells-progress-after-the-end") {
		return
	}
	if o.progress.waiting != "" && !o.s.p.has("loses-the-last-progress") {
		o.send("progress", "", o.progress.waiting)
		o.progress.waiting = ""
	}
	o.progress.done = true
}

// late sends the newest progress that had to wait.
func (o *op) late() {
	o.telling.Lock()
	defer o.telling.Unlock()
	if o.progress.done || o.progress.waiting == "" {
		return
	}
	o.send("progress", "", o.progress.waiting)
	o.progress.waiting, o.progress.last = "", time.Now()
}
