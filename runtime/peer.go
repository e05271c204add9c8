package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// schemas are the compiled schemas of one package, by $id.
type schemas map[string]*subset.Schema

// readSchemas compiles the schemas that the manifest refers to, each once, and holds them
// to their digests.
func readSchemas(a *pkgmgr.Approval) (schemas, error) {
	wanted := map[string]digest.Digest{}
	for _, ref := range a.Manifest.Session.SchemaRefs() {
		d, err := digest.Parse(ref.Digest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref.Pointer, err)
		}
		wanted[ref.URI] = d
	}
	root, err := os.OpenRoot(a.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := os.ReadDir(filepath.Join(a.Dir, sessionmanifest.SchemasDir))
	if err != nil {
		return nil, err
	}
	out := schemas{}
	for _, e := range entries {
		name := sessionmanifest.SchemasDir + "/" + e.Name()
		if filepath.Ext(name) != ".json" {
			continue
		}
		document, err := root.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := digest.Schema(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !slices.Contains(slices.Collect(maps.Values(wanted)), found) {
			continue // a schema that only others refer to, or nobody
		}
		s, err := subset.Compile(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if wanted[s.ID()] == found {
			out[s.ID()] = s
		}
	}
	for id, want := range wanted {
		if out[id] == nil {
			return nil, &pkgmgr.Integrity{What: "schema " + id, Expected: want, Where: a.Dir}
		}
	}
	return out, nil
}

// validator makes the session's check of one schema.
func validator(s *subset.Schema) session.Validator {
	return func(value json.RawMessage) *wire.Fault {
		problems := s.Validate(value)
		if len(problems) == 0 {
			return nil
		}
		first := problems[0]
		code := wire.CodeSchemaMismatch
		if first.Code == subset.CodeUnknownMember {
			code = wire.CodeSchemaUnknownMember
		}
		f := &wire.Fault{Code: code, Path: first.Pointer, Message: first.Message}
		if n := len(problems) - 1; n > 0 {
			f.Message += fmt.Sprintf(" (and %d more)", n)
		}
		return f
	}
}

// peerOf returns what an approved package must state.
func peerOf(a *pkgmgr.Approval, s schemas) session.Peer {
	m := a.Manifest.Session
	p := session.Peer{
		Identity:       wire.Identity{PluginID: m.Plugin.PluginID, PublisherID: m.Publisher.PublisherID, PackageVersion: m.PackageVersion},
		ManifestDigest: strings.ToLower(m.Provenance.ManifestDigest),
	}
	p.Protocol.Min, _ = wire.ParseVersion(m.Protocol.MinVersion) // validated with the manifest
	p.Protocol.Max, _ = wire.ParseVersion(m.Protocol.MaxVersion)
	for _, f := range m.Protocol.Features {
		p.Features = append(p.Features, wire.Feature(f))
	}
	if m.Streams() {
		p.Needs = append(p.Needs, wire.FlowCredit)
	}
	if m.Lifecycle != nil && m.Lifecycle.RequiresHeartbeat {
		p.Needs = append(p.Needs, wire.Heartbeat)
	}
	for _, c := range m.Capabilities {
		capability := wire.Capability{ID: c.ID, Version: c.Version}
		for _, o := range c.Operations {
			capability.Operations = append(capability.Operations, wire.OperationVersion{Name: o.Name, OperationVersion: o.OperationVersion})
			p.Operations = append(p.Operations, session.Operation{
				CapabilityID: c.ID, Name: o.Name, Version: o.OperationVersion, StreamRequest: o.Streaming.Request, StreamResponse: o.Streaming.Response,
				Idempotent: o.Idempotent, Receipts: o.HasReceipts(),
				Request: validator(s[o.RequestSchema.URI]), Response: validator(s[o.ResponseSchema.URI]),
			})
		}
		p.Capabilities = append(p.Capabilities, capability)
	}
	return p
}

// grantsOf returns the granted permissions: those whose scope was granted. Their ids stay
// the same for as long as the package does.
func grantsOf(a *pkgmgr.Approval) []wire.Grant {
	grants := []wire.Grant{}
	for _, p := range a.Manifest.Session.Permissions {
		if slices.Contains(a.Grants, manifest.Scope(p.Scope)) {
			sum := sha256.Sum256([]byte(string(a.Package) + "\x00" + p.ID + "\x00" + string(p.Scope)))
			grants = append(grants, wire.Grant{PermissionsGrantID: "grant-" + hex.EncodeToString(sum[:16]), PermissionID: p.ID, Scope: string(p.Scope)})
		}
	}
	return grants
}

// classesOf returns the classes of data that may be given to the package: those that it
// declares, and of the private ones none without their grant.
func classesOf(a *pkgmgr.Approval) []wire.PayloadClass {
	declared := []sessionmanifest.Class{sessionmanifest.ClassPublic, sessionmanifest.ClassInternal}
	if d := a.Manifest.Session.DataDeclarations; d != nil && d.AcceptedClasses != nil {
		declared = d.AcceptedClasses
	}
	private := slices.Contains(a.Grants, manifest.Scope(sessionmanifest.ScopePrivateData))
	classes := []wire.PayloadClass{}
	for _, c := range declared {
		if !c.Private() || private {
			classes = append(classes, wire.PayloadClass(c))
		}
	}
	return classes
}
