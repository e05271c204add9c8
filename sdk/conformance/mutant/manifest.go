package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// A manifest is what the program uses of plugin.json.
type manifest struct {
	Plugin         struct{ PluginID string }
	Publisher      struct{ PublisherID string }
	PackageVersion string
	Protocol       struct {
		MinVersion, MaxVersion string
		Features               []string
	}
	EntryPoints struct {
		Executable *struct{ Path string }
	}
	Capabilities []struct {
		ID, Version string
		Operations  []*operation
	}
	Permissions []struct{ ID, Scope string }
	Settings    struct {
		Version string
		Schema  *schemaRef
	}
	DataDeclarations struct{ AcceptedClasses []string }
	Lifecycle        struct{ SupportsHealthWatch, RequiresHeartbeat bool }
	Deprecations     []deprecation
	Provenance       struct{ ManifestDigest string }

	schemas  map[string]*schema // by $id
	minimum  string             // of the protocol, as its capabilities need it
	requires []string
}

type schemaRef struct{ URI, Digest string }

type deprecation struct {
	Element             string `json:"element"`
	DeprecatedSince     string `json:"deprecatedSince"`
	SunsetAfter         string `json:"sunsetAfter"`
	Replacement         string `json:"replacement,omitempty"`
	BehaviorAfterSunset string `json:"behaviorAfterSunset"`
}

type operation struct {
	Name, OperationVersion        string
	RequestSchema, ResponseSchema schemaRef
	Streaming                     struct{ Request, Response bool }
	Idempotent                    bool
	Receipts                      *bool
	capability                    string
	deprecated                    *deprecation
}

func (o *operation) receipts() bool { return o.Receipts == nil || *o.Receipts }

const (
	namePattern    = `"pattern":"^[a-z][a-z0-9._-]{1,63}$"`
	idPattern      = `"pattern":"^[a-z0-9]+(\\.[a-z0-9-]+)+$"`
	versionPattern = `"pattern":"^\\d+\\.\\d+$"`
	digestPattern  = `"pattern":"^sha256:[A-Fa-f0-9]{64}$"`
	semverPattern  = `"pattern":"^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-[0-9A-Za-z.-]+)?(?:\\+[0-9A-Za-z.-]+)?$"`
	classes        = `"enum":["public","internal","sensitive","secret","regulated"]`
	closed         = `"type":"object","additionalProperties":false`
)

// manifestSchema is the seed's draft with the additions of the contract, §3.
const manifestSchema = `{` + closed + `,
"required":["manifestSchemaVersion","plugin","publisher","packageVersion","protocol","entryPoints","capabilities","permissions","runtime","provenance"],
"properties":{
"manifestSchemaVersion":{"const":"urn:switchyard:plugin-manifest:1"},
"plugin":{` + closed + `,"required":["pluginId","displayName"],"properties":{
  "pluginId":{"type":"string",` + idPattern + `},"displayName":{"type":"string","minLength":1,"maxLength":128},"description":{"type":"string","maxLength":4096},
  "categories":{"type":"array","items":{"type":"string",` + namePattern + `},"uniqueItems":true,"maxItems":32},
  "localization":{"type":"object","propertyNames":{"pattern":"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"},"additionalProperties":{` + closed + `,"properties":{
    "displayName":{"type":"string","maxLength":128},"description":{"type":"string","maxLength":4096}}}}}},
"publisher":{` + closed + `,"required":["publisherId","displayName"],"properties":{
  "publisherId":{"type":"string",` + idPattern + `},"displayName":{"type":"string","minLength":1,"maxLength":128},"website":{"type":"string","format":"uri"}}},
"packageVersion":{"type":"string",` + semverPattern + `},
"protocol":{` + closed + `,"required":["minVersion","maxVersion","features"],"properties":{
  "minVersion":{"type":"string",` + versionPattern + `},"maxVersion":{"type":"string",` + versionPattern + `},
  "features":{"type":"array","items":{"type":"string",` + namePattern + `},"uniqueItems":true}}},
"entryPoints":{` + closed + `,"minProperties":1,"properties":{
  "dotnet":{` + closed + `,"required":["assembly","type","targetFramework"],"properties":{"assembly":{"type":"string","minLength":1},"type":{"type":"string","minLength":1},"targetFramework":{"type":"string","minLength":1}}},
  "python":{` + closed + `,"required":["module","callable","pythonVersion"],"properties":{"module":{"type":"string","minLength":1},"callable":{"type":"string","minLength":1},"pythonVersion":{"type":"string",` + versionPattern + `}}},
  "executable":{` + closed + `,"required":["path","arguments"],"properties":{"path":{"type":"string","minLength":1},"arguments":{"type":"array","items":{"type":"string","maxLength":4096},"maxItems":32}}}}},
"capabilities":{"type":"array","minItems":1,"items":{` + closed + `,"required":["id","version","operations"],"properties":{
  "id":{"type":"string",` + namePattern + `},"version":{"type":"string",` + semverPattern + `},
  "operations":{"type":"array","minItems":1,"items":{` + closed + `,"required":["name","operationVersion","requestSchema","responseSchema","streaming","idempotent"],"properties":{
    "name":{"type":"string",` + namePattern + `},"operationVersion":{"type":"string",` + versionPattern + `},
    "requestSchema":{"$ref":"#/$defs/schemaRef"},"responseSchema":{"$ref":"#/$defs/schemaRef"},
    "streaming":{` + closed + `,"required":["request","response"],"properties":{"request":{"type":"boolean"},"response":{"type":"boolean"}}},
    "idempotent":{"type":"boolean"},"receipts":{"type":"boolean"}}}}}}},
"permissions":{"type":"array","items":{` + closed + `,"required":["id","required","scope"],"properties":{
  "id":{"type":"string",` + namePattern + `},"required":{"type":"boolean"},
  "scope":{"type":"string","enum":["settings.read","settings.write","filesystem.read","filesystem.write","network.connect","clipboard.read","clipboard.write","ui.contribute","background.run","bounded.private-data"]},
  "justification":{"type":"string","maxLength":1024}}}},
"settings":{` + closed + `,"properties":{"version":{"type":"string",` + semverPattern + `},"schema":{"$ref":"#/$defs/schemaRef"}}},
"runtime":{` + closed + `,"required":["os","architectures"],"properties":{
  "os":{"type":"array","items":{"type":"string","enum":["windows","linux","macos"]},"uniqueItems":true},
  "architectures":{"type":"array","items":{"type":"string","enum":["x64","arm64"]},"uniqueItems":true},
  "minHostVersion":{"type":"string",` + versionPattern + `}}},
"network":{` + closed + `,"properties":{"destinations":{"type":"array","items":{` + closed + `,"required":["scheme","hostPattern"],"properties":{
  "scheme":{"type":"string","enum":["https","wss"]},"hostPattern":{"type":"string","minLength":1},"port":{"type":"integer","minimum":1,"maximum":65535}}}}}},
"dataDeclarations":{` + closed + `,"properties":{
  "acceptedClasses":{"type":"array","items":{"type":"string",` + classes + `},"uniqueItems":true},
  "defaultInboundClass":{"type":"string",` + classes + `},"defaultReceiptClass":{"type":"string","enum":["public","internal","sensitive"]}}},
"lifecycle":{` + closed + `,"properties":{"supportsHealthWatch":{"type":"boolean"},"requiresHeartbeat":{"type":"boolean"},
  "backgroundBehavior":{"type":"string","enum":["none","on-demand","scheduled","continuous"]}}},
"deprecations":{"type":"array","items":{` + closed + `,"required":["element","deprecatedSince","sunsetAfter","behaviorAfterSunset"],"properties":{
  "element":{"type":"string","minLength":1},"deprecatedSince":{"type":"string","format":"date-time"},"sunsetAfter":{"type":"string","format":"date-time"},
  "replacement":{"type":"string"},"behaviorAfterSunset":{"const":"error"}}}},
"provenance":{` + closed + `,"required":["manifestDigest"],"properties":{"manifestDigest":{"type":"string",` + digestPattern + `},
  "signatureRefs":{"type":"array","items":{"type":"string","format":"uri"}},"sbomRef":{"type":"string","format":"uri"},"provenanceRef":{"type":"string","format":"uri"}}}
},"$defs":{"schemaRef":{` + closed + `,"required":["uri","digest"],"properties":{"uri":{"type":"string","format":"uri"},"digest":{"type":"string",` + digestPattern + `}}}}}`

// load reads the package and holds it to its rules.
func (p *program) load() (*manifest, error) {
	text, err := os.ReadFile(filepath.Join(p.dir, "plugin.json"))
	if err != nil {
		return nil, err
	}
	if err := ijson.Check(text); err != nil {
		return nil, err
	}
	strict := &schema{parse([]byte(manifestSchema)).(map[string]any), &program{}}
	if problem := strict.check(text); problem != nil && !p.has("takes-bad-manifests") {
		return nil, problem
	}
	m := &manifest{schemas: map[string]*schema{}}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	if err := p.loadSchemas(m); err != nil {
		return nil, err
	}
	return m, errors.Join(p.consistent(m, text), m.needs())
}

func (p *program) loadSchemas(m *manifest) error {
	digests := map[string]string{}
	files, err := filepath.Glob(filepath.Join(p.dir, "schemas", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := ijson.Check(text); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		root, ok := parse(text).(map[string]any)
		id, _ := root["$id"].(string)
		if !ok || id == "" || digests[id] != "" {
			return fmt.Errorf("%s: no object with an $id of its own", file)
		}
		if err := allowed(root); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		m.schemas[id], digests[id] = &schema{root, p}, canonicalDigest(text)
	}
	refs := []schemaRef{}
	for _, c := range m.Capabilities {
		for _, o := range c.Operations {
			refs = append(refs, o.RequestSchema, o.ResponseSchema)
		}
	}
	if m.Settings.Schema != nil {
		refs = append(refs, *m.Settings.Schema)
	}
	for _, ref := range refs {
		if digests[ref.URI] == "" || digests[ref.URI] != strings.ToLower(ref.Digest) && !p.has("takes-false-schema-digests") {
			return fmt.Errorf("schema %s is missing or has another digest", ref.URI)
		}
	}
	return nil
}

// keywords are those of the subset that the corpus's schemas are written in.
var keywords = []string{
	"$id", "$schema", "$ref", "$defs", "$comment", "title", "description", "default", "examples", "deprecated", "type", "const", "enum", "properties", "required", "additionalProperties",
	"propertyNames", "minProperties", "maxProperties", "items", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
	"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "anyOf", "oneOf", "allOf", "not",
}

// allowed refuses keywords outside of the subset and references that leave the
// document.
func allowed(node any) error {
	n, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	for name, v := range n {
		if !slices.Contains(keywords, name) && !strings.HasPrefix(name, "x-") {
			return fmt.Errorf("the keyword %s", name)
		}
		switch name {
		case "$ref":
			ref, _ := v.(string)
			if !strings.HasPrefix(ref, "#/$defs/") {
				return errors.New("a reference that leaves the document")
			}
		case "pattern":
			if _, err := regexp.Compile(fmt.Sprint(v)); err != nil {
				return errors.New("a pattern that cannot be read")
			}
		case "properties", "$defs":
			inner, _ := v.(map[string]any)
			for _, s := range inner {
				if err := allowed(s); err != nil {
					return err
				}
			}
		case "items", "additionalProperties", "propertyNames":
			if err := allowed(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// consistent holds what a schema cannot say.
func (p *program) consistent(m *manifest, text []byte) error {
	whole := parse(text).(map[string]any)
	provenance := whole["provenance"].(map[string]any)
	delete(provenance, "manifestDigest")
	if sum := canonicalDigest([]byte(textOf(whole))); sum != strings.ToLower(m.Provenance.ManifestDigest) && !p.has("takes-false-manifest-digest") {
		return errors.New("provenance.manifestDigest is not true")
	}
	if minor(m.Protocol.MinVersion) > minor(m.Protocol.MaxVersion) || !strings.HasPrefix(m.Protocol.MinVersion, "1.") || !strings.HasPrefix(m.Protocol.MaxVersion, "1.") {
		return errors.New("protocol.minVersion is above maxVersion")
	}
	seen := map[string]bool{}
	for _, c := range m.Capabilities {
		if seen[c.ID] && !p.has("takes-duplicate-capabilities") {
			return errors.New("two capabilities have one id")
		}
		seen[c.ID] = true
		for _, o := range c.Operations {
			o.capability = c.ID
			key := c.ID + "/" + o.Name
			if seen[key] && !p.has("takes-duplicate-capabilities") {
				return errors.New("two operations have one name")
			}
			seen[key] = true
			for i := range m.Deprecations {
				if e := m.Deprecations[i].Element; e == "operation:"+key || e == "capability:"+c.ID {
					o.deprecated = &m.Deprecations[i]
				}
			}
		}
	}
	permissions := map[string]bool{}
	for _, x := range m.Permissions {
		if permissions[x.ID] {
			return errors.New("two permissions have one id")
		}
		permissions[x.ID] = true
	}
	if e := m.EntryPoints.Executable; e != nil && (!filepath.IsLocal(e.Path) || strings.Contains(e.Path, `\`)) {
		return errors.New("entryPoints.executable.path leaves the package")
	}
	return nil
}

// needs works out what the manifest's own declarations require of a host.
func (m *manifest) needs() error {
	m.minimum = m.Protocol.MinVersion
	m.requires = []string{}
	streams := slices.ContainsFunc(m.Capabilities, func(c struct {
		ID, Version string
		Operations  []*operation
	}) bool {
		return slices.ContainsFunc(c.Operations, func(o *operation) bool { return o.Streaming.Request || o.Streaming.Response })
	})
	for _, need := range []struct {
		so               bool
		feature, version string
	}{{streams, "flow.credit.v1", "1.1"}, {m.Lifecycle.RequiresHeartbeat, "heartbeat.v1", "1.2"}} {
		if !need.so {
			continue
		}
		if !slices.Contains(m.Protocol.Features, need.feature) {
			return fmt.Errorf("the manifest needs the feature %s and does not name it", need.feature)
		}
		m.requires = append(m.requires, need.feature)
		if minor(need.version) > minor(m.minimum) {
			m.minimum = need.version
		}
	}
	if minor(m.minimum) > minor(m.Protocol.MaxVersion) {
		return errors.New("no version keeps what the manifest declares")
	}
	return nil
}

// minor returns the minor of a version; its form was checked.
func minor(version string) int {
	_, text, _ := strings.Cut(version, ".")
	n := 0
	for _, c := range text {
		n = n*10 + int(c-'0')
	}
	return n
}

func textOf(v any) string { return text(v) }
