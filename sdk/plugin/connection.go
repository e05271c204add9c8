package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// The causes with which the context of a running operation is cancelled.
var (
	ErrCancelled     = errors.New("the host cancelled the request")
	ErrDeadline      = error(deadline{}) // wraps context.DeadlineExceeded
	ErrSessionClosed = errors.New("the session has ended")
	errAborted       = errors.New("the request has failed")
)

type deadline struct{}

func (deadline) Error() string {
	return "the deadline of the request has passed: " + context.DeadlineExceeded.Error()
}
func (deadline) Unwrap() error { return context.DeadlineExceeded }

const (
	// ending is what cancelled handlers and unsent frames have when a session ends
	// early; the host gives 3 seconds in all.
	ending = 2 * time.Second
	// drainGrace is what is announced with a goAway of the plugin's own.
	drainGrace = 2 * time.Second
)

// A connection is one session from the plugin's side. Frames are read and decided on
// by one goroutine at a time, whose turn it is; a request that takes its time runs on
// another one.
type connection struct {
	plugin *SessionPlugin
	out    *outbox
	frames *wire.FrameReader

	ctx    context.Context // of everything that the session runs
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // handlers and other answers under way

	turn turn

	// Of the goroutine that has the turn alone.
	state    wire.Machine
	sequence uint64
	messages wire.Seen
	begun    bool          // init has come
	grace    time.Duration // of the host's goAway
	greeted  wire.Version

	// Set before the first request and not changed afterwards.
	features wire.FeatureSet
	settings json.RawMessage // as they are in force
	init     *wire.Init

	mu       sync.Mutex
	ready    bool // initAck is sent
	draining bool
	leaving  bool // by the plugin's own wish: it ends when it is drained
	accepted int64
	active   map[wire.UUID]*Operation
	issued   wire.Seen // the ids of requests
	watch    wire.NullUUID
	watched  wire.TraceID
	done     chan struct{}
	result   error
}

// ServeSession serves one session: it reads frames from in and writes frames to out
// until the session ends. It returns nil if that was in good order: in ended between
// two frames, or ctx was cancelled and the plugin took its leave. Else the error says
// why; the process should then exit with a status that is not 0.
//
// Handlers that are running when it ends early are cancelled and have 2 seconds. A
// read from in that is blocked is left behind.
func ServeSession(ctx context.Context, in io.Reader, out io.Writer, p *SessionPlugin) error {
	if err := p.Check(); err != nil {
		return err
	}
	c := &connection{plugin: p, frames: wire.NewFrameReader(in), state: wire.Connection.Start(), active: map[wire.UUID]*Operation{}, done: make(chan struct{})}
	c.out = newOutbox(out, p.Package.offer(wire.DefaultMaxFrame).Range().Max, func(err error) { c.finish(fmt.Errorf("write: %w", err)) })
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer c.cancel(ErrSessionClosed)
	defer p.unwatch(c)
	if p.store != nil {
		go p.store.Sweep()
	}
	c.state.Move(wire.ConnectionConnecting)
	go c.read()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.leave(context.Cause(ctx))
		<-c.done
	}
	c.cancel(ErrSessionClosed)
	c.await(ending)
	c.out.close(ending / 2)
	return c.result
}

// finish ends the session, once. Handlers are told by ServeSession.
func (c *connection) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
	default:
		c.result = err
		close(c.done)
	}
}

// enter counts work that begins, and must end with c.work.Done, unless the session is
// over.
func (c *connection) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished() {
		return false
	}
	c.work.Add(1)
	return true
}

// spawn runs f beside the reading, unless the session is over.
func (c *connection) spawn(f func()) {
	if c.enter() {
		go func() { defer c.work.Done(); f() }()
	}
}

// await waits for what is under way, but not for ever. The session is over.
func (c *connection) await(limit time.Duration) {
	idle := make(chan struct{})
	go func() { c.work.Wait(); close(idle) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// read takes frames until the input ends, one of them ends the session, or another
// goroutine has the turn.
func (c *connection) read() {
	for {
		frame, err := c.frames.Next(nil)
		if err != nil {
			c.inputEnded(err)
			return
		}
		var e wire.Envelope
		op, err := c.accept(frame, &e)
		if err != nil {
			c.fatal(&e, err)
			return
		}
		if op != nil && !c.run(op) || c.finished() {
			return
		}
	}
}

func (c *connection) finished() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// inputEnded ends the session for the end of the input.
func (c *connection) inputEnded(err error) {
	var fault *wire.Fault
	switch {
	case errors.As(err, &fault):
		c.fatal(&wire.Envelope{}, fault)
	case errors.Is(err, io.EOF):
		c.hostClosed()
	default:
		c.state.Move(wire.ConnectionFailed)
		c.finish(fmt.Errorf("read: %w", err))
	}
}

// accept takes one frame: envelope, order, permission, body. A request may give an
// operation that is to begin now. The error, a *wire.Fault or a *wire.Error, ends the
// connection.
func (c *connection) accept(frame []byte, e *wire.Envelope) (*Operation, error) {
	if err := wire.Scan(frame, e); err != nil {
		return nil, err
	}
	switch {
	case c.sequence == 0 && e.Sequence != 1:
		return nil, refuse(wire.CodeSequenceViolation, "the first sequence is 1")
	case e.Sequence <= c.sequence:
		return nil, refuse(wire.CodeSequenceViolation, "the sequence does not rise")
	case !c.messages.Add(e.MessageID):
		return nil, refuse(wire.CodeEnvelopeInvalid, "the messageId occurs twice")
	}
	c.sequence = e.Sequence
	c.mu.Lock()
	c.accepted = int64(e.Sequence)
	c.mu.Unlock()
	if err := c.allowed(e); err != nil {
		return nil, err
	}
	if e.Type == wire.TypeRequest {
		return c.request(e)
	}
	return nil, c.handle(e, len(frame))
}

func refuse(code wire.Code, format string, args ...any) *wire.Fault {
	return &wire.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// allowed holds a frame against who may send it, when, and with which features.
func (c *connection) allowed(e *wire.Envelope) error {
	m, _ := e.Type.Describe()
	if !m.MaySend(wire.Host) {
		return refuse(wire.CodeStateViolation, "a host does not send %s", e.Type)
	}
	switch c.state.State() {
	case wire.ConnectionConnecting:
		if e.Type != wire.TypeHello {
			return refuse(wire.CodeStateViolation, "the first message must be hello")
		}
		return nil
	case wire.ConnectionInitializing:
		if c.isReady() {
			c.state.Move(wire.ConnectionReady)
		}
	}
	if e.Version != c.greeted {
		return refuse(wire.CodeEnvelopeInvalid, "protocolVersion must be the one that was chosen")
	}
	if !c.features.Has(m.Feature) {
		return refuse(wire.CodeStateViolation, "%s needs the feature %s, which is not on", e.Type, m.Feature)
	}
	switch e.Type {
	case wire.TypeHello:
		return refuse(wire.CodeStateViolation, "a second hello")
	case wire.TypeInit:
		if c.begun {
			return refuse(wire.CodeStateViolation, "a second init")
		}
	case wire.TypeHeartbeat, wire.TypeHeartbeatAck, wire.TypeGoAway, wire.TypeError:
	default:
		if c.state.Is(wire.ConnectionInitializing) {
			return refuse(wire.CodeStateViolation, "%s before initAck", e.Type)
		}
	}
	return nil
}

func (c *connection) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// handle acts on a frame that may come now and is no request.
func (c *connection) handle(e *wire.Envelope, size int) error {
	switch e.Type {
	case wire.TypeHello:
		return c.hello(e)
	case wire.TypeInit:
		return c.initialize(e)
	}
	body := wire.NewBody(e.Type)
	if err := wire.Decode(e.Body, body); err != nil {
		var fault *wire.Fault
		errors.As(err, &fault)
		return c.badBody(e, fault)
	}
	switch b := body.(type) {
	case *wire.Beat:
		c.reply(e, &wire.BeatAck{Nonce: b.Nonce})
	case *wire.BeatAck: // nobody asked
	case *wire.CancelRequest:
		return c.cancelRequest(e, b)
	case *wire.Flow:
		return c.about(b.RequestID, func(op *Operation) { op.flow(b) })
	case *wire.StreamItem:
		return c.about(b.RequestID, func(op *Operation) { op.receive(b, size) })
	case *wire.StreamEnd:
		return c.about(b.RequestID, func(op *Operation) { op.receiveEnd(b) })
	case *wire.HealthCheck:
		return c.healthCheck(e, b)
	case *wire.SettingsToValidate:
		c.settingsValidate(e, b)
	case *wire.ReceiptQuery:
		c.receiptQuery(e, b)
	case *wire.GoAway:
		c.drain(b)
	case *wire.Error:
		return c.hostError(b)
	}
	return nil
}
