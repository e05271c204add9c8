package state

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// KeepEvents is how many events are kept, the newest.
const KeepEvents = 10_000

// An Event is one line of history: a decision or a call, who or what it
// concerned and how it came about.
type Event struct {
	Seq       uint64            `json:"-"` // set by AppendEvent: rises by one
	At        time.Time         `json:"at"`
	Kind      string            `json:"kind"` // "install", "trust", "run", …: the caller's vocabulary
	ID        string            `json:"id,omitzero"`
	Version   string            `json:"version,omitzero"`
	Package   digest.Digest     `json:"package,omitzero"`
	Project   string            `json:"project,omitzero"`   // root
	Operation string            `json:"operation,omitzero"` // id
	Detail    map[string]string `json:"detail,omitzero"`
}

// AppendEvent adds an event and drops the oldest beyond KeepEvents.
func (tx *Tx) AppendEvent(r Event) error {
	b, err := tx.writableBucket(bucketEvents)
	if err != nil {
		return err
	}
	v, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("%w: event %q: %w", ErrRecord, r.Kind, err)
	}
	if len(v) > maxValue {
		return fmt.Errorf("%w: event %q: %d bytes", ErrRecord, r.Kind, len(v))
	}
	seq, err := b.NextSequence()
	if err != nil {
		return err
	}
	b.FillPercent = 0.9 // keys only rise
	if err := b.Put(sequenceKey(seq), v); err != nil {
		return err
	}
	return dropOldest(b, KeepEvents)
}

// Events returns the newest events, newest first. keep selects; nil keeps all.
// A limit below one means all.
func (tx *Tx) Events(limit int, keep func(Event) bool) ([]Event, error) {
	list := []Event{}
	t, err := tx.tree(bucketEvents)
	if err != nil || t == nil {
		return list, err
	}
	err = tx.eachBackwards(bucketEvents, t, func(k, v []byte) error {
		seq, err := tx.sequence(bucketEvents, k)
		if err != nil {
			return err
		}
		r := Event{Seq: seq}
		if err := json.Unmarshal(v, &r); err != nil {
			return tx.damaged(bucketEvents, k, err)
		}
		if keep == nil || keep(r) {
			list = append(list, r)
		}
		return stopAt(limit, len(list))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
