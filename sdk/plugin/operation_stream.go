package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// An outStream is the items that an operation sends. Operation.mu holds it.
type outStream struct {
	credit       wire.Credit
	items, bytes int64
	more         chan struct{} // has an element when credit has come
}

// errNoCredit is why an item must wait.
var errNoCredit = errors.New("no credit")

// Send sends one item of the response stream: any value that encoding/json writes, or
// json.RawMessage. It waits until the host has given credit for it. The error is
// fit to be returned by the handler: an item that the response schema refuses, one
// that no credit can cover, or that the operation has been cancelled.
func (o *Operation) Send(item any) error {
	if !o.entry.streamOut {
		return o.failed(Internal, "the operation has no response stream")
	}
	payload, err := encodeValue(item)
	if err != nil {
		return o.failed(Internal, "the handler sent an item that is no JSON")
	}
	if r := invalid(o.entry.response, payload, wire.BlamePlugin, "an item is not what its schema says: "); r != nil {
		o.abort(r)
		return &r.PluginError
	}
	b := &wire.StreamItem{RequestID: o.request.RequestID, OperationID: o.request.OperationID, Index: o.out.items, Payload: payload}
	d := dispatch{trace: o.trace, later: true, admit: o.take}
	for {
		err := o.conn.out.send(b, d)
		var fault *wire.Fault
		switch {
		case err == nil:
			return context.Cause(o.ctx)
		case errors.Is(err, errNoCredit):
		case errors.As(err, &fault):
			return o.failed(ResourceExhausted, "an item does not fit into a frame")
		default:
			return err
		}
		select {
		case <-o.out.more:
		case <-o.ctx.Done():
			return context.Cause(o.ctx)
		}
	}
}

// failed makes the operation fail, whatever the handler does with the error.
func (o *Operation) failed(code ErrorCode, message string) error {
	r := blamed(code, wire.BlamePlugin, message)
	o.abort(r)
	return &r.PluginError
}

// take uses credit for an item whose frame has size bytes.
func (o *Operation) take(size int64) error {
	o.mu.Lock()
	if o.over || o.ctx.Err() != nil {
		o.mu.Unlock()
		if err := context.Cause(o.ctx); err != nil {
			return err
		}
		return ErrSessionClosed
	}
	defer o.mu.Unlock()
	if o.out.credit.TooLarge(size) {
		o.failure = blamed(ResourceExhausted, wire.BlamePlugin, "an item is larger than any credit that the host gave")
		return &o.failure.PluginError
	}
	if !o.out.credit.Take(size) {
		return errNoCredit
	}
	o.out.items++
	o.out.bytes += size
	o.streaming()
	return nil
}

// streaming notes the first item in either direction. o.mu is held.
func (o *Operation) streaming() {
	if o.state.Is(wire.OperationRunning) {
		o.state.Move(wire.OperationStreaming)
	}
}

// flow takes credit from the host.
func (o *Operation) flow(b *wire.Flow) {
	if !o.entry.streamOut {
		o.abort(blamed(InvalidArgument, wire.BlameHost, "flow for an operation that streams no response"))
		return
	}
	o.mu.Lock()
	o.out.credit.Grant(b.CreditItems, b.CreditBytes)
	o.mu.Unlock()
	notify(o.out.more)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// streamEnd returns the frame that ends the response stream.
func (o *Operation) streamEnd() *wire.StreamEnd {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &wire.StreamEnd{RequestID: o.request.RequestID, OperationID: o.request.OperationID, ItemCount: o.out.items, ByteCount: o.out.bytes}
}

// windowItems is the number of items of a request stream that the host may send
// before any was read; their bytes may be those of one frame of the largest size.
const windowItems = 64

// An inStream is the items that an operation receives. Operation.mu holds it.
type inStream struct {
	credit       wire.Credit
	items, bytes int64
	queue        []inItem
	usedItems    int64 // read, and not yet made up for by credit
	usedBytes    int64
	ended        bool
	more         chan struct{} // has an element when something has come
}

type inItem struct {
	payload json.RawMessage
	size    int64
}

// openIn gives the first credit.
func (o *Operation) openIn() {
	o.mu.Lock()
	o.in.credit.Grant(windowItems, o.windowBytes())
	o.mu.Unlock()
	o.send(&wire.Flow{RequestID: o.request.RequestID, CreditItems: windowItems, CreditBytes: o.windowBytes()})
}

func (o *Operation) windowBytes() int64 { return int64(o.conn.out.limit) }

// receive takes an item from the host.
func (o *Operation) receive(b *wire.StreamItem, size int) {
	o.mu.Lock()
	var r *refusal
	switch {
	case !o.entry.streamIn:
		r = blamed(InvalidArgument, wire.BlameHost, "an item for an operation without a request stream")
	case o.in.ended:
		r = blamed(InvalidArgument, wire.BlameHost, "an item after the end of the stream")
	case !o.in.credit.Receive(int64(size)):
		r = blamed(wire.CodeFlowControlViolation, wire.BlameHost, "items beyond the credit that was given")
	case b.Index != o.in.items:
		r = blamed(InvalidArgument, wire.BlameHost, "an item out of its order")
	default:
		o.in.items++
		o.in.bytes += int64(size)
		o.in.queue = append(o.in.queue, inItem{b.Payload, int64(size)})
		o.streaming()
	}
	o.mu.Unlock()
	if r != nil {
		o.abort(r)
		return
	}
	notify(o.in.more)
}

// receiveEnd takes the end of the stream from the host.
func (o *Operation) receiveEnd(b *wire.StreamEnd) {
	o.mu.Lock()
	var r *refusal
	switch {
	case !o.entry.streamIn:
		r = blamed(InvalidArgument, wire.BlameHost, "streamEnd for an operation without a request stream")
	case o.in.ended:
		r = blamed(InvalidArgument, wire.BlameHost, "the stream has ended before")
	case b.ItemCount != o.in.items || b.ByteCount != o.in.bytes:
		r = blamed(InvalidArgument, wire.BlameHost, "the end of the stream counts other items or bytes than were sent")
	default:
		o.in.ended = true
	}
	o.mu.Unlock()
	if r != nil {
		o.abort(r)
		return
	}
	notify(o.in.more)
}

// Items returns the items of the request stream as they come, each of which has
// passed the request schema. The host sends more only as they are read. After an
// error, which is fit to be returned by the handler, there are no more.
func (o *Operation) Items() iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for {
			item, ok, err := o.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if !ok || !yield(item, nil) {
				return
			}
		}
	}
}

// next waits for an item. ok is false at the end of the stream.
func (o *Operation) next() (item json.RawMessage, ok bool, err error) {
	if !o.entry.streamIn {
		return nil, false, o.failed(Internal, "the operation has no request stream")
	}
	for {
		if err := context.Cause(o.ctx); err != nil {
			return nil, false, err
		}
		item, ok, ended, refill := o.pop()
		if refill != nil {
			o.send(refill)
		}
		switch {
		case ok:
			if r := invalid(o.entry.request, item, wire.BlameHost, "an item is not valid: "); r != nil {
				o.abort(r)
				return nil, false, &r.PluginError
			}
			return item, true, nil
		case ended:
			return nil, false, nil
		}
		select {
		case <-o.in.more:
		case <-o.ctx.Done():
		}
	}
}

// pop takes the first item that waits, if there is one, and returns the credit that
// is due: as soon as half of the window is used, or nothing is left to read.
func (o *Operation) pop() (item json.RawMessage, ok, ended bool, refill *wire.Flow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := &o.in
	if len(in.queue) > 0 {
		first := in.queue[0]
		in.queue[0] = inItem{}
		in.queue = in.queue[1:]
		in.usedItems++
		in.usedBytes += first.size
		item, ok = first.payload, true
	}
	idle := !ok && in.usedItems > 0
	if !in.ended && (idle || in.usedItems*2 >= windowItems || in.usedBytes*2 >= o.windowBytes()) {
		refill = &wire.Flow{RequestID: o.request.RequestID, CreditItems: in.usedItems, CreditBytes: in.usedBytes}
		in.credit.Grant(in.usedItems, in.usedBytes)
		in.usedItems, in.usedBytes = 0, 0
	}
	return item, ok, in.ended, refill
}
