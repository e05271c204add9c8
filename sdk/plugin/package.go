package plugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A SessionManifest is plugin.json of a package that speaks the session protocol.
type SessionManifest = sessionmanifest.Manifest

// maxSchemas bounds the documents of a package.
const maxSchemas = 1000

// A Package is an installed session package: its manifest and its schemas, compiled
// once. It does not change and may be shared.
type Package struct {
	Manifest SessionManifest
	Digest   string // of the manifest, as it states itself

	schemas map[string]*subset.Schema // by the URI with which the manifest refers to them
	sunsets []sunset
}

// LoadPackage reads the package in dir, which is the working directory of a session
// plugin, and holds it to its rules: the manifest, its digest, and each schema that
// it refers to, with the digest that it states. The error says everything that is
// wrong with the first part that has a fault.
func LoadPackage(dir string) (*Package, error) {
	document, err := readUpTo(filepath.Join(dir, sessionmanifest.FileName), sessionmanifest.MaxBytes)
	if err != nil {
		return nil, err
	}
	p := &Package{schemas: map[string]*subset.Schema{}}
	if err := strict.Decode(document, &p.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", sessionmanifest.FileName, err)
	}
	if err := p.Manifest.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", sessionmanifest.FileName, err)
	}
	unsigned, err := sessionmanifest.Unsigned(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sessionmanifest.FileName, err)
	}
	if p.Digest, err = wire.Digest(unsigned); err != nil {
		return nil, fmt.Errorf("%s: %w", sessionmanifest.FileName, err)
	}
	if stated := p.Manifest.Provenance.ManifestDigest; !strings.EqualFold(stated, p.Digest) {
		return nil, fmt.Errorf("%s: provenance.manifestDigest is %s, the manifest has %s", sessionmanifest.FileName, stated, p.Digest)
	}
	if r := p.offer(wire.DefaultMaxFrame).Range(); r.Min.Compare(r.Max) > 0 {
		return nil, fmt.Errorf("%s: protocol: what the manifest promises needs version %s, its maxVersion is %s", sessionmanifest.FileName, r.Min, p.Manifest.Protocol.MaxVersion)
	}
	if o := p.offer(wire.DefaultMaxFrame); !holds(o.Features, o.Needs) {
		return nil, fmt.Errorf("%s: protocol.features: must name what the manifest promises, %v", sessionmanifest.FileName, o.Needs)
	}
	if err := p.loadSchemas(filepath.Join(dir, sessionmanifest.SchemasDir)); err != nil {
		return nil, err
	}
	p.findSunsets()
	return p, nil
}

func holds(have, needed []wire.Feature) bool {
	for _, f := range needed {
		if !slices.Contains(have, f) {
			return false
		}
	}
	return true
}

// loadSchemas compiles what the manifest refers to. Other documents in the
// directory are not looked into beyond their $id.
func (p *Package) loadSchemas(dir string) error {
	names, err := fs.Glob(os.DirFS(dir), "*.json") // the directory's own name is no pattern
	if err != nil {
		return err
	}
	if len(names) > maxSchemas {
		return fmt.Errorf("%s: %d documents, more than %d", dir, len(names), maxSchemas)
	}
	refs := p.Manifest.SchemaRefs()
	files := map[string]string{}
	for _, name := range names {
		name = filepath.Join(dir, name)
		document, err := readUpTo(name, subset.MaxDocument)
		if err != nil {
			return err
		}
		id, err := rootID(document)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if other, twice := files[id]; twice {
			return fmt.Errorf("%s: has the same $id as %s", name, other)
		}
		files[id] = name
		if !slices.ContainsFunc(refs, func(r sessionmanifest.PlacedRef) bool { return r.URI == id }) {
			continue
		}
		digest, err := wire.Digest(document)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, r := range refs {
			if r.URI == id && !strings.EqualFold(r.Digest, digest) {
				return fmt.Errorf("%s: has the digest %s, the manifest states %s at %s", name, digest, r.Digest, r.Pointer)
			}
		}
		if p.schemas[id], err = subset.Compile(document); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, r := range refs {
		if p.schemas[r.URI] == nil {
			return fmt.Errorf("%s: no document has the $id %s, which the manifest refers to at %s", dir, r.URI, r.Pointer)
		}
	}
	return nil
}

// rootID returns the $id of a schema document.
func rootID(document []byte) (string, error) {
	if err := strict.Check(document); err != nil {
		return "", err
	}
	members, err := strict.Members(document)
	if err != nil {
		return "", err
	}
	for _, m := range members {
		if m.Name == "$id" {
			var id string
			err := strict.String(&id)(m.Value)
			return id, err
		}
	}
	return "", errors.New("has no $id")
}

func readUpTo(path string, max int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	document, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(document)) > max {
		err = fmt.Errorf("%s: more than %d bytes", path, max)
	}
	return document, err
}

// offer is what the package brings to a negotiation.
func (p *Package) offer(maxFrame int64) wire.Offer {
	o := wire.Offer{MaxFrameBytes: maxFrame}
	o.Protocol.Min, _ = wire.ParseVersion(p.Manifest.Protocol.MinVersion)
	o.Protocol.Max, _ = wire.ParseVersion(p.Manifest.Protocol.MaxVersion)
	for _, f := range p.Manifest.Protocol.Features {
		o.Features = append(o.Features, wire.Feature(f))
	}
	if p.Manifest.Streams() {
		o.Needs = append(o.Needs, wire.FlowCredit)
	}
	if l := p.Manifest.Lifecycle; l != nil && l.RequiresHeartbeat {
		o.Needs = append(o.Needs, wire.Heartbeat)
	}
	return o
}

// identity says which package this is.
func (p *Package) identity() wire.Identity {
	return wire.Identity{PluginID: p.Manifest.Plugin.PluginID, PublisherID: p.Manifest.Publisher.PublisherID, PackageVersion: p.Manifest.PackageVersion}
}

// deprecations are told to the host as the manifest has them.
func (p *Package) deprecations() []wire.Deprecation {
	list := []wire.Deprecation{}
	for _, d := range p.Manifest.Deprecations {
		w := wire.Deprecation{Element: d.Element, DeprecatedSince: d.DeprecatedSince, SunsetAfter: d.SunsetAfter, BehaviorAfterSunset: d.BehaviorAfterSunset}
		if d.Replacement != nil {
			w.Replacement = *d.Replacement
		}
		list = append(list, w)
	}
	return list
}

// capabilities are told to the host in initAck.
func (p *Package) capabilities() []wire.Capability {
	list := []wire.Capability{}
	for _, c := range p.Manifest.Capabilities {
		w := wire.Capability{ID: c.ID, Version: c.Version, Operations: []wire.OperationVersion{}}
		for _, o := range c.Operations {
			w.Operations = append(w.Operations, wire.OperationVersion{Name: o.Name, OperationVersion: o.OperationVersion})
		}
		list = append(list, w)
	}
	return list
}
