package pkgmgr

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A Ref is how people name an installed package: ID, ID@VERSION or ID@DIGEST.
type Ref struct {
	ID      string
	Version string        // "" for the default (or the locked) version
	Digest  digest.Digest // package digest; "" when the reference has none
}

// ParseRef reads a reference. The error says what is wrong with it.
func ParseRef(s string) (Ref, error) {
	id, at, has := strings.Cut(s, "@")
	if err := manifest.CheckID(id); err != nil {
		return Ref{}, fmt.Errorf("plugin name \"%s\": %w", id, err)
	}
	ref := Ref{ID: id}
	switch {
	case !has:
	case at == "":
		return Ref{}, fmt.Errorf("plugin name \"%s\": the version after \"@\" is missing", s)
	case strings.HasPrefix(at, digest.Prefix):
		d, err := digest.Parse(at)
		if err != nil {
			return Ref{}, fmt.Errorf("plugin name \"%s\": %w", s, err)
		}
		ref.Digest = d
	default:
		ref.Version = at
	}
	return ref, nil
}

func (r Ref) String() string {
	switch {
	case r.Digest != "":
		return r.ID + "@" + string(r.Digest)
	case r.Version != "":
		return r.ID + "@" + r.Version
	}
	return r.ID
}

// A Lock is the lockfile under which a command works. A nil *Lock means that the
// working directory belongs to no project with a lock.
type Lock struct {
	Path   string        // of switchyard.lock
	Root   string        // the project root, resolved
	Digest digest.Digest // of the lockfile's own bytes
	File   *lockfile.File
}

// HostPlatform is this machine's key in a lock entry.
func HostPlatform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Drift says that what is installed, or asked for, is not what the lock says.
type Drift struct {
	Lock string // path
	ID   string
	What string // one of the Drift… constants
	// Wanted and Found are the two sides, in the words of the lock.
	Wanted, Found string
}

// What a Drift can be.
const (
	DriftNotInstalled = "not installed"
	DriftNotLocked    = "not in the lock"
	DriftVersion      = "version differs"
	DriftPlatform     = "platform not locked"
	DriftManifest     = "manifest digest differs"
	DriftFingerprint  = "fingerprint differs"
	DriftArchive      = "archive digest differs"
	DriftGrants       = "grants a scope that the package does not request"
)

func (e *Drift) Error() string {
	msg := fmt.Sprintf("%s: %s: %s", e.Lock, e.ID, e.What)
	if e.Wanted != "" {
		msg += ": the lock says " + e.Wanted
	}
	if e.Found != "" {
		msg += ", found " + e.Found
	}
	return msg
}
