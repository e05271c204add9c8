package sessionmanifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/format"
)

// The codes of problems. CodeMismatch is what the JSON Schema can state as well; the
// others are rules beyond it.
const (
	CodeMismatch    = "schema.mismatch"
	CodeID          = "manifest.id"            // not a legal name on every system
	CodeVersion     = "manifest.version"       // not SemVer, or a version with two spellings
	CodeRange       = "manifest.version_range" // minVersion above maxVersion
	CodeFeature     = "manifest.feature"       // a feature that no version in the range has
	CodeDuplicate   = "manifest.duplicate"     // two of one id, name or destination
	CodePath        = "manifest.path"          // not a file inside the package
	CodeEntry       = "manifest.entry_point"   // a name that cannot be started
	CodeHost        = "manifest.host_pattern"
	CodeClass       = "manifest.class"       // classes that contradict each other or the permissions
	CodeDeprecation = "manifest.deprecation" // of nothing that is declared, or in no order
	CodeText        = "manifest.text"        // a name that cannot be shown
)

// A Problem is one rule that a manifest breaks.
type Problem struct {
	Pointer string // RFC 6901, to the member at fault
	Code    string
	Message string
}

// Invalid lists every rule that a manifest breaks, in member order.
type Invalid struct{ Problems []Problem }

func (e *Invalid) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.Pointer + ": " + p.Message
	}
	return "manifest: " + strings.Join(parts, "; ")
}

// validation collects problems. Its methods take the pointer of what they judge.
type validation struct{ problems []Problem }

func (v *validation) add(at, code, format string, args ...any) {
	v.problems = append(v.problems, Problem{at, code, fmt.Sprintf(format, args...)})
}

func (v *validation) mismatch(at, format string, args ...any) {
	v.add(at, CodeMismatch, format, args...)
}

// pointer joins names and indexes, none of which needs escapes.
func pointer(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "/%v", p)
	}
	return b.String()
}

// escape makes a foreign name a token of a JSON Pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Validate returns nil or an *Invalid that lists every broken rule. Whether the
// digests are true is not asked here.
func (m *Manifest) Validate() error {
	v := &validation{}
	if m.SchemaVersion != SchemaVersion {
		v.mismatch("/manifestSchemaVersion", "must be %q", SchemaVersion)
	}
	v.plugin(m.Plugin)
	v.publisher(m.Publisher)
	v.semver("/packageVersion", m.PackageVersion)
	v.protocol(m.Protocol)
	v.entryPoints(m.EntryPoints)
	v.capabilities(m.Capabilities)
	v.permissions(m.Permissions)
	if s := m.Settings; s != nil {
		if s.Schema != nil {
			v.schemaRef("/settings/schema", *s.Schema)
		}
		if s.Version != nil {
			v.semver("/settings/version", *s.Version)
		}
	}
	v.runtime(m.Runtime)
	if m.Network != nil {
		v.destinations(m.Network.Destinations)
	}
	if m.DataDeclarations != nil {
		v.classes(*m.DataDeclarations, m.Permissions)
	}
	if l := m.Lifecycle; l != nil && l.BackgroundBehavior != nil {
		oneOf(v, "/lifecycle/backgroundBehavior", *l.BackgroundBehavior, BackgroundBehaviors)
	}
	v.deprecations(m)
	v.provenance(m.Provenance)
	if v.problems != nil {
		return &Invalid{v.problems}
	}
	return nil
}

func (v *validation) plugin(p Plugin) {
	const at = "/plugin"
	switch {
	case !isReverseDNS(p.PluginID):
		v.mismatch(at+"/pluginId", "must be a reverse-DNS name of lower-case letters, digits and hyphens, as com.example.plugin")
	case CheckID(p.PluginID) != nil:
		v.add(at+"/pluginId", CodeID, "%v", ErrID)
	}
	v.displayName(at+"/displayName", p.DisplayName)
	v.characters(at+"/description", p.Description, MaxDescription)
	if len(p.Categories) > MaxCategories {
		v.mismatch(at+"/categories", "must have at most %d elements, has %d", MaxCategories, len(p.Categories))
	}
	for i, c := range p.Categories {
		v.name(at+pointer("categories", i), c)
	}
	unique(v, at+"/categories", p.Categories)
	for _, tag := range sortedKeys(p.Localization) {
		here := at + "/localization/" + escape(tag)
		if !isLanguageTag(tag) {
			v.mismatch(here, "the name must be a language tag, as pt or pt-BR")
		}
		l := p.Localization[tag]
		if l.DisplayName != nil {
			v.displayName(here+"/displayName", *l.DisplayName)
		}
		v.characters(here+"/description", l.Description, MaxDescription)
	}
}

func (v *validation) publisher(p Publisher) {
	const at = "/publisher"
	switch {
	case !isReverseDNS(p.PublisherID):
		v.mismatch(at+"/publisherId", "must be a reverse-DNS name of lower-case letters, digits and hyphens, as org.example")
	case len(p.PublisherID) > MaxPublisherID:
		v.add(at+"/publisherId", CodeID, "must have at most %d bytes, has %d", MaxPublisherID, len(p.PublisherID))
	}
	v.displayName(at+"/displayName", p.DisplayName)
	if p.Website != nil {
		v.uri(at+"/website", *p.Website)
	}
}

func (v *validation) protocol(p Protocol) {
	const at = "/protocol"
	minOK, maxOK := v.minor(at+"/minVersion", p.MinVersion), v.minor(at+"/maxVersion", p.MaxVersion)
	if minOK && maxOK && CompareMinor(p.MinVersion, p.MaxVersion) > 0 {
		v.add(at+"/minVersion", CodeRange, "%s is above maxVersion %s", p.MinVersion, p.MaxVersion)
	}
	if p.Features == nil {
		v.mismatch(at+"/features", "is required (an empty array when there are none)")
	}
	for i, f := range p.Features {
		if !v.name(at+pointer("features", i), f) {
			continue
		}
		if minor, known := FeatureMinor(f); known && maxOK {
			if lowest := "1." + strconv.Itoa(minor); CompareMinor(p.MaxVersion, lowest) < 0 {
				v.add(at+pointer("features", i), CodeFeature, "%s needs protocol %s, and maxVersion is %s", f, lowest, p.MaxVersion)
			}
		}
	}
	unique(v, at+"/features", p.Features)
}

func (v *validation) capabilities(list []Capability) {
	if len(list) == 0 {
		v.mismatch("/capabilities", "must have at least one element")
	}
	ids := make([]string, len(list))
	for i, c := range list {
		at := pointer("capabilities", i)
		ids[i] = c.ID
		v.name(at+"/id", c.ID)
		v.semver(at+"/version", c.Version)
		if len(c.Operations) == 0 {
			v.mismatch(at+"/operations", "must have at least one element")
		}
		names := make([]string, len(c.Operations))
		for j, o := range c.Operations {
			at := at + pointer("operations", j)
			names[j] = o.Name
			v.name(at+"/name", o.Name)
			v.minor(at+"/operationVersion", o.OperationVersion)
			v.schemaRef(at+"/requestSchema", o.RequestSchema)
			v.schemaRef(at+"/responseSchema", o.ResponseSchema)
		}
		v.uniqueMember(at+"/operations", "name", names)
	}
	v.uniqueMember("/capabilities", "id", ids)
}

func (v *validation) permissions(list []Permission) {
	if list == nil {
		v.mismatch("/permissions", "is required (an empty array when there are none)")
	}
	ids := make([]string, len(list))
	for i, p := range list {
		at := pointer("permissions", i)
		ids[i] = p.ID
		v.name(at+"/id", p.ID)
		if !slices.Contains(Scopes, p.Scope) {
			v.mismatch(at+"/scope", "is not a scope of permissions")
		}
		v.characters(at+"/justification", p.Justification, MaxJustification)
	}
	v.uniqueMember("/permissions", "id", ids)
}

func (v *validation) runtime(r Runtime) {
	const at = "/runtime"
	if r.OS == nil {
		v.mismatch(at+"/os", "is required")
	}
	for i, o := range r.OS {
		oneOf(v, at+pointer("os", i), o, Systems)
	}
	unique(v, at+"/os", r.OS)
	if r.Architectures == nil {
		v.mismatch(at+"/architectures", "is required")
	}
	for i, a := range r.Architectures {
		oneOf(v, at+pointer("architectures", i), a, Architectures)
	}
	unique(v, at+"/architectures", r.Architectures)
	if r.MinHostVersion != nil {
		v.minor(at+"/minHostVersion", *r.MinHostVersion)
	}
}

func (v *validation) destinations(list []Destination) {
	for i, d := range list {
		at := "/network" + pointer("destinations", i)
		oneOf(v, at+"/scheme", d.Scheme, Schemes)
		if d.HostPattern == "" {
			v.mismatch(at+"/hostPattern", "must not be empty")
		} else if err := CheckHostPattern(d.HostPattern); err != nil {
			v.add(at+"/hostPattern", CodeHost, "%v", err)
		}
		if d.Port != nil && (*d.Port < 1 || *d.Port > 65535) {
			v.mismatch(at+"/port", "must be from 1 to 65535")
		}
		if slices.ContainsFunc(list[:i], d.equal) {
			v.add(at, CodeDuplicate, twice)
		}
	}
}

func (d Destination) equal(o Destination) bool {
	return d.Scheme == o.Scheme && d.HostPattern == o.HostPattern && (d.Port == nil) == (o.Port == nil) && (d.Port == nil || *d.Port == *o.Port)
}

func (v *validation) classes(d DataDeclarations, permissions []Permission) {
	const at = "/dataDeclarations"
	private := false
	for i, c := range d.AcceptedClasses {
		if oneOf(v, at+pointer("acceptedClasses", i), c, Classes) && c.Private() {
			private = true
		}
	}
	unique(v, at+"/acceptedClasses", d.AcceptedClasses)
	if private && !slices.ContainsFunc(permissions, func(p Permission) bool { return p.Scope == ScopePrivateData }) {
		v.add(at+"/acceptedClasses", CodeClass, "classes above internal need a permission with the scope %s", ScopePrivateData)
	}
	if c := d.DefaultInboundClass; c != nil && oneOf(v, at+"/defaultInboundClass", *c, Classes) && !d.Accepts(*c) {
		v.add(at+"/defaultInboundClass", CodeClass, "must be one of acceptedClasses")
	}
	if c := d.DefaultReceiptClass; c != nil {
		oneOf(v, at+"/defaultReceiptClass", *c, ReceiptClasses)
	}
}

// Accepts reports whether the plugin takes payloads of the class. Without
// acceptedClasses it takes those that are not private.
func (d *DataDeclarations) Accepts(c Class) bool {
	if d == nil || d.AcceptedClasses == nil {
		return !c.Private()
	}
	return slices.Contains(d.AcceptedClasses, c)
}

func (v *validation) provenance(p Provenance) {
	const at = "/provenance"
	v.digest(at+"/manifestDigest", p.ManifestDigest)
	for i, ref := range p.SignatureRefs {
		v.uri(at+pointer("signatureRefs", i), ref)
	}
	if p.SBOMRef != nil {
		v.uri(at+"/sbomRef", *p.SBOMRef)
	}
	if p.ProvenanceRef != nil {
		v.uri(at+"/provenanceRef", *p.ProvenanceRef)
	}
}

func (v *validation) schemaRef(at string, r SchemaRef) {
	v.uri(at+"/uri", r.URI)
	v.digest(at+"/digest", r.Digest)
}

func (v *validation) uri(at, s string) {
	if !format.URI(s) {
		v.mismatch(at, "must be a URI with a scheme")
	}
}

func (v *validation) digest(at, s string) {
	if !isDigest(s) {
		v.mismatch(at, `must be "sha256:" and 64 hexadecimal digits`)
	}
}

const twice = "occurs twice"

// unique finds the second of two equal elements.
func unique[T comparable](v *validation, at string, list []T) {
	for i, e := range list {
		if slices.Contains(list[:i], e) {
			v.mismatch(at+pointer(i), twice)
		}
	}
}

// oneOf holds s to a closed list of words.
func oneOf[T ~string](v *validation, at string, s T, words []T) bool {
	if slices.Contains(words, s) {
		return true
	}
	var list strings.Builder
	for i, w := range words {
		if i > 0 {
			list.WriteString(", ")
		}
		list.WriteString(string(w))
	}
	v.mismatch(at, "must be one of %s", list.String())
	return false
}

// uniqueMember finds the second of two elements that have an equal member.
func (v *validation) uniqueMember(at, member string, values []string) {
	seen := make(map[string]bool, len(values))
	for i, s := range values {
		if seen[s] {
			v.add(at+pointer(i, member), CodeDuplicate, twice)
		}
		seen[s] = true
	}
}
