package plugin

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// fatal tells the host why the connection ends, and ends it. The error is a
// *wire.Fault, or a *wire.Error as it is to be sent.
func (c *connection) fatal(e *wire.Envelope, err error) {
	var fault *wire.Fault
	var told *wire.Error
	switch {
	case errors.As(err, &told):
	case errors.As(err, &fault):
		told = wire.Fatal(fault.Code, wire.BlameHost, shortened(fault.Error()))
	default:
		told = wire.Fatal(wire.CodeInternal, wire.BlamePlugin, "the plugin failed")
	}
	d := dispatch{trace: e.TraceID}
	if e.MessageID != (wire.UUID{}) {
		d.cause = wire.Some(e.MessageID)
	}
	c.out.last(told, d)
	c.finish(fmt.Errorf("the session failed: %s: %s", told.Code, told.Message))
}

// badBody answers a fault in a body. Where it concerns a request, that fails.
func (c *connection) badBody(e *wire.Envelope, fault *wire.Fault) error {
	request, operation := wire.Ids(e.Body)
	if request.Set {
		c.mu.Lock()
		op := c.active[request.UUID]
		c.mu.Unlock()
		if op != nil && e.Type != wire.TypeRequest {
			op.abort(blamed(fault.Code, wire.BlameHost, "in "+string(e.Type)+": "+fault.Error()))
			return nil
		}
	}
	answer := problem(fault.Code, wire.BlameHost, "in "+string(e.Type)+": "+fault.Error())
	if e.Type == wire.TypeRequest {
		answer.RequestID, answer.OperationID = request, operation
		if request.Set {
			c.mu.Lock()
			c.issued.Add(request.UUID)
			c.mu.Unlock()
		}
	}
	c.reply(e, answer)
	return nil
}

// hostError takes an error of the host: of a request, which then has ended, or of the
// connection.
func (c *connection) hostError(b *wire.Error) error {
	if b.RequestID.Set {
		return c.about(b.RequestID.UUID, func(op *Operation) { op.overruled() })
	}
	logf("the host reports %s", b.Code)
	if b.Severity == wire.SeverityFatal {
		c.finish(fmt.Errorf("the host ended the session: %s", b.Code))
	}
	return nil
}

// drain begins the end that the host announced.
func (c *connection) drain(b *wire.GoAway) {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	c.grace = time.Duration(min(b.GraceMs, ending.Milliseconds())) * time.Millisecond
	if c.state.Is(wire.ConnectionReady) {
		c.state.Move(wire.ConnectionDraining)
	}
}

// hostClosed ends the session for the end of the input. What was accepted before a
// goAway may still finish within its grace, but not for long: nothing more can come.
func (c *connection) hostClosed() {
	if c.state.Is(wire.ConnectionDraining) && c.grace > 0 {
		c.mu.Lock()
		c.leaving = true
		c.mu.Unlock()
		time.AfterFunc(c.grace, func() { c.finish(nil) })
		c.drained()
		return
	}
	if wire.Connection.Allows(c.state.State(), wire.ConnectionClosed) {
		c.state.Move(wire.ConnectionClosed)
	} else {
		c.state.Move(wire.ConnectionFailed)
	}
	c.finish(nil)
}

// leave begins the end that the plugin wants: no new requests, those that run may
// finish for a while and are then cancelled.
func (c *connection) leave(cause error) {
	c.mu.Lock()
	if c.leaving {
		c.mu.Unlock()
		return
	}
	c.leaving, c.draining = true, true
	accepted, ready := c.accepted, c.ready
	c.mu.Unlock()
	if ready {
		c.out.send(&wire.GoAway{LastAcceptedSequence: accepted, Reason: "the plugin was asked to stop", GraceMs: drainGrace.Milliseconds()}, dispatch{})
	}
	time.AfterFunc(drainGrace, func() { c.cancel(ErrSessionClosed) })
	c.drained()
}

// drained ends the session if the plugin wants to leave and nothing runs any more.
func (c *connection) drained() {
	c.mu.Lock()
	over := c.leaving && len(c.active) == 0
	c.mu.Unlock()
	if over {
		c.finish(nil)
	}
}

// logf writes a line for the people who run the host. It must not hold what a
// request or a secret held.
func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
