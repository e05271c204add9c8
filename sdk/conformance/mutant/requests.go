package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The causes that end an operation's context.
var (
	errCancelled = errors.New("cancelled")
	errDeadline  = errors.New("deadline")
	errClosed    = errors.New("closed")
)

// A pluginError is an error that the plugin means.
type pluginError struct {
	code, message string
	retryable     bool
}

func (e *pluginError) Error() string { return e.code + ": " + e.message }

// An op is one request that runs.
type op struct {
	s         *session
	b         requestBody
	o         *operation
	messageID string
	trace     string // JSON
	ctx       context.Context
	cancel    context.CancelCauseFunc

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when credit or items change
	items     int64         // credit for our items
	bytes     int64
	widest    int64
	sentItems int64
	sentBytes int64
	queue     []json.RawMessage
	endOfIn   bool
	given     int64 // credit for the host's items that is left
	givenB    int64
	overdrawn bool
	gotItems  int64
	gotBytes  int64
	broken    *pluginError // the host broke a rule of the stream
	cancelled bool
	effect    string
	claim     *claim
	started   string
	telling   sync.Mutex // holds progress
	progress  progress
}

type requestBody struct {
	RequestID, OperationID      string
	IdempotencyKey              *string
	Attempt                     int
	DeadlineUtc                 *time.Time
	CapabilityID, OperationName string
	OperationVersion            string
	PermissionsGrantID          *string
	PayloadClass                string
	Payload                     json.RawMessage
	Stream                      *struct {
		Request, Response                      bool
		InitialCreditItems, InitialCreditBytes *int64
	}
	DiagnosticPolicy, Retention string
	Secrets                     map[string]string
}

func (s *session) request(e *envelope) error {
	var b requestBody
	p := s.body(e, &b)
	if p != nil {
		var ids struct{ RequestID, OperationID string }
		_ = json.Unmarshal(e.body, &ids) // what cannot be read stays ""
		if !s.p.format("uuid", ids.RequestID) {
			ids.RequestID, ids.OperationID = "", ""
		}
		if !s.p.format("uuid", ids.OperationID) {
			ids.OperationID = ""
		}
		if s.p.has("faults-in-bodies-are-fatal") {
			return &fatal{code: p.code, message: p.Error()}
		}
		s.fail(&op{s: s, b: requestBody{RequestID: ids.RequestID, OperationID: ids.OperationID}, messageID: e.id, trace: e.trace}, &pluginError{p.code, "the request is not valid: " + p.Error(), false}, "host", "")
		return nil
	}
	s.mu.Lock()
	_, running := s.ops[b.RequestID]
	_, over := s.past[b.RequestID]
	again := running || over
	inFlight := len(s.ops)
	s.mu.Unlock()
	if again && !s.p.has("takes-repeated-requests") {
		return &fatal{code: "state.violation", message: "a requestId for the second time"}
	}
	o := &op{s: s, b: b, messageID: e.id, trace: e.trace, changed: make(chan struct{}), started: now()}
	if err := s.admit(o, inFlight); err != nil {
		s.mu.Lock()
		s.past[b.RequestID] = o.trace
		s.mu.Unlock()
		s.fail(o, err, blameOf(err.code), "")
		return nil
	}
	o.ctx, o.cancel = context.WithCancelCause(context.Background())
	s.mu.Lock()
	s.ops[b.RequestID] = o
	s.mu.Unlock()
	if b.Stream != nil && b.Stream.InitialCreditItems != nil {
		o.items, o.bytes = *b.Stream.InitialCreditItems, *b.Stream.InitialCreditBytes
		o.widest = o.bytes
		if s.p.has("ignores-initial-credit") {
			o.items += 1 << 20
			o.bytes += 1 << 40
		}
	}
	s.working.Add(1)
	if s.p.has("serves-one-at-a-time") {
		o.run()
		return nil
	}
	go o.run()
	return nil
}

// codes are those that a handler may fail with.
var codes = map[string]bool{
	"invalid_argument": true, "permission_denied": true, "grant.expired": true, "failed_precondition": true, "not_found": true, "already_exists": true, "conflict": true,
	"resource_exhausted": true, "unavailable": true, "deadline_exceeded": true, "secret.unresolved": true, "internal": true, "schema.mismatch": true, "schema.unknown_member": true,
}

// send sends a frame about the request.
func (o *op) send(kind, causation, body string) {
	trace := o.trace
	if o.s.p.has("forgets-the-trace") {
		trace = "null"
	}
	o.s.writing.Lock()
	defer o.s.writing.Unlock()
	o.s.write(o.s.compose(kind, causation, body, trace))
}

func blameOf(code string) string {
	switch code {
	case "permission_denied", "grant.expired", "payload_class.denied", "schema.mismatch", "schema.unknown_member", "invalid_argument", "unknown_operation", "unsupported_operation_version", "deprecated.sunset", "flow_control_violation":
		return "host"
	case "failed_precondition", "not_found", "already_exists", "conflict":
		return "caller"
	case "resource_exhausted", "unavailable", "deadline_exceeded", "secret.unresolved":
		return "environment"
	}
	return "plugin"
}

// admit holds a request to everything that is checked before its handler.
func (s *session) admit(o *op, inFlight int) *pluginError {
	b := o.b
	s.mu.Lock()
	leaving := s.leaving
	s.mu.Unlock()
	if (s.stage == draining || leaving) && !s.p.has("serves-after-goaway") {
		return &pluginError{"unavailable", "the session is going away", true}
	}
	if inFlight >= s.init.Limits.MaxInFlight && !s.p.has("ignores-max-in-flight") {
		return &pluginError{"resource_exhausted", "too many requests are in flight", true}
	}
	for _, c := range s.m.Capabilities {
		for _, x := range c.Operations {
			if c.ID == b.CapabilityID && x.Name == b.OperationName {
				o.o = x
			}
		}
	}
	if o.o == nil {
		return &pluginError{"unknown_operation", "no such operation", false}
	}
	if o.o.OperationVersion != b.OperationVersion && !s.p.has("takes-any-operation-version") {
		return &pluginError{"unsupported_operation_version", "the operation has another version", false}
	}
	if d := o.o.deprecated; d != nil && !s.p.has("serves-after-sunset") {
		if at, err := time.Parse(time.RFC3339Nano, d.SunsetAfter); err == nil && time.Now().After(at) {
			return &pluginError{"deprecated.sunset", "the operation is past its sunset", false}
		}
	}
	if err := s.granted(b); err != nil {
		return err
	}
	if !s.p.has("takes-any-class") && !s.accepts(b.PayloadClass) {
		return &pluginError{"payload_class.denied", "a payload of this class is not accepted", false}
	}
	if b.DeadlineUtc != nil && !b.DeadlineUtc.After(time.Now()) && !s.p.has("ignores-past-deadlines") {
		return &pluginError{"deadline_exceeded", "the deadline is past", true}
	}
	if len(b.Secrets) > 0 && !s.enabled["secrets.inject.v1"] {
		return &pluginError{"invalid_argument", "secrets although secrets.inject.v1 is not on", false}
	}
	return s.payload(o)
}

func (s *session) payload(o *op) *pluginError {
	st := o.b.Stream
	in, out := st != nil && st.Request, st != nil && st.Response
	if in != o.o.Streaming.Request || out != o.o.Streaming.Response {
		return &pluginError{"invalid_argument", "stream differs from the operation's", false}
	}
	if st != nil && (st.InitialCreditItems != nil) != out || st != nil && (st.InitialCreditBytes != nil) != out {
		return &pluginError{"invalid_argument", "initial credit belongs to a response stream", false}
	}
	if (in || out) && !s.enabled["flow.credit.v1"] {
		return &pluginError{"failed_precondition", "flow.credit.v1 is not on", false}
	}
	if in {
		if string(o.b.Payload) != "null" {
			return &pluginError{"schema.mismatch", "the payload of a request that streams is null", false}
		}
		return nil
	}
	if p := s.m.schemas[o.o.RequestSchema.URI].check(o.b.Payload); p != nil && !s.p.has("checks-no-payloads") {
		return &pluginError{p.code, "the payload is not valid: " + s.p.leak(p, o.b.Payload), false}
	}
	return nil
}

// accepts reports whether a payload of the class may reach a handler.
func (s *session) accepts(class string) bool {
	declared := s.m.DataDeclarations.AcceptedClasses
	if declared == nil {
		declared = []string{"public", "internal"}
	}
	if !slices.Contains(s.init.AcceptedClasses, class) || !slices.Contains(declared, class) {
		return false
	}
	if class == "public" || class == "internal" || s.p.has("needs-no-private-data") {
		return true
	}
	return slices.ContainsFunc(s.init.Grants, func(g grant) bool {
		return g.Scope == "bounded.private-data" && (g.ExpiresAtUtc == nil || g.ExpiresAtUtc.After(time.Now()))
	})
}

// leak is what a message about a payload may not do.
func (p *program) leak(problem *problem, payload json.RawMessage) string {
	if p.has("quotes-payloads-in-errors") {
		return problem.Error() + ": " + string(payload)
	}
	return problem.Error()
}

// granted holds the grant that a request names, if it names one.
func (s *session) granted(b requestBody) *pluginError {
	if b.PermissionsGrantID == nil || s.p.has("ignores-grants") {
		return nil
	}
	for _, g := range s.init.Grants {
		if g.PermissionsGrantID != *b.PermissionsGrantID {
			continue
		}
		if g.ExpiresAtUtc != nil && !g.ExpiresAtUtc.After(time.Now()) && !s.p.has("ignores-expiry") {
			return &pluginError{"grant.expired", "the grant has expired", false}
		}
		return nil
	}
	return &pluginError{"permission_denied", "no such grant", false}
}

// run claims the idempotency key, runs the handler and answers.
func (o *op) run() {
	defer o.s.working.Done()
	s := o.s
	if o.o.receipts() {
		replay, err := s.store.claim(o)
		if err != nil || replay != nil {
			o.replay(replay, err)
			return
		}
	}
	left := time.Duration(s.init.Limits.RequestTimeoutMs) * time.Millisecond
	if s.p.has("ignores-the-request-timeout") {
		left = time.Hour
	}
	if d := o.b.DeadlineUtc; d != nil && !s.p.has("ignores-deadlines") {
		left = min(left, time.Until(*d))
	}
	timer := time.AfterFunc(left, func() { o.cancel(errDeadline) })
	defer timer.Stop()
	if o.o.Streaming.Request && !s.p.has("gives-no-credit") {
		o.giveCredit(8, 1<<20)
	}
	result, err := o.handle()
	o.finish(result, err)
}

// handle runs the handler; a panic is an error like any other.
func (o *op) handle() (result string, err error) {
	defer func() {
		if r := recover(); r != nil {
			if o.s.p.has("logs-what-was-raised") {
				fmt.Fprintln(os.Stderr, r)
			}
			err = fmt.Errorf("%v", r)
		}
	}()
	return handlers[o.o.capability+"/"+o.o.Name](o)
}

// outcome is a terminal frame.
type outcome struct {
	kind, code, message string
	retryable           bool
	result              string
}

func (o *op) judge(result string, err error) outcome {
	s := o.s
	if o.broken != nil {
		return outcome{kind: "error", code: o.broken.code, message: o.broken.message}
	}
	cause := context.Cause(o.ctx)
	var meant *pluginError
	switch {
	case errors.Is(cause, errDeadline):
		return outcome{kind: "error", code: "deadline_exceeded", message: "the deadline passed", retryable: true}
	case errors.As(err, &meant):
		retryable := meant.retryable
		if s.p.has("forgets-retryable") {
			retryable = false
		}
		code := meant.code
		if _, mine := codes[code]; !mine && !s.p.has("uses-any-code") {
			code = "internal"
		}
		return outcome{kind: "error", code: code, message: meant.message, retryable: retryable}
	case errors.Is(err, errCancelled), errors.Is(err, errClosed):
		if s.p.has("cancel-is-an-error") {
			return outcome{kind: "error", code: "unavailable", message: "cancelled"}
		}
		return outcome{kind: "cancelled"}
	case err != nil && s.p.has("tells-what-was-raised"):
		return outcome{kind: "error", code: "internal", message: err.Error()}
	case err != nil:
		return outcome{kind: "error", code: "internal", message: "the operation failed"}
	}
	if !o.o.Streaming.Response {
		if p := s.m.schemas[o.o.ResponseSchema.URI].check([]byte(result)); p != nil && !s.p.has("checks-no-results") {
			return outcome{kind: "error", code: p.code, message: "the result is not valid: " + p.Error()}
		}
		if len(result)+600 > s.maxOut && !s.p.has("ignores-frame-limit") {
			return outcome{kind: "error", code: "resource_exhausted", message: "the result is larger than a frame", retryable: true}
		}
	}
	return outcome{kind: "response", result: result}
}

// finish answers with the one terminal frame.
func (o *op) finish(result string, err error) {
	s := o.s
	out := o.judge(result, err)
	if o.o.Streaming.Response {
		out.result = "null"
		if out.kind == "response" && !s.p.has("forgets-stream-end") {
			o.streamEnd()
		}
	}
	o.lastProgress()
	receipt := o.settle(out)
	s.mu.Lock()
	delete(s.ops, o.b.RequestID)
	s.past[o.b.RequestID] = o.trace
	s.mu.Unlock()
	o.terminal(out, receipt)
	if s.p.has("answers-twice") {
		o.terminal(out, receipt)
	}
	o.cancel(nil)
}

// settle writes the receipt before the answer.
func (o *op) settle(out outcome) string {
	if o.claim == nil || o.s.p.has("keeps-no-receipts") {
		return ""
	}
	return o.claim.finish(o, out)
}

func (o *op) terminal(out outcome, receipt string) {
	s := o.s
	with := ""
	if receipt != "" && (s.enabled["receipt.v1"] || s.p.has("tells-receipts-anyway")) {
		with = `,"receipt":` + receipt
	}
	request, operation := quote(o.b.RequestID), quote(o.b.OperationID)
	if s.p.has("mixes-up-ids") {
		operation = request
	}
	if s.p.has("answers-another-request") {
		request = quote(newUUID(s.p))
	}
	switch out.kind {
	case "response":
		class := o.b.PayloadClass
		if s.p.has("raises-the-class") {
			class = "public"
		}
		o.send("response", o.messageID, fmt.Sprintf(`{"requestId":%s,"operationId":%s,"payloadClass":%s,"payload":%s%s}`, request, operation, quote(class), out.result, with))
	case "cancelled":
		o.send("cancelled", o.messageID, fmt.Sprintf(`{"requestId":%s,"operationId":%s%s}`, request, operation, with))
	default:
		blame := blameOf(out.code)
		if strings.HasPrefix(out.code, "schema.") && !strings.HasPrefix(out.message, "an item of the host") {
			blame = "plugin"
		}
		s.fail(o, &pluginError{out.code, out.message, out.retryable}, blame, with)
	}
}

// fail sends an error for a request; with is more members.
func (s *session) fail(o *op, err *pluginError, blame, with string) {
	severity := "error"
	if s.p.has("every-error-is-fatal") {
		severity = "fatal"
	}
	if s.p.has("blames-the-caller") {
		blame = "caller"
	}
	o.send("error", o.messageID, fmt.Sprintf(`{"code":%s,"message":%s,"retryable":%t,"blameDomain":%s,"severity":%s,"requestId":%s,"operationId":%s%s}`,
		quote(err.code), quote(err.message), err.retryable, quote(blame), quote(severity), optional(o.b.RequestID), optional(o.b.OperationID), with))
}
