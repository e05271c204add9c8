package session

import (
	"context"
	"encoding/json"
	"fmt"
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
	if op.StreamRequest || op.StreamResponse {
		c.turn.rouse()
	}
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
