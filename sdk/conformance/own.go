package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// A Package is one that the corpus knows nothing of: a plugin author's own.
type Package struct {
	Dir      string // absolute
	Protocol Protocol
	scopes   string // JSON; what a call package asks for
}

// OpenPackage reads as much of the package in dir as the cases for any package need:
// which protocol it speaks, and what it asks for. It does not check the package.
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
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	p := &Package{Dir: dir}
	switch {
	case strings.HasPrefix(m.ManifestSchemaVersion, "urn:switchyard:plugin-manifest:"):
		p.Protocol = Session
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
