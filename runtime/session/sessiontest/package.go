//go:build unix

package sessiontest

import (
	"fmt"
	"os"
	"path/filepath"
)

// ID is the plugin's.
const ID = "com.example.sample"

// Executable is the entry point that this very program is.
const Executable = `"executable": {"path": "bin/sample", "arguments": []}`

// Write writes the package, whose digests are still to be written into its manifest. The
// plugin is controlled from directory control; entry is the manifest's entryPoints.
func Write(dir, control, entry string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, d := range []string{"schemas", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{
		"plugin.json": manifest(entry),
		"bin/sample":  "#!/bin/sh\nexec '" + self + "' " + Flag + " '" + control + "'\n",
		"sample.py":   "#\n",
	}
	for name, properties := range map[string]string{
		"value": `"n": {"type": "integer"}, "text": {"type": "string"}`,
		"write": `"line": {"type": "string"}, "then": {"type": "string"}`,
		"done":  `"ok": {"type": "boolean"}`,
		"settings": `"greeting": {"type": "string"}, "pin": {"type": "string", "x-redact": "full"}, "token": {"type": "object", "x-secretRefAllowed": true,
    "additionalProperties": false, "required": ["secretRef"], "properties": {"secretRef": {"type": "object", "additionalProperties": false, "required": ["provider", "name"],
    "properties": {"provider": {"type": "string"}, "name": {"type": "string"}, "version": {"type": "string"}}}}}`,
	} {
		files["schemas/"+name+".json"] = fmt.Sprintf(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:example:sample:%s:1",
  "type": "object", "additionalProperties": false, "properties": {%s}}`, name, properties)
	}
	for name, text := range files {
		mode := os.FileMode(0o644)
		if name == "bin/sample" {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

const zeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func ref(name string) string {
	return fmt.Sprintf(`{"uri": "urn:example:sample:%s:1", "digest": %q}`, name, zeros)
}

// An operation of the manifest; nothing of it streams and nothing is repeatable but what
// says so.
type operation struct {
	name, request, response                  string
	streamsIn, streamsOut, repeatable, keeps bool
}

func manifest(entry string) string {
	list := ""
	for i, o := range []operation{
		{name: "read", request: "value", response: "value", repeatable: true},
		{name: "count", request: "value", response: "value", streamsOut: true, repeatable: true, keeps: true},
		{name: "sum", request: "value", response: "value", streamsIn: true, repeatable: true, keeps: true},
		{name: "write", request: "write", response: "done", keeps: true},
	} {
		if i > 0 {
			list += ",\n    "
		}
		list += fmt.Sprintf(`{"name": %q, "operationVersion": "1.0", "requestSchema": %s, "responseSchema": %s, "streaming": {"request": %t, "response": %t}, "idempotent": %t, "receipts": %t}`,
			o.name, ref(o.request), ref(o.response), o.streamsIn, o.streamsOut, o.repeatable, o.keeps)
	}
	return `{
  "manifestSchemaVersion": "urn:switchyard:plugin-manifest:1",
  "plugin": {"pluginId": "` + ID + `", "displayName": "Sample"},
  "publisher": {"publisherId": "org.example", "displayName": "Example"},
  "packageVersion": "1.0.0",
  "protocol": {"minVersion": "1.0", "maxVersion": "1.2", "features": ["cancel.v1", "progress.v1", "flow.credit.v1", "receipt.v1", "heartbeat.v1", "secrets.inject.v1", "transport.unix.v1"]},
  "entryPoints": {` + entry + `},
  "capabilities": [{"id": "test.ops", "version": "1.0.0", "operations": [
    ` + list + `]}],
  "permissions": [
    {"id": "files", "required": true, "scope": "filesystem.read"},
    {"id": "prefs", "required": false, "scope": "settings.read"},
    {"id": "private", "required": false, "scope": "bounded.private-data"}],
  "settings": {"schema": ` + ref("settings") + `, "version": "1.0.0"},
  "runtime": {"os": ["linux", "macos"], "architectures": ["x64", "arm64"]},
  "dataDeclarations": {"acceptedClasses": ["public", "internal", "sensitive"]},
  "provenance": {"manifestDigest": "` + zeros + `"}
}
`
}
