package session

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Request is one attempt at one operation.
type Request struct {
	CapabilityID, OperationName string
	Payload                     json.RawMessage   // one value; nil where items are sent
	OperationID                 wire.UUID         // the zero value: a new one
	Attempt                     int64             // 0: the first
	IdempotencyKey              string            // "": nothing is deduplicated
	Timeout                     time.Duration     // 0: the session's
	GrantID                     string            // permissionsGrantId, or ""
	Class                       wire.PayloadClass // "": internal
	DiagnosticPolicy            wire.DiagnosticPolicy
	Retention                   wire.Retention
	Secrets                     []wire.Secret // need secrets.inject.v1
	Trace                       wire.TraceID
	Window                      Window
	// Progress is called with what the plugin tells, one after the other, from a goroutine
	// of its own; of updates that come while it runs only the newest is shown. It is not
	// called after Result has returned.
	Progress func(wire.ProgressUpdate)
}

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
	release   func() // stops what watches the time and the context

	mu        sync.Mutex
	state     wire.Machine // operation
	cancel    wire.Machine // cancellation
	cause     error        // why it is to stop
	giveUp    *time.Timer
	result    *Result
	err       error
	unchecked bool // the result's payload was not yet held against its schema
	in        inbox
	sending
	pump
}

// Do sends a request. ctx bounds the wait for room in the session and then the whole
// request: when it ends the request is cancelled. The error is *BadRequest, ErrDraining,
// ErrClosed, the session's *Fault or ctx's.
func (c *Client) Do(ctx context.Context, r Request) (*Call, error) {
	op, err := c.check(&r)
	if err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.over:
		return nil, c.why(ErrClosed)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	call, err := c.start(ctx, op, &r)
	if err != nil {
		<-c.slots
		return nil, err
	}
	return call, nil
}

// check refuses what the plugin would refuse, and what it must not be sent.
func (c *Client) check(r *Request) (*Operation, error) {
	op, ok := c.ops[r.CapabilityID+"/"+r.OperationName]
	if !ok {
		return nil, badRequest(wire.CodeUnknownOperation, "", "the plugin has no operation %s/%s", r.CapabilityID, r.OperationName)
	}
	if r.Class == "" {
		r.Class = wire.ClassInternal
	}
	accepted := false
	for _, class := range c.opts.AcceptedClasses {
		accepted = accepted || class == r.Class
	}
	switch {
	case !accepted:
		return nil, badRequest(wire.CodePayloadClassDenied, "", "payloads of class %s are not to be given to this plugin", r.Class)
	case len(r.IdempotencyKey) > wire.MaxIdempotencyKey:
		return nil, badRequest(wire.CodeInvalidArgument, "", "an idempotency key has at most %d characters", wire.MaxIdempotencyKey)
	case len(r.Secrets) > 0 && !c.has(wire.SecretsInject):
		return nil, badRequest(wire.CodeMissingRequiredFeature, "", "the plugin takes no secrets in this session")
	case (op.StreamRequest || op.StreamResponse) && !c.has(wire.FlowCredit):
		return nil, badRequest(wire.CodeMissingRequiredFeature, "", "the plugin has no streams in this session")
	case op.StreamRequest && len(r.Payload) > 0 && string(r.Payload) != "null":
		return nil, badRequest(wire.CodeInvalidArgument, "", "the operation takes a stream of items, not a payload")
	case !op.StreamRequest:
		if err := CheckValue(r.Payload, op.Request); err != nil {
			return nil, err
		}
	}
	return &op, nil
}

// CheckValue refuses a value that breaks the value rules or its schema.
func CheckValue(v json.RawMessage, schema Validator) error {
	if err := ijson.Check(v); err != nil {
		return badRequest(wire.CodeInvalidArgument, "", "it is no JSON that can be sent: %v", err)
	}
	if f := schema(v); f != nil {
		return &BadRequest{*f}
	}
	return nil
}

func badRequest(code wire.Code, path, format string, args ...any) *BadRequest {
	return &BadRequest{wire.Fault{Code: code, Path: path, Message: fmt.Sprintf(format, args...)}}
}

// start registers a request and queues its frame, in one step, so that the numbers of
// requests tell which of them a goAway left out.
func (c *Client) start(ctx context.Context, op *Operation, r *Request) (*Call, error) {
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = time.Duration(c.opts.Limits.RequestTimeoutMs) * time.Millisecond
	}
	call := &Call{c: c, op: op, request: wire.NewUUID(), operation: r.OperationID, trace: r.Trace, class: r.Class, done: make(chan struct{}),
		state: wire.Operation.Start(), cancel: wire.Cancellation.Start()}
	if call.operation == (wire.UUID{}) {
		call.operation = wire.NewUUID()
	}
	call.pump.each = r.Progress
	body := &wire.Request{
		RequestID: call.request, OperationID: call.operation, IdempotencyKey: r.IdempotencyKey, Attempt: max(1, r.Attempt),
		Deadline: c.opts.Now().Add(timeout), CapabilityID: op.CapabilityID, OperationName: op.Name, OperationVersion: op.Version,
		PermissionsGrantID: r.GrantID, PayloadClass: r.Class, Payload: r.Payload,
		DiagnosticPolicy: r.DiagnosticPolicy, Retention: r.Retention, Secrets: r.Secrets,
	}
	if op.StreamRequest || op.StreamResponse {
		body.Stream = &wire.Stream{Request: op.StreamRequest, Response: op.StreamResponse}
	}
	if op.StreamResponse {
		w := c.window(r.Window)
		call.in.open(w, c.agreed.MaxFrameBytes)
		body.Stream.CreditItems, body.Stream.CreditBytes = wire.CountOf(w.Items), wire.CountOf(w.Bytes)
	}
	call.sending.init(op.StreamRequest)
	if err := call.moveAll(wire.OperationValidating, wire.OperationRunning); err != nil {
		return nil, err
	}
	if err := c.roomFor(ctx); err != nil {
		return nil, err
	}
	if err := c.register(call, body); err != nil {
		return nil, err
	}
	c.out.push()
	timer := time.AfterFunc(timeout, func() { call.stop(ErrDeadline, "deadline_exceeded") })
	forget := context.AfterFunc(ctx, func() { call.stop(context.Cause(ctx), "cancelled by the caller") })
	call.mu.Lock()
	call.release = func() { timer.Stop(); forget() }
	over := call.err != nil || call.result != nil
	call.mu.Unlock()
	if over {
		call.release()
	}
	return call, nil
}

// roomFor waits while too much waits for the plugin.
func (c *Client) roomFor(ctx context.Context) error {
	for room := c.out.room(); room != nil; room = c.out.room() {
		select {
		case <-room:
		case <-c.over:
			return c.why(ErrClosed)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (c *Client) register(call *Call, body *wire.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if !c.state.Is(wire.ConnectionReady) {
		return ErrDraining
	}
	s, err := c.out.queue(body, call.trace, wire.NullUUID{}, nil)
	if err != nil {
		if f, ok := err.(*wire.Fault); ok {
			return badRequest(wire.CodeResourceExhausted, "", "the request is too large: %s", f.Message)
		}
		return err
	}
	call.message, call.sequence = s.id, s.sequence
	c.calls[call.request] = call
	c.ended.issued(call.request)
	if c.life.Is(wire.LifecycleReady) {
		return c.life.Move(wire.LifecycleBusy)
	}
	return nil
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
func (call *Call) Done() <-chan struct{} { return call.done }

// Result waits for the end. The error is one of: a *wire.Error, the plugin's answer;
// *Cancelled; *GivenUp; *NotAccepted; ErrClosed; a *Fault.
func (call *Call) Result() (*Result, error) {
	<-call.done
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
	return nil
}

// end takes the first terminal frame of a request.
func (c *Client) end(e *wire.Envelope, call *Call, to wire.State, result *Result, err error) *Fault {
	if wrong := c.finish(call, to, result, err); wrong != nil {
		return broken(e.Type, wrong)
	}
	return nil
}

// response takes the good end of a request.
func (c *Client) response(e *wire.Envelope) *Fault {
	var r wire.Response
	if err := wire.Decode(e.Body, &r); err != nil {
		return c.badBody(e, err)
	}
	call, f := c.callOf(e.Type, r.RequestID)
	if call == nil {
		return f
	}
	if f := call.belongs(e, r.OperationID, true); f != nil {
		return f
	}
	if err := c.ownReceipt(e.Type, r.Receipt); err != nil {
		return err.(*Fault)
	}
	if r.Receipt != nil && !c.has(wire.Receipts) {
		return violation(e.Type, "the feature %s is not on", wire.Receipts)
	}
	call.mu.Lock()
	items, bytes, unended := call.in.items, call.in.bytes, call.op.StreamResponse && !call.in.ended
	call.mu.Unlock()
	if unended {
		call.abandon(malformed(e.Type, wire.CodeInvalidArgument, "the response comes before the end of its stream"))
		return nil
	}
	if r.PayloadClass != call.class {
		call.abandon(malformed(e.Type, wire.CodeInvalidArgument, "the payload's class is %s, the request's %s", r.PayloadClass, call.class))
		return nil
	}
	result := &Result{Payload: append(json.RawMessage(nil), r.Payload...), Class: r.PayloadClass, Receipt: r.Receipt, Items: items, Bytes: bytes}
	if call.op.StreamResponse && string(result.Payload) != "null" {
		return c.end(e, call, wire.OperationCompleted, nil, malformed(e.Type, wire.CodeSchemaMismatch, "the payload after a stream must be null"))
	}
	return c.end(e, call, wire.OperationCompleted, result, nil)
}

// failure takes an error frame: the end of a request, the answer to a question, or what
// concerns the connection.
func (c *Client) failure(e *wire.Envelope) *Fault {
	var w wire.Error
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	w.Message = shown(w.Message)
	w.Details = append(json.RawMessage(nil), w.Details...)
	if err := c.ownReceipt(e.Type, w.Receipt); err != nil {
		return err.(*Fault)
	}
	if w.RequestID.Set {
		call, f := c.callOf(e.Type, w.RequestID.UUID)
		if f != nil {
			return f
		}
		if call != nil {
			if f := call.belongs(e, w.OperationID.UUID, true); f != nil {
				return f
			}
			if f := c.end(e, call, wire.OperationFailed, nil, &w); f != nil {
				return f
			}
		}
		if w.Severity == wire.SeverityFatal {
			return endedBy(&w)
		}
		return nil
	}
	if w.Severity == wire.SeverityFatal {
		return endedBy(&w)
	}
	return c.notice(e, &w)
}

// notice takes an error that names no request and ends nothing.
func (c *Client) notice(e *wire.Envelope, w *wire.Error) *Fault {
	c.mu.Lock()
	_, asked := c.asks[e.CausationID.UUID]
	var about *Call
	for _, call := range c.calls {
		if e.CausationID.Set && call.message == e.CausationID.UUID {
			about = call
		}
	}
	c.mu.Unlock()
	switch {
	case asked && e.CausationID.Set:
		return c.settle(e, w)
	case about != nil: // the plugin could not even read which request it was
		return c.end(e, about, wire.OperationFailed, nil, w)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.Notices++; c.counts.Notices > maxNotices {
		return malformed(e.Type, wire.CodeResourceExhausted, "errors without end that concern no request")
	}
	return nil
}

// badBody judges a body that is not what its type says. It ends the request or the
// question that it can be told to belong to, and else nothing: the plugin is told.
func (c *Client) badBody(e *wire.Envelope, err error) *Fault {
	f := broken(e.Type, err)
	if request, _ := wire.Ids(e.Body); request.Set {
		call, other := c.callOf(e.Type, request.UUID)
		if call == nil {
			return other
		}
		call.abandon(f)
		return nil
	}
	c.mu.Lock()
	c.counts.Notices++
	many := c.counts.Notices > maxNotices
	c.mu.Unlock()
	if many {
		return malformed(e.Type, wire.CodeResourceExhausted, "bodies without end that cannot be read")
	}
	told := &wire.Error{Code: f.Rule, Message: f.Text, BlameDomain: f.Rule.Blame(wire.BlamePlugin), Severity: wire.SeverityError}
	_, _ = c.out.add(told, e.TraceID, wire.Some(e.MessageID)) // ErrClosed: nobody listens
	return nil
}

// abandon ends a request for a fault of the plugin in it, and asks the plugin to stop.
func (call *Call) abandon(f *Fault) {
	call.mu.Lock()
	ask := call.cause == nil && !call.ending() && call.c.has(wire.Cancel)
	if ask {
		call.cause = f
		ask = call.cancel.Move(wire.CancellationRequested) == nil
	}
	call.mu.Unlock()
	if ask {
		_, _ = call.c.out.add(&wire.CancelRequest{RequestID: call.request, Reason: string(f.Rule)}, call.trace, wire.NullUUID{})
	}
	_ = call.c.finish(call, "", nil, f)
}

// cancelled takes the end of a request that was asked to stop.
func (c *Client) cancelled(e *wire.Envelope) *Fault {
	var w wire.Cancelled
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	call, f := c.callOf(e.Type, w.RequestID)
	if call == nil {
		return f
	}
	if f := call.belongs(e, w.OperationID, true); f != nil {
		return f
	}
	if err := c.ownReceipt(e.Type, w.Receipt); err != nil {
		return err.(*Fault)
	}
	call.mu.Lock()
	cause := call.cause
	call.mu.Unlock()
	return c.end(e, call, wire.OperationCancelled, nil, &Cancelled{Receipt: w.Receipt, Cause: cause})
}

// cancelAck takes the word that a cancel was read.
func (c *Client) cancelAck(e *wire.Envelope) *Fault {
	var w wire.CancelAck
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	c.mu.Lock()
	call := c.calls[w.RequestID]
	if call == nil {
		defer c.mu.Unlock()
		if c.ended.acknowledged(w.RequestID) {
			return nil
		}
		if !c.ended.has(w.RequestID) {
			return violation(e.Type, "its requestId was never issued")
		}
		return violation(e.Type, "no cancel was sent that it could answer")
	}
	c.mu.Unlock()
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.ending() {
		return nil
	}
	if err := call.cancel.Move(wire.CancellationAcknowledged); err != nil {
		return broken(e.Type, err)
	}
	return nil
}
