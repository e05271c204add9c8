package schemas_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// TestWireAgrees: of every message, changed in every place to values of every kind,
// the reader of the wire and the schema say the same.
func TestWireAgrees(t *testing.T) {
	judge := judges(t, "session-messages.schema.json")
	others := []any{nil, 1.5, "text", "", []any{}, map[string]any{}, true, 0.0, -1.0, 1e9, strings.Repeat("x", 129), strings.Repeat("x", 300), "A", "a b", "a", "aa.b", "1.0", "01.0",
		"sha256:" + strings.ToUpper(strings.Repeat("ab", 32)), strings.ToUpper(uuid), "2026-07-11T16:20:00.123Z", "2026-07-11T24:20:00.123Z", "2016-12-31T23:59:60Z", "\n",
		[]any{"aa", "aa"}, []any{"cancel.v1"}, []any{""}}
	verdicts := map[bool]int{}
	for kind, body := range bodies {
		var doc any
		if err := json.Unmarshal([]byte(envelope(kind, body)), &doc); err != nil {
			t.Fatal(err)
		}
		check := func(what string) {
			t.Helper()
			changed, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			var e wire.Envelope
			err = wire.Scan(changed, &e)
			if err == nil {
				err = wire.Decode(e.Body, wire.NewBody(e.Type))
			}
			valid := judge(what, changed)
			verdicts[valid]++
			if valid != (err == nil) {
				t.Errorf("%s: valid by the schema %v, the wire says %v", what, valid, err)
			}
		}
		check(kind)
		places(doc, "", nil, func(at string, v any, inObject bool, replace func(any)) {
			if inObject {
				replace(absent{})
				check(kind + " without " + at)
			}
			for _, other := range others {
				replace(other)
				check(fmt.Sprintf("%s with %.40v at %s", kind, other, at))
			}
			replace(v)
			if object, ok := v.(map[string]any); ok {
				object["surplus"] = true
				check(kind + " surplus at " + at)
				delete(object, "surplus")
			}
		})
	}
	if verdicts[true] < 500 || verdicts[false] < 3000 {
		t.Errorf("%d messages valid, %d not", verdicts[true], verdicts[false])
	}
}
