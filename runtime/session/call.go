package session

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Result is the good end of a request.
type Result struct {
	Payload json.RawMessage // null after a response stream
	Class   wire.PayloadClass
	Receipt *wire.Receipt // nil if there is none
	Items   int64         // of the response stream
	Bytes   int64         // of their frames
}

// A Call is a request on its way. Its methods may be called from any goroutine, Next and
// Send each from one at a time. A response stream must be read to its end, or cancelled:
// a plugin without credit waits until the deadline.
type Call struct {
	c         *Client
	op        *Operation
	request   wire.UUID
	operation wire.UUID
	message   wire.UUID // messageId of the request
	sequence  uint64
	class     wire.PayloadClass
	trace     wire.TraceID
	done      chan struct{}
	release   func()      // stops what watches the time and the context
	waited    atomic.Bool // for its end, and for nothing else of it

	mu        sync.Mutex
	state     wire.Machine // operation
	cancel    wire.Machine // cancellation
	cause     error        // why it is to stop
	told      bool         // that it was abandoned
	giveUp    *time.Timer
	result    *Result
	err       error
	unchecked bool // the result's payload was not yet held against its schema
	in        inbox
	sending
	pump
}

// moveAll takes the operation through states. The caller holds mu, or nobody else has
// the call yet.
func (call *Call) moveAll(states ...wire.State) error {
	for _, s := range states {
		if err := call.state.Move(s); err != nil {
			return err
		}
	}
	return nil
}

// OperationID returns what names the operation across attempts.
func (call *Call) OperationID() wire.UUID { return call.operation }

// RequestID returns what names this attempt.
func (call *Call) RequestID() wire.UUID { return call.request }

// Done is closed when the request has ended.
func (call *Call) Done() <-chan struct{} {
	call.c.turn.rouse()
	return call.done
}

// over reports whether the request has ended.
func (call *Call) over() bool {
	select {
	case <-call.done:
		return true
	default:
		return false
	}
}

// Result waits for the end. The error is one of: a *wire.Error, the plugin's answer;
// *Cancelled; *GivenUp; *NotAccepted; ErrClosed; a *Fault.
func (call *Call) Result() (*Result, error) {
	call.waited.Store(true)
	call.c.wait(call)
	call.pump.wait()
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.unchecked {
		call.unchecked = false
		if f := call.op.Response(call.result.Payload); f != nil {
			call.result, call.err = nil, inPayload(wire.TypeResponse, f)
		}
	}
	return call.result, call.err
}

// Cancel asks the plugin to stop, once; cause is what the request's error wraps. It does
// not wait for the end, which may still be a good one.
func (call *Call) Cancel(cause error) { call.stop(cause, "cancelled by the caller") }

// stop asks for an early end and sets the time for giving the request up.
func (call *Call) stop(cause error, reason string) {
	call.mu.Lock()
	if call.cause != nil || call.ending() {
		call.mu.Unlock()
		return
	}
	call.cause = cause
	if !call.c.has(wire.Cancel) {
		call.mu.Unlock()
		_ = call.c.finish(call, "", nil, &GivenUp{cause})
		return
	}
	// The states change before the frame can be answered.
	err := call.cancel.Move(wire.CancellationRequested)
	if err == nil {
		err = call.state.Move(wire.OperationCancelling)
	}
	if err == nil {
		call.giveUp = time.AfterFunc(call.c.opts.Grace, func() { _ = call.c.finish(call, "", nil, &GivenUp{cause}) })
	}
	call.mu.Unlock()
	if err == nil {
		_, err = call.c.out.add(&wire.CancelRequest{RequestID: call.request, Reason: reason}, call.trace, wire.NullUUID{})
	}
	if err != nil {
		_ = call.c.finish(call, "", nil, call.c.why(err))
	}
}

// ending reports whether the first terminal frame is there. The caller holds mu.
func (call *Call) ending() bool { return call.result != nil || call.err != nil }

// finish ends a request, if nothing has ended it before, and makes room for another. to is
// the state that a terminal frame makes, or "" where this side ends it. The error is an
// illegal transition, which ends nothing.
func (c *Client) finish(call *Call, to wire.State, result *Result, err error) error {
	call.mu.Lock()
	if call.ending() {
		call.mu.Unlock()
		return nil
	}
	requested := call.cancel.Is(wire.CancellationRequested)
	if to != "" {
		before := call.state
		if err := call.moveAll(to, wire.OperationTerminal); err != nil {
			call.state = before
			call.mu.Unlock()
			return err
		}
		if err := call.cancel.Move(wire.CancellationResolved); err != nil {
			call.mu.Unlock()
			return err
		}
	}
	call.result, call.err = result, err
	call.unchecked = result != nil && !call.op.StreamResponse
	release, giveUp := call.release, call.giveUp
	items := call.in.outstanding()
	call.mu.Unlock()
	c.mu.Lock()
	delete(c.calls, call.request)
	c.ended.add(call.request, requested)
	c.budget += int(items)
	alone := len(c.calls) == 0 && len(c.asks) == 0
	var idle chan struct{}
	if len(c.calls) == 0 {
		if c.life.Is(wire.LifecycleBusy) {
			_ = c.life.Move(wire.LifecycleReady) // an edge of the table
		}
		idle, c.idle = c.idle, nil
	}
	c.mu.Unlock()
	if idle != nil {
		close(idle)
	}
	if release != nil {
		release()
	}
	if giveUp != nil {
		giveUp.Stop()
	}
	<-c.slots
	close(call.done)
	if to == "" {
		c.turn.release(call)
	} else {
		c.turn.answered(alone && call.waited.Load())
	}
	return nil
}
