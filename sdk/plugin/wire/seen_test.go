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
