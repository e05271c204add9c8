package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchyard-plugins/switchyard/schemas"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// compile compiles the embedded schema; it loads nothing else.
func compile(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	text, err := schemas.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	doc := value(t, text)
	id, _ := doc.(map[string]any)["$id"].(string)
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	c.AssertFormat()
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(id)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return schema
}

type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, &fs.PathError{Op: "load", Path: url, Err: fs.ErrNotExist}
}

func value(t testing.TB, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

func TestNames(t *testing.T) {
	names := schemas.Names()
	for _, want := range []string{"call-manifest.schema.json", "cli.schema.json", "switchyard-toml.schema.json", "plugin-manifest.schema.json", "session-messages.schema.json"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %q", want, names)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %q", names)
	}
	for _, name := range []string{"", "call-manifest", "schemas.go", "../go.mod", "/cli.schema.json", "other.schema.json"} {
		if text, err := schemas.Get(name); !errors.Is(err, fs.ErrNotExist) || text != nil {
			t.Errorf("Get(%q): %d bytes, %v", name, len(text), err)
		}
	}
	text, err := schemas.Get("cli.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text[0] = 'x'
	if again, err := schemas.Get("cli.schema.json"); err != nil || again[0] == 'x' {
		t.Errorf("a caller changed the embedded schema (%v)", err)
	}
}

// Every schema file that lies here is embedded, alone readable, and right.
func TestSchemas(t *testing.T) {
	onDisk, err := filepath.Glob("*" + schemas.Suffix)
	if err != nil || len(onDisk) == 0 {
		t.Fatalf("%d files, %v", len(onDisk), err)
	}
	ofCommands, err := filepath.Glob(filepath.Join("cli", "*"+schemas.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(onDisk, ofCommands...) {
		if !slices.Contains(schemas.Names(), filepath.ToSlash(path)) {
			t.Errorf("%s is not embedded: add its directory to the go:embed line", path)
		}
	}
	ids := map[string]string{}
	for _, name := range schemas.Names() {
		text, err := schemas.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if disk, err := os.ReadFile(filepath.FromSlash(name)); err != nil || !bytes.Equal(disk, text) {
			t.Errorf("%s: embedded and on disk it is not the same (%v)", name, err)
		}
		if err := ijson.Check(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var head struct {
			Dialect  string            `json:"$schema"`
			ID       string            `json:"$id"`
			Title    string            `json:"title"`
			Examples []json.RawMessage `json:"examples"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		if head.Dialect != "https://json-schema.org/draft/2020-12/schema" || head.Title == "" {
			t.Errorf("%s: $schema %q, title %q", name, head.Dialect, head.Title)
		}
		want := "urn:switchyard:schemas:" + strings.TrimSuffix(name, schemas.Suffix)
		if slices.Contains(sessionSchemas, name) {
			want += ":1"
		}
		if !strings.Contains(name, "/") && head.ID != want {
			t.Errorf("%s: $id is %q, want %q", name, head.ID, want)
		}
		if !strings.HasPrefix(head.ID, "urn:switchyard:") || ids[head.ID] != "" {
			t.Errorf("%s: $id %q is foreign or also that of %q", name, head.ID, ids[head.ID])
		}
		ids[head.ID] = name
		bundled := identities(value(t, text))
		for _, ref := range references(value(t, text)) {
			if !strings.HasPrefix(ref, "#") && !slices.Contains(bundled, ref) {
				t.Errorf("%s refers to %q, outside of itself", name, ref)
			}
		}
		schema := compile(t, name) // the compiler checks it against the metaschema
		for _, example := range head.Examples {
			if err := schema.Validate(value(t, example)); err != nil {
				t.Errorf("%s: its own example: %v", name, err)
			}
		}
	}
}

// identities returns every $id below v.
func identities(v any) []string {
	var ids []string
	switch v := v.(type) {
	case map[string]any:
		if id, ok := v["$id"].(string); ok {
			ids = append(ids, id)
		}
		for _, inner := range v {
			ids = append(ids, identities(inner)...)
		}
	case []any:
		for _, inner := range v {
			ids = append(ids, identities(inner)...)
		}
	}
	return ids
}

// references returns every $ref and $dynamicRef below v.
func references(v any) []string {
	var refs []string
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if ref, ok := inner.(string); ok && (name == "$ref" || name == "$dynamicRef") {
				refs = append(refs, ref)
			}
			refs = append(refs, references(inner)...)
		}
	case []any:
		for _, inner := range v {
			refs = append(refs, references(inner)...)
		}
	}
	return refs
}

func TestCLIEnvelope(t *testing.T) {
	schema := compile(t, "cli.schema.json")
	const good = `{"apiVersion":"switchyard.cli/v1","command":"install","ok":true,"data":{"x":[]},"warnings":["old"]}`
	const bad = `{"apiVersion":"switchyard.cli/v1","command":"project trust","ok":false,"error":{"code":"project.untrusted","message":"m","hint":"switchyard doctor","details":{"a":1}}}`
	for _, doc := range []string{good, bad,
		strings.Replace(good, `{"x":[]}`, "null", 1),
		strings.Replace(good, `["old"]`, "[]", 1),
		strings.Replace(bad, "project trust", "", 1),
		strings.Replace(bad, "switchyard doctor", "", 1),
	} {
		if err := schema.Validate(value(t, []byte(doc))); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	for _, c := range []struct{ doc, old, new string }{
		{good, "cli/v1", "cli/v2"}, {good, "install", ""}, {good, "install", "In stall"}, {good, "true", "false"}, {good, `"ok":true,`, ""},
		{good, `,"warnings":["old"]`, ""}, {good, `["old"]`, `null`}, {good, `["old"]`, `[1]`}, {good, `"data":{"x":[]},`, ""}, {good, `"data"`, `"Data"`},
		{good, `"data"`, `"error":{"code":"x","message":"m","hint":"","details":{}},"data"`}, {good, `"ok"`, `"x":1,"ok"`},
		{bad, "false", "true"}, {bad, `"code":"project.untrusted",`, ""}, {bad, "project.untrusted", "Project Untrusted"}, {bad, `"m"`, `""`},
		{bad, `"hint":"switchyard doctor",`, ""}, {bad, `"switchyard doctor"`, "null"}, {bad, `,"details":{"a":1}`, ""}, {bad, `{"a":1}`, "[]"},
		{bad, `"error"`, `"data":1,"error"`}, {bad, `"hint"`, `"x":1,"hint"`},
	} {
		doc := strings.Replace(c.doc, c.old, c.new, 1)
		if doc == c.doc {
			t.Fatalf("%q is not in %s", c.old, doc)
		}
		if schema.Validate(value(t, []byte(doc))) == nil {
			t.Errorf("accepted: %s", doc)
		}
	}
}

// What plugin authors link is the standard library and these packages.
func TestLightPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./sessionmanifest", "./subset", "./format").Output()
	if err != nil {
		t.Fatal(err)
	}
	const here = "github.com/switchyard-plugins/switchyard/schemas/"
	want := []string{here + "format", here + "manifest", here + "sessionmanifest", here + "subset"}
	got := strings.Fields(string(out))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The validator that judges here is too slow to load for the program itself.
func TestNothingIsLinked(t *testing.T) {
	deps := func(pkg string) []string {
		out, err := exec.Command("go", "list", "-e", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg).Output()
		if err != nil {
			t.Fatalf("%s: %v", pkg, err)
		}
		return strings.Fields(string(out))
	}
	if got := deps("."); len(got) != 1 {
		t.Errorf("beside the standard library: %q", got)
	}
	for _, pkg := range deps("..") {
		if strings.Contains(pkg, "jsonschema") {
			t.Errorf("the program links %s", pkg)
		}
	}
}
