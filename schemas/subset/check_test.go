package subset_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// head begins a document; what follows are more members of its root.
const head = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x:test:1"`

func doc(members string) []byte {
	if members == "" {
		return []byte(head + "}")
	}
	return []byte(head + "," + members + "}")
}

func list(n int, element func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	return b.String()
}

// doubling is a chain of n definitions, each of which refers to the next one twice.
func doubling(n int) string {
	return `"$ref":"#/$defs/d0","$defs":{` + list(n, func(i int) string {
		return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}) + fmt.Sprintf(`,"d%d":{"type":"string"}}`, n)
}

const (
	secretRef = `"type":"object","additionalProperties":false,"required":["secretRef"],"properties":{"secretRef":{"type":"object","additionalProperties":false,"required":["name","provider"],` +
		`"properties":{"provider":{"type":"string"},"name":{"type":"string","minLength":1},"version":{"type":"string"}}}}`
	record = `"type":"object","additionalProperties":false`
)

// documents, and "pointer code" of what Check says of each; nothing is right.
var documents = []struct{ members, want string }{
	{"", ""},
	{`"type":"string"`, ""},
	{`"type":["string","null"],"title":"t","description":"d","$comment":"c","default":"x","examples":[1],"deprecated":true,"readOnly":true,"writeOnly":false`, ""},
	{record + `,"properties":{"a":{"type":"integer","minimum":0,"maximum":10,"exclusiveMinimum":-1,"exclusiveMaximum":11,"multipleOf":2},"b":true,"c":false},"required":["a"],"minProperties":1,"maxProperties":2,"dependentRequired":{"a":["b"]}`, ""},
	{`"type":"object","additionalProperties":{"type":"integer"},"propertyNames":{"pattern":"^[a-z]+$"}`, ""},
	{`"type":"array","items":{"type":"string"},"prefixItems":[true],"minItems":1,"maxItems":2,"uniqueItems":true`, ""},
	{`"$ref":"#/$defs/a","$defs":{"a":{` + record + `,"properties":{"next":{"$ref":"#/$defs/a"},"all":{"$ref":"#"}}}}`, ""},
	{`"$ref":"urn:x:inner:1","$defs":{"i":{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x:inner:1","$ref":"#/$defs/b","$defs":{"b":{"type":"null"}}},"j":{"$ref":"urn:x:inner:1#/$defs/b"},"k":{"$ref":"urn:x:test:1#/$defs/j"}}`, ""},
	{`"type":"object","additionalProperties":false,"properties":{"k":{"type":"string"},"v":true},"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["v"]},"else":{"not":{"required":["v"]}}`, ""},
	{`"oneOf":[{"type":"string","format":"uuid"},{"type":"integer"}],"anyOf":[true]`, ""},
	{`"enum":["a",1,true,false,null]`, ""},
	{`"type":"string","x-ui:widget":"password","x-ui:group":"g","x-ui:order":-3,"x-ui:placeholder":"p","x-ui:multiline":false,"x-redact":"hash"`, ""},
	{secretRef + `,"x-secretRefAllowed":true`, ""},
	{`"type":"string","x-secretRefAllowed":false`, ""},

	{`"type":"strung"`, "/type subset.value"},
	{`"type":[]`, "/type subset.value"},
	{`"type":["string","string"]`, "/type subset.value"},
	{`"type":1`, "/type subset.value"},
	{`"minLength":-1`, "/minLength subset.value"},
	{`"minLength":1.0`, "/minLength subset.value"},
	{`"maxItems":"3"`, "/maxItems subset.value"},
	{`"minimum":"0"`, "/minimum subset.value"},
	{`"maximum":1e300`, "/maximum subset.value"},
	{`"multipleOf":0.1`, "/multipleOf subset.value"},
	{`"multipleOf":0`, "/multipleOf subset.value"},
	{`"enum":[]`, "/enum subset.value"},
	{`"enum":[{}]`, "/enum subset.value"},
	{`"const":[1]`, "/const subset.value"},
	{`"enum":[1,1.0]`, "/enum subset.value"},
	{`"title":1`, "/title subset.value"},
	{`"deprecated":"yes"`, "/deprecated subset.value"},
	{`"examples":{}`, "/examples subset.value"},
	{`"uniqueItems":1`, "/uniqueItems subset.value"},
	{`"uniqueItems":true`, "/uniqueItems subset.value"},
	{`"uniqueItems":true,"items":{"type":"number"}`, "/uniqueItems subset.value"},
	{`"required":"a"`, "/required subset.value  subset.open"},
	{`"type":"object","additionalProperties":false,"required":[1]`, "/required subset.value"},
	{`"type":"object","additionalProperties":false,"required":["a","a"]`, "/required subset.value"},
	{`"properties":[]`, "/properties subset.value  subset.open"},
	{`"allOf":[]`, "/allOf subset.value"},
	{`"allOf":{}`, "/allOf subset.value"},
	{`"items":[]`, "/items subset.value"},
	{`"not":1`, "/not subset.value"},
	{`"format":"email"`, "/format subset.value"},
	{`"format":"date"`, "/format subset.value"},

	{`"unevaluatedProperties":false`, "/unevaluatedProperties subset.keyword"},
	{`"patternProperties":{}`, "/patternProperties subset.keyword"},
	{`"$dynamicRef":"#x"`, "/$dynamicRef subset.keyword"},
	{`"$anchor":"x"`, "/$anchor subset.keyword"},
	{`"contains":true`, "/contains subset.keyword"},
	{`"dependentSchemas":{}`, "/dependentSchemas subset.keyword"},
	{`"definitions":{}`, "/definitions subset.keyword"},
	{`"Type":"string"`, "/Type subset.keyword"},
	{`"then":true`, " subset.keyword"},
	{`"items":{"$defs":{}}`, "/items/$defs subset.keyword"},

	{`"items":{"$id":"urn:x:other:1"}`, "/items/$id subset.id"},
	{`"items":{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "/items/$schema subset.id"},
	{`"$defs":{"a":{"$id":"urn:x:test:1"}}`, "/$defs/a/$id subset.id"},
	{`"$defs":{"a":{"$id":"a.json"}}`, "/$defs/a/$id subset.id"},
	{`"$defs":{"a":{"$id":"urn:x:a:1","$schema":"http://json-schema.org/draft-07/schema#"}}`, "/$defs/a/$schema subset.id"},
	{`"$defs":{"a/b":{}}`, "/$defs/a~1b subset.value"},

	{`"$ref":"https://example.org/x"`, "/$ref subset.ref"},
	{`"$ref":"other.json"`, "/$ref subset.ref"},
	{`"$ref":"#/$defs/gone"`, "/$ref subset.ref"},
	{`"$ref":"#/properties/a","type":"object","additionalProperties":false,"properties":{"a":true}`, "/$ref subset.ref"},
	{`"$ref":""`, "/$ref subset.ref"},
	{`"$ref":"#a"`, "/$ref subset.ref"},
	{`"$ref":1`, "/$ref subset.value"},
	{`"$ref":"#/$defs/i","$defs":{"i":{"$id":"urn:x:inner:1"}}`, "/$ref subset.ref"},
	{`"$ref":"#"`, " subset.ref"},
	{`"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"not":{"$ref":"#/$defs/a"}}]}}`, "/$defs/a subset.ref"},

	{`"pattern":"[a-z]+"`, "/pattern subset.pattern"},
	{`"pattern":1`, "/pattern subset.value"},

	{`"type":"object"`, " subset.open"},
	{`"type":["object","null"],"properties":{}`, " subset.open"},
	{`"properties":{"a":true}`, " subset.open"},
	{`"type":"object","properties":{"a":true},"additionalProperties":true`, "/additionalProperties subset.open"},
	{`"type":"object","properties":{"a":true},"additionalProperties":{"type":"string"}`, "/additionalProperties subset.open"},
	{`"allOf":[{"properties":{"a":true}}]`, "/allOf/0 subset.open"},
	{`"required":["a"]`, " subset.open"},

	{`"x-ui:colour":"red"`, "/x-ui:colour subset.annotation"},
	{`"x-custom":1`, "/x-custom subset.annotation"},
	{`"x-ui:widget":"carousel"`, "/x-ui:widget subset.annotation"},
	{`"x-ui:order":1.5`, "/x-ui:order subset.annotation"},
	{`"x-ui:order":"1"`, "/x-ui:order subset.annotation"},
	{`"x-ui:group":""`, "/x-ui:group subset.annotation"},
	{`"x-ui:multiline":"true"`, "/x-ui:multiline subset.annotation"},
	{`"x-redact":true`, "/x-redact subset.annotation"},
	{`"x-redact":"some"`, "/x-redact subset.annotation"},
	{`"x-secretRefAllowed":1`, "/x-secretRefAllowed subset.annotation"},
	{`"type":"string","x-secretRefAllowed":true`, "/x-secretRefAllowed subset.annotation"},
	{strings.Replace(secretRef, `"required":["name","provider"]`, `"required":["name"]`, 1) + `,"x-secretRefAllowed":true`, "/x-secretRefAllowed subset.annotation"},
	{strings.Replace(secretRef, `"name":{"type":"string"`, `"name":{"type":"integer"`, 1) + `,"x-secretRefAllowed":true`, "/x-secretRefAllowed subset.annotation"},

	{`"type":"string","default":1`, "/default subset.default"},
	{`"type":"integer","maximum":3,"default":4`, "/default subset.default"},

	{`"enum":[` + list(1000, func(i int) string { return fmt.Sprint(i) }) + `]`, ""},
	{`"enum":[` + list(1001, func(i int) string { return fmt.Sprint(i) }) + `]`, "/enum subset.limit"},
	{`"anyOf":[` + list(64, func(int) string { return "true" }) + `]`, ""},
	{`"anyOf":[` + list(65, func(int) string { return "true" }) + `]`, "/anyOf subset.limit"},
	{record + `,"properties":{` + list(512, func(i int) string { return fmt.Sprintf(`"m%d":true`, i) }) + `}`, ""},
	{record + `,"properties":{` + list(513, func(i int) string { return fmt.Sprintf(`"m%d":true`, i) }) + `}`, " subset.limit"},
	{strings.Repeat(`"items":{`, 32) + strings.Repeat("}", 32), ""},
	{strings.Repeat(`"items":{`, 33) + strings.Repeat("}", 33), strings.Repeat("/items", 33) + " subset.limit"},
	{`"$defs":{` + list(1998, func(i int) string { return fmt.Sprintf(`"d%d":{}`, i) }) + `}`, ""},
	{`"$defs":{` + list(2001, func(i int) string { return fmt.Sprintf(`"d%d":{}`, i) }) + `}`, "/$defs/d1999 subset.limit"},
	{`"title":"` + strings.Repeat("x", subset.MaxDocument) + `"`, " subset.limit"},
	{doubling(5), ""},
	{doubling(20), "/$defs/d13 subset.limit"},
	{`"$defs":{` + list(501, func(i int) string { return fmt.Sprintf(`"d%d":{"items":{"$ref":"#"}}`, i) }) + `}`, "/$defs/d500/items/$ref subset.limit"},
	{`"$defs":{` + list(201, func(i int) string { return fmt.Sprintf(`"d%d":{"pattern":"^a$"}`, i) }) + `}`, "/$defs/d200/pattern subset.limit"},
	{`"$defs":{` + list(33, func(i int) string { return fmt.Sprintf(`"d%d":{"pattern":"^a{500}$"}`, i) }) + `}`, "/$defs/d32/pattern subset.limit"},
}

func codes(problems []subset.Problem) string {
	words := make([]string, len(problems))
	for i, p := range problems {
		words[i] = p.Pointer + " " + p.Code
	}
	return strings.Join(words, " ")
}

func TestCheck(t *testing.T) {
	for _, d := range documents {
		problems := subset.Check(doc(d.members))
		if got, want := codes(problems), d.want; got != want {
			t.Errorf("%.200s:\n%.300q, want %q\n%.300v", d.members, got, want, problems)
		}
		for _, p := range problems {
			if p.Message == "" || len(p.String()) > 1000 {
				t.Errorf("%.200s: %+v", d.members, p)
			}
		}
		s, err := subset.Compile(doc(d.members))
		var invalid *subset.Invalid
		switch {
		case problems == nil && (err != nil || s.ID() != "urn:x:test:1"):
			t.Errorf("%.200s: Compile: %v", d.members, err)
		case problems != nil && (s != nil || !errors.As(err, &invalid) || !slices.Equal(invalid.Problems, problems)):
			t.Errorf("%.200s: Compile: %v", d.members, err)
		}
	}
}

func TestCheckWhole(t *testing.T) {
	for text, want := range map[string]string{
		"":     " subset.json",
		"true": " subset.json",
		"[]":   " subset.json",
		"{":    " subset.json",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x:a","$id":"urn:x:b"}`:    " subset.json",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x:a","\u0024id":"urn:x"}`: " subset.json",
		"{\"title\":\"\xff\"}": " subset.json",
		`{}`:                   "/$schema subset.id /$id subset.id",
		`{"$id":"urn:x:a"}`:    "/$schema subset.id",
		`{"$id":"urn:x:a","$schema":"https://json-schema.org/draft/2020-12/schema#"}`:                                                                   "/$schema subset.id",
		`{"$id":"a","$schema":"https://json-schema.org/draft/2020-12/schema"}`:                                                                          "/$id subset.id",
		`{"$id":"urn:a#b","$schema":"https://json-schema.org/draft/2020-12/schema"}`:                                                                    "/$id subset.id",
		`{"$id":1,"$schema":"https://json-schema.org/draft/2020-12/schema"}`:                                                                            "/$id subset.id",
		`{"$id":"urn:a","$schema":"https://json-schema.org/draft/2020-12/schema","examples":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`: " subset.json",
	} {
		if got := codes(subset.Check([]byte(text))); got != want {
			t.Errorf("%.200s: %q, want %q", text, got, want)
		}
	}
}
