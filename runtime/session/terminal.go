package session

import (
	"encoding/json"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

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
	w.Message = shown(c.opts.Masked.Hide(w.Message))
	if string(w.Details) == c.opts.Masked.Hide(string(w.Details)) {
		w.Details = append(json.RawMessage(nil), w.Details...)
	} else {
		w.Details = nil // they tell a secret
	}
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

// abandon ends a request for a fault of the plugin in it, and tells the plugin: to it the
// error is the request's end.
func (call *Call) abandon(f *Fault) {
	call.mu.Lock()
	tell := !call.told && !call.ending()
	call.told = true
	call.mu.Unlock()
	if tell {
		told := &wire.Error{Code: f.Rule, Message: f.Text, BlameDomain: f.Rule.Blame(wire.BlamePlugin), Severity: wire.SeverityError,
			RequestID: wire.Some(call.request), OperationID: wire.Some(call.operation)}
		_, _ = call.c.out.add(told, call.trace, wire.Some(call.message)) // ErrClosed: nobody listens
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
