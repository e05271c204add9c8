package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

var update = flag.Bool("update", false, "write the schemas of the command line's JSON")

// schemaDir is where the schemas of --json are published.
const schemaDir = "../schemas/cli"

func schemaPath(command string) string {
	return filepath.Join(schemaDir, strings.ReplaceAll(command, " ", "-")+".schema.json")
}

// TestSchemasAreFresh compares the published schemas with the types that the
// commands print; go test ./commands -run TestSchemasAreFresh -update writes them.
func TestSchemasAreFresh(t *testing.T) {
	want := make(map[string]bool)
	for _, e := range table() {
		if e.data == nil {
			t.Errorf("%s has no data type", e.name)
			continue
		}
		path := schemaPath(e.name)
		want[filepath.Base(path)] = true
		schema, err := commandSchema(e)
		if err != nil {
			t.Errorf("%s: %v", e.name, err)
			continue
		}
		if *update {
			if err := os.WriteFile(path, schema, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		published, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(published, schema) {
			t.Errorf("%s is not what the types say (%v): run go test ./commands -run TestSchemasAreFresh -update", path, err)
		}
	}
	entries, err := os.ReadDir(schemaDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !want[entry.Name()] {
			t.Errorf("%s/%s belongs to no command", schemaDir, entry.Name())
		}
	}
}

// An ordered is a JSON object that keeps its members' order.
type ordered []member

type member struct {
	name  string
	value any
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// commandSchema describes the document that a command prints under --json.
func commandSchema(e entry) ([]byte, error) {
	data, err := typeSchema(reflect.TypeOf(e.data), "")
	if err != nil {
		return nil, err
	}
	text := ordered{{"type", "string"}}
	envelope := func(ok bool, command any, more ...member) ordered {
		props := ordered{
			{"apiVersion", ordered{{"const", apiVersion}}},
			{"command", command},
			{"ok", ordered{{"const", ok}}},
		}
		props = append(props, more...)
		var required []string
		for _, p := range props {
			required = append(required, p.name)
		}
		return ordered{{"type", "object"}, {"properties", props}, {"required", required}, {"additionalProperties", false}}
	}
	failure := ordered{
		{"type", "object"},
		{"properties", ordered{
			{"code", ordered{{"type", "string"}, {"pattern", "^[a-z_]+(\\.[a-z_]+)*$"}, {"description", "Stable; docs/exit-codes.md lists all of them."}}},
			{"message", ordered{{"type", "string"}, {"minLength", 1}}},
			{"hint", ordered{{"type", "string"}, {"description", "The next command to type, or an empty string."}}},
			{"details", ordered{{"type", "object"}, {"description", "Facts that depend on code."}}},
		}},
		{"required", []string{"code", "message", "hint", "details"}},
		{"additionalProperties", false},
	}
	name := ordered{{"const", e.name}}
	doc, err := json.Marshal(ordered{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "urn:switchyard:cli:v1:" + strings.ReplaceAll(e.name, " ", "-")},
		{"title", "switchyard " + e.name + " --json"},
		{"description", strings.ToUpper(e.summary[:1]) + e.summary[1:] + "."},
		{"oneOf", []any{
			envelope(true, name, member{"data", data}, member{"warnings", ordered{{"type", "array"}, {"items", text}}}),
			envelope(false, name, member{"error", failure}),
		}},
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, doc, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// typeSchema describes a Go type as package document encodes it. doc is the
// description.
func typeSchema(t reflect.Type, doc string) (ordered, error) {
	var s ordered
	switch t {
	case reflect.TypeFor[time.Time]():
		s = ordered{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[digest.Digest]():
		s = ordered{{"type", "string"}, {"pattern", "^(sha256:[0-9a-f]{64})?$"}}
	case reflect.TypeFor[jsontext.Value]():
		s = ordered{}
	}
	var err error
	switch {
	case s != nil:
	case t.Kind() == reflect.String:
		s = ordered{{"type", "string"}}
	case t.Kind() == reflect.Bool:
		s = ordered{{"type", "boolean"}}
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		s = ordered{{"type", "integer"}}
	case t.Kind() == reflect.Slice:
		var items ordered
		items, err = typeSchema(t.Elem(), "")
		s = ordered{{"type", "array"}, {"items", items}}
	case t.Kind() == reflect.Struct:
		s, err = structSchema(t)
	case t.Kind() == reflect.Pointer:
		s, err = typeSchema(t.Elem(), "")
		s = ordered{{"oneOf", []any{s, ordered{{"type", "null"}}}}}
	default:
		err = fmt.Errorf("no schema for %s", t)
	}
	if doc != "" {
		s = append(s, member{"description", doc})
	}
	return s, err
}

func structSchema(t reflect.Type) (ordered, error) {
	var props ordered
	required := []string{}
	var collect func(reflect.Type) error
	collect = func(t reflect.Type) error {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				if err := collect(f.Type); err != nil {
					return err
				}
				continue
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || !f.IsExported() {
				return fmt.Errorf("%s.%s: no JSON name", t, f.Name)
			}
			if f.Tag.Get("doc") == "" {
				return fmt.Errorf("%s.%s: no doc", t, f.Name)
			}
			s, err := typeSchema(f.Type, f.Tag.Get("doc"))
			if err != nil {
				return fmt.Errorf("%s.%s: %w", t, f.Name, err)
			}
			if values := f.Tag.Get("enum"); values != "" {
				s = append(s, member{"enum", strings.Split(values, "|")})
			}
			props = append(props, member{name, s})
			if !strings.Contains(options, "omitzero") && !strings.Contains(options, "omitempty") {
				required = append(required, name)
			}
		}
		return nil
	}
	if err := collect(t); err != nil {
		return nil, err
	}
	return ordered{{"type", "object"}, {"properties", props}, {"required", required}, {"additionalProperties", false}}, nil
}

// A schemaSet holds the published schemas, compiled.
type schemaSet struct{ byCommand map[string]*jsonschema.Schema }

func publishedSchemas(t *testing.T) *schemaSet {
	t.Helper()
	set := &schemaSet{make(map[string]*jsonschema.Schema)}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, e := range table() {
		schema, err := c.Compile(schemaPath(e.name))
		if err != nil {
			t.Fatal(err)
		}
		set.byCommand[e.name] = schema
	}
	return set
}

// check reports what is wrong with what a command printed under --json.
func (s *schemaSet) check(stdout []byte, ok bool) error {
	d := json.NewDecoder(bytes.NewReader(stdout))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	if doc["ok"] != ok {
		return fmt.Errorf("ok is %v, want %t", doc["ok"], ok)
	}
	if e, isError := doc["error"].(map[string]any); isError {
		codes, err := errorCodes()
		if err != nil {
			return err
		}
		if code, _ := e["code"].(string); !slices.Contains(codes, code) {
			return fmt.Errorf("error code %q is not in docs/exit-codes.md", code)
		}
	}
	command, _ := doc["command"].(string)
	if command == "" && !ok {
		return nil // the command line named none
	}
	schema := s.byCommand[command]
	if schema == nil {
		return fmt.Errorf("no schema for command %q", command)
	}
	return schema.Validate(doc)
}
