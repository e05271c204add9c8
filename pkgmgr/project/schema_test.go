package project

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
	"github.com/switchyard-plugins/switchyard/schemas"
)

// TestReaderAndSchemaAgree: what the published schema says of its fixtures the
// reader says too, and what the reader accepts of its own the schema accepts.
func TestReaderAndSchemaAgree(t *testing.T) {
	const published = "../../schemas/testdata/switchyard-toml/"
	for _, file := range tomltest.Files(t, published+"valid/*.toml") {
		if _, err := ParseConfig(file, read(t, file)); err != nil {
			t.Error(err)
		}
	}
	for _, file := range tomltest.Files(t, published+"invalid/*.toml") {
		if c, err := ParseConfig(file, read(t, file)); err == nil {
			t.Errorf("%s is read as %+v", file, c)
		}
	}

	text, err := schemas.Get("switchyard-toml.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tomltest.Files(t, "testdata/valid/*.toml") {
		var values map[string]any
		if err := toml.Unmarshal(read(t, file), &values); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
