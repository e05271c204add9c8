package subset_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

func compiled(t testing.TB, members string) *subset.Schema {
	t.Helper()
	s, err := subset.Compile(doc(members))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// values: a schema's members, a value, and the problems as "pointer code", with what
// the first one's message says.
var values = []struct{ members, value, want, says string }{
	{"", `{"any":[1,"x",null]}`, "", ""},
	{`"type":"string"`, ` "a" `, "", ""},
	{`"type":"string"`, `1`, " schema.mismatch", "must be string"},
	{`"type":["string","null"]`, `null`, "", ""},
	{`"type":["string","null"]`, `false`, " schema.mismatch", "must be null or string"},
	{`"type":"boolean"`, `true`, "", ""},
	{`"type":"integer"`, `1.0`, "", ""},
	{`"type":"integer"`, `-12e1`, "", ""},
	{`"type":"integer"`, `1.5`, " schema.mismatch", "must be integer"},
	{`"type":"number"`, `1.5`, "", ""},
	{`"type":"number"`, `"1.5"`, " schema.mismatch", "must be number"},
	{`"enum":["a","é",1,true,null]`, `"\u00e9"`, "", ""},
	{`"enum":["a","é",1,true,null]`, `1.0`, "", ""},
	{`"enum":["a","é",1,true,null]`, `"1"`, " schema.mismatch", `must be one of "a", "é", 1, true, null`},
	{`"enum":["a"]`, `{"a":1}`, " schema.mismatch", "must be one of"},
	{`"enum":["a"]`, `["a"]`, " schema.mismatch", "must be one of"},
	{`"enum":["a"]`, `false`, " schema.mismatch", "must be one of"},
	{`"const":0`, `-0.0`, "", ""},
	{`"enum":["a","b"],"const":"b"`, `"a"`, " schema.mismatch", "must be one of"},
	{`"enum":["a"],"const":"b"`, `"b"`, " schema.mismatch", "must be one of"},
	{`"minimum":1,"maximum":3`, `1`, "", ""},
	{`"minimum":1,"maximum":3`, `0.999`, " schema.mismatch", "at least 1"},
	{`"minimum":1,"maximum":3`, `3.001`, " schema.mismatch", "at most 3"},
	{`"exclusiveMinimum":1,"exclusiveMaximum":3`, `1`, " schema.mismatch", "more than 1"},
	{`"exclusiveMinimum":1,"exclusiveMaximum":3`, `3`, " schema.mismatch", "less than 3"},
	{`"multipleOf":5`, `15`, "", ""},
	{`"multipleOf":5`, `16`, " schema.mismatch", "multiple of 5"},
	{`"multipleOf":1`, `0.5`, " schema.mismatch", "multiple of 1"},
	{`"minimum":1`, `"a string"`, "", ""},
	{`"minLength":2,"maxLength":3`, `"😀😀"`, "", ""},
	{`"minLength":2,"maxLength":3`, `"\ud83d\ude00"`, " schema.mismatch", "at least 2 characters"},
	{`"minLength":2,"maxLength":3`, `"éééé"`, " schema.mismatch", "at most 3 characters"},
	{`"minLength":2,"maxLength":0`, `"a"`, " schema.mismatch  schema.mismatch", "at least 2 characters"},
	{`"pattern":"^[a-z]+$"`, `"abc"`, "", ""},
	{`"pattern":"^[a-z]+$"`, `"abc\n"`, " schema.mismatch", "must match ^[a-z]+$"},
	{`"format":"uuid"`, `"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"`, "", ""},
	{`"format":"uuid"`, `"x"`, " schema.mismatch", "format uuid"},
	{`"format":"date-time"`, `"2016-12-31T23:59:60Z"`, " schema.mismatch", "format date-time"},
	{`"format":"int64"`, `9`, "", ""},
	{`"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3`, `[1,2]`, "", ""},
	{`"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3`, `[ ]`, " schema.mismatch", "at least 1 elements"},
	{`"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3`, `[1,"x",2,true]`, "/1 schema.mismatch /3 schema.mismatch  schema.mismatch", "must be integer"},
	{`"prefixItems":[{"type":"string"}],"items":{"type":"integer"}`, `["a",1,"b"]`, "/2 schema.mismatch", "must be integer"},
	{`"items":{"type":"string"},"uniqueItems":true`, `["a","b","\u0061"]`, "/2 schema.mismatch", "is there twice"},
	{`"items":{"type":["integer","boolean","null","string"]},"uniqueItems":true`, `[1,true,null,"1","true"]`, "", ""},
	{`"items":{"type":"integer"},"uniqueItems":true`, `[1,1.0]`, "/1 schema.mismatch", "is there twice"},
	{`"items":{"type":"integer"},"uniqueItems":true`, `[0,-0]`, "/1 schema.mismatch", "is there twice"},
	{record + `,"properties":{"a":{"type":"string"},"b":true},"required":["a"]`, `{"a":"x","b":{"c":[]}}`, "", ""},
	{record + `,"properties":{"a":{"type":"string"},"b":true},"required":["a"]`, `{}`, " schema.mismatch", `the member "a" is required`},
	{record + `,"properties":{"a":{"type":"string"}}`, `{"\u0061":1}`, "/a schema.mismatch", "must be string"},
	{record + `,"properties":{"a":{"type":"string"}}`, `{"a":null}`, "/a schema.mismatch", "must be string"},
	{record + `,"properties":{"a":{"type":"string"}}`, `{"A":"x"}`, "/A schema.unknown_member", `unknown member "A"`},
	{record + `,"properties":{"a":false}`, `{"a":1}`, "/a schema.mismatch", "must not be there"},
	{record, `{"a/b~c":1}`, "/a~1b~0c schema.unknown_member", `unknown member "a/b~c"`},
	{record, `{"a\u202eb":1}`, "/a\u202eb schema.unknown_member", `unknown member "a\u202eb"`},
	{`"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2`, `{"x":1,"y":2}`, "", ""},
	{`"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2`, `{"x":"1","y":2,"z":3}`, "/x schema.mismatch  schema.mismatch", "must be integer"},
	{`"type":"object","additionalProperties":{"type":"integer"},"minProperties":1`, `{}`, " schema.mismatch", "at least 1 members"},
	{`"type":"object","additionalProperties":true,"propertyNames":{"pattern":"^[a-z]$"}`, `{"a":1,"B":2}`, "/B schema.mismatch", "name is not allowed"},
	{record + `,"properties":{"a":true,"b":true},"dependentRequired":{"a":["b"]}`, `{"a":1}`, " schema.mismatch", `the member "b" is required beside "a"`},
	{record + `,"properties":{"a":true,"b":true},"dependentRequired":{"a":["b"]}`, `{"b":1}`, "", ""},
	{`"allOf":[{"minimum":3},{"multipleOf":2}]`, `1`, " schema.mismatch  schema.mismatch", "at least 3"},
	{`"anyOf":[{"type":"string"},{"minimum":3}]`, `4`, "", ""},
	{`"anyOf":[{"type":"string"},{"minimum":3}]`, `2`, " schema.mismatch", "none of the 2 alternatives"},
	{`"oneOf":[{"minimum":1},{"minimum":3}]`, `2`, "", ""},
	{`"oneOf":[{"minimum":1},{"minimum":3}]`, `4`, " schema.mismatch", "more than one of the 2"},
	{`"oneOf":[{"minimum":1},{"minimum":3}]`, `0`, " schema.mismatch", "none of the 2"},
	{`"not":{"type":"string"}`, `"a"`, " schema.mismatch", "excluded"},
	{`"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":2}`, `"a"`, " schema.mismatch", "at least 2 characters"},
	{`"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":2}`, `1`, " schema.mismatch", "at least 2"},
	{`"if":{"type":"string"},"then":{"minLength":2}`, `1`, "", ""},
	{record + `,"properties":{"v":{"type":"integer"},"next":{"$ref":"#"}}`, `{"v":1,"next":{"v":2,"next":{"v":"x"}}}`, "/next/next/v schema.mismatch", "must be integer"},
	{`"$ref":"urn:x:inner:1","$defs":{"i":{"$id":"urn:x:inner:1","type":"array","items":{"$ref":"#/$defs/b"},"$defs":{"b":{"type":"null"}}}}`, `[null,0]`, "/1 schema.mismatch", "must be null"},
	{`"type":"array","items":{"anyOf":[{"type":"array","items":{"type":"array","items":{"type":"integer"}}},{"type":"string"}]}`, `[[[1],[2]],"a",[["x"]]]`, "/2 schema.mismatch", "none of the 2"},

	// What is redacted is told up to where it begins, and its names are not told.
	{record + `,"properties":{"s":{"x-redact":"full","type":"object","additionalProperties":{"type":"integer"}}}`, `{"s":{"hunter2":"x"}}`, "/s schema.mismatch", "must be integer"},
	{record + `,"properties":{"s":{"x-redact":"full",` + record + `}}`, `{"s":{"hunter2":"x"}}`, "/s schema.unknown_member", "has an unknown member"},
	{record + `,"properties":{"s":{"x-redact":"full"},"t":{"type":"string"}}`, `{"s":1,"t":2}`, "/t schema.mismatch", "must be string"},

	// What has not passed the value rules is refused.
	{"", ``, " json.syntax", ""},
	{"", `{`, " json.syntax", ""},
	{"", `1 2`, " json.syntax", ""},
	{"", `nul`, " json.syntax", ""},
	{`"type":"array","items":true`, `[1 2]`, " json.syntax", ""},
	{`"type":"array","items":true`, `[1`, " json.syntax", ""},
	{record + `,"properties":{"a":true}`, `{"a" 1}`, " json.syntax", ""},
	{record + `,"properties":{"a":true}`, `{"a":`, " json.syntax", ""},
	{record + `,"properties":{"a":true}`, `{a:1}`, " json.syntax", ""},
	{"", `"abc`, " json.syntax", ""},
	{"", `"abc\`, " json.syntax", ""},
}

func TestValidate(t *testing.T) {
	for _, v := range values {
		problems := compiled(t, v.members).Validate([]byte(v.value))
		got := codes(problems)
		if strings.Contains(v.want, "json.syntax") {
			if !strings.Contains(got, "json.syntax") {
				t.Errorf("%s on %s: %q", v.members, v.value, got)
			}
			continue
		}
		if got != v.want || problems != nil && !strings.Contains(problems[0].Message, v.says) {
			t.Errorf("%s on %s: %v, want %q with %q", v.members, v.value, problems, v.want, v.says)
		}
	}
}

// No message repeats a value, whatever the schema.
func TestNoValueIsQuoted(t *testing.T) {
	const secret = "hunter2-hunter2"
	n := 0
	for _, v := range values {
		for _, value := range []string{`"` + secret + `"`, `["` + secret + `","` + secret + `"]`, `{"a":"` + secret + `","b":["` + secret + `"]}`, `{"v":"` + secret + `"}`, `{"k":"x","secretRef":"` + secret + `"}`} {
			for _, p := range compiled(t, v.members).Validate([]byte(value)) {
				n++
				if strings.Contains(p.String(), "hunter2") {
					t.Errorf("%s on %s: %s", v.members, value, p)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d problems", n)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	s := compiled(t, `"type":"array","items":{"type":"string"}`)
	if got := s.Validate([]byte("[" + list(1000, func(int) string { return "1" }) + "]")); len(got) != subset.MaxProblems {
		t.Errorf("%d problems", len(got))
	}
	long := strings.Repeat("n", 1<<20)
	for _, p := range compiled(t, record).Validate([]byte(`{"` + long + `":1}`)) {
		if len(p.String()) > 1000 {
			t.Errorf("a problem of %d bytes", len(p.String()))
		}
	}
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	if got := codes(compiled(t, `"items":{"$ref":"#"}`).Validate([]byte(deep))); !strings.Contains(got, "json.limit") {
		t.Errorf("70 levels: %q", got)
	}
	if got := compiled(t, `"items":{"$ref":"#"}`).Validate([]byte(deep[6 : len(deep)-6])); got != nil {
		t.Errorf("58 levels: %v", got)
	}
}

// Alternatives that multiply with the depth of the value are stopped, soon.
func TestWorkIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n) + `1` + strings.Repeat("}", n)) }
	for _, members := range []string{
		`"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"anyOf":[{"type":"integer"},{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/n"}}}]},{"anyOf":[{"type":"integer"},{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/n"}}}]}]}}`,
		`"$ref":"#/$defs/n","$defs":{"n":{"oneOf":[{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/n"}}},{"type":"object","additionalProperties":{"$ref":"#/$defs/n"},"maxProperties":9},{"type":"string"}]}}`,
	} {
		s := compiled(t, members)
		begin := time.Now()
		got := codes(s.Validate(deep(60)))
		if took := time.Since(begin); !strings.HasSuffix(got, subset.CodeWork) || took > 5*time.Second {
			t.Errorf("%s: %q in %v", members, got, took)
		}
		if got := codes(s.Validate(deep(3))); strings.Contains(got, subset.CodeWork) {
			t.Errorf("%s: three levels are too much: %q", members, got)
		}
	}
	many := compiled(t, `"type":"array","items":{"anyOf":[`+list(60, func(i int) string { return fmt.Sprintf(`{"const":"c%d"}`, i) })+`,{"type":"integer"}]}`)
	if got := many.Validate([]byte("[" + list(1500, func(int) string { return "7" }) + "]")); got != nil {
		t.Errorf("1,500 values with 61 alternatives: %v", got)
	}
	if got := codes(many.Validate([]byte("[" + list(1_000_000, func(int) string { return "7" }) + "]"))); !strings.HasSuffix(got, subset.CodeWork) {
		t.Errorf("a million values with 61 alternatives: %q", got)
	}
	plain := compiled(t, `"type":"array","items":{"type":"integer","minimum":0}`)
	if got := plain.Validate([]byte("[" + list(2_000_000, func(int) string { return "7" }) + "]")); got != nil {
		t.Errorf("two million plain values: %v", got)
	}
}

const (
	orderSchema = record + `,"required":["id","kind","count","tags"],"properties":{"id":{"type":"string","format":"uuid"},"kind":{"enum":["incremental","full"]},` +
		`"count":{"type":"integer","minimum":0,"maximum":1000000},"tags":{"type":"array","maxItems":16,"items":{"type":"string","minLength":1,"maxLength":64,"pattern":"^[a-z][a-z0-9]*$"}},` +
		`"note":{"type":["string","null"],"maxLength":400},"at":{"type":"string","format":"date-time"}}`
	order = `{"id":"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19","kind":"incremental","count":42,"tags":["alpha","beta","gamma7"],"note":"some text that a person wrote, of a usual length","at":"2026-07-11T16:21:00Z"}`
)

// Schemas are shared by goroutines, and a validation that finds nothing allocates
// nothing.
func TestSharedAndLight(t *testing.T) {
	s := compiled(t, orderSchema)
	good, bad := []byte(order), []byte(strings.Replace(order, `"count":42`, `"count":-1`, 1))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if got := s.Validate(good); got != nil {
					t.Errorf("%v", got)
				}
				if got := codes(s.Validate(bad)); got != "/count schema.mismatch" {
					t.Errorf("%v", got)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkValidate(b *testing.B) {
	s := compiled(b, orderSchema)
	value := []byte(order)
	b.ReportAllocs()
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if s.Validate(value) != nil {
			b.Fatal("refused")
		}
	}
}
