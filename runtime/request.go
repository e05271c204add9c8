package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Running is a request on its way, or one that was answered from this host's copy of
// its receipt. Its methods are those of a session.Call.
type Running struct {
	ID string // operationId; also the recorded operation's

	call      *session.Call // nil where the copy answered
	r         *hosting
	op        session.Operation
	req       session.Request
	digest    string
	started   time.Time
	durable   bool // it is recorded
	once      sync.Once
	result    *RequestResult
	err       error
	recordErr error
}

// A RequestResult is the good end of a request.
type RequestResult struct {
	Operation string // operationId of this attempt
	Payload   json.RawMessage
	Class     wire.PayloadClass
	Receipt   *wire.Receipt
	Items     int64 // of the response stream
	Bytes     int64
	Replayed  bool // the stored result of an earlier attempt with the same key
	FromCopy  bool // the plugin's store does not have it any more: this host's copy does
}

// KeyUnkept refuses an idempotency key that nothing would hold to: a key means something
// only where the plugin writes receipts.
type KeyUnkept struct {
	ID, Action string
	Declared   bool // the operation has receipts, and the session does not
}

func (e *KeyUnkept) Error() string {
	if e.Declared {
		return e.Action + " cannot be kept from running twice: the session was agreed upon without " + string(wire.Receipts)
	}
	return e.Action + " cannot be kept from running twice: " + e.ID + " writes no receipts of it, and an idempotency key means nothing without them"
}

// Do sends one request, after the decisions were looked at again and, unless the
// operation is a mere read (idempotent, without receipts), after it was recorded. Errors
// as of session.Client.Do; besides, *KeyUnkept, decisions that changed, *pkgmgr.Busy for a
// key that is in use, a *Stopped, and a *wire.Error or *wire.Fault from this host's copy of a receipt.
func (s *Session) Do(ctx context.Context, req session.Request) (*Running, error) {
	r := s.r
	op, err := r.operation(req)
	if err != nil {
		return nil, err
	}
	if req.IdempotencyKey != "" && (!op.Receipts || !r.client.Agreed().Features.Has(wire.Receipts)) {
		return nil, &KeyUnkept{ID: r.approval.Manifest.ID, Action: op.CapabilityID + "/" + op.Name, Declared: op.Receipts}
	}
	if err := r.check(req, op); err != nil {
		return nil, err
	}
	if err := r.mayGoOn(ctx); err != nil {
		return nil, err
	}
	if d := r.approval.Manifest.Session.DataDeclarations; req.Class == "" && d != nil && d.DefaultInboundClass != nil {
		req.Class = wire.PayloadClass(*d.DefaultInboundClass)
	}
	if req.OperationID == (wire.UUID{}) {
		req.OperationID = wire.NewUUID()
	}
	payload := req.Payload
	if op.StreamRequest || len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	if len(req.Secrets) == 0 && r.client.Agreed().Features.Has(wire.SecretsInject) {
		req.Secrets = r.secrets
	}
	o := &Running{ID: req.OperationID.String(), r: r, op: op, req: req, started: r.host.now().UTC(), durable: !op.Idempotent || op.Receipts}
	if o.digest, err = wire.RequestDigest(op.CapabilityID, op.Name, op.Version, payload); err != nil {
		return nil, &session.BadRequest{Fault: wire.Fault{Code: wire.CodeInvalidArgument, Message: err.Error()}}
	}
	if req.IdempotencyKey != "" && op.Receipts {
		answered, err := o.fromCopy(ctx)
		if err != nil || answered {
			return o, err
		}
	}
	if err := o.start(ctx); err != nil {
		return nil, err
	}
	return o, nil
}

// operation returns what a request asks for, as the package has it.
func (r *hosting) operation(req session.Request) (session.Operation, error) {
	if err := r.approval.Offers(req.CapabilityID, req.OperationName); err != nil {
		return session.Operation{}, err
	}
	for _, op := range peerOf(r.approval, r.schemas).Operations {
		if op.CapabilityID == req.CapabilityID && op.Name == req.OperationName {
			return op, nil
		}
	}
	return session.Operation{}, &pkgmgr.NotFound{Kind: "operation", Name: req.CapabilityID + "/" + req.OperationName}
}

// mayGoOn is the last look before a request: at stops from outside, and at everything
// that was decided.
func (r *hosting) mayGoOn(ctx context.Context) error {
	r.mu.Lock()
	halted := r.halted
	r.mu.Unlock()
	if halted != nil {
		return r.wasStopped(halted)
	}
	return r.approval.Recheck(ctx)
}

// check refuses what can be told before anything is recorded.
func (r *hosting) check(req session.Request, op session.Operation) error {
	if op.StreamRequest {
		return nil
	}
	return session.CheckValue(req.Payload, op.Request)
}

// start records the request and sends it.
func (o *Running) start(ctx context.Context) error {
	r := o.r
	action := o.op.CapabilityID + "/" + o.op.Name
	if o.durable {
		err := r.host.Home.StartRequest(ctx, r.approval, pkgmgr.SessionOperation{ID: o.ID, Action: action,
			RequestDigest: digest.Digest(o.digest), IdempotencyKey: o.req.IdempotencyKey, Retention: string(o.req.Retention), Dev: r.terms.Dev})
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.open[o.ID] = o
	r.mu.Unlock()
	call, err := r.client.Do(ctx, o.req)
	if err != nil { // nothing was sent
		o.record(nil, err)
		return errors.Join(err, o.recordErr)
	}
	r.mu.Lock()
	o.call = call
	halted := r.halted
	r.mu.Unlock()
	if halted != nil { // between the last look and the request
		call.Cancel(halted)
	}
	return nil
}

// Operation returns an operation as the manifest has it.
func (s *Session) Operation(capability, name string) (*sessionmanifest.Operation, error) {
	if err := s.r.approval.Offers(capability, name); err != nil {
		return nil, err
	}
	_, op, _ := s.r.approval.Manifest.Session.Operation(capability, name)
	return op, nil
}

// Ready reports whether Next would not wait.
func (o *Running) Ready() bool { return o.call == nil || o.call.Ready() }

// Next returns the next item of the response stream; see session.Call.Next.
func (o *Running) Next() (json.RawMessage, error) {
	if o.call == nil {
		return nil, session.ErrNoStream
	}
	return o.call.Next()
}

// Send sends one item of the request stream; see session.Call.Send.
func (o *Running) Send(item json.RawMessage) error {
	if o.call == nil {
		return session.ErrNoStream
	}
	return o.call.Send(item)
}

// CloseSend ends the request stream.
func (o *Running) CloseSend() error {
	if o.call == nil {
		return nil
	}
	return o.call.CloseSend()
}

// Cancel asks the plugin to stop.
func (o *Running) Cancel(cause error) {
	o.r.mu.Lock()
	call := o.call
	o.r.mu.Unlock()
	if call != nil {
		call.Cancel(cause)
	}
}

// Result waits for the end, which is recorded when it returns. The error is one of those
// of session.Call.Result, joined with an *Unrecorded where the record failed.
func (o *Running) Result() (*RequestResult, error) {
	o.once.Do(func() {
		if o.call == nil { // answered from the copy
			return
		}
		result, err := o.call.Result()
		o.record(result, err)
	})
	return o.result, errors.Join(o.err, o.recordErr)
}

// record keeps the end of a request: its outcome and its receipt.
func (o *Running) record(result *session.Result, err error) {
	r := o.r
	o.err = err
	var receipt *wire.Receipt
	if result != nil {
		receipt = result.Receipt
		o.result = &RequestResult{Operation: o.ID, Payload: result.Payload, Class: result.Class, Receipt: receipt, Items: result.Items, Bytes: result.Bytes}
		o.result.Replayed = receipt != nil && receipt.OperationID != o.req.OperationID
	} else {
		receipt = receiptIn(err)
	}
	r.mu.Lock()
	delete(r.open, o.ID)
	r.mu.Unlock()
	if !o.durable {
		return
	}
	outcome, by := o.outcome(receipt), byPlugin
	if receipt == nil && outcome.EffectState == state.EffectUnknown && o.op.Receipts {
		receipt, by = o.ownReceipt(outcome), byHost
	}
	o.recordErr = r.write(func(ctx context.Context) error {
		var kept *state.Receipt
		if receipt != nil && receipt.ExecutionState != wire.ExecutionInProgress {
			var err error
			if kept, err = r.host.copyOf(r.approval, receipt, o, by); err != nil {
				return err
			}
		}
		return r.host.Home.RecordRequest(ctx, r.approval, o.ID, outcome, kept)
	})
	if o.recordErr != nil {
		r.approval.Call.Leave() // the next command records what could not be
	}
}

// receiptIn returns the receipt that came with a bad end, or nil.
func receiptIn(err error) *wire.Receipt {
	var said *wire.Error
	var cancelled *session.Cancelled
	switch {
	case errors.As(err, &said):
		return said.Receipt
	case errors.As(err, &cancelled):
		return cancelled.Receipt
	}
	return nil
}

// outcome is the record of how a request ended. Without a receipt the effect is "none"
// only where the request certainly was not acted upon.
func (o *Running) outcome(receipt *wire.Receipt) state.Outcome {
	out := state.Outcome{State: state.Succeeded, EffectState: state.EffectCommitted, FinishedAt: o.r.host.now().UTC()}
	if o.err == nil {
		if keepsResult(o) && len(o.result.Payload) <= state.MaxResult {
			out.Result = jsontext.Value(o.result.Payload)
		}
	} else {
		out.State, out.EffectState = state.Failed, state.EffectUnknown
		out.Code, out.Message = Code(o.err), cut(o.err.Error())
		var cancelled *session.Cancelled
		var up *session.GivenUp
		var not *session.NotAccepted
		var bad *session.BadRequest
		var said *wire.Error
		var fault *session.Fault
		stopped := o.r.whyStopped()
		switch {
		case errors.As(o.err, &fault) && stopped != nil: // this host ended the process
			out.State = state.Cancelled
			out.Code, out.Message = Code(stopped), cut(stopped.Error())
		case errors.As(o.err, &cancelled):
			out.State = state.Cancelled
		case errors.As(o.err, &up) && !errors.Is(o.err, session.ErrDeadline):
			out.State = state.Cancelled
		case errors.As(o.err, &not), errors.As(o.err, &bad), errors.Is(o.err, session.ErrDraining), o.call == nil:
			out.EffectState = state.EffectNone // nothing was sent, or nothing was accepted
		case errors.As(o.err, &said) && refusedUnseen(said.Code):
			out.EffectState = state.EffectNone
		}
	}
	if receipt != nil {
		out.EffectState = state.EffectState(receipt.EffectState)
	}
	return out
}

// refusedUnseen are the codes with which a plugin refuses a request before its handler
// sees it, and with which no handler may fail.
func refusedUnseen(c wire.Code) bool {
	switch c {
	case wire.CodeUnknownOperation, wire.CodeUnsupportedOperationVersion, wire.CodeDeprecatedSunset, wire.CodePayloadClassDenied, wire.CodeGrantExpired:
		return true
	}
	return false
}

// keepsResult reports whether the result may be kept beside the record.
func keepsResult(o *Running) bool {
	return o.req.Retention != wire.RetentionNone && !o.op.StreamResponse && !o.req.Class.Bounded()
}
