package manifest_test

import (
	"encoding/json"
	"errors"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

const document = `{
  "schemaVersion": "switchyard.plugin-manifest/v1",
  "id": "repo-facts",
  "name": "Repository facts",
  "version": "1.0.0",
  "protocolVersion": "switchyard.plugin/v1",
  "executable": "bin/repo-facts",
  "arguments": [],
  "capabilities": ["project.inspect"],
  "requestedScopes": ["project.metadata.read", "project.files.read"]
}
`

// readManifest is how the host reads plugin.json.
func readManifest(doc []byte) (manifest.Manifest, error) {
	var m manifest.Manifest
	if err := ijson.Unmarshal(doc, &m); err != nil {
		return m, err
	}
	return m, m.Validate()
}

func TestRead(t *testing.T) {
	m, err := readManifest([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	want := manifest.Manifest{
		SchemaVersion: manifest.SchemaVersion, ID: "repo-facts", Name: "Repository facts", Version: "1.0.0",
		ProtocolVersion: manifest.Protocol, Executable: "bin/repo-facts", Arguments: []string{},
		Capabilities:    []manifest.Capability{manifest.CapabilityInspect},
		RequestedScopes: []manifest.Scope{manifest.ScopeMetadataRead, manifest.ScopeFilesRead},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v", m)
	}

	// Every member is required, none may be null, and none may be of another type.
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(document), &members); err != nil || len(members) != 9 {
		t.Fatalf("%d members, %v", len(members), err)
	}
	for name, value := range members {
		for what, replacement := range map[string]string{"without": "", "null": "null", "number": "1", "object": "{}"} {
			if members[name] = json.RawMessage(replacement); replacement == "" {
				delete(members, name)
			}
			doc, err := json.Marshal(members)
			if err != nil {
				t.Fatal(err)
			}
			var e *ijson.Error
			if _, err := readManifest(doc); !errors.As(err, &e) || e.Code != ijson.CodeMismatch || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			members[name] = value
		}
	}
	for _, c := range []struct{ old, new, code string }{
		{`"id":`, `"$schema": "x", "id":`, ijson.CodeUnknownMember},
		{`"version":`, `"Version":`, ijson.CodeUnknownMember},
		{`"id":`, `"id": "other", "id":`, ijson.CodeDuplicateName},
		{"{\n", "\ufeff{\n", ijson.CodeUnicode},
		{"]\n}", "],\n}", ijson.CodeSyntax},
		{"}\n", "}\n{}", ijson.CodeSyntax},
	} {
		var e *ijson.Error
		if _, err := readManifest([]byte(strings.Replace(document, c.old, c.new, 1))); !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%q for %q: %v, want %s", c.new, c.old, err, c.code)
		}
	}
}

func TestIdentity(t *testing.T) {
	m := valid()
	whole, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(whole, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "executable")
	delete(members, "arguments")
	stated, err := json.Marshal(m.Identity())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(stated, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, members) {
		t.Errorf("the identity is %s", stated)
	}
}

// FuzzRead holds what the host relies on after a manifest was read and found
// valid, without asking Validate's own rules again.
func FuzzRead(f *testing.F) {
	seeds := []string{document, "{}", "[]", "null", "\ufeff" + document, document + document}
	for _, change := range [][2]string{
		{`"repo-facts"`, `"con"`}, {`"repo-facts"`, `"a."`}, {`"repo-facts"`, `"../x"`}, {"bin/repo-facts", "/bin/sh"}, {"bin/repo-facts", "a/../../b"},
		{"bin/repo-facts", `a\\b`}, {"bin/repo-facts", "plugin.json"}, {"[]", `["a\u0000"]`}, {"[]", `null`}, {`["project.inspect"]`, `["project.operate"]`},
		{`"project.metadata.read", `, ``}, {`"name"`, `"Name"`}, {`"1.0.0"`, `1.0`}, {"Repository", `\ud800`}, {"Repository", `\u001b`},
		{`"project.files.read"`, `"project.metadata.read"`}, {`"id":`, `"id":"x","id":`},
	} {
		changed := strings.Replace(document, change[0], change[1], 1)
		if changed == document {
			f.Fatalf("%q is not in the document", change[0])
		}
		seeds = append(seeds, changed)
	}
	for _, doc := range seeds {
		f.Add([]byte(doc))
	}
	if len(seeds) < 20 {
		f.Fatalf("%d seeds", len(seeds))
	}
	f.Logf("%d seeds", len(seeds))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := readManifest(doc)
		if err != nil {
			var syntax *ijson.Error
			var invalid *manifest.Invalid
			if !errors.As(err, &syntax) && !errors.As(err, &invalid) {
				t.Fatalf("%T: %v", err, err)
			}
			if len(doc) < manifest.MaxBytes && len(err.Error()) > 3*manifest.MaxBytes {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if strings.ContainsAny(m.ID, `/\:`) || m.ID == "" || m.ID[0] == '.' || strings.HasSuffix(m.ID, ".") {
			t.Errorf("id %q", m.ID)
		}
		inside := path.Join("/package", m.Executable)
		if !strings.HasPrefix(inside, "/package/") || path.IsAbs(m.Executable) || inside == "/package/plugin.json" || strings.ContainsAny(inside, "\\:\x00") {
			t.Errorf("executable %q", m.Executable)
		}
		if strings.Contains(strings.Join(m.Arguments, ""), "\x00") || len(m.Arguments) > 32 {
			t.Errorf("arguments %q", m.Arguments)
		}
		for _, c := range m.Capabilities {
			if c.Requires() == "" || !m.Requests(c.Requires()) {
				t.Errorf("capability %q with %q", c, m.RequestedScopes)
			}
		}
		back, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := readManifest(back); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("written as %s: %v", back, err)
		}
	})
}
