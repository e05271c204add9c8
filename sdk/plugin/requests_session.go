package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A refusal is an error with which a request ends, and whose fault it is.
type refusal struct {
	PluginError
	blame    wire.Blame
	receipt  *wire.Receipt
	existing wire.NullUUID
}

// blamed returns the refusal of what sender sent.
func blamed(code wire.Code, sender wire.Blame, message string) *refusal {
	return &refusal{PluginError: PluginError{Code: code, Message: shortened(message), Retryable: code.Retryable(false)}, blame: code.Blame(sender)}
}

// request admits one attempt at an operation, or refuses it and returns nil. The error
// ends the connection.
func (c *connection) request(e *wire.Envelope) (*Operation, error) {
	b := new(wire.Request)
	if err := wire.Decode(e.Body, b); err != nil {
		var fault *wire.Fault
		errors.As(err, &fault)
		return nil, c.badBody(e, fault)
	}
	c.mu.Lock()
	if !c.issued.Add(b.RequestID) {
		c.mu.Unlock()
		return nil, refuse(wire.CodeStateViolation, "the requestId occurs twice")
	}
	refusal := c.admissible()
	entry := c.plugin.operations[operationKey{b.CapabilityID, b.OperationName}]
	if refusal == nil && entry == nil {
		refusal = blamed(wire.CodeUnknownOperation, wire.BlameHost, "the manifest declares no such operation")
	}
	if refusal != nil {
		c.mu.Unlock()
		c.refuseRequest(e, b, refusal)
		return nil, nil
	}
	op := newOperation(c, entry, b, e)
	op.only = len(c.active) == 0
	c.active[b.RequestID] = op
	c.mu.Unlock()
	return op, nil
}

// run runs an operation: on this goroutine, if it is likely to be short and nothing
// else is to be done, or beside it. It reports whether this goroutine still has the turn.
func (c *connection) run(op *Operation) bool {
	switch {
	case !op.only || c.frames.Buffered() || op.entry.alone():
		c.spawn(op.serve)
	case c.enter():
		return c.perform(op)
	}
	return true
}

// admissible reports why no request at all is taken now. c.mu is held.
func (c *connection) admissible() *refusal {
	switch {
	case c.draining:
		return blamed(wire.CodeUnavailable, wire.BlameHost, "the session is ending")
	case int64(len(c.active)) >= c.init.Limits.MaxInFlight:
		return blamed(wire.CodeResourceExhausted, wire.BlameHost, "more requests at a time than maxInFlight")
	}
	return nil
}

// refuseRequest answers a request that never became an operation.
func (c *connection) refuseRequest(e *wire.Envelope, b *wire.Request, r *refusal) {
	c.reply(e, r.body(wire.Some(b.RequestID), wire.Some(b.OperationID)))
}

func (r *refusal) body(request, operation wire.NullUUID) *wire.Error {
	return &wire.Error{
		Code: r.Code, Message: r.Message, Retryable: r.Retryable, BlameDomain: r.blame, Severity: wire.SeverityError,
		RequestID: request, OperationID: operation, Details: r.Details, Receipt: r.receipt, ExistingOperationID: r.existing,
	}
}

// check takes the decisions about a request in their order (S-44). What it refuses
// never reaches the handler.
func (o *Operation) check(now time.Time) *refusal {
	b, entry, c := o.request, o.entry, o.conn
	host := func(code wire.Code, message string) *refusal { return blamed(code, wire.BlameHost, message) }
	if b.OperationVersion != entry.version {
		return host(wire.CodeUnsupportedOperationVersion, "the operation has the version "+entry.version)
	}
	if c.plugin.Package.sunk(b.CapabilityID, b.OperationName, now) {
		return host(wire.CodeDeprecatedSunset, "the operation is past its sunset")
	}
	if r := c.granted(b.PermissionsGrantID, now); r != nil {
		return r
	}
	if r := c.accepts(b.PayloadClass, now); r != nil {
		return r
	}
	if !b.Deadline.IsZero() && !b.Deadline.After(now) {
		return host(wire.CodeDeadlineExceeded, "the deadline had passed before the operation began")
	}
	if (entry.streamIn || entry.streamOut) && !c.features.Has(wire.FlowCredit) {
		return host(wire.CodeFailedPrecondition, "the operation streams, and the feature flow.credit.v1 is not on")
	}
	if r := o.checkStream(); r != nil {
		return r
	}
	if b.Secrets != nil && !c.features.Has(wire.SecretsInject) {
		return host(wire.CodeInvalidArgument, "secrets need the feature secrets.inject.v1, which is not on")
	}
	if entry.streamIn {
		if string(b.Payload) != "null" {
			return host(wire.CodeSchemaMismatch, "/payload must be null where the request streams")
		}
		return nil
	}
	return invalid(entry.request, b.Payload, wire.BlameHost, "the payload is not valid: ")
}

// invalid returns the refusal of a value that a schema does not take, or nil.
func invalid(s *subset.Schema, value json.RawMessage, sender wire.Blame, intro string) *refusal {
	problems := s.Validate(value)
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	text := intro + p.Pointer + " " + p.Message
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return blamed(schemaCode(p), sender, text)
}

// checkStream holds the request's word on streams to the manifest's.
func (o *Operation) checkStream() *refusal {
	var s wire.Stream
	if o.request.Stream != nil {
		s = *o.request.Stream
	}
	switch in, out := o.entry.streamIn, o.entry.streamOut; {
	case s.Request != in || s.Response != out || o.request.Stream != nil && !in && !out:
		return blamed(wire.CodeInvalidArgument, wire.BlameHost, "stream is not what the manifest says of the operation")
	case s.CreditItems.Set != out || s.CreditBytes.Set != out:
		return blamed(wire.CodeInvalidArgument, wire.BlameHost, "both initial credits must be there if the response streams, and else neither")
	}
	return nil
}

// granted looks for the grant that a request names.
func (c *connection) granted(id string, now time.Time) *refusal {
	if id == "" {
		return nil
	}
	known := false
	for _, g := range c.init.Grants {
		if g.PermissionsGrantID == id {
			known = true
			if live(g, now) {
				return nil
			}
		}
	}
	if known {
		return blamed(wire.CodeGrantExpired, wire.BlameHost, "the grant of the request has expired")
	}
	return blamed(wire.CodePermissionDenied, wire.BlameHost, "the grant of the request is none of this session")
}

func live(g wire.Grant, now time.Time) bool { return g.ExpiresAt.IsZero() || now.Before(g.ExpiresAt) }

// accepts holds a payload's class against what both sides take.
func (c *connection) accepts(class wire.PayloadClass, now time.Time) *refusal {
	accepted := false
	for _, a := range c.init.AcceptedClasses {
		accepted = accepted || a == class
	}
	if !accepted || !c.plugin.Package.Manifest.DataDeclarations.Accepts(sessionmanifest.Class(class)) {
		return blamed(wire.CodePayloadClassDenied, wire.BlameHost, "payloads of this class are not accepted")
	}
	if class.Bounded() {
		for _, g := range c.init.Grants {
			if g.Scope == string(sessionmanifest.ScopePrivateData) && live(g, now) {
				return nil
			}
		}
		return blamed(wire.CodePayloadClassDenied, wire.BlameHost, "payloads of this class need a grant of "+string(sessionmanifest.ScopePrivateData))
	}
	return nil
}

// about acts on an operation that runs. Frames for one that has ended are noise; one
// that was never asked for is a fault of the host.
func (c *connection) about(id wire.UUID, act func(*Operation)) error {
	c.mu.Lock()
	op, issued := c.active[id], c.issued.Has(id)
	c.mu.Unlock()
	switch {
	case op != nil:
		act(op)
	case !issued:
		return refuse(wire.CodeStateViolation, "there was no request with this requestId")
	}
	return nil
}

// cancelRequest acknowledges a cancel and passes it on.
func (c *connection) cancelRequest(e *wire.Envelope, b *wire.CancelRequest) error {
	c.mu.Lock()
	op, issued := c.active[b.RequestID], c.issued.Has(b.RequestID)
	c.mu.Unlock()
	if op == nil && !issued {
		return refuse(wire.CodeStateViolation, "there was no request with this requestId")
	}
	d := dispatch{trace: e.TraceID, cause: wire.Some(e.MessageID), later: true, answer: true}
	if op != nil {
		d.trace = op.trace
	}
	c.out.send(&wire.CancelAck{RequestID: b.RequestID}, d)
	if op != nil {
		op.cancelled()
	}
	return nil
}
