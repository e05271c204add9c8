package schemas_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/switchyard-plugins/switchyard/schemas"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

const switchyardTOML = "switchyard-toml.schema.json"

// The files in testdata are judged by the schema as their directory says. Those
// in invalid state their fault on the first line, after "# ERROR: ".
func TestSwitchyardTOML(t *testing.T) {
	schema := compile(t, switchyardTOML)
	for dir, want := range map[string]bool{"valid": true, "invalid": false} {
		files, err := filepath.Glob(filepath.Join("testdata", "switchyard-toml", dir, "*.toml"))
		if err != nil || len(files) < 5 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(text), "# ERROR: ") == want {
				t.Errorf("%s: the first line does not fit the directory", file)
			}
			var v map[string]any
			if err := toml.Unmarshal(text, &v); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			doc, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value(t, doc)); (err == nil) != want {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// An id is the same thing in both schemas, and the scopes that an editor offers
// are those that exist.
func TestSharedVocabulary(t *testing.T) {
	read := func(name string, into any) {
		text, err := schemas.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	var m struct {
		Defs struct {
			ID json.RawMessage `json:"id"`
		} `json:"$defs"`
	}
	var s struct {
		Defs struct {
			ID     json.RawMessage `json:"id"`
			Wanted struct {
				Properties struct {
					Scopes struct {
						Items struct {
							AnyOf []struct {
								Enum []manifest.Scope `json:"enum"`
							} `json:"anyOf"`
						} `json:"items"`
					} `json:"scopes"`
				} `json:"properties"`
			} `json:"wanted"`
		} `json:"$defs"`
	}
	read(callManifest, &m)
	read(switchyardTOML, &s)
	if len(m.Defs.ID) == 0 || string(m.Defs.ID) != string(s.Defs.ID) {
		t.Errorf("the ids differ: %s and %s", m.Defs.ID, s.Defs.ID)
	}
	var offered []manifest.Scope
	for _, choice := range s.Defs.Wanted.Properties.Scopes.Items.AnyOf {
		offered = append(offered, choice.Enum...)
	}
	if len(offered) != len(manifest.Scopes) {
		t.Errorf("editors offer %q, the protocol has %q", offered, manifest.Scopes)
	}
	for i := range offered {
		if offered[i] != manifest.Scopes[i] {
			t.Errorf("editors offer %q, the protocol has %q", offered, manifest.Scopes)
		}
	}
}
