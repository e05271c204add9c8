// Package lockfile holds switchyard.lock: which plugin versions, digests and
// grants a project's people have reviewed.
//
// It reads the file strictly and reports every fault with line and column,
// writes it so that the same meaning always gives the same bytes, edits it as a
// value, merges three versions of it and names the differences of two. The
// format is docs/lockfile.md.
//
// It refuses to decide. A lock entry is a ceiling: whether a package may run is
// for the owner of trust, grants and revocations to say. It uses no network, and
// of the file system only the one file it is given.
package lockfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// FileName is the lock's name in a project's root.
const FileName = "switchyard.lock"

// Version is the only lockVersion that this package reads and writes.
const Version = 1

// Bounds of a lock.
const (
	MaxBytes     = 4 << 20
	MaxPlugins   = 5000
	MaxPlatforms = 64  // of one plugin
	MaxGrants    = 64  // of one plugin
	MaxEvidence  = 16  // of one platform
	MaxFloors    = 256 // revocation issuers
	MaxSource    = 1024
)

// Any is the platform key of a package that is the same on every platform. A
// plugin has either this key alone or keys of the form os/arch.
const Any = "any"

// Errors of this package, for errors.Is.
var (
	// ErrConflict: the file holds merge conflict markers.
	ErrConflict = tomlstrict.ErrConflict
	// ErrVersion: the file's lockVersion is not Version.
	ErrVersion = errors.New("lock version not supported")
	// ErrNotLocked: the lock has no plugin of that id.
	ErrNotLocked = errors.New("not in the lock")
	// ErrPlatform: a platform key that does not fit.
	ErrPlatform = errors.New("platform key does not fit")
)

// SyntaxError is one fault with its position; Parse returns Faults of them.
type (
	SyntaxError = tomlstrict.SyntaxError
	Faults      = tomlstrict.Faults
)

// A File is a lock's meaning. The zero value is an empty lock. What Parse and
// the edits return is in canonical order; treat it as immutable.
type File struct {
	Plugins     []Plugin // by id
	Revocations []Floor  // by issuer
}

// A Plugin is one locked version of one id.
type Plugin struct {
	ID      string
	Version string
	// Source says where the archive came from: relative to the lock's directory
	// with "/", an https or oci URL, or "" when unknown. It may hold the
	// placeholders {version}, {os} and {arch}.
	Source    string
	Grants    []string            // the most that may be granted; sorted, never nil
	Signer    *Signer             // nil when the package was locked unsigned
	Platforms map[string]Platform // by "os/arch", or one entry Any
}

// A Signer is who signed the archive: a certificate identity with its issuer, or
// a key.
type Signer struct {
	Identity, Issuer string
	Key              string
}

// A Platform is one archive of a plugin's version. All four digests are set.
type Platform struct {
	Archive, Package, Manifest, Fingerprint digest.Digest
	Evidence                                []string // kinds that came with the archive; sorted, nil when none
}

// A Floor is the lowest version of an issuer's revocation list that is accepted.
type Floor struct {
	Issuer  string
	Version int64 // from 1
}

// Plugin returns the entry of an id. The result shares memory with f.
func (f *File) Plugin(id string) (Plugin, bool) {
	if f == nil {
		return Plugin{}, false
	}
	for _, p := range f.Plugins {
		if p.ID == id {
			return p, true
		}
	}
	return Plugin{}, false
}

// For returns the entry that applies to a platform "os/arch" and its key, which
// is the platform itself or Any.
func (p Plugin) For(platform string) (entry Platform, key string, ok bool) {
	for _, key := range []string{platform, Any} {
		if e, ok := p.Platforms[key]; ok {
			return e, key, true
		}
	}
	return Platform{}, "", false
}

// Equal reports whether two locks mean the same. A nil lock is an empty one.
func Equal(a, b *File) bool { return bytes.Equal(a.Format(), b.Format()) }

// With returns the lock with p in place of any other entry of its id.
func (f *File) With(p Plugin) *File {
	g := f.Without(p.ID)
	g.Plugins = append(g.Plugins, p.canonical())
	g.sort()
	return g
}

// Without returns the lock without the entry of an id.
func (f *File) Without(id string) *File {
	g := f.canonical()
	g.Plugins = slices.DeleteFunc(g.Plugins, func(p Plugin) bool { return p.ID == id })
	return g
}

// WithPlatform returns the lock in which a plugin has e under the key, and keeps
// its other platforms. The caller answers for e being of the locked version. It
// returns ErrNotLocked for an unknown id, and ErrPlatform for a key that is no
// platform or that would stand beside Any.
func (f *File) WithPlatform(id, key string, e Platform) (*File, error) {
	p, ok := f.Plugin(id)
	if !ok {
		return nil, fmt.Errorf("plugin \"%s\": %w", id, ErrNotLocked)
	}
	if err := CheckPlatform(key); err != nil {
		return nil, err
	}
	p = p.canonical()
	p.Platforms[key] = e.canonical()
	if mixesAny(p.Platforms) {
		return nil, fmt.Errorf("plugin \"%s\": %w: \"%s\" stands alone, without keys of single platforms", id, ErrPlatform, Any)
	}
	return f.With(p), nil
}

// WithFloor returns the lock with the issuer's floor raised to version; a lower
// version changes nothing.
func (f *File) WithFloor(issuer string, version int64) *File {
	g := f.canonical()
	g.Revocations = append(g.Revocations, Floor{issuer, version})
	g.sort()
	return g
}

func mixesAny(platforms map[string]Platform) bool {
	_, has := platforms[Any]
	return has && len(platforms) > 1
}

// canonical returns a deep copy in canonical order.
func (f *File) canonical() *File {
	g := &File{}
	if f == nil {
		return g
	}
	g.Plugins = make([]Plugin, 0, len(f.Plugins)+1)
	for _, p := range f.Plugins {
		g.Plugins = append(g.Plugins, p.canonical())
	}
	g.Revocations = slices.Clone(f.Revocations)
	g.sort()
	return g
}

// sort orders plugins and floors, keeps the highest floor of an issuer, and
// leaves nothing but nil for an empty list.
func (f *File) sort() {
	slices.SortStableFunc(f.Plugins, func(a, b Plugin) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(f.Revocations, func(a, b Floor) int {
		return cmp.Or(strings.Compare(a.Issuer, b.Issuer), cmp.Compare(b.Version, a.Version))
	})
	f.Revocations = slices.CompactFunc(f.Revocations, func(a, b Floor) bool { return a.Issuer == b.Issuer })
	if len(f.Plugins) == 0 {
		f.Plugins = nil
	}
	if len(f.Revocations) == 0 {
		f.Revocations = nil
	}
}

func (p Plugin) canonical() Plugin {
	p.Source = CleanSource(p.Source)
	p.Grants = append([]string{}, sortedSet(p.Grants)...)
	if p.Signer != nil {
		s := *p.Signer
		p.Signer = &s
	}
	platforms := make(map[string]Platform, len(p.Platforms))
	for key, e := range p.Platforms {
		platforms[key] = e.canonical()
	}
	p.Platforms = platforms
	return p
}

func (e Platform) canonical() Platform {
	e.Evidence = sortedSet(e.Evidence)
	return e
}

// sortedSet returns a sorted copy without duplicates, nil when empty.
func sortedSet(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	c := slices.Clone(s)
	slices.Sort(c)
	return slices.Compact(c)
}

// keys returns a plugin's platform keys in canonical order.
func (p Plugin) keys() []string { return slices.Sorted(maps.Keys(p.Platforms)) }
