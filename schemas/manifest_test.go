package schemas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchyard-plugins/switchyard/schemas"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

const callManifest = "call-manifest.schema.json"

// base is a valid manifest, member by member.
func base() map[string]json.RawMessage {
	return map[string]json.RawMessage{
		"schemaVersion":   json.RawMessage(`"switchyard.plugin-manifest/v1"`),
		"id":              json.RawMessage(`"repo-facts"`),
		"name":            json.RawMessage(`"Repository facts"`),
		"version":         json.RawMessage(`"1.0.0"`),
		"protocolVersion": json.RawMessage(`"switchyard.plugin/v1"`),
		"executable":      json.RawMessage(`"bin/repo-facts"`),
		"arguments":       json.RawMessage(`["-q"]`),
		"capabilities":    json.RawMessage(`["project.inspect","project.operate"]`),
		"requestedScopes": json.RawMessage(`["project.metadata.read","project.files.read","project.operate"]`),
	}
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

func list(items ...string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// readable reports what the host says of a manifest.
func readable(doc []byte) error {
	var m manifest.Manifest
	if err := ijson.Unmarshal(doc, &m); err != nil {
		return err
	}
	return m.Validate()
}

// The cases of each member: a value, and what both judges must say.
const (
	valid   = "valid"
	invalid = "invalid"
	beyond  = "invalid, but no schema can say so"
)

var memberCases = map[string][][2]string{
	"schemaVersion": {
		{`"switchyard.plugin-manifest/v2"`, invalid}, {`""`, invalid}, {`1`, invalid}, {`null`, invalid},
		{`"switchyard.plugin-manifest/v1 "`, invalid}, {`"Switchyard.plugin-manifest/v1"`, invalid},
	},
	"protocolVersion": {{`"switchyard.plugin/v2"`, invalid}, {`""`, invalid}, {`null`, invalid}, {`["switchyard.plugin/v1"]`, invalid}},
	"id": {
		{`"a"`, valid}, {`"a.b-c9"`, valid}, {`"console"`, valid}, {`"com10"`, valid}, {quote("a" + strings.Repeat("b", 63)), valid},
		{`""`, invalid}, {`"A"`, invalid}, {`"1a"`, invalid}, {`"a_b"`, invalid}, {`"a/b"`, invalid}, {`"a b"`, invalid}, {`"é"`, invalid}, {`"a\n"`, invalid},
		{quote("a" + strings.Repeat("b", 64)), invalid}, {`"a."`, invalid}, {`"con"`, invalid}, {`"nul.txt"`, invalid}, {`"com0"`, invalid}, {`"lpt9.x"`, invalid},
		{`null`, invalid}, {`{}`, invalid},
	},
	"name": slices.Concat(lineCases(manifest.MaxName), [][2]string{
		{`" x "`, valid}, {`"<&>\"\\"`, valid}, {`"\u200bx"`, valid}, {`"e\u0301"`, valid},
		{`"\u200b"`, invalid}, {`"\u3164"`, invalid}, {`"\u2800 \u0301"`, invalid}, {`"\ufffd"`, valid}, {`"\u0483"`, beyond}, {`"\u0378"`, beyond},
	}),
	"version": slices.Concat(lineCases(manifest.MaxVersion), [][2]string{
		{`"1.0.0-rc.1+5"`, valid}, {`"1:2~3_4!5"`, valid}, {`"größe"`, valid}, {`"1-"`, valid},
		{`"-1"`, invalid}, {`"--force"`, invalid}, {`"../../x"`, invalid}, {`"1@2"`, invalid}, {`"1 2"`, invalid}, {`" x "`, invalid}, {`"1\u00a02"`, invalid},
		{`"$(id)"`, invalid}, {"\"`id`\"", invalid}, {`"1;2"`, invalid}, {`"a\\b"`, invalid}, {`"a\"b"`, invalid}, {`"a'b"`, invalid}, {`"1*"`, invalid}, {`"[1]"`, invalid}, {`"1]"`, invalid},
		{`"1\u200b"`, invalid}, {`"\u200b"`, invalid}, {`"1\u3164"`, invalid}, {`"1\u2800"`, invalid}, {`"e\u0301"`, invalid}, {`"1\u202e"`, invalid}, {`"1\ue000"`, invalid}, {`"1\ufeff"`, invalid},
		{`"1\u0483"`, beyond}, {`"1\u0378"`, beyond}, {`"1\udb40\udc01"`, beyond},
	}),
	"executable": {
		{`"x"`, valid}, {`"a/b/c"`, valid}, {`"./a"`, valid}, {`".a"`, valid}, {`"..a/b.."`, valid}, {`"a/../b"`, valid}, {`"bin/plugin.json"`, valid}, {`"ünï code"`, valid},
		{quote(strings.Repeat("x", 240)), valid}, {quote(strings.Repeat("x", 241)), invalid}, {quote(strings.Repeat("é", 121)), beyond},
		{`""`, invalid}, {`"/bin/sh"`, invalid}, {`"//x"`, invalid}, {`"a\\b"`, invalid}, {`"C:/a"`, invalid}, {`"a:b"`, invalid}, {`"a\u0000"`, invalid},
		{`"a\u0085"`, invalid}, {`"."`, invalid}, {`"./"`, invalid}, {`".//."`, invalid}, {`".."`, invalid}, {`"../a"`, invalid}, {`"./../a"`, invalid}, {`"a/"`, invalid},
		{`"plugin.json"`, invalid}, {`".//plugin.json"`, invalid},
		{`"a/.."`, beyond}, {`"a/../../b"`, beyond}, {`"a/../plugin.json"`, beyond},
		{`null`, invalid}, {`["a"]`, invalid},
	},
	"arguments": {
		{`[]`, valid}, {`["","a\u0001\n"]`, valid}, {list(slices.Repeat([]string{"x"}, 32)...), valid}, {list(strings.Repeat("x", 4096)), valid},
		{list(slices.Repeat([]string{"x"}, 33)...), invalid}, {list(strings.Repeat("x", 4097)), invalid}, {list(strings.Repeat("é", 2049)), beyond},
		{`["a\u0000b"]`, invalid}, {`[1]`, invalid}, {`[null]`, invalid}, {`"a"`, invalid}, {`null`, invalid}, {`{}`, invalid},
	},
	"capabilities": {
		{`["project.inspect"]`, valid}, {`["project.operate"]`, valid}, {`["project.operate","project.inspect"]`, valid},
		{`[]`, invalid}, {`["project.inspect","project.inspect"]`, invalid}, {`["project.read"]`, invalid}, {`["Project.inspect"]`, invalid}, {`[""]`, invalid},
		{list(slices.Repeat([]string{"project.inspect"}, 17)...), invalid}, {`[1]`, invalid}, {`"project.inspect"`, invalid}, {`null`, invalid},
	},
	"requestedScopes": {
		{`["project.operate","project.metadata.read"]`, valid},
		{`[]`, invalid}, {`["project.metadata.read"]`, invalid}, {`["project.operate","project.files.read"]`, invalid},
		{`["project.operate","project.metadata.read","project.operate"]`, invalid}, {`["project.operate","project.metadata.read","network"]`, invalid},
		{`["project.operate","project.metadata.read",null]`, invalid}, {`null`, invalid}, {`{}`, invalid},
	},
	"extra": {{`1`, invalid}, {`null`, invalid}},
	"Name":  {{`"x"`, invalid}},
}

func lineCases(limit int) [][2]string {
	return [][2]string{
		{`"x"`, valid}, {quote(strings.Repeat("é", limit/2)), valid}, {quote(strings.Repeat("é", limit)), beyond}, {quote(strings.Repeat("😀", limit)), beyond},
		{quote(strings.Repeat("x", limit+1)), invalid}, {quote(strings.Repeat("é", limit+1)), invalid},
		{`""`, invalid}, {`" "`, invalid}, {`"\u00a0\u3000\u2003"`, invalid}, {`"a\nb"`, invalid}, {`"a\u0000"`, invalid}, {`"a\u007f"`, invalid}, {`"a\u009b"`, invalid},
		{`1`, invalid}, {`null`, invalid}, {`true`, invalid},
	}
}

func TestManifestAgreement(t *testing.T) {
	schema := compile(t, callManifest)
	judge := func(what string, doc []byte, want string) {
		byHost, bySchema := readable(doc), schema.Validate(value(t, doc))
		if (byHost == nil) != (want == valid) {
			t.Errorf("%s: the host says %v, want it %s", what, byHost, want)
		}
		if (bySchema == nil) != (want != invalid) {
			t.Errorf("%s: the schema says %v, want it %s", what, bySchema, want)
		}
	}
	build := func(members map[string]json.RawMessage) []byte {
		doc, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	judge("the base", build(base()), valid)
	for name := range base() {
		if len(memberCases[name]) == 0 {
			t.Errorf("no case for %s", name)
		}
		members := base()
		delete(members, name)
		judge("without "+name, build(members), invalid)
	}
	for name, cases := range memberCases {
		for _, c := range cases {
			members := base()
			members[name] = json.RawMessage(c[0])
			judge(fmt.Sprintf("%s: %.80s", name, c[0]), build(members), c[1])
		}
	}
	for _, pair := range []struct{ capabilities, scopes, want string }{
		{`["project.inspect"]`, `["project.metadata.read"]`, valid},
		{`["project.inspect"]`, `["project.operate","project.files.read"]`, invalid},
		{`["project.operate"]`, `["project.operate"]`, valid},
		{`["project.operate"]`, `["project.metadata.read"]`, invalid},
		{`["project.operate"]`, `[]`, invalid},
	} {
		members := base()
		members["capabilities"], members["requestedScopes"] = json.RawMessage(pair.capabilities), json.RawMessage(pair.scopes)
		judge(pair.capabilities+pair.scopes, build(members), pair.want)
	}
	for _, doc := range []string{"null", "[]", `"x"`, "{}"} {
		judge(doc, []byte(doc), invalid)
	}
}

// The words and numbers in the schema are those of package manifest.
func TestManifestVocabulary(t *testing.T) {
	text, err := schemas.Get(callManifest)
	if err != nil {
		t.Fatal(err)
	}
	type property struct {
		Const     string `json:"const"`
		MaxLength int    `json:"maxLength"`
		MaxItems  int    `json:"maxItems"`
		Items     struct {
			Enum      []string `json:"enum"`
			MaxLength int      `json:"maxLength"`
		} `json:"items"`
	}
	var s struct {
		Properties map[string]property `json:"properties"`
		Defs       map[string]property `json:"$defs"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	var capabilities, scopes []string
	for _, c := range manifest.Capabilities {
		capabilities = append(capabilities, string(c))
	}
	for _, sc := range manifest.Scopes {
		scopes = append(scopes, string(sc))
	}
	p := s.Properties
	for what, ok := range map[string]bool{
		"schemaVersion":   p["schemaVersion"].Const == manifest.SchemaVersion,
		"protocolVersion": p["protocolVersion"].Const == manifest.Protocol,
		"name":            p["name"].MaxLength == manifest.MaxName,
		"version":         p["version"].MaxLength == manifest.MaxVersion,
		"executable":      s.Defs["executable"].MaxLength == manifest.MaxExecutablePath,
		"arguments":       p["arguments"].MaxItems == manifest.MaxArguments && p["arguments"].Items.MaxLength == manifest.MaxArgumentBytes,
		"capabilities":    p["capabilities"].MaxItems == manifest.MaxCapabilities && slices.Equal(p["capabilities"].Items.Enum, capabilities),
		"requestedScopes": p["requestedScopes"].MaxItems == manifest.MaxScopes && slices.Equal(p["requestedScopes"].Items.Enum, scopes),
	} {
		if !ok {
			t.Errorf("%s: the schema differs from package manifest", what)
		}
	}
}

// FuzzManifestAgreement: what the host takes, an editor must not mark as wrong.
func FuzzManifestAgreement(f *testing.F) {
	n := 0
	for name, cases := range memberCases {
		for _, c := range cases {
			members := base()
			members[name] = json.RawMessage(c[0])
			doc, err := json.Marshal(members)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(doc)
			n++
		}
	}
	if n < 100 {
		f.Fatalf("%d seeds", n)
	}
	f.Logf("%d seeds", n)
	schema := compile(f, callManifest)
	f.Fuzz(func(t *testing.T, doc []byte) {
		if readable(doc) != nil {
			return
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	})
}
