package sessionmanifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// The valid and the two invalid sample manifests of the seed, with our identifier.
const (
	sample = `{
  "manifestSchemaVersion": "urn:switchyard:plugin-manifest:1",
  "plugin": {
    "pluginId": "com.example.catalog.indexer",
    "displayName": "Catalog Indexer",
    "description": "Indexes public catalog metadata from bounded local inputs.",
    "categories": ["catalog", "indexing"]
  },
  "publisher": {"publisherId": "org.example", "displayName": "Example Org"},
  "packageVersion": "1.4.2",
  "protocol": {"minVersion": "1.0", "maxVersion": "1.2", "features": ["cancel.v1", "progress.v1", "flow.credit.v1", "receipt.v1"]},
  "entryPoints": {
    "dotnet": {"assembly": "plugins/CatalogIndexer.dll", "type": "Example.CatalogIndexer.EntryPoint, Example.CatalogIndexer", "targetFramework": "net8.0"},
    "python": {"module": "catalog_indexer.main", "callable": "create_plugin", "pythonVersion": "3.12"}
  },
  "capabilities": [
    {
      "id": "catalog.index",
      "version": "1.0.0",
      "operations": [
        {
          "name": "start",
          "operationVersion": "1.0",
          "requestSchema": {"uri": "urn:example:schemas:catalog-index-start-request:1", "digest": "sha256:1111111111111111111111111111111111111111111111111111111111111111"},
          "responseSchema": {"uri": "urn:example:schemas:catalog-index-start-response:1", "digest": "sha256:2222222222222222222222222222222222222222222222222222222222222222"},
          "streaming": {"request": false, "response": true},
          "idempotent": true,
          "receipts": true
        }
      ]
    }
  ],
  "permissions": [
    {"id": "perm-files-read", "required": true, "scope": "filesystem.read", "justification": "Reads bounded local input files selected by the host."}
  ],
  "settings": {"schema": {"uri": "urn:example:schemas:catalog-indexer-settings:2", "digest": "sha256:3333333333333333333333333333333333333333333333333333333333333333"}},
  "runtime": {"os": ["windows"], "architectures": ["x64", "arm64"], "minHostVersion": "1.2"},
  "network": {"destinations": []},
  "dataDeclarations": {"acceptedClasses": ["public", "internal"], "defaultInboundClass": "internal", "defaultReceiptClass": "internal"},
  "lifecycle": {"supportsHealthWatch": true, "requiresHeartbeat": true, "backgroundBehavior": "on-demand"},
  "provenance": {
    "manifestDigest": "sha256:4444444444444444444444444444444444444444444444444444444444444444",
    "sbomRef": "urn:example:spdx:catalog-indexer:1",
    "provenanceRef": "urn:example:slsa:catalog-indexer:1"
  }
}`
	badForms = `{
  "manifestSchemaVersion": "urn:switchyard:plugin-manifest:1",
  "plugin": {"pluginId": "Catalog Indexer", "displayName": "Catalog Indexer"},
  "publisher": {"publisherId": "org.example", "displayName": "Example Org"},
  "packageVersion": "1.0",
  "protocol": {"minVersion": "1", "maxVersion": "1.0", "features": []},
  "entryPoints": {},
  "capabilities": [],
  "permissions": [],
  "runtime": {"os": ["windows"], "architectures": ["x64"]},
  "provenance": {"manifestDigest": "sha256:not-a-real-digest"}
}`
	badSecret = `{
  "manifestSchemaVersion": "urn:switchyard:plugin-manifest:1",
  "plugin": {"pluginId": "com.example.badplugin", "displayName": "Bad Plugin", "secretApiKey": "super-secret"},
  "publisher": {"publisherId": "org.example", "displayName": "Example Org"},
  "packageVersion": "1.0.0",
  "protocol": {"minVersion": "1.0", "maxVersion": "1.0", "features": []},
  "entryPoints": {"python": {"module": "bad.main", "callable": "create_plugin", "pythonVersion": "3.12"}},
  "capabilities": [],
  "permissions": [],
  "runtime": {"os": ["windows"], "architectures": ["x64"]},
  "provenance": {"manifestDigest": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
}`
)

func read(t testing.TB, text string) (sessionmanifest.Manifest, error) {
	t.Helper()
	var m sessionmanifest.Manifest
	err := ijson.Unmarshal([]byte(text), &m)
	return m, err
}

// problems returns "pointer code" of each problem, in order.
func problems(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *sessionmanifest.Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
		t.Fatalf("%v (%T)", err, err)
	}
	var list []string
	for _, p := range invalid.Problems {
		if p.Message == "" || !strings.Contains(err.Error(), p.Pointer+": "+p.Message) {
			t.Errorf("%+v is not told in %q", p, err)
		}
		list = append(list, p.Pointer+" "+p.Code)
	}
	return list
}

// TestSeedSamples holds the seed's samples to the reasons that the seed gives.
func TestSeedSamples(t *testing.T) {
	m, err := read(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil {
		t.Errorf("the valid sample: %v", err)
	}
	if len(m.SchemaRefs()) != 3 || !m.Streams() {
		t.Errorf("%v, streams %v", m.SchemaRefs(), m.Streams())
	}
	if m, err = read(t, badForms); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/plugin/pluginId schema.mismatch",
		"/packageVersion schema.mismatch",
		"/protocol/minVersion schema.mismatch",
		"/entryPoints schema.mismatch",
		"/capabilities schema.mismatch",
		"/provenance/manifestDigest schema.mismatch",
	}
	if got := problems(t, m.Validate()); !slices.Equal(got, want) {
		t.Errorf("the first invalid sample:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	_, err = read(t, badSecret)
	var fault *ijson.Error
	if !errors.As(err, &fault) || fault.Code != ijson.CodeUnknownMember || fault.Pointer != "/plugin/secretApiKey" || strings.Contains(err.Error(), "super-secret") {
		t.Errorf("the second invalid sample: %v", err)
	}
}

// change returns the sample with one member set to a value; null removes it.
func change(t testing.TB, pointer string, value string) string {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(sample), &doc); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	at := doc
	tokens := strings.Split(pointer, "/")[1:]
	for i, token := range tokens {
		last := i == len(tokens)-1
		switch here := at.(type) {
		case map[string]any:
			if last && v == nil {
				delete(here, token)
			} else if last {
				here[token] = v
			}
			at = here[token]
		case []any:
			var n int
			if _, err := fmt.Sscan(token, &n); err != nil || n >= len(here) {
				t.Fatalf("%s: no element %s", pointer, token)
			}
			if last {
				here[n] = v
			}
			at = here[n]
		default:
			t.Fatalf("%s: nothing is at %s", pointer, token)
		}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const (
	operation = "/capabilities/0/operations/0"
	digest64  = "sha256:5555555555555555555555555555555555555555555555555555555555555555"
	element   = `{"element":"operation:catalog.index/start","deprecatedSince":"2026-01-01T00:00:00Z","sunsetAfter":"2027-01-01T00:00:00Z","behaviorAfterSunset":"error"}`
)

// rules: what is set where, and the problem (relative to the place, "" for the place
// itself, or absolute with a leading "=") with its code; "" is valid.
var rules = []struct{ at, value, problem string }{
	{"/plugin/pluginId", `"a.b"`, ""},
	{"/plugin/pluginId", `"com.example.a-b.9"`, ""},
	{"/plugin/pluginId", `"example"`, " schema.mismatch"},
	{"/plugin/pluginId", `"com-x.example"`, " schema.mismatch"},
	{"/plugin/pluginId", `"com..example"`, " schema.mismatch"},
	{"/plugin/pluginId", `"com.Example"`, " schema.mismatch"},
	{"/plugin/pluginId", `"com.exämple"`, " schema.mismatch"},
	{"/plugin/pluginId", `"com.example\n"`, " schema.mismatch"},
	{"/plugin/pluginId", `"con.example"`, " manifest.id"},
	{"/plugin/pluginId", `"com1.example"`, " manifest.id"},
	{"/plugin/pluginId", `"3m.example"`, " manifest.id"},
	{"/plugin/pluginId", quote("com." + strings.Repeat("x", 61)), " manifest.id"},
	{"/plugin/displayName", `""`, " schema.mismatch"},
	{"/plugin/displayName", quote(strings.Repeat("😀", 128)), ""},
	{"/plugin/displayName", quote(strings.Repeat("x", 129)), " schema.mismatch"},
	{"/plugin/displayName", `"a\nb"`, " manifest.text"},
	{"/plugin/displayName", `" \u200b"`, " manifest.text"},
	{"/plugin/description", quote(strings.Repeat("é", 4096)), ""},
	{"/plugin/description", quote(strings.Repeat("é", 4097)), " schema.mismatch"},
	{"/plugin/categories", `["aa","aa"]`, "/1 schema.mismatch"},
	{"/plugin/categories", `["A"]`, "/0 schema.mismatch"},
	{"/plugin/categories", `["a"]`, "/0 schema.mismatch"},
	{"/plugin/categories", "[" + strings.TrimSuffix(numbered("cat", 32), ",") + "]", ""},
	{"/plugin/categories", "[" + strings.TrimSuffix(numbered("cat", 33), ",") + "]", " schema.mismatch"},
	{"/plugin/localization", `{"pt-BR":{"displayName":"Índice"},"de":{}}`, ""},
	{"/plugin/localization", `{"x":{}}`, "/x schema.mismatch"},
	{"/plugin/localization", `{"a/b~c":{}}`, "/a~1b~0c schema.mismatch"},
	{"/plugin/localization", `{"de":{"displayName":"` + strings.Repeat("x", 129) + `"}}`, "/de/displayName schema.mismatch"},
	{"/publisher/publisherId", `"Org"`, " schema.mismatch"},
	{"/publisher/publisherId", quote("org." + strings.Repeat("x", 250)), " manifest.id"},
	{"/publisher/displayName", `""`, " schema.mismatch"},
	{"/publisher/website", `"https://example.org"`, ""},
	{"/publisher/website", `"example.org"`, " schema.mismatch"},
	{"/packageVersion", `"1.0.0-rc.1+build.05"`, ""},
	{"/packageVersion", `"01.0.0"`, " schema.mismatch"},
	{"/packageVersion", `"1.0.0-"`, " schema.mismatch"},
	{"/packageVersion", `"1.0.0-rc..1"`, " manifest.version"},
	{"/packageVersion", `"1.0.0-01"`, " manifest.version"},
	{"/packageVersion", `"1.0.0+a..b"`, " manifest.version"},
	{"/packageVersion", `"1.0.0\n"`, " schema.mismatch"},
	{"/packageVersion", quote("1.0.0-" + strings.Repeat("a", 59)), " manifest.version"},
	{"/protocol/minVersion", `"1.2"`, ""},
	{"/protocol/minVersion", `"1.3"`, " manifest.version_range"},
	{"/protocol/minVersion", `"2.0"`, " manifest.version_range"},
	{"/protocol/minVersion", `"0.9"`, ""},
	{"/protocol/minVersion", `"01.0"`, " manifest.version"},
	{"/protocol/minVersion", `"1.0.0"`, " schema.mismatch"},
	{"/protocol/minVersion", `"1.0\n"`, " schema.mismatch"},
	{"/protocol/minVersion", `"١.٠"`, " schema.mismatch"},
	{"/protocol/maxVersion", `"1.10"`, ""},
	{"/protocol/maxVersion", `"2.0"`, ""},
	{"/protocol/maxVersion", `"1.1"`, "=/protocol/features/3 manifest.feature"},
	{"/protocol/features", `["unknown.v9"]`, ""},
	{"/protocol/features", `["cancel.v1","cancel.v1"]`, "/1 schema.mismatch"},
	{"/protocol/features", `["Cancel"]`, "/0 schema.mismatch"},
	{"/entryPoints", `{"executable":{"path":"bin/x","arguments":["-a",""]}}`, ""},
	{"/entryPoints", `{"executable":{"path":"/bin/x","arguments":[]}}`, "/executable/path manifest.path"},
	{"/entryPoints", `{"executable":{"path":"a/../../x","arguments":[]}}`, "/executable/path manifest.path"},
	{"/entryPoints", `{"executable":{"path":"C:\\x","arguments":[]}}`, "/executable/path manifest.path"},
	{"/entryPoints", `{"executable":{"path":"./plugin.json","arguments":[]}}`, "/executable/path manifest.path"},
	{"/entryPoints", `{"executable":{"path":"x/","arguments":[]}}`, "/executable/path manifest.path"},
	{"/entryPoints", `{"executable":{"path":"","arguments":[]}}`, "/executable/path schema.mismatch"},
	{"/entryPoints", `{"executable":{"path":"x","arguments":["\u0000"]}}`, "/executable/arguments/0 schema.mismatch"},
	{"/entryPoints/python/module", `"a-b"`, " manifest.entry_point"},
	{"/entryPoints/python/module", `"-c"`, " manifest.entry_point"},
	{"/entryPoints/python/module", `"..x"`, " manifest.entry_point"},
	{"/entryPoints/python/module", `""`, " schema.mismatch"},
	{"/entryPoints/python/callable", `"Plugin.create"`, ""},
	{"/entryPoints/python/callable", `"f()"`, " manifest.entry_point"},
	{"/entryPoints/python/pythonVersion", `"3"`, " schema.mismatch"},
	{"/entryPoints/dotnet/assembly", `"../x.dll"`, " manifest.path"},
	{"/entryPoints/dotnet/type", `""`, " schema.mismatch"},
	{"/entryPoints/dotnet/type", `"a\u0001"`, " manifest.entry_point"},
	{"/entryPoints/dotnet/targetFramework", `"../net8.0"`, " manifest.entry_point"},
	{"/capabilities/0/id", `"x"`, " schema.mismatch"},
	{"/capabilities/0/version", `"1"`, " schema.mismatch"},
	{"/capabilities/0/operations", `[]`, " schema.mismatch"},
	{operation + "/name", `"Start"`, " schema.mismatch"},
	{operation + "/operationVersion", `"1"`, " schema.mismatch"},
	{operation + "/operationVersion", `"1.00"`, " manifest.version"},
	{operation + "/operationVersion", `"12345678901.0"`, " manifest.version"},
	{operation + "/requestSchema/uri", `"request.json"`, " schema.mismatch"},
	{operation + "/requestSchema/digest", quote(strings.ToUpper(digest64)), " schema.mismatch"},
	{operation + "/requestSchema/digest", quote("sha256:" + strings.Repeat("A", 64)), ""},
	{operation + "/responseSchema/digest", `"sha256:12"`, " schema.mismatch"},
	{"/permissions", `[]`, ""},
	{"/permissions/0/id", `"P"`, " schema.mismatch"},
	{"/permissions/0/scope", `"everything"`, " schema.mismatch"},
	{"/permissions/0/scope", `"clipboard.read"`, ""},
	{"/permissions/0/justification", quote(strings.Repeat("x", 1025)), " schema.mismatch"},
	{"/permissions", `[{"id":"aa","required":true,"scope":"network.connect"},{"id":"aa","required":false,"scope":"ui.contribute"}]`, "/1/id manifest.duplicate"},
	{"/settings", `{}`, ""},
	{"/settings/version", `"2.0.0"`, ""},
	{"/settings/version", `"2"`, " schema.mismatch"},
	{"/settings/schema/uri", `"x"`, " schema.mismatch"},
	{"/runtime/os", `[]`, ""},
	{"/runtime/os", `["linux","linux"]`, "/1 schema.mismatch"},
	{"/runtime/os", `["darwin"]`, "/0 schema.mismatch"},
	{"/runtime/architectures", `["amd64"]`, "/0 schema.mismatch"},
	{"/runtime/minHostVersion", `"1"`, " schema.mismatch"},
	{"/network", `{}`, ""},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"*.example.org"},{"scheme":"wss","hostPattern":"example.org","port":8443},{"scheme":"https","hostPattern":"[2001:db8::1]"},{"scheme":"https","hostPattern":"127.0.0.1"}]`, ""},
	{"/network/destinations", `[{"scheme":"http","hostPattern":"example.org"}]`, "/0/scheme schema.mismatch"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":""}]`, "/0/hostPattern schema.mismatch"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"*"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"*.org"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"a.*.org"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"Example.org"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"example.org/path"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"user@example.org"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"example.org:443"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"-a.org"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"1.2.3.256"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"*.1.2.3.4"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"[2001:DB8::1]"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"[::1"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"bücher.example"}]`, "/0/hostPattern manifest.host_pattern"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"a.org","port":65536}]`, "/0/port schema.mismatch"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"a.org","port":-1}]`, "/0/port schema.mismatch"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"a.org"},{"scheme":"https","hostPattern":"a.org"}]`, "/1 manifest.duplicate"},
	{"/dataDeclarations", `{}`, ""},
	{"/dataDeclarations/acceptedClasses", `["public","internal","secret"]`, " manifest.class"},
	{"/dataDeclarations/acceptedClasses", `["internal","internal"]`, "/1 schema.mismatch"},
	{"/dataDeclarations/acceptedClasses", `["internal","private"]`, "/1 schema.mismatch"},
	{"/dataDeclarations/acceptedClasses", `["public"]`, "=/dataDeclarations/defaultInboundClass manifest.class"},
	{"/dataDeclarations/defaultReceiptClass", `"secret"`, " schema.mismatch"},
	{"/lifecycle", `{}`, ""},
	{"/lifecycle/backgroundBehavior", `"always"`, " schema.mismatch"},
	{"/deprecations", `[]`, ""},
	{"/deprecations", "[" + element + "]", ""},
	{"/deprecations", "[" + strings.Replace(element, `,"behavior`, `,"replacement":"operation:catalog.index/begin","behavior`, 1) + "]", ""},
	{"/deprecations", "[" + strings.Replace(element, "operation:catalog.index/start", "capability:catalog.index", 1) + "]", ""},
	{"/deprecations", "[" + strings.Replace(element, "operation:catalog.index/start", "feature:cancel.v1", 1) + "]", ""},
	{"/deprecations", "[" + strings.Replace(element, "operation:catalog.index/start", "permission:perm-files-read", 1) + "]", ""},
	{"/deprecations", "[" + strings.Replace(element, "operation:catalog.index/start", "setting:/old", 1) + "]", ""},
	{"/deprecations", "[" + strings.Replace(element, "/start", "/gone", 1) + "]", "/0/element manifest.deprecation"},
	{"/deprecations", "[" + strings.Replace(element, "operation:", "", 1) + "]", "/0/element schema.mismatch"},
	{"/deprecations", "[" + strings.Replace(element, "2026-01-01T00:00:00Z", "2026-01-01", 1) + "]", "/0/deprecatedSince schema.mismatch"},
	{"/deprecations", "[" + strings.Replace(element, "2027-01-01T00:00:00Z", "2027-02-30T00:00:00Z", 1) + "]", "/0/sunsetAfter schema.mismatch"},
	{"/deprecations", "[" + strings.Replace(element, "2027", "2025", 1) + "]", "/0/sunsetAfter manifest.deprecation"},
	{"/deprecations", "[" + strings.Replace(element, `,"behavior`, `,"replacement":"operation:catalog.index/start","behavior`, 1) + "]", "/0/replacement manifest.deprecation"},
	{"/deprecations", "[" + strings.Replace(element, `,"behavior`, `,"replacement":"another","behavior`, 1) + "]", "/0/replacement schema.mismatch"},
	{"/deprecations", "[" + strings.Replace(element, `"error"`, `"warn"`, 1) + "]", "/0/behaviorAfterSunset schema.mismatch"},
	{"/deprecations", "[" + element + "," + element + "]", "/1/element manifest.duplicate"},
	{"/provenance/manifestDigest", `"sha256:44"`, " schema.mismatch"},
	{"/provenance/signatureRefs", `["urn:x:y","x"]`, "/1 schema.mismatch"},
	{"/provenance/sbomRef", `"sbom"`, " schema.mismatch"},
	{"/provenance/provenanceRef", `"/x"`, " schema.mismatch"},
	// An empty text is not an absent member.
	{"/publisher/website", `""`, " schema.mismatch"},
	{"/settings/version", `""`, " schema.mismatch"},
	{"/runtime/minHostVersion", `""`, " schema.mismatch"},
	{"/lifecycle/backgroundBehavior", `""`, " schema.mismatch"},
	{"/dataDeclarations/defaultInboundClass", `""`, " schema.mismatch"},
	{"/dataDeclarations/defaultReceiptClass", `""`, " schema.mismatch"},
	{"/provenance/sbomRef", `""`, " schema.mismatch"},
	{"/provenance/provenanceRef", `""`, " schema.mismatch"},
	{"/plugin/localization", `{"de":{"displayName":""}}`, "/de/displayName schema.mismatch"},
	{"/network/destinations", `[{"scheme":"https","hostPattern":"a.org","port":0}]`, "/0/port schema.mismatch"},
	{"/manifestSchemaVersion", `"urn:example:plugin-manifest:1"`, " schema.mismatch"},
}

func numbered(stem string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%q,", fmt.Sprint(stem, i))
	}
	return b.String()
}

func TestRules(t *testing.T) {
	for _, r := range rules {
		m, err := read(t, change(t, r.at, r.value))
		if err != nil {
			t.Errorf("%s = %.80s: %v", r.at, r.value, err)
			continue
		}
		var want []string
		if rest, absolute := strings.CutPrefix(r.problem, "="); absolute {
			want = []string{rest}
		} else if r.problem != "" {
			want = []string{r.at + r.problem}
		}
		if got := problems(t, m.Validate()); !slices.Equal(got, want) {
			t.Errorf("%s = %.80s: %q, want %q", r.at, r.value, got, want)
		}
	}
}

// What is required must be there; what is optional may be absent, and null is neither.
func TestMembers(t *testing.T) {
	for _, at := range []string{"/settings", "/network", "/dataDeclarations", "/lifecycle", "/plugin/description", "/plugin/categories", operation + "/receipts",
		"/permissions/0/justification", "/runtime/minHostVersion", "/settings/schema", "/network/destinations", "/provenance/sbomRef", "/lifecycle/requiresHeartbeat"} {
		m, err := read(t, change(t, at, "null"))
		if err != nil || m.Validate() != nil {
			t.Errorf("without %s: %v, %v", at, err, m.Validate())
		}
	}
	for _, at := range []string{"/manifestSchemaVersion", "/plugin", "/publisher", "/packageVersion", "/protocol", "/entryPoints", "/capabilities", "/permissions", "/runtime", "/provenance",
		"/plugin/pluginId", "/plugin/displayName", "/publisher/publisherId", "/publisher/displayName", "/protocol/minVersion", "/protocol/maxVersion", "/protocol/features",
		"/entryPoints/dotnet/type", "/entryPoints/python/callable", "/capabilities/0/id", "/capabilities/0/version", "/capabilities/0/operations", operation + "/name",
		operation + "/requestSchema", operation + "/streaming", operation + "/streaming/request", operation + "/idempotent", "/permissions/0/required", "/permissions/0/scope",
		"/runtime/os", "/runtime/architectures", "/provenance/manifestDigest", operation + "/requestSchema/digest"} {
		if _, err := read(t, change(t, at, "null")); err == nil {
			t.Errorf("accepted without %s", at)
		}
	}
	if _, err := read(t, strings.Replace(sample, `"receipts": true`, `"receipts": null`, 1)); err == nil {
		t.Error("null is taken for an absent member")
	}
	m, err := read(t, change(t, operation+"/receipts", "null"))
	if err != nil || !m.Capabilities[0].Operations[0].HasReceipts() {
		t.Errorf("receipts are the default: %v", err)
	}
	if m, err = read(t, change(t, operation+"/receipts", "false")); err != nil || m.Capabilities[0].Operations[0].HasReceipts() {
		t.Errorf("receipts can be left out: %v", err)
	}
}

func TestLookUp(t *testing.T) {
	m, err := read(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	if c, o, ok := m.Operation("catalog.index", "start"); !ok || c.ID != "catalog.index" || o.OperationVersion != "1.0" {
		t.Errorf("%v %v %v", c, o, ok)
	}
	if c, o, ok := m.Operation("catalog.index", "stop"); ok || c == nil || o != nil {
		t.Errorf("%v %v %v", c, o, ok)
	}
	if c, _, ok := m.Operation("catalog", "start"); ok || c != nil {
		t.Errorf("%v %v", c, ok)
	}
	if got := m.EntryPoints.Python.Files(); !slices.Equal(got, []string{"catalog_indexer/main.py", "catalog_indexer/main/__init__.py"}) {
		t.Error(got)
	}
	d := m.DataDeclarations
	if !d.Accepts("internal") || d.Accepts("secret") || !(*sessionmanifest.DataDeclarations)(nil).Accepts("public") || (*sessionmanifest.DataDeclarations)(nil).Accepts("sensitive") {
		t.Error("accepted classes")
	}
}

func TestVocabulary(t *testing.T) {
	offered := 0
	for _, s := range sessionmanifest.Scopes {
		if s.Meaning() == "unknown scope" {
			t.Errorf("%s has no meaning in words", s)
		}
		if s.Offered() {
			offered++
		}
	}
	if offered != 6 || sessionmanifest.Scope("x").Offered() {
		t.Errorf("%d scopes are offered", offered)
	}
	for _, o := range sessionmanifest.Systems {
		if o.GOOS() == "" {
			t.Errorf("%s has no name in Go", o)
		}
	}
	for _, a := range sessionmanifest.Architectures {
		if a.GOARCH() == "" {
			t.Errorf("%s has no name in Go", a)
		}
	}
	if !sessionmanifest.Class("unheard").Private() || sessionmanifest.ClassInternal.Private() {
		t.Error("privacy of classes")
	}
}

// Unsigned takes out one member, wherever it stands, and nothing else.
func TestUnsigned(t *testing.T) {
	for in, want := range map[string]string{
		`{"provenance":{"manifestDigest":"x"}}`:                                                                `{"provenance":{}}`,
		`{"provenance":{"manifestDigest":"x","sbomRef":"y"}}`:                                                  `{"provenance":{"sbomRef":"y"}}`,
		`{"provenance":{"a":[{"manifestDigest":1}] , "manifestDigest" : "x" }}`:                                `{"provenance":{"a":[{"manifestDigest":1}] }}`,
		`{"provenance":{"a":1,"manifestDigest":"x","b":2}}`:                                                    `{"provenance":{"a":1,"b":2}}`,
		`{"x":{"provenance":{"manifestDigest":0}},"provenance": { "manifestDigest" : "x" , "b" : 2 } , "z":0}`: `{"x":{"provenance":{"manifestDigest":0}},"provenance": { "b" : 2 } , "z":0}`,
		`{"pro\u0076enance":{"manifest\u0044igest":"x"}}`:                                                      `{"pro\u0076enance":{}}`,
	} {
		got, err := sessionmanifest.Unsigned([]byte(in))
		if err != nil || strings.Join(strings.Fields(string(got)), "") != strings.Join(strings.Fields(want), "") || !json.Valid(got) {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{``, `[]`, `{}`, `{"provenance":1}`, `{"provenance":{}}`, `{"provenance":{"a":1}}`, `{"provenance":`, `{"provenance":{"manifestDigest"`} {
		if got, err := sessionmanifest.Unsigned([]byte(in)); err == nil {
			t.Errorf("%q: %s", in, got)
		}
	}
}
