package pkgmgr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// ErrCancelled is the cause of a call that another process asked to stop.
var ErrCancelled = errors.New("cancelled on request")

// NotFound says that a named thing does not exist here.
type NotFound struct {
	Kind string // "plugin", "version", "operation", "project", "revocation", "source", "action"
	Name string
	Near []string // names that exist and look alike
}

func (e *NotFound) Error() string { return fmt.Sprintf("%s \"%s\" not found", e.Kind, e.Name) }

// Ambiguous says that a reference matches several packages.
type Ambiguous struct {
	Ref        string
	Candidates []digest.Digest
}

func (e *Ambiguous) Error() string {
	return fmt.Sprintf("\"%s\" matches %d packages; name one by its digest", e.Ref, len(e.Candidates))
}

// Integrity says that bytes are not the ones that were expected.
type Integrity struct {
	What     string // "archive digest", "package digest", "fingerprint", "manifest digest"
	Expected digest.Digest
	Found    digest.Digest
	Where    string   // a path or source
	Causes   []string // likely ones, most likely first
	// Also are digests of the same thing that differ as well and were known without
	// reading more.
	Also []Difference
}

// A Difference is one more digest that is not the expected one.
type Difference struct {
	What            string // as in Integrity
	Expected, Found digest.Digest
}

func (e *Integrity) Error() string {
	msg := fmt.Sprintf("%s of %s differs: expected %s, found %s", e.What, e.Where, e.Expected, e.Found)
	for _, d := range e.Also {
		msg += fmt.Sprintf("; %s: expected %s, found %s", d.What, d.Expected, d.Found)
	}
	return msg
}

// Malformed says that a package breaks a rule of its kind: manifest, executable
// or layout. Archive-level faults are *archive.Refusal.
type Malformed struct {
	Where string // the package's source or directory
	File  string // the offending file inside it; "." for the package itself
	Err   error  // *ijson.Error, *manifest.Invalid, or a plain reason
}

func (e *Malformed) Error() string {
	if e.File == "." {
		return fmt.Sprintf("%s %v", e.Where, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Where, e.File, e.Err)
}

// Unwrap returns the reason.
func (e *Malformed) Unwrap() error { return e.Err }

// Claimed says that an id is already held by another directory.
type Claimed struct {
	ID   string
	Dirs []string // every directory that claims it
}

func (e *Claimed) Error() string {
	return fmt.Sprintf("plugin id \"%s\" is claimed by more than one directory: %s", e.ID, strings.Join(e.Dirs, ", "))
}

// NeedsDecision says that a person has to decide before this can go on.
type NeedsDecision struct {
	ID, Version string
	Package     digest.Digest
	Status      Status // StatusUntrusted, StatusChanged or StatusTrusted (not enabled)
	Detail      string
}

func (e *NeedsDecision) Error() string {
	state := string(e.Status)
	if e.Status == StatusTrusted {
		state = "trusted but not enabled"
	}
	msg := fmt.Sprintf("plugin %s is %s", label(e.ID, e.Version), state)
	if e.Detail != "" {
		msg += ": " + e.Detail
	}
	return msg
}

// label names a package whose version may not be known.
func label(id, version string) string {
	if version == "" {
		return id
	}
	return id + " " + version
}

// Downgrade says that an install would replace a default version by a lower one.
type Downgrade struct{ ID, Installed, Offered string }

func (e *Downgrade) Error() string {
	return fmt.Sprintf("%s %s is installed; %s is older", e.ID, e.Installed, e.Offered)
}

// Revoked says that a denial covers the package.
type Revoked struct {
	ID, Version string
	Package     digest.Digest
	Denial      Denial
}

func (e *Revoked) Error() string {
	return fmt.Sprintf("%s is revoked (%s): %s", label(e.ID, e.Version), e.Denial.Subject(), e.Denial.Reason)
}

// Denied says that a grant or a project's trust is missing.
type Denied struct {
	ID      string
	Scope   manifest.Scope // the scope that is not granted, or ""
	Project string         // the root that is not trusted, or ""
	ByLock  string         // the lockfile whose ceiling lacks the scope, or ""
	Detail  string
}

func (e *Denied) Error() string {
	switch {
	case e.Project != "":
		return fmt.Sprintf("project %s is not trusted", e.Project)
	case e.ByLock != "":
		return fmt.Sprintf("scope %s of %s is not among the grants in %s", e.Scope, e.ID, e.ByLock)
	case e.Scope != "":
		return fmt.Sprintf("scope %s is not granted to %s", e.Scope, e.ID)
	}
	return e.Detail
}

// NotRequested says that a scope was offered that the manifest does not request.
type NotRequested struct {
	ID        string
	Scope     string
	Requested []manifest.Scope
}

func (e *NotRequested) Error() string {
	return fmt.Sprintf("%s does not request scope \"%s\"", e.ID, e.Scope)
}

// Unoffered says that a package asks for a scope that this host has no meaning for,
// so that nobody can grant it.
type Unoffered struct {
	ID    string
	Scope manifest.Scope
}

func (e *Unoffered) Error() string {
	return fmt.Sprintf("%s asks for the scope %s, which this host does not offer", e.ID, e.Scope)
}

// ScopeRequired says that a scope was not offered without which the package does not
// run.
type ScopeRequired struct {
	ID       string
	Scope    manifest.Scope
	Required []manifest.Scope // all of them
	Chosen   []manifest.Scope // what was to be granted
}

func (e *ScopeRequired) Error() string {
	return fmt.Sprintf("%s cannot do without the scope %s", e.ID, e.Scope)
}

// WrongProtocol says that a package does not speak the protocol that a call needs.
type WrongProtocol struct{ ID, Protocol string }

func (e *WrongProtocol) Error() string {
	return fmt.Sprintf("%s speaks %s: it has methods, and no operations that are named CAPABILITY/OPERATION", e.ID, e.Protocol)
}

// Busy says that another process holds what is needed.
type Busy struct {
	What      string
	Operation string // the running operation's id, or ""
}

func (e *Busy) Error() string { return e.What + " is held by another process" }

// Outcome says that an operation with this key ran before and must not run again.
type Outcome struct {
	Operation, Key string
	State          string // the recorded state
	Reason         string
}

func (e *Outcome) Error() string {
	return fmt.Sprintf("operation %s with key \"%s\" is %s: %s", e.Operation, e.Key, e.State, e.Reason)
}

// BadInput says that an action's input is no strict JSON document.
type BadInput struct {
	Action string
	Err    error // *ijson.Error where a position is known
}

func (e *BadInput) Error() string { return fmt.Sprintf("input of %s: %v", e.Action, e.Err) }
func (e *BadInput) Unwrap() error { return e.Err }

// UnsafeDirectory says that the data directory's owner or mode breaks its rules.
type UnsafeDirectory struct{ Path, Reason string }

func (e *UnsafeDirectory) Error() string {
	return fmt.Sprintf("data directory: %s %s", e.Path, e.Reason)
}

// ReadOnly says that the data directory cannot be written.
type ReadOnly struct{ Path string }

func (e *ReadOnly) Error() string { return fmt.Sprintf("data directory %s is read-only", e.Path) }

// Is makes it the same refusal as the database's own.
func (e *ReadOnly) Is(target error) bool { return target == state.ErrReadOnly }

// A Denial is one local revocation, of which exactly one of Digest and PluginID is
// set, or what an entry of a signed list comes to.
type Denial struct {
	Digest   digest.Digest `json:"digest,omitempty"`   // archive, package, manifest or fingerprint
	PluginID string        `json:"pluginId,omitempty"` // with Range
	Range    string        `json:"range,omitempty"`    // SemVer range; "" means every version
	Reason   string        `json:"reason"`
	At       time.Time     `json:"at"`
	List     *Listed       `json:"-"` // the entry of a signed list that this comes from; nil for a local denial
}

// Subject spells what is denied the way `revoke` takes it.
func (d Denial) Subject() string {
	switch {
	case d.List != nil:
		return d.List.Subject()
	case d.Digest != "":
		return string(d.Digest)
	case d.Range != "":
		return d.PluginID + "@" + d.Range
	}
	return d.PluginID
}

// WrongPackage says that a source holds another package than the one asked for.
type WrongPackage struct{ Where, WantID, WantVersion, ID, Version string }

func (e *WrongPackage) Error() string {
	return fmt.Sprintf("%s holds %s %s, not %s", e.Where, e.ID, e.Version, strings.TrimSpace(e.WantID+" "+e.WantVersion))
}

// ForeignDirectory says that a directory below plugins/ was put there by hand and
// would be lost if it were replaced.
type ForeignDirectory struct{ Path, ID string }

func (e *ForeignDirectory) Error() string {
	return fmt.Sprintf("%s was not installed by switchyard and holds plugin \"%s\"", e.Path, e.ID)
}

// NotOffered says that the package does not declare a capability.
type NotOffered struct {
	ID         string
	Capability manifest.Capability
}

func (e *NotOffered) Error() string {
	return fmt.Sprintf("%s does not declare the capability %s", e.ID, e.Capability)
}

// PartialFingerprint says that a fingerprint was given for a package with more
// files than it covers; only the package digest covers them.
type PartialFingerprint struct {
	ID      string
	Files   int
	Package digest.Digest
}

func (e *PartialFingerprint) Error() string {
	return fmt.Sprintf("the fingerprint of %s covers 2 of its %d files; trust it by its package digest", e.ID, e.Files)
}

// Superseded says that an install replaced the package between the look at the
// records and the look at the files. The caller starts over.
type Superseded struct{ ID string }

func (e *Superseded) Error() string {
	return e.ID + " was replaced by another install at this moment; run the command again"
}

// SignersDiffer says that an archive was signed by somebody else than the lock entry
// that it would join.
type SignersDiffer struct{ ID, Where, Locked, Found string }

func (e *SignersDiffer) Error() string {
	return fmt.Sprintf("%s: %s is signed by %s, and the lock entry by %s; unpin %s first if that is meant", e.ID, e.Where, e.Found, e.Locked, e.ID)
}
