package session

import (
	"errors"
	"os"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// read is the life of the goroutine that reads while nobody waits for a result who does.
func (c *Client) read() {
	for c.turn.standBy() {
		c.next()
	}
}

// wait returns at the end of a request. If nobody else reads meanwhile, it does.
func (c *Client) wait(call *Call) {
	if !call.over() && c.turn.lead(call) {
		for !call.over() && c.next() {
		}
		c.mu.Lock()
		others := len(c.calls) > 0 || len(c.asks) > 0
		c.mu.Unlock()
		c.turn.yield(others)
	}
	<-call.done
}

// next takes one frame, or nothing when it is interrupted. It reports whether there may
// be more. Its caller has the turn.
func (c *Client) next() (more bool) {
	const keep = 1 << 20 // of the buffer, from one frame to the next
	frame, err := c.frames.Next(c.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	var fault *Fault
	if err == nil {
		if c.buf = frame[:0]; cap(frame) > keep {
			c.buf = nil
		}
		if fault = c.receive(frame, &c.envelope); fault == nil {
			return true
		}
	}
	c.turn.end()
	if fault != nil {
		c.fail(fault)
	} else {
		c.hungUp(err)
	}
	close(c.readDone)
	return false
}

// receive judges one frame. Everything that must outlive it is copied. A fault ends the
// session.
func (c *Client) receive(frame []byte, e *wire.Envelope) *Fault {
	if err := wire.Scan(frame, e); err != nil {
		return broken(e.Type, err)
	}
	switch {
	case e.Sequence <= c.sequence:
		return malformed(e.Type, wire.CodeSequenceViolation, "sequence %d after %d", e.Sequence, c.sequence)
	case !c.seen.Add(e.MessageID):
		return malformed(e.Type, wire.CodeEnvelopeInvalid, "its messageId repeats that of another message")
	}
	c.mu.Lock()
	c.sequence = e.Sequence
	c.counts.Frames++
	state := c.state.State()
	c.mu.Unlock()
	switch state {
	case wire.ConnectionReady, wire.ConnectionDraining:
	case wire.ConnectionFailed, wire.ConnectionClosed:
		return nil // nobody listens any more
	default:
		switch e.Type {
		case wire.TypeHelloAck, wire.TypeInitAck, wire.TypeError, wire.TypeHeartbeat:
		default:
			return violation(e.Type, "before the session is initialized")
		}
	}
	if negotiated := c.agreed.Version; negotiated != (wire.Version{}) && e.Version != negotiated {
		return malformed(e.Type, wire.CodeEnvelopeInvalid, "protocolVersion is %s, %s was negotiated", e.Version, negotiated)
	}
	return c.dispatch(e, len(frame))
}

func (c *Client) dispatch(e *wire.Envelope, size int) *Fault {
	if f := c.enabled(e.Type); f != nil {
		return f
	}
	switch e.Type {
	case wire.TypeStreamItem:
		return c.item(e, size)
	case wire.TypeResponse:
		return c.response(e)
	case wire.TypeError:
		return c.failure(e)
	case wire.TypeProgress:
		return c.progress(e)
	case wire.TypeFlow:
		return c.flow(e)
	case wire.TypeStreamEnd:
		return c.streamEnd(e)
	case wire.TypeCancelled:
		return c.cancelled(e)
	case wire.TypeCancelAck:
		return c.cancelAck(e)
	case wire.TypeHeartbeat:
		return c.beaten(e)
	case wire.TypeHeartbeatAck:
		return c.beatAck(e)
	case wire.TypeHealth:
		return c.reported(e)
	case wire.TypeHelloAck, wire.TypeInitAck, wire.TypeSettingsValidated, wire.TypeReceipt:
		return c.settle(e, nil)
	case wire.TypeGoAway:
		return c.wentAway(e)
	}
	return violation(e.Type, "a message that only a host sends")
}

// enabled refuses a frame of a feature that is not on.
func (c *Client) enabled(t wire.MessageType) *Fault {
	var f wire.Feature
	switch t {
	case wire.TypeStreamItem, wire.TypeStreamEnd, wire.TypeFlow:
		f = wire.FlowCredit
	case wire.TypeProgress:
		f = wire.Progress
	case wire.TypeCancelled, wire.TypeCancelAck:
		f = wire.Cancel
	case wire.TypeHeartbeat, wire.TypeHeartbeatAck:
		f = wire.Heartbeat
	case wire.TypeReceipt:
		f = wire.Receipts
	case wire.TypeSettingsValidated:
		f = wire.SettingsValidate
	default:
		return nil
	}
	if c.has(f) {
		return nil
	}
	return violation(t, "the feature %s is not on", f)
}

// callOf finds the request that a frame belongs to. Nil without a fault: it has ended,
// and the frame is borne. ids is whether operation must be the request's.
func (c *Client) callOf(t wire.MessageType, request wire.UUID) (*Call, *Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[request]; call != nil {
		return call, nil
	}
	return nil, c.late(t, request)
}

// late bears a frame of a request that has ended. The caller holds mu.
func (c *Client) late(t wire.MessageType, request wire.UUID) *Fault {
	if !c.ended.has(request) {
		return violation(t, "its requestId was never issued")
	}
	c.counts.LateFrames++
	if c.budget--; c.budget < 0 {
		return malformed(t, wire.CodeResourceExhausted, "frames of ended requests without end")
	}
	return nil
}

// belongs compares the ids of a frame with those of its request.
func (call *Call) belongs(e *wire.Envelope, operation wire.UUID, reply bool) *Fault {
	if operation != call.operation {
		return malformed(e.Type, wire.CodeStateViolation, "its operationId is not that of its request")
	}
	if e.CausationID.Set && e.CausationID.UUID != call.message || reply && !e.CausationID.Set {
		return malformed(e.Type, wire.CodeEnvelopeInvalid, "its causationId is not the request's messageId")
	}
	return nil
}
