//go:build !race

package ijson_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// A document costs the memory of its values and nothing that grows with it. The
// race detector makes pools forget, so this is not built with it.
func TestAllocations(t *testing.T) {
	doc := []byte(envelope)
	var v answer
	read := func(f func() error) float64 {
		return testing.AllocsPerRun(200, func() {
			v = answer{}
			if err := f(); err != nil {
				t.Fatal(err)
			}
		})
	}
	plain := read(func() error { return json.Unmarshal(doc, &v, json.RejectUnknownMembers(true)) })
	strict := read(func() error { return ijson.Unmarshal(doc, &v) })
	if strict > plain+1 {
		t.Errorf("%v allocations, %v for decoding alone", strict, plain)
	}
	if n := read(func() error { return ijson.Check(doc) }); n > 1 {
		t.Errorf("Check allocates %v times", n)
	}
}
