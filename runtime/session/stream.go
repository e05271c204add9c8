package session

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// ErrNoStream reports Next or Send of an operation that has no such stream, or Send
// after CloseSend.
var ErrNoStream = errors.New("the operation has no such stream")

// A batch holds payloads one after the other.
type batch struct {
	data  []byte
	ends  []int   // of each payload in data
	sizes []int64 // N of each item's frame
}

func (b *batch) reset() { b.data, b.ends, b.sizes = b.data[:0], b.ends[:0], b.sizes[:0] }

// An inbox holds what has come of a response stream and was not taken. The reading
// goroutine fills one batch while the consumer empties the other; what they hold is
// bounded by the credit that was given. The call's mu guards it.
type inbox struct {
	window   Window
	eager    bool // one item may need all the credit: what was taken is given back whenever the consumer waits
	credit   wire.Credit
	filling  batch
	wake     chan struct{}
	waiting  bool
	items    int64 // received
	bytes    int64
	ended    bool // streamEnd has come
	taken    int64
	takenN   int64 // since the last flow, as taken
	emptying batch // the consumer's alone
	at       int
}

// window completes a window with the defaults.
func (c *Client) window(w Window) Window {
	if w.Items <= 0 {
		w.Items = DefaultWindowItems
	}
	if w.Bytes <= 0 {
		w.Bytes = c.agreed.MaxFrameBytes + windowSlack
	}
	return w
}

func (in *inbox) open(w Window, largest int64) {
	in.window, in.eager = w, w.Bytes < largest+windowSlack
	in.credit.Grant(w.Items, w.Bytes)
	in.wake = make(chan struct{}, 1)
}

// outstanding returns how many items may still come.
func (in *inbox) outstanding() int64 {
	items, _ := in.credit.Left()
	return max(0, items) + 1
}

// due returns the credit to be given now, which is then counted as given. idle is that
// the consumer has taken everything and waits.
func (in *inbox) due(idle bool) (items, bytes int64) {
	slack := in.window.Bytes / 2
	if !in.eager {
		slack = min(slack, windowSlack)
	}
	if in.taken*2 < in.window.Items && in.takenN < slack && !(idle && in.eager) || in.taken == 0 || in.ended {
		return 0, 0
	}
	items, bytes = in.taken, in.takenN
	in.taken, in.takenN = 0, 0
	in.credit.Grant(items, bytes)
	return items, bytes
}

// item takes one item of a response stream.
func (c *Client) item(e *wire.Envelope, size int) *Fault {
	w := &c.scratch
	*w = wire.StreamItem{}
	if err := e.ReadItem(w); err != nil {
		return c.badBody(e, err)
	}
	call, f := c.callOf(e.Type, w.RequestID)
	if call == nil {
		return f
	}
	if f := call.belongs(e, w.OperationID, false); f != nil {
		return f
	}
	call.mu.Lock()
	in := &call.in
	switch {
	case call.ending():
		call.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts.LateFrames++
		return nil
	case !call.op.StreamResponse:
		call.mu.Unlock()
		call.abandon(malformed(e.Type, wire.CodeInvalidArgument, "the operation's answer is no stream"))
		return nil
	case in.ended:
		call.mu.Unlock()
		call.abandon(malformed(e.Type, wire.CodeInvalidArgument, "an item after the end of its stream"))
		return nil
	case w.Index != in.items:
		call.mu.Unlock()
		call.abandon(malformed(e.Type, wire.CodeInvalidArgument, "item %d where item %d comes next", w.Index, in.items))
		return nil
	case !in.credit.Receive(int64(size)):
		call.mu.Unlock()
		call.abandon(malformed(e.Type, wire.CodeFlowControlViolation, "an item of %d bytes beyond the credit", size))
		return nil
	}
	if call.state.Is(wire.OperationRunning) {
		if err := call.state.Move(wire.OperationStreaming); err != nil {
			call.mu.Unlock()
			return broken(e.Type, err)
		}
	}
	in.items++
	in.bytes += int64(size)
	b := &in.filling
	b.data = append(b.data, w.Payload...)
	b.ends = append(b.ends, len(b.data))
	b.sizes = append(b.sizes, int64(size))
	in.rouse()
	call.mu.Unlock()
	return nil
}

func (in *inbox) rouse() {
	if in.waiting {
		in.waiting = false
		in.wake <- struct{}{}
	}
}

// streamEnd takes the end of a response stream.
func (c *Client) streamEnd(e *wire.Envelope) *Fault {
	var w wire.StreamEnd
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	call, f := c.callOf(e.Type, w.RequestID)
	if call == nil {
		return f
	}
	if f := call.belongs(e, w.OperationID, false); f != nil {
		return f
	}
	if f := call.endStream(&w); f != nil {
		call.abandon(f)
	}
	return nil
}

func (call *Call) endStream(w *wire.StreamEnd) *Fault {
	call.mu.Lock()
	defer call.mu.Unlock()
	in := &call.in
	switch {
	case call.ending():
		return nil
	case !call.op.StreamResponse || in.ended:
		return malformed(wire.TypeStreamEnd, wire.CodeInvalidArgument, "there is no stream to end")
	case w.ItemCount != in.items || w.ByteCount != in.bytes:
		return malformed(wire.TypeStreamEnd, wire.CodeInvalidArgument, "it counts %d items and %d bytes, %d and %d came", w.ItemCount, w.ByteCount, in.items, in.bytes)
	}
	in.ended = true
	in.rouse()
	return nil
}

// Next returns the next item of the response stream, valid until the next Next. At the
// end of the stream the error is io.EOF, and Result then tells how the request ended;
// otherwise it is what Result returns, once every item that came before is taken.
//
// Taking items is what gives the plugin credit for more.
func (call *Call) Next() (json.RawMessage, error) {
	if !call.op.StreamResponse {
		return nil, ErrNoStream
	}
	in := &call.in
	for in.at == len(in.emptying.ends) {
		if err := call.refill(); err != nil {
			return nil, err
		}
	}
	start := 0
	if in.at > 0 {
		start = in.emptying.ends[in.at-1]
	}
	end, size := in.emptying.ends[in.at], in.emptying.sizes[in.at]
	payload := in.emptying.data[start:end:end]
	in.at++
	if f := call.op.Response(payload); f != nil {
		fault := inPayload(wire.TypeStreamItem, f)
		call.abandon(fault)
		in.at = len(in.emptying.ends)
		return nil, fault
	}
	call.mu.Lock()
	in.taken++
	in.takenN += size
	items, bytes := in.due(false)
	over := call.ending()
	call.mu.Unlock()
	if items > 0 && !over {
		call.grant(items, bytes)
	}
	return payload, nil
}

// Ready reports whether Next would not wait.
func (call *Call) Ready() bool {
	if call.in.at < len(call.in.emptying.ends) {
		return true
	}
	call.mu.Lock()
	defer call.mu.Unlock()
	return len(call.in.filling.ends) > 0 || call.in.ended || call.ending()
}

// refill exchanges the batches, waiting for something to come.
func (call *Call) refill() error {
	in := &call.in
	call.mu.Lock()
	for {
		if len(in.filling.ends) > 0 {
			in.emptying.reset()
			in.emptying, in.filling, in.at = in.filling, in.emptying, 0
			call.mu.Unlock()
			return nil
		}
		if in.ended {
			call.mu.Unlock()
			return io.EOF
		}
		if call.ending() {
			err := call.err
			call.mu.Unlock()
			return err
		}
		items, bytes := in.due(true)
		in.waiting = true
		call.mu.Unlock()
		if items > 0 {
			call.grant(items, bytes)
		}
		select {
		case <-in.wake:
		case <-call.done:
		}
		call.mu.Lock()
		if in.waiting = false; len(in.wake) > 0 {
			<-in.wake
		}
	}
}

func (call *Call) grant(items, bytes int64) {
	flow := &wire.Flow{RequestID: call.request, CreditItems: items, CreditBytes: bytes}
	_, _ = call.c.out.add(flow, call.trace, wire.NullUUID{}) // a session that is over needs none
}

// inPayload makes a fault of a payload that its schema refuses.
func inPayload(t wire.MessageType, f *wire.Fault) *Fault {
	return &Fault{Code: wire.CodePluginMalformed, Rule: f.Code, Message: t, Path: "/payload" + f.Path, Text: f.Message, Cause: f}
}

// sending is a request stream on its way out. The call's mu guards credit and more.
type sending struct {
	open   bool
	credit wire.Credit
	more   chan struct{} // holds one once credit has come
	index  int64
	bytes  int64
}

func (s *sending) init(open bool) {
	if s.open = open; open {
		s.more = make(chan struct{}, 1)
	}
}

// flow takes credit for a request stream.
func (c *Client) flow(e *wire.Envelope) *Fault {
	var w wire.Flow
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	call, f := c.callOf(e.Type, w.RequestID)
	if call == nil {
		return f
	}
	if f := call.belongs(e, call.operation, false); f != nil {
		return f
	}
	if !call.op.StreamRequest {
		call.abandon(malformed(e.Type, wire.CodeInvalidArgument, "the operation takes no stream"))
		return nil
	}
	call.mu.Lock()
	defer call.mu.Unlock()
	call.credit.Grant(w.CreditItems, w.CreditBytes)
	select {
	case call.more <- struct{}{}:
	default:
	}
	return nil
}

// Send sends one item of the request stream; it waits for the plugin's credit. The error
// is *BadRequest, after which the stream goes on, ErrNoStream, or what Result returns once
// the request has ended, which it may before every item is sent; io.EOF if that is a good
// end.
func (call *Call) Send(item json.RawMessage) error {
	if !call.sending.open {
		return ErrNoStream
	}
	if err := CheckValue(item, call.op.Request); err != nil {
		return err
	}
	body := &wire.StreamItem{RequestID: call.request, OperationID: call.operation, Index: call.index, Payload: item}
	for {
		var n int64
		var tooLarge bool
		s, err := call.c.out.addIf(body, call.trace, wire.NullUUID{}, func(size int) bool {
			call.mu.Lock()
			defer call.mu.Unlock()
			n, tooLarge = int64(size), call.credit.TooLarge(int64(size))
			return !call.ending() && call.credit.Take(int64(size))
		})
		var fault *wire.Fault
		switch {
		case errors.As(err, &fault):
			return badRequest(wire.CodeResourceExhausted, "", "the item is too large: %s", fault.Message)
		case err != nil:
			return call.c.why(err)
		case s.size > 0:
			call.index++
			call.bytes += n
			return call.began()
		case tooLarge:
			return badRequest(wire.CodeResourceExhausted, "", "the item's frame of %d bytes is larger than any credit of the plugin", n)
		}
		if err := call.awaitCredit(); err != nil {
			return err
		}
	}
}

// began moves the operation on with its first item, and waits while too much waits for
// the plugin.
func (call *Call) began() error {
	call.mu.Lock()
	if call.state.Is(wire.OperationRunning) {
		_ = call.state.Move(wire.OperationStreaming) // an edge of the table
	}
	call.mu.Unlock()
	for room := call.c.out.room(); room != nil; room = call.c.out.room() {
		select {
		case <-room:
		case <-call.done:
			return call.ended()
		}
	}
	return nil
}

func (call *Call) awaitCredit() error {
	select {
	case <-call.more:
		return nil
	case <-call.done:
		return call.ended()
	}
}

// ended returns the error of a request that has ended, io.EOF for a good end.
func (call *Call) ended() error {
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.err != nil {
		return call.err
	}
	return io.EOF
}

// CloseSend ends the request stream. Sent again it does nothing.
func (call *Call) CloseSend() error {
	if !call.sending.open {
		return nil
	}
	call.sending.open = false
	select {
	case <-call.done:
		return nil
	default:
	}
	end := &wire.StreamEnd{RequestID: call.request, OperationID: call.operation, ItemCount: call.index, ByteCount: call.bytes}
	if _, err := call.c.out.add(end, call.trace, wire.NullUUID{}); err != nil {
		return call.c.why(err)
	}
	return nil
}
