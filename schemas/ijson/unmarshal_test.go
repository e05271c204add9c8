package ijson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

type inner struct {
	Kind string `json:"kind"`
	Note string `json:"note,omitempty"`
}

type tree struct {
	Label    string `json:"label"`
	Children []tree `json:"children,omitempty"`
}

type base struct {
	ID     string `json:"id"`
	Hidden string `json:"hidden,omitzero"`
}

type everything struct {
	base
	Text     string            `json:"text"`
	Flag     bool              `json:"flag"`
	Count    int               `json:"count"`
	Small    uint8             `json:"small"`
	Ratio    float64           `json:"ratio"`
	List     []string          `json:"list"`
	Pair     [2]int            `json:"pair"`
	Inner    inner             `json:"inner"`
	Inners   []inner           `json:"inners"`
	Map      map[string]inner  `json:"map"`
	Nullable *string           `json:"nullable"`
	Raw      json.RawMessage   `json:"raw"`
	Any      any               `json:"any"`
	When     time.Time         `json:"when"`
	Level    level             `json:"level"`
	Tree     tree              `json:"tree"`
	OptText  string            `json:"optText,omitempty"`
	OptPtr   *inner            `json:"optPtr,omitempty"`
	OptRaw   json.RawMessage   `json:"optRaw,omitempty"`
	OptAny   any               `json:"optAny,omitempty"`
	OptMap   map[string]*inner `json:"optMap,omitempty"`
	Skipped  string            `json:"-"`
	Plain    string
	private  string
}

var errLevel = errors.New("want low or high")

type level string

func (l *level) UnmarshalText(b []byte) error {
	if s := string(b); s != "low" && s != "high" {
		return errLevel
	}
	*l = level(b)
	return nil
}

// full is a document of everything without its optional members.
func full() map[string]any {
	return map[string]any{
		"id": "i", "text": "t", "flag": true, "count": 1, "small": 255, "ratio": 0.5,
		"list": []any{"a"}, "pair": []any{1, 2}, "inner": map[string]any{"kind": "k"},
		"inners": []any{map[string]any{"kind": "k", "note": "n"}}, "map": map[string]any{"x": map[string]any{"kind": "k"}},
		"nullable": nil, "raw": nil, "any": nil, "when": "2024-02-29T00:00:00Z", "level": "low",
		"tree": map[string]any{"label": "root", "children": []any{map[string]any{"label": "leaf"}}}, "Plain": "p",
	}
}

func with(set map[string]any, drop ...string) []byte {
	doc := full()
	for k, v := range set {
		doc[k] = v
	}
	for _, k := range drop {
		delete(doc, k)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

func TestUnmarshalFills(t *testing.T) {
	doc := with(map[string]any{
		"optText": "o", "optPtr": map[string]any{"kind": "p"}, "optRaw": nil, "optAny": []any{nil},
		"optMap": map[string]any{"x": nil}, "hidden": "h", "nullable": "n", "raw": []any{1, nil, map[string]any{"q": nil}},
	})
	var v everything
	if err := ijson.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	var want everything
	if err := json.Unmarshal(doc, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %+v\nwant %+v", v, want)
	}
	if v.ID != "i" || v.Tree.Children[0].Label != "leaf" || v.private != "" || string(v.OptRaw) != "null" || *v.Nullable != "n" {
		t.Errorf("got %+v", v)
	}
}

// What a type writes without its optional members is the least it reads.
func TestReadsWhatItWrites(t *testing.T) {
	v := everything{List: []string{}, Inners: []inner{}, Map: map[string]inner{}, Level: "high", Raw: json.RawMessage("1")}
	doc, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back everything
	if err := ijson.Unmarshal(doc, &back); err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	if !reflect.DeepEqual(back, v) {
		t.Errorf("got %+v, want %+v", back, v)
	}
}

func TestRequired(t *testing.T) {
	for name := range full() {
		var v everything
		e := refused(t, ijson.Unmarshal(with(nil, name), &v))
		if e.Code != ijson.CodeMismatch || e.Pointer != "" || e.Message != fmt.Sprintf("member %q is missing", name) {
			t.Errorf("without %s: %#v", name, e)
		}
	}
	for name, c := range map[string]struct {
		set     map[string]any
		pointer string
	}{
		"in a struct":  {map[string]any{"inner": map[string]any{"note": "n"}}, "/inner"},
		"in a slice":   {map[string]any{"inners": []any{map[string]any{"kind": "k"}, map[string]any{}}}, "/inners/1"},
		"in a map":     {map[string]any{"map": map[string]any{"a/b": map[string]any{}}}, "/map/a~1b"},
		"in a pointer": {map[string]any{"optPtr": map[string]any{}}, "/optPtr"},
		"recursively":  {map[string]any{"tree": map[string]any{"label": "a", "children": []any{map[string]any{"children": []any{}}}}}, "/tree/children/0"},
	} {
		var v everything
		e := refused(t, ijson.Unmarshal(with(c.set), &v))
		if e.Code != ijson.CodeMismatch || e.Pointer != c.pointer || !strings.Contains(e.Message, "is missing") {
			t.Errorf("%s: %#v, want pointer %q", name, e, c.pointer)
		}
	}
	// An escaped name is present.
	var v inner
	if err := ijson.Unmarshal([]byte(`{"\u006bind":"k"}`), &v); err != nil || v.Kind != "k" {
		t.Errorf("escaped name: %v, %+v", err, v)
	}
	// A name that occurs twice does not stand for a missing one.
	var two struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	if e := refused(t, ijson.Unmarshal([]byte(`{"a":1,"a":1}`), &two)); e.Code != ijson.CodeDuplicateName {
		t.Errorf("twice the same name: %v", e)
	}
}

func TestNull(t *testing.T) {
	for name, allowed := range map[string]bool{
		"text": false, "flag": false, "count": false, "ratio": false, "list": false, "pair": false, "inner": false,
		"inners": false, "map": false, "when": false, "level": false, "tree": false, "id": false,
		"optText": false, "optPtr": false, "optAny": false, "optMap": false, "hidden": false,
		"nullable": true, "raw": true, "any": true, "optRaw": true,
	} {
		var v everything
		err := ijson.Unmarshal(with(map[string]any{name: nil}), &v)
		if allowed {
			if err != nil {
				t.Errorf("null %s: %v", name, err)
			}
			continue
		}
		if e := refused(t, err); e.Code != ijson.CodeMismatch || e.Pointer != "/"+name || !strings.Contains(e.Message, "null") {
			t.Errorf("null %s: %#v", name, e)
		}
	}
	for pointer, set := range map[string]map[string]any{
		"/list/1":     {"list": []any{"a", nil}},
		"/pair/0":     {"pair": []any{nil, 1}},
		"/inners/0":   {"inners": []any{nil}},
		"/map/k":      {"map": map[string]any{"k": nil}},
		"/inner/kind": {"inner": map[string]any{"kind": nil}},
	} {
		var v everything
		if e := refused(t, ijson.Unmarshal(with(set), &v)); e.Code != ijson.CodeMismatch || e.Pointer != pointer {
			t.Errorf("null at %s: %#v", pointer, e)
		}
	}
	var s string
	refused(t, ijson.Unmarshal([]byte("null"), &s))
	p := &s
	if err := ijson.Unmarshal([]byte("null"), &p); err != nil || p != nil {
		t.Errorf("null into a pointer: %v, %v", p, err)
	}
}

func TestUnknownMember(t *testing.T) {
	for name, c := range map[string]struct {
		set     map[string]any
		pointer string
		says    string
	}{
		"top":        {map[string]any{"extra": 1}, "/extra", `unknown member "extra"`},
		"other case": {map[string]any{"Text": "x"}, "/Text", `the member "text" is spelled differently`},
		"Go name":    {map[string]any{"OptText": "x"}, "/OptText", `the member "optText" is spelled differently`},
		"ignored":    {map[string]any{"Skipped": "x"}, "/Skipped", `unknown member "Skipped"`},
		"unexported": {map[string]any{"private": "x"}, "/private", `unknown member "private"`},
		"embedded":   {map[string]any{"base": map[string]any{}}, "/base", `unknown member "base"`},
		"inner":      {map[string]any{"inner": map[string]any{"kind": "k", "x": 1}}, "/inner/x", `unknown member "x"`},
		"in slice":   {map[string]any{"inners": []any{map[string]any{"x": nil, "kind": "k"}}}, "/inners/0/x", `unknown member "x"`},
		"in map":     {map[string]any{"map": map[string]any{"m": map[string]any{"Kind": "k"}}}, "/map/m/Kind", `the member "kind" is spelled differently`},
	} {
		var v everything
		e := refused(t, ijson.Unmarshal(with(c.set), &v))
		if e.Code != ijson.CodeUnknownMember || e.Pointer != c.pointer || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %#v", name, e)
		}
	}
	// Neither raw JSON nor an interface knows members.
	var v everything
	if err := ijson.Unmarshal(with(map[string]any{"raw": map[string]any{"x": 1}, "any": map[string]any{"x": 1}}), &v); err != nil {
		t.Error(err)
	}
}

func TestWrongType(t *testing.T) {
	for name, c := range map[string]struct {
		member string
		value  any
		says   string
	}{
		"number for string":   {"text", 1, "want a string, found a number"},
		"string for bool":     {"flag", "true", "want true or false, found a string"},
		"number for bool":     {"flag", 1, "want true or false, found a number"},
		"string for int":      {"count", "1", "found a string"},
		"fraction for int":    {"count", 1.5, "want an integer"},
		"exponent for int":    {"count", json.RawMessage("1e2"), "want an integer"},
		"too big for uint8":   {"small", 256, "want an integer"},
		"negative for uint8":  {"small", -1, "want an integer"},
		"bool for float":      {"ratio", true, "want a number"},
		"object for array":    {"list", map[string]any{}, "want an array, found an object"},
		"string for array":    {"list", "a", "want an array, found a string"},
		"short array":         {"pair", []any{1}, "want an array of the type's length"},
		"long array":          {"pair", []any{1, 2, 3}, "want an array of the type's length"},
		"array for object":    {"inner", []any{}, "want an object, found an array"},
		"array for map":       {"map", []any{}, "want an object, found an array"},
		"string for object":   {"inner", "x", "want an object, found a string"},
		"impossible date":     {"when", "2023-02-29T00:00:00Z", "want an RFC 3339 timestamp"},
		"not this enum":       {"level", "medium", "want low or high"},
		"number for its type": {"level", 5, ""},
	} {
		var v everything
		e := refused(t, ijson.Unmarshal(with(map[string]any{c.member: c.value}), &v))
		if e.Code != ijson.CodeMismatch || !strings.HasPrefix(e.Pointer, "/"+c.member) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %#v", name, e)
		}
	}
	var v everything
	if err := ijson.Unmarshal(with(map[string]any{"level": "medium"}), &v); !errors.Is(err, errLevel) {
		t.Errorf("the method's error is lost: %v", err)
	}
}

// nestedReader reads its value with this package again.
type nestedReader struct{ inner inner }

func (n *nestedReader) UnmarshalJSON(b []byte) error { return ijson.Unmarshal(b, &n.inner) }

func TestErrorOfNestedReader(t *testing.T) {
	var v struct {
		List []nestedReader `json:"list"`
	}
	doc := `{"list":[ {"kind":"k"}, {"kind":"k","x":1} ]}`
	e := refused(t, ijson.Unmarshal([]byte(doc), &v))
	if e.Code != ijson.CodeUnknownMember || e.Pointer != "/list/1/x" || doc[e.Offset:e.Offset+3] != `"x"` {
		t.Errorf("got %#v", e)
	}
}

// A fault of the document outranks one against the type, wherever they stand.
func TestDocumentBeforeSchema(t *testing.T) {
	for _, c := range []struct{ doc, code string }{
		{`{"x":1,"kind":"a","kind":"b"}`, ijson.CodeDuplicateName},
		{`{"x":1,"kind":1e400}`, ijson.CodeNumber},
		{`{"kind":1,"note":"\ufffe"}`, ijson.CodeUnicode},
		{`{"kind":1,"note":"\ud800"}`, ijson.CodeUnicode},
		{`{"kind":1,"note":"x"`, ijson.CodeSyntax},
		{`{"kind":1} x`, ijson.CodeSyntax},
	} {
		var v inner
		if e := refused(t, ijson.Unmarshal([]byte(c.doc), &v)); e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.doc, e, c.code)
		}
	}
}

func TestUnmarshalTarget(t *testing.T) {
	for name, v := range map[string]any{"nil": nil, "value": inner{}, "nil pointer": (*inner)(nil)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			ijson.Unmarshal([]byte(`{}`), v)
		}()
	}
}

// streamReader reads its value from the decoder that it is handed.
type streamReader struct{ inner inner }

func (s *streamReader) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return jsonv2.UnmarshalDecode(d, &s.inner)
}

func TestUnknownMemberInStreamReader(t *testing.T) {
	var v struct {
		One streamReader `json:"one"`
	}
	if err := ijson.Unmarshal([]byte(`{"one":{"kind":"k"}}`), &v); err != nil || v.One.inner.Kind != "k" {
		t.Errorf("%v, %+v", err, v)
	}
	e := refused(t, ijson.Unmarshal([]byte(`{"one":{"kind":"k","x":1}}`), &v))
	if e.Code != ijson.CodeUnknownMember || e.Pointer != "/one/x" || e.Message != `unknown member "x"` {
		t.Errorf("got %#v", e)
	}
}
