package pkgmgr

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// A Manifest is plugin.json of a package of either protocol. What both have in common
// is told in the call protocol's words: of a session package, Executable is the entry
// file, Capabilities are the ids of its capabilities, and RequestedScopes the scopes
// of its permissions that this host offers, each once.
type Manifest struct {
	manifest.Manifest
	Session *sessionmanifest.Manifest // the whole of a session package's; nil for the call protocol
}

// SessionProtocol is the ProtocolVersion of every session package.
const SessionProtocol = "session/1"

// An EntryKind is how a package's entry file is started.
type EntryKind string

// The kinds of entry files.
const (
	EntryExecutable EntryKind = "executable"
	EntryPython     EntryKind = "python"
	EntryDotNet     EntryKind = "dotnet"
)

// EntryKind says how the entry file is started. Of a manifest with several entry
// points it is the first of executable, python and dotnet, on every machine: the
// fingerprint covers its file.
func (m *Manifest) EntryKind() EntryKind {
	switch {
	case m.Session == nil || m.Session.EntryPoints.Executable != nil:
		return EntryExecutable
	case m.Session.EntryPoints.Python != nil:
		return EntryPython
	}
	return EntryDotNet
}

// Meaning says in plain words what granting a scope allows.
func (m *Manifest) Meaning(s manifest.Scope) string {
	if m.Session != nil {
		return sessionmanifest.Scope(s).Meaning()
	}
	return s.Meaning()
}

// Required are the scopes without which the package cannot be enabled, each once.
func (m *Manifest) Required() []manifest.Scope {
	return m.scopes(func(p sessionmanifest.Permission) bool { return p.Required })
}

// Unoffered are the scopes that a session package asks for and this host has no
// meaning for: they cannot be granted.
func (m *Manifest) Unoffered() []manifest.Scope {
	return m.scopes(func(p sessionmanifest.Permission) bool { return !p.Scope.Offered() })
}

func (m *Manifest) scopes(which func(sessionmanifest.Permission) bool) []manifest.Scope {
	list := []manifest.Scope{}
	if m.Session == nil {
		return list
	}
	for _, p := range m.Session.Permissions {
		if s := manifest.Scope(p.Scope); which(p) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// ParseManifest reads plugin.json strictly: I-JSON, exactly the members of its schema,
// every rule of its protocol. The error is *ijson.Error, *manifest.Invalid or
// *sessionmanifest.Invalid. The call protocol allows an executable that is inside the
// package once it is cleaned; what is returned, and so reviewed, recorded and started,
// is the cleaned path.
func ParseManifest(raw []byte) (Manifest, error) {
	if ijson.HasMember(raw, "manifestSchemaVersion") {
		return parseSession(raw)
	}
	var m Manifest
	if len(raw) > manifest.MaxBytes {
		return m, fmt.Errorf("has %d bytes, at most %d", len(raw), manifest.MaxBytes)
	}
	if err := ijson.Unmarshal(raw, &m.Manifest); err != nil {
		return m, err
	}
	if err := m.Validate(); err != nil {
		return m, err
	}
	m.Executable = path.Clean(m.Executable)
	return m, nil
}

func parseSession(raw []byte) (Manifest, error) {
	var s sessionmanifest.Manifest
	if err := ijson.Unmarshal(raw, &s); err != nil {
		return Manifest{}, err
	}
	if err := s.Validate(); err != nil {
		return Manifest{}, err
	}
	m := Manifest{Session: &s, Manifest: manifest.Manifest{
		SchemaVersion: s.SchemaVersion, ProtocolVersion: SessionProtocol,
		ID: s.Plugin.PluginID, Name: s.Plugin.DisplayName, Version: s.PackageVersion,
		Arguments: []string{}, RequestedScopes: []manifest.Scope{},
	}}
	for _, c := range s.Capabilities {
		m.Capabilities = append(m.Capabilities, manifest.Capability(c.ID))
	}
	m.RequestedScopes = m.scopes(func(p sessionmanifest.Permission) bool { return p.Scope.Offered() })
	switch entry := s.EntryPoints; m.EntryKind() {
	case EntryExecutable:
		m.Executable, m.Arguments = path.Clean(entry.Executable.Path), entry.Executable.Arguments
	case EntryPython:
		m.Executable = entry.Python.Files()[0] // see place
	case EntryDotNet:
		m.Executable = path.Clean(entry.DotNet.Assembly)
	}
	return m, nil
}

// StatedDigest says that a session manifest states another digest than there is.
type StatedDigest struct {
	Where         string // the member, and the schema's file
	Stated, Found digest.Digest
}

func (e *StatedDigest) Error() string {
	return fmt.Sprintf("%s is %s, and the digest is %s", e.Where, e.Stated, e.Found)
}

// publisher is who a session manifest says made the package, "" for the call protocol.
func (m *Manifest) publisher() string {
	if m.Session == nil {
		return ""
	}
	return m.Session.Publisher.PublisherID
}

// publisherIn is publisher of a manifest that was recorded.
func publisherIn(raw []byte) string {
	if !ijson.HasMember(raw, "manifestSchemaVersion") {
		return ""
	}
	m, err := ParseManifest(raw)
	if err != nil {
		return ""
	}
	return m.publisher()
}

// digestOf returns the manifest digest, which a session manifest states as well.
func (m *Manifest) digestOf(raw []byte) (digest.Digest, error) {
	if m.Session == nil {
		return digest.Manifest(raw)
	}
	d, err := digest.SessionManifest(raw)
	if err != nil {
		return "", err
	}
	stated, err := digest.Parse(m.Session.Provenance.ManifestDigest)
	if err == nil && stated != d {
		err = &StatedDigest{Where: "provenance.manifestDigest", Stated: stated, Found: d}
	}
	return d, err
}

// readManifest reads and validates plugin.json at the root of a package.
func readManifest(root *os.Root, where string) (Manifest, []byte, error) {
	var m Manifest
	bad := func(err error) error { return &Malformed{Where: where, File: manifest.FileName, Err: err} }
	info, err := root.Lstat(manifest.FileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil, bad(errors.New("is missing from the package's root"))
	case err != nil:
		return m, nil, bad(err)
	case !info.Mode().IsRegular():
		return m, nil, bad(errors.New("is not a regular file"))
	case info.Size() > sessionmanifest.MaxBytes:
		return m, nil, bad(fmt.Errorf("has %d bytes, at most %d", info.Size(), sessionmanifest.MaxBytes))
	}
	f, err := root.Open(manifest.FileName)
	if err != nil {
		return m, nil, bad(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, sessionmanifest.MaxBytes+1))
	if err != nil {
		return m, nil, bad(err)
	}
	if len(raw) > sessionmanifest.MaxBytes {
		return m, nil, bad(fmt.Errorf("has more than %d bytes", sessionmanifest.MaxBytes))
	}
	m, err = ParseManifest(raw)
	if err != nil {
		return m, nil, bad(err)
	}
	m.place(root)
	return m, raw, nil
}

// place finds the entry file where the manifest names a module rather than a file.
// Where none of its files is there, the entry stays the most likely one.
func (m *Manifest) place(root *os.Root) {
	if m.EntryKind() != EntryPython {
		return
	}
	for _, file := range m.Session.EntryPoints.Python.Files() {
		if _, err := root.Lstat(file); err == nil {
			m.Executable = file
			return
		}
	}
}

// program is the entry file where the system starts it, "" where an interpreter does.
func (m *Manifest) program() string {
	if m.EntryKind() != EntryExecutable {
		return ""
	}
	return m.Executable
}

// entryWord is what messages call the entry file.
func (m *Manifest) entryWord() string {
	switch m.EntryKind() {
	case EntryPython:
		return "module's file"
	case EntryDotNet:
		return "assembly"
	}
	return "executable"
}

// head says for which platform the entry file is: what an interpreter starts is for
// any.
func (m *Manifest) head(root *os.Root) (executableHead, error) {
	if m.program() == "" {
		return executableHead{Platform: lockfile.Any}, nil
	}
	return readHead(root, m.Executable)
}
