package plugintest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Request is what a test asks for. Zero members are filled in: new ids, attempt 1,
// the manifest's version of the operation, class internal, GrantID where something
// was granted, and credit without end.
type Request struct {
	Capability, Operation string
	Payload               any // json.RawMessage, or what encoding/json writes; of a request stream nil
	IdempotencyKey        string
	OperationID           wire.UUID
	Attempt               int64
	Deadline              time.Time
	Version               string
	GrantID               string
	Class                 plugin.PayloadClass
	Secrets               map[string]string // JSON Pointer to value
	Retention             plugin.Retention
	DiagnosticPolicy      plugin.DiagnosticPolicy
	CreditItems           int64 // of a response stream; 0: without end
	CreditBytes           int64
}

// An Outcome is how a request ended. Exactly one of Response, Error and Cancelled is
// set.
type Outcome struct {
	Response  *wire.Response
	Error     *wire.Error
	Cancelled *wire.Cancelled

	Items    []json.RawMessage // of the response stream, in order
	Ended    *wire.StreamEnd   // nil if the stream was left open
	Progress []plugin.ProgressUpdate
}

// Receipt returns the receipt that came with the end, or nil.
func (o *Outcome) Receipt() *plugin.OperationReceipt {
	switch {
	case o.Response != nil:
		return o.Response.Receipt
	case o.Error != nil:
		return o.Error.Receipt
	case o.Cancelled != nil:
		return o.Cancelled.Receipt
	}
	return nil
}

// A Call is one request under way.
type Call struct {
	session *Session
	request wire.Request
	out     wire.Credit // what the plugin may send
	in      wire.Credit // what the test may send
	granted chan struct{}
	outcome Outcome
	sent    int64
	bytes   int64
	done    chan struct{} // closed at the end
	seen    chan struct{} // has an element when something has come
}

// Call sends a request and waits for its end. An error of the plugin is in the
// Outcome; the error is of the session.
func (s *Session) Call(r Request) (*Outcome, error) {
	c, err := s.Start(r)
	if err != nil {
		return nil, err
	}
	return c.Wait()
}

// Start sends a request.
func (s *Session) Start(r Request) (*Call, error) {
	version, streaming := s.described(r.Capability, r.Operation)
	c := &Call{session: s, granted: make(chan struct{}, 1), done: make(chan struct{}), seen: make(chan struct{}, 1)}
	c.request = wire.Request{
		RequestID: wire.NewUUID(), OperationID: r.OperationID, IdempotencyKey: r.IdempotencyKey, Attempt: max(r.Attempt, 1), Deadline: r.Deadline,
		CapabilityID: r.Capability, OperationName: r.Operation, OperationVersion: r.Version, PermissionsGrantID: r.GrantID,
		PayloadClass: r.Class, DiagnosticPolicy: r.DiagnosticPolicy, Retention: r.Retention,
	}
	if r.OperationID == (wire.UUID{}) {
		c.request.OperationID = wire.NewUUID()
	}
	if r.Version == "" {
		c.request.OperationVersion = version
	}
	if r.Class == "" {
		c.request.PayloadClass = wire.ClassInternal
	}
	if r.GrantID == "" && s.granting {
		c.request.PermissionsGrantID = GrantID
	}
	for pointer, value := range r.Secrets {
		c.request.Secrets = append(c.request.Secrets, wire.Secret{Pointer: pointer, Value: value})
	}
	var err error
	if c.request.Payload, err = encode(r.Payload); err != nil {
		return nil, err
	}
	if streaming.request || streaming.response {
		c.request.Stream = &wire.Stream{Request: streaming.request, Response: streaming.response}
	}
	if streaming.response {
		items, bytes := r.CreditItems, r.CreditBytes
		if items == 0 && bytes == 0 {
			items, bytes = 1<<40, 1<<50
		}
		c.request.Stream.CreditItems, c.request.Stream.CreditBytes = wire.CountOf(items), wire.CountOf(bytes)
		c.out.Grant(items, bytes)
	}
	s.mu.Lock()
	s.calls[c.request.RequestID] = c
	s.mu.Unlock()
	_, err = s.Send(&c.request)
	return c, err
}

func encode(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	return json.Marshal(v)
}

// RequestID returns the id of the request.
func (c *Call) RequestID() wire.UUID { return c.request.RequestID }

// Cancel asks the plugin to end the request.
func (c *Call) Cancel(reason string) error {
	_, err := c.session.Send(&wire.CancelRequest{RequestID: c.request.RequestID, Reason: reason})
	return err
}

// Grant gives the response stream more credit.
func (c *Call) Grant(items, bytes int64) error {
	c.session.mu.Lock()
	c.out.Grant(items, bytes)
	c.session.mu.Unlock()
	_, err := c.session.Send(&wire.Flow{RequestID: c.request.RequestID, CreditItems: items, CreditBytes: bytes})
	return err
}

// Send sends an item of the request stream, as soon as there is credit for it. It
// returns nil, and sends nothing, once the request has ended.
func (c *Call) Send(item any) error {
	payload, err := encode(item)
	if err != nil {
		return err
	}
	timer := time.NewTimer(c.session.timeout)
	defer timer.Stop()
	for {
		sent, err := c.trySend(payload)
		if sent || err != nil {
			return err
		}
		select {
		case <-c.granted:
		case <-c.done:
			return nil
		case <-timer.C:
			return violated("no credit for an item within %v", c.session.timeout)
		}
	}
}

func (c *Call) trySend(payload json.RawMessage) (bool, error) {
	b := &wire.StreamItem{RequestID: c.request.RequestID, OperationID: c.request.OperationID, Index: c.sent, Payload: payload}
	err := c.session.send(wire.NewUUID(), b, func(size int64) bool {
		if !c.in.Take(size) {
			return false
		}
		c.sent++
		c.bytes += size
		return true
	})
	if errors.Is(err, errNotAdmitted) {
		return false, nil
	}
	return true, err
}

// CloseSend ends the request stream.
func (c *Call) CloseSend() error {
	_, err := c.session.Send(&wire.StreamEnd{RequestID: c.request.RequestID, OperationID: c.request.OperationID, ItemCount: c.sent, ByteCount: c.bytes})
	return err
}

// WaitFor waits until what has come so far satisfies ok, or the request has ended.
func (c *Call) WaitFor(ok func(*Outcome) bool) error {
	timer := time.NewTimer(c.session.timeout)
	defer timer.Stop()
	for {
		c.session.mu.Lock()
		met := ok(&c.outcome)
		c.session.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-c.seen:
		case <-c.done:
			return nil
		case <-c.session.ended:
			return c.session.over()
		case <-timer.C:
			return violated("nothing of the kind within %v", c.session.timeout)
		}
	}
}

// Wait waits for the end of the request.
func (c *Call) Wait() (*Outcome, error) {
	timer := time.NewTimer(c.session.timeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return &c.outcome, nil
	case <-c.session.ended:
		select {
		case <-c.done:
			return &c.outcome, nil
		default:
			return nil, c.session.over()
		}
	case <-timer.C:
		return nil, violated("the request has not ended within %v", c.session.timeout)
	}
}

func (s *Session) over() error {
	if err := s.failed(); err != nil {
		return err
	}
	return violated("the plugin ended, and the request had not")
}

// take notes a frame about the request. The session's mu is held.
func (c *Call) take(body wire.Body, size int) error {
	o := &c.outcome
	if o.Response != nil || o.Error != nil || o.Cancelled != nil {
		return violated("%s after the end of its request", body.Type())
	}
	switch b := body.(type) {
	case *wire.ProgressUpdate:
		o.Progress = append(o.Progress, plugin.ProgressUpdate{Message: b.Message, PercentCompleted: b.PercentCompleted, Current: b.Current, Total: b.Total})
	case *wire.StreamItem:
		if !c.out.Take(int64(size)) {
			return violated("an item that no credit covers")
		}
		if b.Index != int64(len(o.Items)) || o.Ended != nil {
			return violated("item %d out of its order", b.Index)
		}
		o.Items = append(o.Items, b.Payload)
	case *wire.StreamEnd:
		o.Ended = b
	case *wire.Flow:
		c.in.Grant(b.CreditItems, b.CreditBytes)
		nudge(c.granted)
	case *wire.Response:
		o.Response = b
	case *wire.Error:
		o.Error = b
	case *wire.Cancelled:
		o.Cancelled = b
	}
	if o.Response != nil || o.Error != nil || o.Cancelled != nil {
		close(c.done)
	}
	nudge(c.seen)
	return nil
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

type directions struct{ request, response bool }

// described returns what the manifest says of an operation.
func (s *Session) described(capability, operation string) (version string, d directions) {
	if _, o, ok := s.manifest.Operation(capability, operation); ok {
		return o.OperationVersion, directions{o.Streaming.Request, o.Streaming.Response}
	}
	return "1.0", directions{}
}
