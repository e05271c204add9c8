package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

// A Package is one that the corpus knows nothing of: a plugin author's own.
type Package struct {
	Dir      string // absolute
	Protocol Protocol
	ID       string
	scopes   string // JSON; what a call package asks for
	grants   string // JSON; what a session package asks for, granted as far as this host offers it
	settings string // JSON; what a session package is started with
	schema   string // the $id of their schema, "" where it has none
}

// A SettingsError says that settings do not fit the schema that a package has for them, or
// that it has none. Its problems name places and quote no value.
type SettingsError struct {
	ID       string
	Schema   string           // the schema's file
	Given    bool             // there were any
	Problems []subset.Problem // none: the package has no settings
}

func (e *SettingsError) Error() string {
	if len(e.Problems) == 0 {
		return e.ID + " has no settings"
	}
	text := "the settings of " + e.ID + ": " + e.Problems[0].String()
	if n := len(e.Problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

// OpenPackage reads as much of the package in dir as the cases for any package need:
// which protocol it speaks, and what it asks for. It does not check the package. A session
// package is started with every permission that it asks for and, until UseSettings says
// otherwise, with empty settings.
func OpenPackage(dir string) (*Package, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "plugin.json"))
	if err != nil {
		return nil, err
	}
	var m struct {
		SchemaVersion         string   `json:"schemaVersion"`
		ManifestSchemaVersion string   `json:"manifestSchemaVersion"`
		RequestedScopes       []string `json:"requestedScopes"`
		ID                    string   `json:"id"`
		Plugin                struct {
			PluginID string `json:"pluginId"`
		} `json:"plugin"`
		Permissions []struct {
			ID    string                `json:"id"`
			Scope sessionmanifest.Scope `json:"scope"`
		} `json:"permissions"`
		Settings struct {
			Schema struct {
				URI string `json:"uri"`
			} `json:"schema"`
		} `json:"settings"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	p := &Package{Dir: dir, ID: m.ID, settings: "{}", schema: m.Settings.Schema.URI}
	switch {
	case strings.HasPrefix(m.ManifestSchemaVersion, "urn:switchyard:plugin-manifest:"):
		p.Protocol, p.ID = Session, m.Plugin.PluginID
		grants := []grant{}
		for _, asked := range m.Permissions {
			if asked.Scope.Offered() {
				grants = append(grants, grant{"grant-" + asked.ID, asked.ID, string(asked.Scope)})
			}
		}
		text, err := json.Marshal(grants)
		if err != nil {
			return nil, err
		}
		p.grants = string(text)
	case strings.HasPrefix(m.SchemaVersion, "switchyard.plugin-manifest/"):
		p.Protocol = Call
		scopes, err := json.Marshal(append([]string{}, m.RequestedScopes...))
		if err != nil {
			return nil, err
		}
		p.scopes = string(scopes)
	default:
		return nil, errors.New("it is the manifest of neither protocol")
	}
	return p, nil
}

type grant struct {
	ID         string `json:"permissionsGrantId"`
	Permission string `json:"permissionId"`
	Scope      string `json:"scope"`
}

// UseSettings has a session package started with settings, one JSON object; nil means none.
// *SettingsError: its schema does not take them, so that no host would start it with them.
func (p *Package) UseSettings(text []byte) error {
	switch {
	case p.schema == "" && text != nil:
		return &SettingsError{ID: p.ID}
	case p.schema == "":
		return nil
	}
	given := text != nil
	if !given {
		text = []byte("{}")
	}
	if err := ijson.Check(text); err != nil {
		return fmt.Errorf("the settings: %w", err)
	}
	schema, file, err := p.settingsSchema()
	if err != nil {
		return err
	}
	if problems := schema.Validate(text); len(problems) > 0 {
		return &SettingsError{p.ID, file, given, problems}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return err
	}
	p.settings = compact.String()
	return nil
}

// settingsSchema reads the schema of the settings from the package, and says where it is.
func (p *Package) settingsSchema() (schema *subset.Schema, file string, err error) {
	files, err := fs.Glob(os.DirFS(p.Dir), sessionmanifest.SchemasDir+"/*.json") // the directory's name is no pattern
	if err != nil {
		return nil, "", err
	}
	for _, name := range files {
		file = filepath.Join(p.Dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		var head struct {
			ID string `json:"$id"`
		}
		if json.Unmarshal(text, &head) != nil || head.ID != p.schema {
			continue // what is wrong with another file is no matter of the settings
		}
		schema, err = subset.Compile(text)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		return schema, file, nil
	}
	return nil, "", fmt.Errorf("/settings/schema: no file of %s/ has the $id %s", sessionmanifest.SchemasDir, p.schema)
}

// Cases returns those of a list that hold for the package.
func (p *Package) Cases(list []*Case) []*Case {
	var mine []*Case
	for _, c := range list {
		if c.Any && c.Protocol == p.Protocol {
			mine = append(mine, c)
		}
	}
	return mine
}
