package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/receipts"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// An outcome is how an operation ends: with the one of these that is set, or, if none
// is, cancelled.
type outcome struct {
	payload json.RawMessage // completed; null after a response stream
	failure *refusal
	raised  bool // the handler failed in a way that the SDK does not know
}

// serve is the life of an operation from its admission to its terminal frame.
func (o *Operation) serve() {
	o.move(wire.OperationValidating)
	now := o.conn.plugin.wall()
	if r := o.check(now); r != nil {
		o.end(outcome{failure: r})
		return
	}
	if o.entry.receipts && !o.claimed(now) {
		return
	}
	defer o.cancel(nil)
	o.arm(now)
	defer o.timer.Stop()
	o.move(wire.OperationRunning)
	if o.entry.streamOut {
		o.out.credit.Grant(o.request.Stream.CreditItems.N, o.request.Stream.CreditBytes.N)
	}
	if o.entry.streamIn {
		o.openIn()
	}
	if o.ctx.Err() != nil { // cancelled before it began
		o.end(o.judge(nil, context.Cause(o.ctx)))
		return
	}
	result, err := guarded(func() (any, error) { return o.entry.handler(o.ctx, o) })
	o.end(o.judge(result, err))
}

// move goes on in the table of operations. What the table does not allow has been
// overtaken by a cancellation.
func (o *Operation) move(to wire.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if wire.Operation.Allows(o.state.State(), to) {
		o.state.Move(to)
	}
}

// arm starts the time of the operation. The clock on the wall is looked at once; from
// here on it may be set.
func (o *Operation) arm(now time.Time) {
	left := time.Duration(1<<63 - 1)
	if ms := o.conn.init.Limits.RequestTimeoutMs; ms < int64(left/time.Millisecond) {
		left = time.Duration(ms) * time.Millisecond
	}
	if d := o.request.Deadline; !d.IsZero() {
		left = min(left, d.Sub(now)) // Sub saturates
	}
	o.timer = time.AfterFunc(left-time.Since(o.begun), o.expired)
}

// judge makes an outcome of what the handler came to.
func (o *Operation) judge(result any, err error) outcome {
	o.mu.Lock()
	failure, late := o.failure, o.late
	o.mu.Unlock()
	switch {
	case failure != nil:
		return outcome{failure: failure, raised: o.unexplained(err)}
	case late:
		return outcome{failure: blamed(DeadlineExceeded, wire.BlamePlugin, "the deadline has passed"), raised: o.unexplained(err)}
	case err == nil:
		return o.judgeResult(result)
	}
	var meant *PluginError
	switch {
	case errors.As(err, &meant):
		return o.judgeError(meant)
	case o.stopped(err):
		return outcome{}
	}
	text := "its error is not shown: the request's diagnosticPolicy does not allow it"
	if o.Context.DiagnosticPolicy == wire.DiagnosticDebug {
		text = o.hide(err.Error())
	}
	logf("the handler of %s/%s failed: %s", o.entry.capability, o.entry.name, text)
	return outcome{failure: blamed(Internal, wire.BlamePlugin, "the handler failed"), raised: true}
}

// stopped reports whether a handler returned because its context had ended.
func (o *Operation) stopped(err error) bool {
	return o.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(o.ctx)))
}

// unexplained reports whether the error of a handler whose operation fails for another
// reason is one that the SDK does not know, and keeps the effect that a known one declares.
func (o *Operation) unexplained(err error) bool {
	var meant *PluginError
	if errors.As(err, &meant) {
		if meant.Effect != "" {
			o.Effect(meant.Effect)
		}
		return false
	}
	return err != nil && !o.stopped(err)
}

func (o *Operation) judgeResult(result any) outcome {
	bad := func(message string) outcome {
		logf("the handler of %s/%s: %s", o.entry.capability, o.entry.name, message)
		return outcome{failure: blamed(Internal, wire.BlamePlugin, message)}
	}
	if o.entry.streamOut {
		if result != nil {
			return bad("the handler of a response stream returned a result")
		}
		return outcome{payload: json.RawMessage("null")}
	}
	payload, err := encodeValue(result)
	if err != nil {
		return bad("the handler returned no JSON")
	}
	if r := invalid(o.entry.response, payload, wire.BlamePlugin, "the plugin's result is not what its schema says: "); r != nil {
		return outcome{failure: r}
	}
	if o.tooLarge(payload) {
		return outcome{failure: blamed(ResourceExhausted, wire.BlamePlugin, "the result does not fit into a frame")}
	}
	return outcome{payload: payload}
}

// tooLarge reports whether a response with the payload, and perhaps a receipt, is
// larger than a frame may be.
func (o *Operation) tooLarge(payload json.RawMessage) bool {
	if len(payload) < o.conn.out.limit/2 {
		return false
	}
	b := &wire.Response{RequestID: o.request.RequestID, OperationID: o.request.OperationID, PayloadClass: o.request.PayloadClass, Payload: payload}
	if o.claim != nil {
		r := o.draft
		r.ResultDigest, r.EffectState, r.ItemCount, r.ByteCount = r.RequestDigest, wire.EffectRolledBack, wire.MaxSafeInteger, wire.MaxSafeInteger
		r.IssuedAt = r.IssuedAt.Truncate(time.Second).Add(123456 * time.Microsecond)
		b.Receipt = &r
	}
	e := wire.Envelope{Version: o.conn.greeted, Sequence: wire.MaxSafeInteger, Timestamp: o.draft.IssuedAt, TraceID: o.trace, CausationID: o.cause}
	return len(wire.AppendMessage(nil, &e, b))+len(".999999") > o.conn.out.limit
}

// judgeError makes an error of a handler fit to be sent.
func (o *Operation) judgeError(e *PluginError) outcome {
	if e.Effect != "" {
		o.Effect(e.Effect)
	}
	code := usable(e.Code)
	if code != e.Code {
		logf("the handler of %s/%s failed with a code that is not its to use", o.entry.capability, o.entry.name)
		return outcome{failure: blamed(Internal, wire.BlamePlugin, "the handler failed with a code that is not its to use")}
	}
	r := blamed(code, wire.BlamePlugin, o.hide(e.Message))
	r.Retryable = e.Retryable
	if details, err := encodeValue(e.Details); err == nil && len(details) > 0 && details[0] == '{' && o.hide(string(details)) == string(details) {
		r.Details = details
	}
	return outcome{failure: r}
}

// endWithoutHandler ends an operation whose handler does not return.
func (o *Operation) endWithoutHandler() {
	o.mu.Lock()
	over := o.over
	o.mu.Unlock()
	if over {
		return
	}
	logf("the handler of %s/%s does not return", o.entry.capability, o.entry.name)
	out := o.judge(nil, nil)
	out.raised = true
	o.end(out)
}

// end puts the receipt on the disk and then sends the terminal frame, once.
func (o *Operation) end(out outcome) {
	o.mu.Lock()
	if o.over {
		o.mu.Unlock()
		return
	}
	o.over = true
	o.mu.Unlock()
	o.flushProgress()
	streamed := o.entry.streamOut && out.failure == nil && out.payload != nil
	if streamed {
		o.send(o.streamEnd())
	}
	receipt := o.settle(&out)
	o.resolve(out)
	c := o.conn
	c.mu.Lock()
	delete(c.active, o.request.RequestID)
	c.mu.Unlock()
	if !o.silent {
		o.send(o.terminal(out, receipt))
	}
	o.cancel(nil)
	c.drained()
}

// resolve moves the machines to their ends.
func (o *Operation) resolve(out outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancellation.Move(wire.CancellationResolved)
	end := wire.OperationCompleted
	switch {
	case out.failure != nil:
		end = wire.OperationFailed
	case out.payload == nil:
		o.cancelling()
		end = wire.OperationCancelled
	}
	o.state.Move(end)
	o.state.Move(wire.OperationTerminal)
}

// terminal returns the frame that ends the request.
func (o *Operation) terminal(out outcome, receipt *wire.Receipt) wire.Body {
	b := o.request
	if receipt == nil && out.failure != nil {
		receipt = out.failure.receipt
	}
	if !o.conn.features.Has(wire.Receipts) {
		receipt = nil
	}
	switch {
	case out.failure != nil:
		e := out.failure.body(wire.Some(b.RequestID), wire.Some(b.OperationID))
		e.Receipt = receipt
		return e
	case out.payload == nil && !o.conn.features.Has(wire.Cancel): // the session ends
		e := blamed(Unavailable, wire.BlamePlugin, "the session has ended").body(wire.Some(b.RequestID), wire.Some(b.OperationID))
		e.Receipt = receipt
		return e
	case out.payload == nil:
		return &wire.Cancelled{RequestID: b.RequestID, OperationID: b.OperationID, Receipt: receipt}
	}
	return &wire.Response{RequestID: b.RequestID, OperationID: b.OperationID, PayloadClass: b.PayloadClass, Payload: out.payload, Receipt: receipt}
}

// send sends a frame about the request.
func (o *Operation) send(body wire.Body) {
	d := dispatch{trace: o.trace}
	switch body.Type() {
	case wire.TypeResponse, wire.TypeError, wire.TypeCancelled:
		d.cause = o.cause
	}
	if err := o.conn.out.send(body, d); err != nil {
		// Only a response can be that large, and tooLarge has looked at it.
		logf("a frame could not be sent: %v", err)
	}
}

// claimed claims the operation, or ends it as its record says.
func (o *Operation) claimed(now time.Time) bool {
	pkg, b := o.conn.plugin.Package, o.request
	digest, err := wire.RequestDigest(b.CapabilityID, b.OperationName, b.OperationVersion, b.Payload)
	if err != nil {
		o.end(outcome{failure: blamed(Internal, wire.BlamePlugin, "the request has no digest")})
		return false
	}
	id := pkg.identity()
	o.draft = wire.Receipt{
		ReceiptID: wire.NewUUID(), PluginID: id.PluginID, PublisherID: id.PublisherID, PackageVersion: id.PackageVersion, ManifestDigest: pkg.Digest,
		CapabilityID: b.CapabilityID, OperationName: b.OperationName, OperationVersion: b.OperationVersion, OperationID: b.OperationID,
		IdempotencyKey: b.IdempotencyKey, Attempt: b.Attempt, ExecutionState: wire.ExecutionInProgress, EffectState: wire.EffectUnknown,
		StartedAt: now, IssuedAt: now, RequestDigest: digest, ExpiresAt: now.Add(receipts.Lifetime(o.Context.Retention)),
	}
	store := o.conn.plugin.store
	if store == nil {
		o.end(outcome{failure: blamed(FailedPrecondition, wire.BlamePlugin, EnvState+" is not set: there is no place for receipts")})
		return false
	}
	claim, record, err := store.Claim(&o.draft)
	var refused *receipts.Refusal
	switch {
	case errors.As(err, &refused):
		r := blamed(refused.Code, wire.BlamePlugin, refused.Message)
		r.receipt, r.existing = refused.Receipt, refused.Existing
		o.end(outcome{failure: r})
		return false
	case err != nil:
		logf("receipts: %v", err)
		o.end(outcome{failure: blamed(Internal, wire.BlamePlugin, "the receipt cannot be written")})
		return false
	case record != nil:
		o.end(o.replayed(record))
		return false
	}
	o.claim = claim
	return true
}

// replayed answers again what an earlier attempt was answered with.
func (o *Operation) replayed(record *receipts.Record) outcome {
	o.draft = record.Receipt
	o.move(wire.OperationRunning)
	switch {
	case record.Receipt.ExecutionState == wire.ExecutionFailed:
		r := blamed(record.Receipt.ErrorCode, wire.BlamePlugin, "the operation failed before")
		if e := record.Error; e != nil {
			r.Message, r.Retryable = e.Message, e.Retryable
		}
		r.receipt = &record.Receipt
		return outcome{failure: r}
	case o.entry.streamOut:
		return outcome{payload: json.RawMessage("null")}
	case record.Result == nil:
		r := blamed(FailedPrecondition, wire.BlamePlugin, "the operation has completed, and its result was not kept")
		r.receipt = &record.Receipt
		return outcome{failure: r}
	}
	return outcome{payload: record.Result}
}

// settle puts the end of the operation on the disk and returns the receipt to be
// told, nil if there is none. If the disk fails, the outcome becomes an error.
func (o *Operation) settle(out *outcome) *wire.Receipt {
	if o.claim == nil {
		if out.failure == nil && o.draft.ExecutionState == wire.ExecutionCompleted {
			return &o.draft // of the attempt that is answered again
		}
		return nil
	}
	r := o.receipt(*out)
	record := &receipts.Record{Receipt: r}
	switch {
	case out.failure != nil:
		record.Error = &receipts.Failure{Code: out.failure.Code, Message: out.failure.Message, Retryable: out.failure.Retryable}
	case out.payload != nil && !o.entry.streamOut && o.Context.Retention != wire.RetentionNone:
		record.Result = out.payload
	}
	if err := o.claim.Finish(record); err != nil {
		logf("receipts: %v", err)
		*out = outcome{failure: blamed(Internal, wire.BlamePlugin, "the operation has ended, and its receipt cannot be written")}
		return nil
	}
	return &r
}

func (o *Operation) receipt(out outcome) wire.Receipt {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.draft
	r.IssuedAt = o.conn.plugin.wall()
	switch {
	case out.failure != nil:
		r.ExecutionState, r.ErrorCode = wire.ExecutionFailed, out.failure.Code
	case out.payload == nil:
		r.ExecutionState = wire.ExecutionCancelled
	default:
		r.ExecutionState = wire.ExecutionCompleted
	}
	switch {
	case o.effect != "":
		r.EffectState = o.effect
	case out.raised:
		r.EffectState = wire.EffectUnknown
	default:
		r.EffectState = wire.EffectNone
	}
	switch {
	case o.entry.streamOut:
		r.ItemCount, r.ByteCount = o.out.items, o.out.bytes
	case o.entry.streamIn:
		r.ItemCount, r.ByteCount = o.in.items, o.in.bytes
	}
	if out.payload != nil && !o.entry.streamOut {
		if digest, err := wire.Digest(out.payload); err == nil {
			r.ResultDigest = digest
		}
	}
	return r
}

// decodeExactly reads JSON into v and refuses members that v lacks or spells
// differently.
func decodeExactly(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if name := misspeltIn(raw, v); name != "" {
		return fmt.Errorf("unknown member %q", name)
	}
	return nil
}
