package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

var update = flag.Bool("update", false, "write the digests into package/plugin.json")

// TestDigests holds that the manifest states the digests of its schemas and of itself.
func TestDigests(t *testing.T) {
	if *update {
		writeDigests(t)
	}
	if _, err := plugin.LoadPackage("package"); err != nil {
		t.Errorf("%v\n(go test ./sdk/examples/word-index -run TestDigests -update)", err)
	}
}

func writeDigests(t *testing.T) {
	const path = "package/plugin.json"
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := filepath.Glob("package/schemas/*.json")
	if err != nil || len(schemas) == 0 {
		t.Fatalf("%d schemas, %v", len(schemas), err)
	}
	for _, name := range schemas {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := wire.Digest(document)
		if err != nil {
			t.Fatal(err)
		}
		id := regexp.MustCompile(`"\$id": "([^"]+)"`).FindSubmatch(document)[1]
		stated := regexp.MustCompile(`("uri": "` + regexp.QuoteMeta(string(id)) + `",\s+"digest": ")[^"]*`)
		manifest = stated.ReplaceAll(manifest, append([]byte("${1}"), digest...))
	}
	unsigned, err := sessionmanifest.Unsigned(manifest)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := wire.Digest(unsigned)
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`"manifestDigest": "([^"]*)"`).FindSubmatch(manifest)[1]
	if err := os.WriteFile(path, bytes.Replace(manifest, old, []byte(digest), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}
