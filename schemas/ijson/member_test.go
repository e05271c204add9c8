package ijson_test

import (
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// Only a member of the document itself counts, by its name once it is unescaped.
func TestHasMember(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"a":1}`:               true,
		` { "b" : [] , "a":{}}`: true,
		`{"\u0061":1}`:          true,
		`{"b":1,"b":2,"a":3}`:   true,
		`{"a":1`:                true, // as far as it goes
		`{"b":{"a":1}}`:         false,
		`{"b":"a"}`:             false,
		`{"A":1}`:               false,
		`{"b":[1,}`:             false,
		`["a"]`:                 false,
		`"a"`:                   false,
		``:                      false,
	} {
		if got := ijson.HasMember([]byte(doc), "a"); got != want {
			t.Errorf("%s: %t", doc, got)
		}
	}
}
