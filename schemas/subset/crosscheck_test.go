package subset_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchyard-plugins/switchyard/schemas"
	"github.com/switchyard-plugins/switchyard/schemas/format"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, &fs.PathError{Op: "load", Path: url, Err: fs.ErrNotExist}
}

// full compiles a document with a validator of the whole of 2020-12 that was written
// by others. The forms that the subset asserts are told to it, for it knows half of
// them and takes leap seconds.
func full(document []byte) (*jsonschema.Schema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	c.AssertFormat()
	for name, is := range map[string]func(string) bool{
		"base64url": format.Base64URL[string], "date-time": format.DateTime[string], "decimal": format.Decimal[string],
		"int64": format.Int64[string], "uri": format.URI[string], "uuid": format.UUID[string],
	} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !is(s) {
				return errors.New("not of the form")
			}
			return nil
		}})
	}
	id := value.(map[string]any)["$id"].(string)
	if err := c.AddResource(id, value); err != nil {
		return nil, err
	}
	return c.Compile(id)
}

// agree holds one verdict to the other validator's.
func agree(t *testing.T, document, value []byte, ours *subset.Schema, theirs *jsonschema.Schema) (valid, bounded bool) {
	t.Helper()
	problems := ours.Validate(value)
	for _, p := range problems {
		if p.Code == subset.CodeWork {
			return false, true
		}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	verdict := theirs.Validate(v)
	if (problems == nil) != (verdict == nil) {
		t.Errorf("schema %s\nvalue %s\nours: %v\ntheirs: %v", document, value, problems, verdict)
	}
	return problems == nil, false
}

// A maker writes random schemas of the subset and values that are near to them.
type maker struct {
	*rand.Rand
	definitions int
}

func (m *maker) pick(list ...string) string { return list[m.IntN(len(list))] }

// schema returns a schema and a value that it may well take.
func (m *maker) schema(depth int) (schema string, value func() string) {
	kind := m.IntN(12)
	if depth == 0 {
		kind = m.IntN(6)
	}
	switch kind {
	case 0: // string
		var words []string
		value = func() string { return m.pick(`"abc"`, `"é😀"`, `""`, `"a"`, `"\u0061b"`, `"0"`, `"x y"`) }
		if m.IntN(3) == 0 {
			words = append(words, fmt.Sprintf(`"minLength":%d`, m.IntN(3)))
		}
		if m.IntN(3) == 0 {
			words = append(words, fmt.Sprintf(`"maxLength":%d`, m.IntN(4)))
		}
		if m.IntN(4) == 0 {
			words = append(words, `"pattern":"`+m.pick(`^[a-z]*$`, `^(a|0)[bc]{0,2}$`, `^[^\\n]+$`)+`"`)
		}
		return `{"type":"string"` + strings.Join(append([]string{""}, words...), ",") + `}`, value
	case 1: // format
		f := m.pick("int64", "decimal", "base64url", "uuid", "uri", "date-time")
		return `{"type":"string","format":"` + f + `"}`, func() string {
			return m.pick(`"0"`, `"-12"`, `"1.50"`, `"AA"`, `"AB"`, `"0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"`, `"urn:x:y"`, `"2026-07-11T16:21:00Z"`, `"2026-02-30T16:21:00Z"`, `"9223372036854775808"`, `1`)
		}
	case 2: // number
		t := m.pick("integer", "number")
		words := ""
		for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			if m.IntN(4) == 0 {
				words += fmt.Sprintf(`,"%s":%s`, k, m.pick("-1", "0", "1.5", "3", "10"))
			}
		}
		if m.IntN(4) == 0 {
			words += `,"multipleOf":` + m.pick("1", "2", "3")
		}
		return `{"type":"` + t + `"` + words + `}`, func() string { return m.pick("-1", "0", "-0", "1", "1.0", "1.5", "2", "3e0", "6", "10", "0.25e1") }
	case 3: // enum
		return `{"enum":[` + m.pick(`"a","b"`, `1,2.5,"a"`, `null,true`, `false,0,""`) + `]}`, func() string {
			return m.pick(`"a"`, `"\u0062"`, `1.0`, `25e-1`, `null`, `true`, `false`, `0`, `""`, `[]`, `{}`)
		}
	case 4:
		return m.pick(`true`, `{}`, `{"type":["null","boolean"]}`, `{"const":null}`, `false`, `{"type":"null","title":"t"}`), func() string { return m.pick("null", "true", "false", "0", "[]") }
	case 5: // reference
		i := m.IntN(m.definitions)
		return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i), func() string {
			return m.pick(`"abc"`, "1", "[]", "[1]", "{}", `{"a":1}`, "null", `{"b":[],"a":"x"}`)
		}
	case 6, 7: // record
		names := []string{"a", "b", "c"}[:1+m.IntN(3)]
		var properties, required []string
		values := map[string]func() string{}
		for _, name := range names {
			s, v := m.schema(depth - 1)
			properties = append(properties, fmt.Sprintf("%q:%s", name, s))
			values[name] = v
			if m.IntN(2) == 0 {
				required = append(required, fmt.Sprintf("%q", name))
			}
		}
		words := ""
		if m.IntN(4) == 0 {
			words += fmt.Sprintf(`,"minProperties":%d`, m.IntN(3))
		}
		if m.IntN(4) == 0 {
			words += fmt.Sprintf(`,"maxProperties":%d`, m.IntN(4))
		}
		if m.IntN(4) == 0 {
			words += `,"dependentRequired":{"a":["b"]}`
		}
		if m.IntN(4) == 0 {
			words += `,"if":{"properties":{"a":{"type":"string"}}},"then":{"required":["b"]},"else":{"not":{"required":["c"]}}`
		}
		return `{"type":"object","additionalProperties":false,"properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]` + words + `}`, func() string {
			var members []string
			for _, name := range names {
				if m.IntN(4) > 0 {
					spelled := name
					if m.IntN(5) == 0 {
						spelled = fmt.Sprintf(`\u%04x`, name[0])
					}
					members = append(members, `"`+spelled+`": `+values[name]())
				}
			}
			if m.IntN(6) == 0 {
				members = append(members, `"z":0`)
			}
			m.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			return "{" + strings.Join(members, " ,") + "}"
		}
	case 8: // map
		s, v := m.schema(depth - 1)
		words := ""
		if m.IntN(3) == 0 {
			words = `,"propertyNames":{"maxLength":1}`
		}
		return `{"type":"object","additionalProperties":` + s + words + `}`, func() string {
			return m.pick("{}", `{"k":`+v()+`}`, `{"k":`+v()+`,"\u00e9":`+v()+`}`, `{"kk":`+v()+`}`)
		}
	case 9: // array
		s, v := m.schema(depth - 1)
		words := ""
		if m.IntN(3) == 0 {
			words += fmt.Sprintf(`,"minItems":%d`, m.IntN(3))
		}
		if m.IntN(3) == 0 {
			words += fmt.Sprintf(`,"maxItems":%d`, m.IntN(3))
		}
		if m.IntN(3) == 0 {
			p, _ := m.schema(0)
			words += `,"prefixItems":[` + p + `]`
		}
		if m.IntN(3) == 0 {
			s, words = `{"type":["string","integer","null"]}`, words+`,"uniqueItems":true`
			v = func() string { return m.pick("1", "1.0", `"a"`, `"\u0061"`, "null", "2") }
		}
		return `{"type":"array","items":` + s + words + `}`, func() string {
			var items []string
			for range m.IntN(4) {
				items = append(items, v())
			}
			return "[" + strings.Join(items, " , ") + "]"
		}
	case 10: // alternatives
		a, x := m.schema(depth - 1)
		b, y := m.schema(depth - 1)
		return `{"` + m.pick("allOf", "anyOf", "oneOf") + `":[` + a + `,` + b + `]}`, func() string {
			if m.IntN(2) == 0 {
				return x()
			}
			return y()
		}
	}
	a, x := m.schema(depth - 1)
	return `{"not":` + a + `}`, x
}

func (m *maker) document() (string, func() string) {
	m.definitions = 1 + m.IntN(2)
	root, value := m.schema(3)
	var defs []string
	for i := range m.definitions {
		s, _ := m.schema(2)
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, s))
	}
	text := string(doc(`"allOf":[` + root + `],"$defs":{` + strings.Join(defs, ",") + `}`))
	return text, value
}

// TestAgreesWithFullValidator: on random schemas and values near to them the verdict
// is that of a validator of the whole of 2020-12.
func TestAgreesWithFullValidator(t *testing.T) {
	m := &maker{Rand: rand.New(rand.NewPCG(2020, 12))}
	schemas, valid, invalid, refused := 0, 0, 0, 0
	for range 1500 {
		text, value := m.document()
		if !json.Valid([]byte(text)) {
			t.Fatalf("not JSON: %s", text)
		}
		ours, err := subset.Compile([]byte(text))
		if err != nil {
			refused++ // a circle of references
			if !strings.Contains(err.Error(), "refers to itself") && !strings.Contains(err.Error(), "more than 256 subschemas") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		theirs, err := full([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		schemas++
		for range 12 {
			v := []byte(value())
			if err := ijson.Check(v); err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			if ok, _ := agree(t, []byte(text), v, ours, theirs); ok {
				valid++
			} else {
				invalid++
			}
		}
		if t.Failed() {
			return
		}
	}
	if schemas < 1000 || valid < 3000 || invalid < 3000 {
		t.Errorf("%d schemas, %d refused, %d values valid, %d not", schemas, refused, valid, invalid)
	}
	t.Logf("%d schemas, %d refused, %d values valid, %d not", schemas, refused, valid, invalid)
}

// What Check takes the full validator compiles, and on every value of the other tests
// both agree.
func TestCheckedSchemasCompile(t *testing.T) {
	n := 0
	for _, d := range documents {
		if d.want != "" {
			continue
		}
		theirs, err := full(doc(d.members))
		if err != nil {
			t.Errorf("%.200s: %v", d.members, err)
			continue
		}
		ours := compiled(t, d.members)
		for _, v := range values {
			if ijson.Check([]byte(v.value)) == nil {
				agree(t, doc(d.members), []byte(v.value), ours, theirs)
				n++
			}
		}
	}
	for _, v := range values {
		theirs, err := full(doc(v.members))
		if err != nil {
			t.Errorf("%.200s: %v", v.members, err)
			continue
		}
		ours := compiled(t, v.members)
		for _, w := range values {
			if ijson.Check([]byte(w.value)) == nil {
				agree(t, doc(v.members), []byte(w.value), ours, theirs)
				n++
			}
		}
	}
	if n < 2000 {
		t.Errorf("only %d verdicts", n)
	}
}

// The published schema of package schemas takes what Check takes; it refuses keywords
// and forms that are not of the subset.
func TestMetaschemaAgrees(t *testing.T) {
	text, err := schemas.Get("package-schema.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := full(text)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := subset.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	// What is refused for more than the form of one member.
	beyond := []string{subset.CodeOpen, subset.CodeRef, subset.CodePattern, subset.CodeDefault, subset.CodeLimit, subset.CodeIdentity}
	checked := 0
	for _, d := range documents {
		if strings.Contains(d.want, subset.CodeLimit) {
			continue
		}
		accepted, _ := agree(t, doc(d.members), doc(d.members), ours, meta)
		stated := d.want != "" && !slices.ContainsFunc(beyond, func(code string) bool { return strings.Contains(d.want, code) }) &&
			!strings.HasPrefix(d.want, "/uniqueItems") && !strings.HasPrefix(d.want, "/x-secretRefAllowed") && d.want != " subset.keyword" && !strings.HasPrefix(d.want, "/items/$defs") &&
			d.members != `"enum":[1,1.0]` && d.members != `"minLength":1.0`
		if accepted != (d.want == "") && (d.want == "" || stated) {
			t.Errorf("%s: accepted %v, Check says %q", d.members, accepted, d.want)
		}
		if stated {
			checked++
		}
	}
	if checked < 25 {
		t.Errorf("only %d refusals compared", checked)
	}
}

// FuzzCheck: whatever comes, Check does not panic and its time is bounded; what it
// takes also compiles elsewhere.
func FuzzCheck(f *testing.F) {
	for _, d := range documents {
		if len(d.members) < 4000 {
			f.Add(doc(d.members))
		}
	}
	for _, v := range values {
		f.Add(doc(v.members))
	}
	if len(documents) < 50 {
		f.Fatalf("%d seeds", len(documents))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		problems := subset.Check(document)
		for _, p := range problems {
			if p.Code == "" || p.Message == "" {
				t.Errorf("%q: %+v", document, p)
			}
		}
		if problems != nil || ijson.Check(document) != nil {
			return
		}
		if _, err := full(document); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	})
}

// FuzzValidate: whatever comes, a verdict; on what has passed the value rules it is
// the full validator's.
func FuzzValidate(f *testing.F) {
	n := 0
	for _, v := range values {
		f.Add(doc(v.members), []byte(v.value))
		n++
	}
	for _, d := range documents {
		if len(d.members) < 2000 && d.want == "" {
			f.Add(doc(d.members), []byte(order))
			n++
		}
	}
	f.Add(doc(orderSchema), []byte(order))
	if n < 50 {
		f.Fatalf("%d seeds", n)
	}
	f.Fuzz(func(t *testing.T, document, value []byte) {
		ours, err := subset.Compile(document)
		if err != nil {
			return
		}
		problems := ours.Validate(value)
		if ijson.Check(value) != nil || ijson.Check(document) != nil || beyondDoubles(document) || beyondDoubles(value) {
			return
		}
		for _, p := range problems {
			if p.Code == subset.CodeSyntax {
				t.Fatalf("%q: %v", value, problems)
			}
		}
		theirs, err := full(document)
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		agree(t, document, value, ours, theirs)
	})
}

// beyondDoubles reports whether a number is written with more digits than a double
// has: the subset knows doubles, and the full validator exact fractions.
func beyondDoubles(text []byte) bool {
	digits := 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > 15 {
				return true
			}
		case c != '.':
			digits = 0
		}
	}
	return false
}
