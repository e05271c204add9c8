package session

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// flushWait is how long a session that is over tries to write its last frames.
const flushWait = 200 * time.Millisecond

// fail ends the session for a fault, once: the plugin is told, where that helps, every
// request ends with the fault, and the connection is closed soon.
func (c *Client) fail(f *Fault) {
	c.mu.Lock()
	if c.fault != nil || c.state.Is(wire.ConnectionFailed, wire.ConnectionClosed) {
		c.mu.Unlock()
		return
	}
	c.fault = f
	_ = c.state.Move(wire.ConnectionFailed) // an edge from every other state
	c.leave()
	c.mu.Unlock()
	if f.Sent == nil && f.Rule != "" {
		told := wire.Fatal(f.Rule, wire.BlamePlugin, f.Text)
		_, _ = c.out.add(told, wire.TraceID{}, wire.NullUUID{}) // best effort: the connection may be gone
	}
	c.finishAll(f)
	c.shut()
	go c.abort()
}

// leave moves the lifecycle on. The caller holds mu.
func (c *Client) leave() {
	if c.life.Is(wire.LifecycleReady, wire.LifecycleBusy, wire.LifecycleDegraded) {
		_ = c.life.Move(wire.LifecycleStopping) // an edge from each of them
	}
}

// shut tells everybody that the session is over.
func (c *Client) shut() { c.overOnce.Do(func() { close(c.over) }) }

// finishAll ends what is in flight with an error.
func (c *Client) finishAll(err error) {
	for _, call := range c.inFlight() {
		_ = c.finish(call, "", nil, err)
	}
}

func (c *Client) inFlight() []*Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Call, 0, len(c.calls))
	for _, call := range c.calls {
		list = append(list, call)
	}
	return list
}

// abort writes what it can in little time and closes the connection.
func (c *Client) abort() {
	c.out.close()
	timer := time.NewTimer(flushWait)
	defer timer.Stop()
	select {
	case <-c.out.gone:
	case <-timer.C:
	}
	c.conn.Close()
	c.turn.rouse()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Is(wire.ConnectionFailed) {
		_ = c.state.Move(wire.ConnectionClosed) // its one edge
	}
	if c.life.Is(wire.LifecycleStopping) {
		_ = c.life.Move(wire.LifecycleStopped) // its one edge
	}
}

// hungUp judges the end of what the plugin sends.
func (c *Client) hungUp(err error) {
	c.mu.Lock()
	orderly := errors.Is(err, io.EOF) && c.state.Is(wire.ConnectionDraining) && len(c.calls) == 0
	c.mu.Unlock()
	if orderly {
		c.Close()
		return
	}
	c.fail(c.gone(err))
}

// wentAway takes the plugin's goAway: what it did not accept ends now, the rest goes on.
func (c *Client) wentAway(e *wire.Envelope) *Fault {
	var w wire.GoAway
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	c.mu.Lock()
	if c.away != nil {
		c.mu.Unlock()
		return violation(e.Type, "the plugin went away before")
	}
	c.away = &Away{LastAcceptedSequence: w.LastAcceptedSequence, Reason: shown(w.Reason), Grace: millis(w.GraceMs)}
	if !c.state.Is(wire.ConnectionDraining) {
		if err := c.state.Move(wire.ConnectionDraining); err != nil {
			c.mu.Unlock()
			return broken(e.Type, err)
		}
	}
	c.leave()
	var refused []*Call
	for _, call := range c.calls {
		if call.sequence > uint64(w.LastAcceptedSequence) {
			refused = append(refused, call)
		}
	}
	reason := c.away.Reason
	c.mu.Unlock()
	for _, call := range refused {
		_ = c.finish(call, "", nil, &NotAccepted{Reason: reason})
	}
	return nil
}

// millis is a duration on the wire, bounded so that it cannot overflow.
func millis(ms int64) time.Duration {
	const most = 24 * time.Hour
	return time.Duration(min(ms, most.Milliseconds())) * time.Millisecond
}

// Drain ends the session in order: it announces the end, takes no more requests, waits up
// to grace for those in flight, asks the rest to stop, and closes the connection once the
// plugin has closed its end. When ctx ends the connection is closed at once. The error is
// the session's *Fault, or ctx's.
func (c *Client) Drain(ctx context.Context, grace time.Duration) error {
	if err := c.announce(grace); err != nil {
		c.Close()
		if err = c.why(err); err == ErrClosed { // the plugin was first
			return nil
		}
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.whenIdle():
	case <-timer.C:
		if err := c.step(wire.ShutdownCancelInFlight); err != nil {
			return err
		}
		for _, call := range c.inFlight() {
			call.stop(ErrDraining, "the host shuts down")
		}
		select {
		case <-c.whenIdle(): // each is given up in the end
		case <-c.over:
		case <-ctx.Done():
		}
	case <-c.over:
	case <-ctx.Done():
	}
	if ctx.Err() != nil || c.Err() != nil {
		c.Close()
		return c.why(context.Cause(ctx))
	}
	if err := errors.Join(c.step(wire.ShutdownFlushTerminals), c.step(wire.ShutdownCloseTransport)); err != nil {
		return err
	}
	return c.hangUp(ctx)
}

// announce sends goAway.
func (c *Client) announce(grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if err := c.stopping.Move(wire.ShutdownDrainAnnounced); err != nil {
		return ErrDraining
	}
	if !c.state.Is(wire.ConnectionDraining) { // the plugin may have been first
		if err := c.state.Move(wire.ConnectionDraining); err != nil {
			return err
		}
	}
	c.leave()
	last := int64(c.sequence)
	_, err := c.out.add(&wire.GoAway{LastAcceptedSequence: last, Reason: "the host shuts down", GraceMs: grace.Milliseconds()}, wire.TraceID{}, wire.NullUUID{})
	return err
}

func (c *Client) step(to wire.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping.Move(to)
}

// whenIdle returns a channel that is closed when nothing is in flight.
func (c *Client) whenIdle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.idle
	if idle == nil {
		idle = make(chan struct{})
		c.idle = idle
	}
	if len(c.calls) == 0 {
		close(idle)
		c.idle = nil
	}
	return idle
}

// hangUp closes the host's direction, then, when the plugin has closed its own or ctx
// ends, the connection.
func (c *Client) hangUp(ctx context.Context) error {
	var err error
	c.mu.Lock()
	if c.state.Is(wire.ConnectionDraining) { // the plugin may have closed its end a moment ago
		err = c.state.Move(wire.ConnectionClosed)
	}
	c.mu.Unlock()
	c.out.close()
	select {
	case <-c.out.gone:
		if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
			c.turn.rouse()
			select {
			case <-c.readDone:
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
	c.shut()
	c.abort()
	return errors.Join(err, c.Err())
}

// Close ends the session at once: requests in flight end with ErrClosed. It may be called
// more than once, and after Drain does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	first := !c.state.Is(wire.ConnectionClosed, wire.ConnectionFailed)
	if first {
		if c.state.Is(wire.ConnectionReady, wire.ConnectionDraining) {
			_ = c.state.Move(wire.ConnectionClosed) // an edge from both
		} else {
			_ = c.state.Move(wire.ConnectionFailed)
		}
		c.leave()
	}
	c.mu.Unlock()
	c.finishAll(ErrClosed)
	c.shut()
	c.abort()
	return nil
}
