package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/receipts"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// An Operation is one attempt at one operation, as its handler sees it. Its methods
// may be called from several goroutines, but Send and Items from one each, and none
// after the handler has returned.
type Operation struct {
	Context OperationContext
	Payload json.RawMessage // null for a request stream; it has passed the request schema

	conn    *connection
	entry   *operationEntry
	request *wire.Request
	cause   wire.NullUUID // the messageId of the request
	trace   wire.TraceID
	begun   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer // of the deadline
	only    bool        // nothing else ran when it was admitted

	mu           sync.Mutex
	state        wire.Machine
	cancellation wire.Machine
	effect       EffectState // "" until one is declared
	failure      *refusal    // with which it ends, whatever the handler says
	late         bool        // the deadline has passed
	silent       bool        // the host has ended it; no terminal frame is owed
	over         bool        // its end is decided

	claim    *receipts.Claim
	draft    wire.Receipt
	out      outStream
	in       inStream
	progress progressPacer
}

func newOperation(c *connection, entry *operationEntry, b *wire.Request, e *wire.Envelope) *Operation {
	o := &Operation{
		Payload: b.Payload, conn: c, entry: entry, request: b, cause: wire.Some(e.MessageID), trace: e.TraceID, begun: time.Now(),
		state: wire.Operation.Start(), cancellation: wire.Cancellation.Start(),
		Context: OperationContext{
			RequestID: b.RequestID.String(), OperationID: b.OperationID.String(), IdempotencyKey: b.IdempotencyKey, Attempt: b.Attempt,
			DeadlineUTC: b.Deadline, TraceID: e.TraceID.String(), CapabilityID: b.CapabilityID, OperationName: b.OperationName,
			OperationVersion: b.OperationVersion, PayloadClass: b.PayloadClass, PermissionsGrantID: b.PermissionsGrantID,
			DiagnosticPolicy: b.DiagnosticPolicy, Retention: b.Retention,
		},
	}
	if b.DiagnosticPolicy == "" {
		o.Context.DiagnosticPolicy = wire.DiagnosticSafe
	}
	if b.Retention == "" {
		o.Context.Retention = wire.RetentionShort
	}
	o.ctx, o.cancel = context.WithCancelCause(c.ctx)
	o.out.more = make(chan struct{}, 1)
	o.in.more = make(chan struct{}, 1)
	return o
}

// DecodePayload reads the payload into v, a pointer, and refuses members that v does
// not have or spells differently.
func (o *Operation) DecodePayload(v any) error {
	if err := decodeExactly(o.Payload, v); err != nil {
		return NewPluginError(InvalidArgument, "the payload is not what the handler expects")
	}
	return nil
}

// Settings returns the settings as they are in force.
func (o *Operation) Settings() json.RawMessage { return bytes.Clone(o.conn.settings) }

// DecodeSettings reads the settings as they are in force into v, a pointer.
func (o *Operation) DecodeSettings(v any) error { return json.Unmarshal(o.conn.settings, v) }

// Limits returns what the host holds the plugin to.
func (o *Operation) Limits() Limits {
	l := o.conn.init.Limits
	return Limits{RequestTimeoutMs: l.RequestTimeoutMs, HeartbeatIntervalMs: l.HeartbeatIntervalMs, MaxInFlight: l.MaxInFlight}
}

// Grants returns the permissions that are granted now.
func (o *Operation) Grants() []Grant {
	now := o.conn.plugin.wall()
	grants := []Grant{}
	for _, g := range o.conn.init.Grants {
		if live(g, now) {
			grants = append(grants, grantOf(g))
		}
	}
	return grants
}

func grantOf(g wire.Grant) Grant {
	return Grant{PermissionsGrantID: g.PermissionsGrantID, PermissionID: g.PermissionID, Scope: g.Scope, ExpiresAtUTC: g.ExpiresAt}
}

// Grant returns the grant of a permission. The error is a *PluginError with
// permission_denied or grant.expired, fit to be returned by the handler.
func (o *Operation) Grant(permissionID string) (Grant, error) {
	now := o.conn.plugin.wall()
	expired := false
	for _, g := range o.conn.init.Grants {
		if g.PermissionID == permissionID {
			if live(g, now) {
				return grantOf(g), nil
			}
			expired = true
		}
	}
	if expired {
		return Grant{}, NewPluginError(wire.CodeGrantExpired, "the grant of the permission %s has expired", strict.Quote(permissionID))
	}
	return Grant{}, NewPluginError(PermissionDenied, "the permission %s is not granted", strict.Quote(permissionID))
}

// Secret returns the secret for a place in the settings, a JSON Pointer. The error is
// a *PluginError with secret.unresolved, fit to be returned by the handler.
func (o *Operation) Secret(pointer string) (string, error) {
	for _, s := range o.request.Secrets {
		if s.Pointer == pointer {
			return s.Value, nil
		}
	}
	return "", NewPluginError(SecretUnresolved, "the host gave no secret for %s", strict.Quote(pointer))
}

// Secrets returns the places in the settings for which the host gave a secret.
func (o *Operation) Secrets() []string {
	pointers := []string{}
	for _, s := range o.request.Secrets {
		pointers = append(pointers, s.Pointer)
	}
	return pointers
}

// Effect declares what the operation has changed outside of the process so far. The
// last word before the end counts. An operation that declares nothing has changed
// nothing, unless it fails in a way that the SDK does not know. What is none of the
// protocol's states is EffectUnknown.
func (o *Operation) Effect(state EffectState) {
	if !slices.Contains(wire.EffectStates, state) {
		state = EffectUnknown
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.effect = state
	}
}

// cancelled passes on the host's wish that the operation ends.
func (o *Operation) cancelled() {
	o.mu.Lock()
	if !o.over && o.cancellation.Is(wire.CancellationNone) {
		o.cancellation.Move(wire.CancellationRequested)
		o.cancellation.Move(wire.CancellationAcknowledged)
		o.cancelling()
	}
	o.mu.Unlock()
	o.cancel(ErrCancelled)
}

// cancelling moves the operation on, if it is not ending already. o.mu is held.
func (o *Operation) cancelling() {
	if wire.Operation.Allows(o.state.State(), wire.OperationCancelling) {
		o.state.Move(wire.OperationCancelling)
	}
}

// stuck is what a handler has to return in after its operation has failed for a
// reason of the host's or a deadline; then the answer is sent without it.
const stuck = time.Second

// abort makes the operation fail with r.
func (o *Operation) abort(r *refusal) {
	o.mu.Lock()
	first := !o.over && o.failure == nil
	if first {
		o.failure = r
	}
	o.mu.Unlock()
	o.cancel(errAborted)
	if first {
		time.AfterFunc(stuck, o.endWithoutHandler)
	}
}

// expired ends the operation for its deadline.
func (o *Operation) expired() {
	o.mu.Lock()
	if o.over || o.ctx.Err() != nil { // what stops it already has its own time
		o.mu.Unlock()
		return
	}
	o.late = true
	o.cancelling()
	o.mu.Unlock()
	o.cancel(ErrDeadline)
	time.AfterFunc(stuck, o.endWithoutHandler)
}

// overruled ends the operation because the host has ended it with an error.
func (o *Operation) overruled() {
	o.mu.Lock()
	o.silent = true
	o.mu.Unlock()
	o.cancel(ErrCancelled)
}

// hide takes the request's secrets out of a text.
func (o *Operation) hide(text string) string {
	for _, s := range o.request.Secrets {
		if s.Value != "" {
			text = string(bytes.ReplaceAll([]byte(text), []byte(s.Value), []byte("[secret]")))
		}
	}
	return text
}
