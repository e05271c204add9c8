package session

import (
	"bytes"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// ended remembers requests that have ended: their late frames are borne, where those of
// a request that never was are a fault. Beyond rememberEnded the oldest are forgotten;
// what lies between the first and the last id that was ever issued is then taken for one
// of them.
type ended struct {
	ids         map[wire.UUID]bool // true while an answer to a cancel is due
	ring        []wire.UUID
	next        int
	first, last wire.UUID
	forgotten   bool
}

func (e *ended) issued(id wire.UUID) {
	if e.first == (wire.UUID{}) {
		e.first = id
	}
	e.last = id
}

func (e *ended) add(id wire.UUID, cancelling bool) {
	if e.ids == nil {
		e.ids = make(map[wire.UUID]bool)
	}
	e.ids[id] = cancelling
	if len(e.ring) < rememberEnded {
		e.ring = append(e.ring, id)
		return
	}
	e.forgotten = true
	delete(e.ids, e.ring[e.next])
	e.ring[e.next] = id
	e.next = (e.next + 1) % rememberEnded
}

func (e *ended) has(id wire.UUID) bool {
	if _, ok := e.ids[id]; ok {
		return true
	}
	return e.forgotten && bytes.Compare(e.first[:], id[:]) <= 0 && bytes.Compare(id[:], e.last[:]) <= 0
}

// acknowledged takes a cancelAck for an ended request; it reports whether one was due.
func (e *ended) acknowledged(id wire.UUID) bool {
	cancelling, ok := e.ids[id]
	if ok && cancelling {
		e.ids[id] = false
		return true
	}
	return !ok && e.has(id)
}

// A bucket limits a rate: level events at once, perSecond in the long run.
type bucket struct {
	level float64
	last  time.Time
}

func (b *bucket) take(most, perSecond float64) bool {
	now := time.Now()
	b.level = min(most, b.level+now.Sub(b.last).Seconds()*perSecond)
	b.last = now
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}
