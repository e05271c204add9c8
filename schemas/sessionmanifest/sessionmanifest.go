// Package sessionmanifest holds the session protocol's manifest and its vocabulary:
// permission scopes, payload classes, protocol features, systems, and the rules that
// a manifest must keep. Source: the seed "Cross-Language Plugin Contracts and SDK
// Parity", section "Normative manifest draft", and docs/session-manifest.md.
//
// It validates values that are already decoded; it reads no bytes (package ijson does
// for the host, and the SDK for itself, strictly) except to leave out the one member
// that a manifest's digest does not cover. It imports the standard library only.
package sessionmanifest

import "strings"

// Fixed names and limits.
const (
	FileName      = "plugin.json"
	SchemaVersion = "urn:switchyard:plugin-manifest:1"
	SchemasDir    = "schemas" // holds the package's own schemas

	MaxBytes         = 256 << 10 // plugin.json
	MaxID            = 64        // bytes of pluginId
	MaxPublisherID   = 253       // bytes
	MaxVersion       = 64        // bytes of packageVersion and of other semantic versions
	MaxDisplayName   = 128       // characters
	MaxDescription   = 4096      // characters
	MaxJustification = 1024      // characters
	MaxCategories    = 32
	MaxPath          = 240 // bytes of a path in the package
	MaxArguments     = 32
	MaxArgumentBytes = 4096
	MaxTypeName      = 1024 // bytes of a .NET type or a Python name
	MaxHostPattern   = 255  // bytes
)

// Manifest is plugin.json of a session package. Members without omitempty are
// required; nil is an absent member, and none may be null.
type Manifest struct {
	SchemaVersion    string            `json:"manifestSchemaVersion"`
	Plugin           Plugin            `json:"plugin"`
	Publisher        Publisher         `json:"publisher"`
	PackageVersion   string            `json:"packageVersion"`
	Protocol         Protocol          `json:"protocol"`
	EntryPoints      EntryPoints       `json:"entryPoints"`
	Capabilities     []Capability      `json:"capabilities"`
	Permissions      []Permission      `json:"permissions"`
	Settings         *Settings         `json:"settings,omitempty"`
	Runtime          Runtime           `json:"runtime"`
	Network          *Network          `json:"network,omitempty"`
	DataDeclarations *DataDeclarations `json:"dataDeclarations,omitempty"`
	Lifecycle        *Lifecycle        `json:"lifecycle,omitempty"`
	Deprecations     []Deprecation     `json:"deprecations,omitempty"`
	Provenance       Provenance        `json:"provenance"`
}

// Plugin says who the plugin is. Decisions and logs use PluginID, never a name.
type Plugin struct {
	PluginID     string               `json:"pluginId"`
	DisplayName  string               `json:"displayName"`
	Description  string               `json:"description,omitempty"`
	Categories   []string             `json:"categories,omitempty"`
	Localization map[string]Localized `json:"localization,omitempty"` // by language tag
}

// Localized are names for people in one language.
type Localized struct {
	DisplayName *string `json:"displayName,omitempty"`
	Description string  `json:"description,omitempty"`
}

// Publisher says who made the plugin. It is a claim; evidence is another matter.
type Publisher struct {
	PublisherID string  `json:"publisherId"`
	DisplayName string  `json:"displayName"`
	Website     *string `json:"website,omitempty"` // a URI
}

// Protocol is the range of protocol versions and the features that the plugin knows.
type Protocol struct {
	MinVersion string   `json:"minVersion"` // MAJOR.MINOR
	MaxVersion string   `json:"maxVersion"`
	Features   []string `json:"features"`
}

// EntryPoints has at least one way to start the plugin.
type EntryPoints struct {
	Executable *Executable `json:"executable,omitempty"`
	Python     *Python     `json:"python,omitempty"`
	DotNet     *DotNet     `json:"dotnet,omitempty"`
}

// Executable is a program of the package.
type Executable struct {
	Path      string   `json:"path"` // inside the package, with "/"
	Arguments []string `json:"arguments"`
}

// Python is a callable of a module that lies in the package.
type Python struct {
	Module   string `json:"module"`        // dotted, below the package directory
	Callable string `json:"callable"`      // dotted, within the module
	Version  string `json:"pythonVersion"` // MAJOR.MINOR, the lowest that will do
}

// DotNet is a type of an assembly that lies in the package.
type DotNet struct {
	Assembly        string `json:"assembly"` // a path inside the package, with "/"
	Type            string `json:"type"`     // assembly-qualified
	TargetFramework string `json:"targetFramework"`
}

// Capability is a versioned group of operations.
type Capability struct {
	ID         string      `json:"id"`
	Version    string      `json:"version"` // SemVer
	Operations []Operation `json:"operations"`
}

// Operation is what a request names.
type Operation struct {
	Name             string    `json:"name"`
	OperationVersion string    `json:"operationVersion"` // MAJOR.MINOR
	RequestSchema    SchemaRef `json:"requestSchema"`    // of the payload, or of each item of a request stream
	ResponseSchema   SchemaRef `json:"responseSchema"`   // likewise
	Streaming        Streaming `json:"streaming"`
	Idempotent       bool      `json:"idempotent"`
	Receipts         *bool     `json:"receipts,omitempty"` // nil means true; see HasReceipts
}

// HasReceipts reports whether the operation keeps receipts, which is the default.
func (o Operation) HasReceipts() bool { return o.Receipts == nil || *o.Receipts }

// Streaming says in which directions an operation sends items.
type Streaming struct {
	Request  bool `json:"request"`
	Response bool `json:"response"`
}

// SchemaRef names a schema of the package by its root $id and the digest over the
// RFC 8785 form of its whole document.
type SchemaRef struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // "sha256:" and 64 hex digits, in either case
}

// Permission is one that the plugin asks for.
type Permission struct {
	ID            string `json:"id"`
	Required      bool   `json:"required"` // must be granted before the plugin is enabled
	Scope         Scope  `json:"scope"`
	Justification string `json:"justification,omitempty"`
}

// Settings is what the plugin lets people set.
type Settings struct {
	Schema  *SchemaRef `json:"schema,omitempty"`
	Version *string    `json:"version,omitempty"` // SemVer
}

// Runtime says where the plugin runs.
type Runtime struct {
	OS             []OS           `json:"os"`
	Architectures  []Architecture `json:"architectures"`
	MinHostVersion *string        `json:"minHostVersion,omitempty"` // MAJOR.MINOR
}

// Network declares where the plugin connects to. It is a declaration to be reviewed,
// not a filter.
type Network struct {
	Destinations []Destination `json:"destinations,omitempty"`
}

// Destination is one kind of connection.
type Destination struct {
	Scheme      string `json:"scheme"` // https or wss
	HostPattern string `json:"hostPattern"`
	Port        *int   `json:"port,omitempty"` // 1 to 65535; absent, the scheme's own
}

// DataDeclarations says which classes of data the plugin takes and makes.
type DataDeclarations struct {
	AcceptedClasses     []Class `json:"acceptedClasses,omitempty"`
	DefaultInboundClass *Class  `json:"defaultInboundClass,omitempty"`
	DefaultReceiptClass *Class  `json:"defaultReceiptClass,omitempty"`
}

// Lifecycle says what the plugin needs of its host while it runs.
type Lifecycle struct {
	SupportsHealthWatch bool    `json:"supportsHealthWatch,omitempty"`
	RequiresHeartbeat   bool    `json:"requiresHeartbeat,omitempty"`
	BackgroundBehavior  *string `json:"backgroundBehavior,omitempty"`
}

// Deprecation is a part of the plugin that goes away.
type Deprecation struct {
	Element             string  `json:"element"`               // KIND:NAME, see CheckElement
	DeprecatedSince     string  `json:"deprecatedSince"`       // RFC 3339, Z
	SunsetAfter         string  `json:"sunsetAfter"`           // RFC 3339, Z; from then on deprecated.sunset
	Replacement         *string `json:"replacement,omitempty"` // KIND:NAME; nil where nothing replaces it
	BehaviorAfterSunset string  `json:"behaviorAfterSunset"`
}

// Provenance has the manifest's own digest and the names of evidence, which inform
// and prove nothing.
type Provenance struct {
	ManifestDigest string   `json:"manifestDigest"`
	SignatureRefs  []string `json:"signatureRefs,omitempty"`
	SBOMRef        *string  `json:"sbomRef,omitempty"`
	ProvenanceRef  *string  `json:"provenanceRef,omitempty"`
}

// Or returns the value of a member, or what its absence means.
func Or[T any](member *T, absent T) T {
	if member == nil {
		return absent
	}
	return *member
}

// Operation returns the operation of a capability, and its capability.
func (m *Manifest) Operation(capabilityID, name string) (*Capability, *Operation, bool) {
	for i := range m.Capabilities {
		c := &m.Capabilities[i]
		if c.ID != capabilityID {
			continue
		}
		for j := range c.Operations {
			if c.Operations[j].Name == name {
				return c, &c.Operations[j], true
			}
		}
		return c, nil, false
	}
	return nil, nil, false
}

// Streams reports whether some operation sends items in some direction.
func (m *Manifest) Streams() bool {
	for _, c := range m.Capabilities {
		for _, o := range c.Operations {
			if o.Streaming.Request || o.Streaming.Response {
				return true
			}
		}
	}
	return false
}

// A PlacedRef is a SchemaRef with the JSON Pointer of where the manifest has it.
type PlacedRef struct {
	Pointer string
	SchemaRef
}

// SchemaRefs returns every reference to a schema in document order, that of the
// settings last.
func (m *Manifest) SchemaRefs() []PlacedRef {
	var refs []PlacedRef
	for i, c := range m.Capabilities {
		for j, o := range c.Operations {
			at := pointer("capabilities", i, "operations", j)
			refs = append(refs, PlacedRef{at + "/requestSchema", o.RequestSchema}, PlacedRef{at + "/responseSchema", o.ResponseSchema})
		}
	}
	if m.Settings != nil && m.Settings.Schema != nil {
		refs = append(refs, PlacedRef{"/settings/schema", *m.Settings.Schema})
	}
	return refs
}

// Files returns the paths of which one is the module's file, most likely first.
func (p Python) Files() []string {
	base := strings.ReplaceAll(p.Module, ".", "/")
	return []string{base + ".py", base + "/__init__.py"}
}
