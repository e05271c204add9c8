package session

import (
	"strconv"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// missedBeats is how many heartbeats without an answer end a session.
const missedBeats = 2

// beats are the heartbeats that are not answered. The client's mu guards it.
type beats struct {
	count   uint64
	waiting []beat // at most missedBeats
}

type beat struct {
	nonce string
	id    wire.UUID
}

// beat begins to ask the plugin regularly whether it is alive.
func (c *Client) beat() {
	if !c.has(wire.Heartbeat) {
		return
	}
	go func() {
		tick := time.NewTicker(time.Duration(c.opts.Limits.HeartbeatIntervalMs) * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-c.over:
				return
			}
			if f := c.sendBeat(); f != nil {
				c.fail(f)
				return
			}
		}
	}()
}

func (c *Client) sendBeat() *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usable() != nil {
		return nil
	}
	if len(c.beats.waiting) >= missedBeats {
		return &Fault{Code: wire.CodeUnavailable, Message: wire.TypeHeartbeat, Text: "the plugin answered none of the last " + strconv.Itoa(missedBeats) + " heartbeats"}
	}
	c.beats.count++
	nonce := strconv.FormatUint(c.beats.count, 10)
	s, err := c.out.add(&wire.Beat{Nonce: nonce}, wire.TraceID{}, wire.NullUUID{})
	if err != nil {
		return nil // the session is over
	}
	c.beats.waiting = append(c.beats.waiting, beat{nonce, s.id})
	return nil
}

// beatAck takes an answer: it vouches for the heartbeats before it, too.
func (c *Client) beatAck(e *wire.Envelope) *Fault {
	var w wire.BeatAck
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, b := range c.beats.waiting {
		if e.CausationID.Set && e.CausationID.UUID == b.id {
			if b.nonce != w.Nonce {
				return violation(e.Type, "another nonce than was sent")
			}
			c.beats.waiting = append(c.beats.waiting[:0], c.beats.waiting[i+1:]...)
			return nil
		}
	}
	return violation(e.Type, "it answers no heartbeat")
}

// beaten answers a heartbeat of the plugin.
func (c *Client) beaten(e *wire.Envelope) *Fault {
	var w wire.Beat
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	if !c.bucket.take(maxBeats, beatsPerSecond) {
		return malformed(e.Type, wire.CodeResourceExhausted, "heartbeats without end")
	}
	_, _ = c.out.add(&wire.BeatAck{Nonce: w.Nonce}, e.TraceID, wire.Some(e.MessageID)) // ErrClosed: nobody needs it
	return nil
}
