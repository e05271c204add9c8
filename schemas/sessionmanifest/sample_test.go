package sessionmanifest_test

import (
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// sampleSchemas are what the valid sample's references may mean.
var sampleSchemas = []string{
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:example:schemas:catalog-index-start-request:1","type":"object","additionalProperties":false,
		"required":["inputUris","mode"],"properties":{"inputUris":{"type":"array","items":{"type":"string","format":"uri"},"minItems":1},"mode":{"enum":["incremental","full"]}}}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:example:schemas:catalog-index-start-response:1","type":"object","additionalProperties":false,
		"required":["entry"],"properties":{"entry":{"type":"string"}}}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:example:schemas:catalog-indexer-settings:2","type":"object","additionalProperties":false,
		"properties":{"apiToken":{"type":"object","additionalProperties":false,"required":["secretRef"],"x-secretRefAllowed":true,"properties":{"secretRef":{"type":"object",
		"additionalProperties":false,"required":["provider","name"],"properties":{"provider":{"type":"string"},"name":{"type":"string"},"version":{"type":"string"}}}}}}}`,
}

// TestSampleWithTrueDigests: with the digests of its schemas and its own in place the
// seed's sample is a manifest whose every digest holds, and which no change leaves so.
func TestSampleWithTrueDigests(t *testing.T) {
	text := sample
	payloads := map[string]string{ // the seed's own request and secret reference
		"urn:example:schemas:catalog-index-start-request:1": `{"inputUris":["hostlocal://selection/42"],"mode":"incremental"}`,
		"urn:example:schemas:catalog-indexer-settings:2":    `{"apiToken":{"secretRef":{"provider":"host-vault","name":"example/catalog-indexer/token","version":"42"}}}`,
	}
	sums := map[string]digest.Digest{}
	for i, document := range sampleSchemas {
		if err := ijson.Check([]byte(document)); err != nil {
			t.Fatal(err)
		}
		s, err := subset.Compile([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if sums[s.ID()], err = digest.Schema([]byte(document)); err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, "sha256:"+strings.Repeat(string(rune('1'+i)), 64), string(sums[s.ID()]), 1)
		if value := payloads[s.ID()]; value != "" && s.Validate([]byte(value)) != nil {
			t.Errorf("%s refuses the seed's own %s: %v", s.ID(), value, s.Validate([]byte(value)))
		}
	}
	own, err := digest.SessionManifest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "sha256:"+strings.Repeat("4", 64), string(own), 1)
	m, err := read(t, text)
	if err != nil || m.Validate() != nil {
		t.Fatalf("%v, %v", err, m.Validate())
	}
	for _, ref := range m.SchemaRefs() {
		if sums[ref.URI] != digest.Digest(ref.Digest) || sums[ref.URI] == "" {
			t.Errorf("%s: %s, want %s", ref.Pointer, ref.Digest, sums[ref.URI])
		}
	}
	if d, err := digest.SessionManifest([]byte(text)); err != nil || d != own || m.Provenance.ManifestDigest != string(own) {
		t.Errorf("%s, %v; the manifest states %s", d, err, m.Provenance.ManifestDigest)
	}
	for old, changed := range map[string]string{`"1.4.2"`: `"1.4.3"`, `"required": true`: `"required": false`, `"Catalog Indexer"`: `"Catalog indexer"`, "slsa": "slsa2"} {
		if d, err := digest.SessionManifest([]byte(strings.Replace(text, old, changed, 1))); err != nil || d == own {
			t.Errorf("%s: %s, %v", changed, d, err)
		}
	}
}
