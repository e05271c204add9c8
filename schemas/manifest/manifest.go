// Package manifest holds the call protocol's manifest and the vocabulary that
// the host and the SDK share: capabilities, scopes, limits and their rules.
//
// It validates values that are already decoded; it reads no bytes (package
// ijson does, strictly) and imports the standard library only, so that plugin
// authors who use sdk/plugin link nothing else. Source: the seed "Out-of-process
// plugins" and docs/protocol-call.md.
package manifest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fixed names and limits of switchyard.plugin/v1.
const (
	FileName      = "plugin.json"
	SchemaVersion = "switchyard.plugin-manifest/v1"
	Protocol      = "switchyard.plugin/v1"

	MaxBytes           = 64 << 10  // plugin.json
	MaxExecutableBytes = 128 << 20 // the executable file
	MaxExecutablePath  = 240       // bytes, as for every path in a package
	MaxID              = 64        // bytes
	MaxName            = 120       // bytes: the existing daemon counts them so
	MaxVersion         = 64        // bytes
	MaxArguments       = 32
	MaxArgumentBytes   = 4096
	MaxCapabilities    = 16
	MaxScopes          = 16
)

// A Capability is something the plugin can do when asked.
type Capability string

// A Scope is something the host may hand over or do on the plugin's behalf.
type Scope string

const (
	CapabilityInspect Capability = "project.inspect"
	CapabilityOperate Capability = "project.operate"

	ScopeMetadataRead Scope = "project.metadata.read"
	ScopeFilesRead    Scope = "project.files.read"
	ScopeOperate      Scope = "project.operate"
)

// Capabilities and Scopes list every known value, in documentation order.
var (
	Capabilities = []Capability{CapabilityInspect, CapabilityOperate}
	Scopes       = []Scope{ScopeMetadataRead, ScopeFilesRead, ScopeOperate}
)

// Requires returns the scope that must be requested by a package that declares
// c, and granted before c can be called.
func (c Capability) Requires() Scope {
	switch c {
	case CapabilityInspect:
		return ScopeMetadataRead
	case CapabilityOperate:
		return ScopeOperate
	}
	return ""
}

// Meaning says in plain words what granting s allows.
func (s Scope) Meaning() string {
	switch s {
	case ScopeMetadataRead:
		return "learn the project's id and display name, and answer inspect calls"
	case ScopeFilesRead:
		return "receive the project's root path, in order to read its files"
	case ScopeOperate:
		return "perform actions on the project when you ask for them"
	}
	return "unknown scope"
}

// Manifest is plugin.json of a call-protocol package. Every member is required.
type Manifest struct {
	SchemaVersion   string       `json:"schemaVersion"`
	ID              string       `json:"id"`
	Name            string       `json:"name"`
	Version         string       `json:"version"`
	ProtocolVersion string       `json:"protocolVersion"`
	Executable      string       `json:"executable"`
	Arguments       []string     `json:"arguments"`
	Capabilities    []Capability `json:"capabilities"`
	RequestedScopes []Scope      `json:"requestedScopes"`
}

// Identity is the manifest without executable and arguments, as the running
// plugin states it in its initialize result.
type Identity struct {
	SchemaVersion   string       `json:"schemaVersion"`
	ID              string       `json:"id"`
	Name            string       `json:"name"`
	Version         string       `json:"version"`
	ProtocolVersion string       `json:"protocolVersion"`
	Capabilities    []Capability `json:"capabilities"`
	RequestedScopes []Scope      `json:"requestedScopes"`
}

// Identity returns what the running plugin must state about itself.
func (m Manifest) Identity() Identity {
	return Identity{
		SchemaVersion:   m.SchemaVersion,
		ID:              m.ID,
		Name:            m.Name,
		Version:         m.Version,
		ProtocolVersion: m.ProtocolVersion,
		Capabilities:    m.Capabilities,
		RequestedScopes: m.RequestedScopes,
	}
}

// Has reports whether the manifest declares c.
func (m Manifest) Has(c Capability) bool { return slices.Contains(m.Capabilities, c) }

// Requests reports whether the manifest requests s.
func (m Manifest) Requests(s Scope) bool { return slices.Contains(m.RequestedScopes, s) }

// A Problem is one rule that a manifest breaks.
type Problem struct {
	Path    string // the member, as "arguments[3]"
	Message string
}

// Invalid lists every rule that a manifest breaks, in member order.
type Invalid struct{ Problems []Problem }

func (e *Invalid) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.Path + ": " + p.Message
	}
	return "manifest: " + strings.Join(parts, "; ")
}

// ErrID is returned by CheckID.
var ErrID = errors.New(`must match ^[a-z][a-z0-9.-]{0,63}$ and be a legal directory name on every system`)

// CheckID applies the id rule: the daemon's pattern and, here, also a legal
// directory name on every operating system.
func CheckID(id string) error {
	if !matchesID(id) || strings.HasSuffix(id, ".") || reservedOnWindows(id) {
		return ErrID
	}
	return nil
}

// matchesID matches ^[a-z][a-z0-9.-]{0,63}$ without the cost that compiling a
// pattern has at every start.
func matchesID(id string) bool {
	if id == "" || len(id) > MaxID || id[0] < 'a' || id[0] > 'z' {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// reservedOnWindows reports whether the part of an id before its first dot is a
// device's name, which Windows opens instead of a file or directory.
func reservedOnWindows(id string) bool {
	stem, _, _ := strings.Cut(id, ".")
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	if len(stem) == 4 && (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")) {
		return stem[3] >= '0' && stem[3] <= '9'
	}
	return false
}

// Validate returns nil or an *Invalid that lists every broken rule.
func (m Manifest) Validate() error {
	var v validation
	v.equal("schemaVersion", m.SchemaVersion, SchemaVersion)
	if err := CheckID(m.ID); err != nil {
		v.add("id", "%v", err)
	}
	if v.text("name", m.Name, MaxName) && !strings.ContainsFunc(m.Name, standsAlone) {
		v.add("name", "must have a visible character")
	}
	if v.text("version", m.Version, MaxVersion) {
		v.version(m.Version)
	}
	v.equal("protocolVersion", m.ProtocolVersion, Protocol)
	v.executable(m.Executable)
	v.arguments(m.Arguments)
	v.capabilities(m)
	v.scopes(m)
	if len(v.problems) == 0 {
		return nil
	}
	return &Invalid{Problems: v.problems}
}

type validation struct{ problems []Problem }

func (v *validation) add(member, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: member, Message: fmt.Sprintf(format, args...)})
}

func (v *validation) equal(member, got, want string) {
	if got != want {
		v.add(member, "must be %q", want)
	}
}

// text applies the rules of every line of text, and reports whether they are kept.
func (v *validation) text(member, s string, maxBytes int) bool {
	before := len(v.problems)
	switch n := len(s); {
	case !utf8.ValidString(s):
		v.add(member, "is not valid UTF-8")
	case n == 0 || n > maxBytes:
		v.add(member, "must have 1 to %d bytes, has %d", maxBytes, n)
	case strings.TrimSpace(s) == "":
		v.add(member, "must not be blank")
	case strings.ContainsFunc(s, unicode.IsControl):
		v.add(member, "must not contain control characters")
	}
	return len(v.problems) == before
}

// notInVersion is what a version does not hold beside spaces and what is invisible:
// what separates in NAME@VERSION or in a path, and what a shell would not leave alone.
const notInVersion = "@/\\\"'`$&;|<>()[]{}*?"

// version refuses what cannot be typed as NAME@VERSION, or reads as another version.
// It need not be SemVer.
func (v *validation) version(s string) {
	const member = "version"
	if s[0] == '-' {
		v.add(member, "must not begin with \"-\"")
		return
	}
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			v.add(member, "must not contain a space")
		case !standsAlone(r):
			v.add(member, "must not contain the invisible or combining character %U", r)
		case strings.ContainsRune(notInVersion, r):
			v.add(member, "must not contain %q", string(r))
		default:
			continue
		}
		return
	}
}

func (v *validation) executable(p string) {
	const member = "executable"
	switch {
	case p == "":
		v.add(member, "must not be empty")
	case len(p) > MaxExecutablePath:
		v.add(member, "must have at most %d bytes, has %d", MaxExecutablePath, len(p))
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		v.add(member, "must be UTF-8 without control characters")
	case strings.ContainsAny(p, `\:`):
		v.add(member, `must use "/" and no drive or stream name`)
	case path.IsAbs(p):
		v.add(member, "must be relative to the package")
	default:
		clean := path.Clean(p)
		switch {
		case clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.HasSuffix(p, "/"):
			v.add(member, "must name a file inside the package")
		case clean == FileName:
			v.add(member, "must not be the manifest itself")
		}
	}
}

func (v *validation) arguments(args []string) {
	if args == nil {
		v.add("arguments", "is required (an empty array when there are none)")
	}
	if len(args) > MaxArguments {
		v.add("arguments", "must have at most %d elements, has %d", MaxArguments, len(args))
		return
	}
	for i, a := range args {
		member := fmt.Sprintf("arguments[%d]", i)
		switch {
		case len(a) > MaxArgumentBytes:
			v.add(member, "must have at most %d bytes, has %d", MaxArgumentBytes, len(a))
		case !utf8.ValidString(a):
			v.add(member, "is not valid UTF-8")
		case strings.ContainsRune(a, 0):
			v.add(member, "must not contain NUL")
		}
	}
}

func (v *validation) capabilities(m Manifest) {
	if n := len(m.Capabilities); n == 0 || n > MaxCapabilities {
		v.add("capabilities", "must have 1 to %d elements, has %d", MaxCapabilities, n)
	}
	for i, c := range m.Capabilities {
		member := fmt.Sprintf("capabilities[%d]", i)
		switch {
		case !slices.Contains(Capabilities, c):
			v.add(member, "%.64q is not a capability of %s", string(c), Protocol)
		case slices.Contains(m.Capabilities[:i], c):
			v.add(member, "%q occurs twice", string(c))
		case !m.Requests(c.Requires()):
			v.add(member, "%q needs %q among requestedScopes", string(c), string(c.Requires()))
		}
	}
}

func (v *validation) scopes(m Manifest) {
	if m.RequestedScopes == nil {
		v.add("requestedScopes", "is required (an empty array when there are none)")
	}
	if n := len(m.RequestedScopes); n > MaxScopes {
		v.add("requestedScopes", "must have at most %d elements, has %d", MaxScopes, n)
	}
	for i, s := range m.RequestedScopes {
		member := fmt.Sprintf("requestedScopes[%d]", i)
		switch {
		case !slices.Contains(Scopes, s):
			v.add(member, "%.64q is not a scope of %s", string(s), Protocol)
		case slices.Contains(m.RequestedScopes[:i], s):
			v.add(member, "%q occurs twice", string(s))
		}
	}
}
