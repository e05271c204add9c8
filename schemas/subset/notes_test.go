package subset_test

import (
	"fmt"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

func TestNotes(t *testing.T) {
	const secret = `{"type":"object","x-secretRefAllowed":true,"additionalProperties":false,"required":["secretRef"],"properties":{"secretRef":{"type":"object","additionalProperties":false,
		"required":["provider","name"],"properties":{"provider":{"type":"string"},"name":{"type":"string"}}}}}`
	schema, err := subset.Compile([]byte(`{"$schema":"` + subset.Dialect + `","$id":"urn:example:s:1","type":"object","additionalProperties":false,"properties":{
		"plain":{"type":"string"},
		"pin":{"type":"string","x-redact":"full"},
		"word":{"type":"string","x-ui:widget":"password"},
		"token":{"$ref":"#/$defs/secret"},
		"a/b":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"string","x-redact":"hash"}]}},
		"map":{"type":"object","additionalProperties":` + secret + `}},
		"$defs":{"secret":` + secret + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"plain":"x"}`:                   "[]",
		`{"pin":{"deep":{"word":1}}}`:     "[{/pin true false}]",
		` {"word":"x","token":{} }`:       "[{/word true false} {/token false true}]",
		`{"a/b":[1,"x"]}`:                 "[{/a~1b/0 true false} {/a~1b/1 true false}]",
		`{"map":{"k~":{"secretRef":{}}}}`: "[{/map/k~0 false true}]",
		`{"unknown":{"pin":1}}`:           "[]",
		`{"pin":1`:                        "[{ true false}]",
		`{"pin":1,"pin":2}`:               "[{ true false}]",
		"\"\xff\"":                        "[{ true false}]",
	} {
		if got := fmt.Sprint(schema.Notes([]byte(value))); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// A settings page asks for what is missing; what is wrong it refuses.
func TestMissing(t *testing.T) {
	schema, err := subset.Compile([]byte(`{"$schema":"` + subset.Dialect + `","$id":"urn:example:s:1","type":"object","additionalProperties":false,"required":["a"],
		"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"dependentRequired":{"b":["c"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{`{"a":"x"}`: "", `{}`: "true", `{"b":"x"}`: "true true", `{"b":1,"c":"x"}`: "false true"} {
		got := ""
		for i, p := range schema.Validate([]byte(value)) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprint(p.Missing)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
