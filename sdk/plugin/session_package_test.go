package plugin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// An op declares an operation of a test's package. All are in the capability "test".
type op struct {
	name              string
	in, out           bool // streams
	receipts          bool
	request, response string // of schemas below
	handler           plugin.OperationHandler
}

// schemas are what the operations of tests take and give.
var schemas = map[string]string{
	"any":  `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:test:any:1","title":"anything"}`,
	"item": `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:test:item:1","type":"object","additionalProperties":false,"required":["n"],"properties":{"n":{"type":"integer"},"filler":{"type":"string"}}}`,
}

func digestOf(tb testing.TB, doc string) string {
	tb.Helper()
	digest, err := wire.Digest([]byte(doc))
	if err != nil {
		tb.Fatal(err)
	}
	return digest
}

// manifestOf returns the document of a package with these operations, changed by
// change before its digest is made.
func manifestOf(tb testing.TB, ops []op, change func(m map[string]any)) []byte {
	tb.Helper()
	ref := func(name string) map[string]any {
		if name == "" {
			name = "item"
		}
		return map[string]any{"uri": "urn:test:" + name + ":1", "digest": digestOf(tb, schemas[name])}
	}
	var list []any
	for _, o := range ops {
		list = append(list, map[string]any{"name": o.name, "operationVersion": "1.0", "requestSchema": ref(o.request), "responseSchema": ref(o.response),
			"streaming": map[string]bool{"request": o.in, "response": o.out}, "idempotent": true, "receipts": o.receipts})
	}
	m := map[string]any{
		"manifestSchemaVersion": sessionmanifest.SchemaVersion,
		"plugin":                map[string]any{"pluginId": "org.example.test", "displayName": "Test"},
		"publisher":             map[string]any{"publisherId": "org.example", "displayName": "Example"},
		"packageVersion":        "1.0.0",
		"protocol": map[string]any{"minVersion": "1.0", "maxVersion": "1.2", "features": []string{"cancel.v1", "progress.v1", "flow.credit.v1", "receipt.v1",
			"heartbeat.v1", "secrets.inject.v1", "settings.validate.v1", "health.watch.v1"}},
		"entryPoints":      map[string]any{"executable": map[string]any{"path": "run", "arguments": []string{}}},
		"capabilities":     []any{map[string]any{"id": "test", "version": "1.0.0", "operations": list}},
		"permissions":      []any{map[string]any{"id": "files", "required": false, "scope": "filesystem.read"}},
		"runtime":          map[string]any{"os": []string{"linux", "macos", "windows"}, "architectures": []string{"x64", "arm64"}},
		"dataDeclarations": map[string]any{"acceptedClasses": []string{"public", "internal"}},
		"provenance":       map[string]any{"manifestDigest": ""},
	}
	if change != nil {
		change(m)
	}
	document, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	if m["provenance"].(map[string]any)["manifestDigest"] == "" {
		unsigned, err := sessionmanifest.Unsigned(document)
		if err != nil {
			tb.Fatal(err)
		}
		m["provenance"] = map[string]any{"manifestDigest": digestOf(tb, string(unsigned))}
		if document, err = json.Marshal(m); err != nil {
			tb.Fatal(err)
		}
	}
	return document
}

// writePackage makes a package directory.
func writePackage(tb testing.TB, manifest []byte, documents map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "schemas"), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), manifest, 0o644); err != nil {
		tb.Fatal(err)
	}
	for name, text := range documents {
		if err := os.WriteFile(filepath.Join(dir, "schemas", name+".json"), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// newSession returns a plugin with these operations and a private directory of its
// own.
func newSession(tb testing.TB, ops ...op) *plugin.SessionPlugin {
	tb.Helper()
	pkg, err := plugin.LoadPackage(writePackage(tb, manifestOf(tb, ops, nil), schemas))
	if err != nil {
		tb.Fatal(err)
	}
	if t, ok := tb.(*testing.T); ok {
		t.Setenv(plugin.EnvState, tb.TempDir())
	}
	p := plugin.NewSessionPlugin(pkg)
	for _, o := range ops {
		p.Handle("test", o.name, o.handler)
	}
	return p
}

func TestLoadPackage(t *testing.T) {
	ops := []op{{name: "echo", request: "any", response: "any"}}
	good := manifestOf(t, ops, nil)
	if _, err := plugin.LoadPackage(writePackage(t, good, schemas)); err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "a[1] b") // a name that would be a pattern
	if err := os.Rename(writePackage(t, good, schemas), odd); err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.LoadPackage(odd); err != nil {
		t.Error(err)
	}
	for name, tc := range map[string]struct {
		change    func(m map[string]any)
		documents map[string]string
	}{
		"no schemas":         {documents: map[string]string{}},
		"a schema changed":   {documents: map[string]string{"any": `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:test:any:1","title":"something"}`}},
		"two with one id":    {documents: map[string]string{"any": schemas["any"], "other": schemas["any"]}},
		"no id":              {documents: map[string]string{"any": schemas["any"], "other": `{}`}},
		"no JSON":            {documents: map[string]string{"any": schemas["any"], "other": `{`}},
		"a false digest":     {change: func(m map[string]any) { m["provenance"] = map[string]any{"manifestDigest": digestOf(t, "{}")} }},
		"an unknown member":  {change: func(m map[string]any) { m["extra"] = 1 }},
		"a misspelt member":  {change: func(m map[string]any) { m["packageversion"] = m["packageVersion"]; delete(m, "packageVersion") }},
		"a missing member":   {change: func(m map[string]any) { delete(m, "permissions") }},
		"null":               {change: func(m map[string]any) { m["runtime"] = nil }},
		"another form of id": {change: func(m map[string]any) { m["plugin"].(map[string]any)["pluginId"] = "Test" }},
		"heartbeats without it": {change: func(m map[string]any) {
			m["lifecycle"] = map[string]any{"requiresHeartbeat": true}
			m["protocol"].(map[string]any)["features"] = []string{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest, documents := good, schemas
			if tc.change != nil {
				manifest = manifestOf(t, ops, tc.change)
			}
			if tc.documents != nil {
				documents = tc.documents
			}
			if p, err := plugin.LoadPackage(writePackage(t, manifest, documents)); err == nil {
				t.Errorf("loaded %+v", p.Manifest)
			} else {
				t.Log(err)
			}
		})
	}
}
