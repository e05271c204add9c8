package wire_test

import (
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func TestSeen(t *testing.T) {
	var s wire.Seen
	var ids []wire.UUID
	for range 3 * wire.Remembered {
		u := wire.NewUUID()
		if s.Has(u) || !s.Add(u) || s.Add(u) || !s.Has(u) {
			t.Fatalf("%d: %s is not remembered once", len(ids), u)
		}
		ids = append(ids, u)
	}
	for _, u := range ids[len(ids)-wire.Remembered:] {
		if !s.Has(u) {
			t.Fatalf("%s is forgotten too early", u)
		}
	}
	if s.Has(ids[0]) {
		t.Error("the first is remembered for ever")
	}
}

// Ids that do not rise are remembered like those that do; the nil id is one like others.
func TestSeenOutOfOrder(t *testing.T) {
	var s wire.Seen
	if !s.Add(wire.UUID{}) || s.Add(wire.UUID{}) {
		t.Error("the nil id is not remembered once")
	}
	var ids []wire.UUID
	for i := range 2 * wire.Remembered {
		u := wire.NewUUID()
		if i%3 == 0 {
			u[0] = byte(i) // does not rise
		}
		ids = append(ids, u)
		if !s.Add(u) {
			t.Fatal(i)
		}
	}
	for i := wire.Remembered; i < 2*wire.Remembered; i += 997 {
		if s.Add(ids[i]) {
			t.Fatal(i)
		}
	}
	if s.Has(ids[0]) {
		t.Error("the first is remembered for ever")
	}
}
