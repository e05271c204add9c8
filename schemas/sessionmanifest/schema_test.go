package sessionmanifest_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchyard-plugins/switchyard/schemas"
	"github.com/switchyard-plugins/switchyard/schemas/format"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// judges returns the embedded schema as a full validator reads it, and as the subset's
// does.
func judges(t testing.TB) (*jsonschema.Schema, *subset.Schema) {
	t.Helper()
	text, err := schemas.Get("plugin-manifest.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	// The forms are the product's (docs/schema-subset.md, "Formats"): the validator's own
	// take more of them.
	for name, is := range map[string]func(string) bool{"uri": format.URI[string], "date-time": format.DateTime[string]} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !is(s) {
				return errors.New("not of the form")
			}
			return nil
		}})
	}
	if err := c.AddResource("urn:switchyard:schemas:plugin-manifest:1", doc); err != nil {
		t.Fatal(err)
	}
	full, err := c.Compile("urn:switchyard:schemas:plugin-manifest:1")
	if err != nil {
		t.Fatal(err)
	}
	light, err := subset.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return full, light
}

// agree holds the three judges of one manifest together: what the reader and Validate
// take, the schema takes; what they refuse with a code of the schema, it refuses.
func agree(t *testing.T, text []byte, full *jsonschema.Schema, light *subset.Schema) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	bySchema, bySubset := full.Validate(v), light.Validate(text)
	if (bySchema == nil) != (bySubset == nil) {
		t.Errorf("%.3000s\nfull: %v\nsubset: %v", text, bySchema, bySubset)
	}
	var m sessionmanifest.Manifest
	if err := ijson.Unmarshal(text, &m); err != nil {
		if bySchema == nil && !needlesslyStrict(err) {
			t.Errorf("%.3000s\nthe reader says %v, the schema nothing", text, err)
		}
		return
	}
	err = m.Validate()
	stated := slices.ContainsFunc(problems(t, err), func(p string) bool { return strings.HasSuffix(p, " "+sessionmanifest.CodeMismatch) })
	switch {
	case err == nil && bySchema != nil:
		t.Errorf("%.3000s\naccepted; the schema says %v", text, bySchema)
	case stated && bySchema == nil && !beyondTheSchema(err):
		t.Errorf("%.3000s\n%v; the schema accepts it", text, err)
	}
}

// needlesslyStrict reports whether the reader refuses a spelling of a number, 443.0 for
// a port, that JSON Schema takes for an integer.
func needlesslyStrict(err error) bool {
	var fault *ijson.Error
	return errors.As(err, &fault) && strings.HasSuffix(fault.Pointer, "/port")
}

// beyondTheSchema reports whether each problem is one that no schema of the subset can
// state: bytes instead of characters.
func beyondTheSchema(err error) bool {
	var invalid *sessionmanifest.Invalid
	errors.As(err, &invalid)
	return !slices.ContainsFunc(invalid.Problems, func(p sessionmanifest.Problem) bool {
		return p.Code == sessionmanifest.CodeMismatch && !strings.Contains(p.Pointer, "/arguments/")
	})
}

func TestSchemaAgrees(t *testing.T) {
	full, light := judges(t)
	for _, text := range []string{sample, badForms, badSecret} {
		agree(t, []byte(text), full, light)
	}
	for _, r := range rules {
		agree(t, []byte(change(t, r.at, r.value)), full, light)
	}
	for _, text := range []string{
		strings.Replace(sample, `"receipts": true`, `"receipts": null`, 1),
		strings.Replace(sample, `"receipts": true`, `"receipts": 1`, 1),
		strings.Replace(sample, `"os": ["windows"]`, `"os": "windows"`, 1),
		strings.Replace(sample, `"required": true`, `"required": "yes"`, 1),
		strings.Replace(sample, `"destinations": []`, `"destinations": {}`, 1),
		strings.Replace(sample, `"urn:example:schemas:catalog-index-start-response:1"`, `"urn:|xample:schemas:catalog-index-start-response:1"`, 1),
		strings.Replace(sample, `"plugin": {`, `"plugin": {"Surplus": 1,`, 1),
		`{}`, `[]`, `null`,
	} {
		if text == sample {
			t.Fatal("nothing was changed")
		}
		agree(t, []byte(text), full, light)
		if light.Validate([]byte(text)) == nil {
			t.Errorf("accepted: %.300s", text)
		}
	}
}

// FuzzManifest: whatever comes, the reader, Validate and the schema agree, and a
// manifest that is accepted has a digest that does not depend on the one it states.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(badForms))
	f.Add([]byte(badSecret))
	for _, r := range rules {
		if text := change(f, r.at, r.value); len(text) < 6000 {
			f.Add([]byte(text))
		}
	}
	if len(rules) < 100 {
		f.Fatalf("%d seeds", len(rules))
	}
	full, light := judges(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if ijson.Check(text) != nil {
			return
		}
		agree(t, text, full, light)
		if unsigned, err := sessionmanifest.Unsigned(text); err == nil && ijson.Check(unsigned) != nil {
			t.Errorf("%q without its digest is %q", text, unsigned)
		}
	})
}
