package pkgmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Drifts is every difference between a project's files, found before anything is
// installed.
type Drifts struct {
	Lock  string
	Items []Drift
}

func (e *Drifts) Error() string {
	lines := make([]string, len(e.Items))
	for i, d := range e.Items {
		lines[i] = d.ID + ": " + d.What
	}
	return fmt.Sprintf("%s: %s", e.Lock, strings.Join(lines, "; "))
}

// More of what a Drift can be: switchyard.toml and switchyard.lock disagree.
const (
	DriftNotWanted = "locked, but not in switchyard.toml"
	DriftUnlocked  = "in switchyard.toml, but not locked"
	DriftRange     = "the locked version is not one that switchyard.toml accepts"
	DriftSource    = "source differs from switchyard.toml"
	DriftScopes    = "locked grants differ from the scopes in switchyard.toml"
	DriftPlatforms = "a platform that switchyard.toml names is not locked"
)

// ErrNoLock is returned by commands that need a lock where there is none.
var ErrNoLock = errors.New("no switchyard.lock in this directory or above it, up to the version control root")

// CheckProject compares switchyard.toml with the lock and this machine's platform
// with the lock's. It returns every difference, nil for none.
func CheckProject(p *project.Project, lock *Lock) (*Drifts, error) {
	out := &Drifts{Lock: lock.Path}
	add := func(id, what, wanted, found string) {
		out.Items = append(out.Items, Drift{Lock: lock.Path, ID: id, What: what, Wanted: wanted, Found: found})
	}
	for _, e := range lock.File.Plugins {
		if _, _, ok := e.For(HostPlatform()); !ok {
			add(e.ID, DriftPlatform, "", HostPlatform())
		}
	}
	config, _, err := p.ReadConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		for _, c := range config.Drift(lock.File) {
			add(c.ID, driftOfConfig(c.Kind), c.Was, cmp.Or(c.Now, c.Platform))
		}
	}
	if len(out.Items) == 0 {
		return nil, nil
	}
	return out, nil
}

// driftOfConfig names a difference that project.Config.Drift found.
func driftOfConfig(kind lockfile.Kind) string {
	switch kind {
	case lockfile.Added:
		return DriftUnlocked
	case lockfile.Removed:
		return DriftNotWanted
	case lockfile.VersionChanged:
		return DriftRange
	case lockfile.SourceChanged:
		return DriftSource
	case lockfile.GrantsChanged:
		return DriftScopes
	case lockfile.PlatformMissing:
		return DriftPlatforms
	}
	return string(kind)
}

// InstallLocked installs what one lock entry says for this platform, from the
// store's archive or the entry's source, and nothing else: every digest of the
// entry must be the one that is found. Other projects' defaults stay.
func (h *Home) InstallLocked(ctx context.Context, lock *Lock, e lockfile.Plugin) (*Installed, error) {
	return h.installLocked(ctx, lock, e, InstallOptions{Default: DefaultKeep})
}

// installLocked adds to o what the lock says.
func (h *Home) installLocked(ctx context.Context, lock *Lock, e lockfile.Plugin, o InstallOptions) (*Installed, error) {
	want, key, ok := e.For(HostPlatform())
	if !ok {
		return nil, &Drift{Lock: lock.Path, ID: e.ID, What: DriftPlatform, Found: HostPlatform()}
	}
	o.Expect = &Expectation{ID: e.ID, Version: e.Version, Package: want.Package, Manifest: want.Manifest, Fingerprint: want.Fingerprint,
		Lock: lock.Path, Grants: e.Grants, Evidence: lockedEvidence(e, want), Floors: lock.File.Revocations}
	in, err := h.installedIntact(ctx, want.Package)
	if err != nil {
		return nil, err
	}
	if in != nil {
		s := subjectOf(*in)
		s.Archive = want.Archive
		if err := h.checkDenied(s); err != nil {
			return nil, err
		}
		recorded, err := recordedContents(*in)
		if err != nil {
			return nil, err
		}
		if err := o.Expect.check(recorded, lock.Path); err != nil {
			return nil, err
		}
		if in.Archive == want.Archive {
			evidence, sbom, err := h.provedInstalled(ctx, *in)
			if err != nil {
				return nil, err
			}
			if _, err := h.accepted(*in, evidence, sbom, o); err != nil {
				return nil, err
			}
			return &Installed{Install: *in, Unchanged: true}, nil
		}
		// It came from a directory or from another archive: whether the locked archive
		// holds these files shows only when it is read.
	}
	denied := subject{ID: e.ID, Version: e.Version, Package: want.Package, Archive: want.Archive,
		Manifest: want.Manifest, Fingerprint: want.Fingerprint}
	if err := h.checkDenied(denied); err != nil {
		return nil, err
	}
	at, err := h.locate(lock.Root, e, key, want.Archive)
	if in != nil && (errors.As(err, new(*NotFound)) || errors.As(err, new(*NoSource))) {
		found := string(in.Archive)
		if in.Archive == "" || packedHere(*in) {
			found = "the same files, installed from a directory"
		}
		return nil, &Drift{Lock: lock.Path, ID: e.ID, What: DriftArchive, Wanted: string(want.Archive), Found: found}
	}
	if err != nil {
		return nil, err
	}
	o.Archive, o.Source = want.Archive, h.lockedSource(lock, e, at)
	out, err := h.Install(ctx, at.path, o)
	var damaged *Integrity
	if at.store && (errors.As(err, &damaged) || errors.As(err, new(*NotFound)) || errors.Is(err, fs.ErrNotExist)) {
		// The store's copy is not what its name says, or was collected at this moment;
		// the source may still be good.
		source, serr := h.locate(lock.Root, e, key, "")
		if serr != nil {
			return nil, err
		}
		o.Source = h.lockedSource(lock, e, source)
		return h.Install(ctx, source.path, o)
	}
	return out, err
}

// InstallProject installs what switchyard.toml asks for and, beside it, what the
// lock names: the locked version where switchyard.toml accepts it, else what the
// source holds. A version that is asked for and not locked becomes the default where
// it is higher than the present one; a lower one is no downgrade, but stands beside it.
// It writes no project file. lock may be nil.
func (h *Home) InstallProject(ctx context.Context, p *project.Project, lock *Lock, o InstallOptions) ([]*Installed, error) {
	config, _, err := p.ReadConfig()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []*Installed
	o.Default = DefaultKeep // under a lock, the lock says which version runs
	if lock != nil {
		for _, e := range lock.File.Plugins {
			if w, wanted := wantedOf(config, e.ID); wanted && (!w.Accepts(e.Version) || lockfile.CleanSource(w.Source) != e.Source) {
				continue
			}
			i, err := h.installLocked(ctx, lock, e, o)
			if err != nil {
				return out, err
			}
			out = append(out, i)
		}
	}
	if config == nil {
		return out, nil
	}
	o.Default = DefaultRaise
	for _, id := range config.IDs() {
		if slices.ContainsFunc(out, func(i *Installed) bool { return i.ID == id }) {
			continue
		}
		i, err := h.installWanted(ctx, p, id, config.Plugins[id], o)
		if err != nil {
			return out, err
		}
		out = append(out, i)
	}
	return out, nil
}

func wantedOf(c *project.Config, id string) (project.Wanted, bool) {
	if c == nil {
		return project.Wanted{}, false
	}
	w, ok := c.Plugins[id]
	return w, ok
}

// installWanted installs what a plugin's source in switchyard.toml holds, provided
// that it is the plugin and a version that is asked for.
func (h *Home) installWanted(ctx context.Context, p *project.Project, id string, w project.Wanted, o InstallOptions) (*Installed, error) {
	e := lockfile.Plugin{ID: id, Source: w.Source}
	var err error
	if e.Version, err = resolveVersion(p, id, w, HostPlatform()); err != nil {
		return nil, err
	}
	at, err := h.locate(p.Root, e, HostPlatform(), "")
	if err != nil {
		return nil, err
	}
	o.Expect = &Expectation{ID: id, Accepts: w.Accepts, Range: w.Version}
	if e.Version != "" {
		o.Expect = &Expectation{ID: id, Version: e.Version} // which the file's name promises
	}
	return h.Install(ctx, at.path, o)
}

func (h *Home) lockedSource(lock *Lock, e lockfile.Plugin, at located) string {
	if at.store {
		return "store, as locked in " + lock.Path
	}
	return at.path
}

func recordedContents(in state.Install) (*Contents, error) {
	m, err := ParseManifest(in.ManifestJSON)
	if err != nil {
		return nil, &Malformed{Where: "the record of " + string(in.Package), File: manifest.FileName, Err: err}
	}
	return &Contents{Manifest: m, ManifestBytes: in.ManifestJSON, ManifestDigest: in.Manifest,
		Fingerprint: in.Fingerprint, Package: in.Package}, nil
}

// grantsTooMuch is the drift of a file that grants a scope which the package does not
// request.
func grantsTooMuch(file string, m Manifest, scope string) error {
	requested := make([]string, len(m.RequestedScopes))
	for i, s := range m.RequestedScopes {
		requested[i] = string(s)
	}
	return &Drift{Lock: file, ID: m.ID, What: DriftGrants, Wanted: scope, Found: cmp.Or(strings.Join(requested, " "), "none")}
}

// installedIntact returns the record of a package whose tree in the store, and below
// plugins/ where it is the default version, still has its digest and is sealed, or
// nil.
func (h *Home) installedIntact(ctx context.Context, pkg digest.Digest) (in *state.Install, err error) {
	var def *state.Default
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		if in, err = optional(tx.Install(pkg)); err != nil || in == nil {
			return err
		}
		def, err = optional(tx.Default(in.ID))
		return err
	})
	if err != nil || in == nil {
		return nil, err
	}
	intact, err := h.storeSound(ctx, pkg)
	if err == nil && intact && def != nil && def.Package == pkg && exists(h.pluginPath(def.Dir)) {
		intact, err = h.mirrorSound(ctx, def.Dir, pkg)
	}
	if err != nil || !intact {
		return nil, err
	}
	return in, nil
}

// MayTrustLock refuses to turn a lock into approvals unless the user trusted the
// project or named the lock's own digest.
func (h *Home) MayTrustLock(ctx context.Context, lock *Lock, given digest.Digest) error {
	if given != "" {
		if given != lock.Digest {
			return &Integrity{What: "lockfile digest", Expected: given, Found: lock.Digest, Where: lock.Path,
				Causes: []string{"the lock was changed after its digest was noted"}}
		}
		return nil
	}
	var trusted *state.ProjectTrust
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		trusted, err = optional(tx.ProjectTrust(lock.Root))
		return err
	})
	if err == nil && trusted == nil {
		err = &Denied{Project: lock.Root}
	}
	return err
}

// RecordLockApproval stores what a lock approves, for its project only, after the
// initialize and health exchange went well.
func (h *Home) RecordLockApproval(ctx context.Context, a *Approval, lock *Lock, health state.Health) (*Enabled, error) {
	if !a.decision.byLock {
		return nil, errors.New("internal error: this approval was not made from a lock")
	}
	if err := a.decision.NotRevoked(); err != nil {
		return nil, err
	}
	out := &Enabled{ID: a.Manifest.ID, Version: a.Manifest.Version, Package: a.Package, Granted: a.Grants, Health: health,
		Withheld: without(a.Manifest.RequestedScopes, a.Grants)}
	return out, h.update(ctx, func(tx *state.Tx) error {
		standing, err := tx.Standing(a.Package)
		if err != nil {
			return err
		}
		if len(standing.Blocks) > 0 {
			return a.decision.needs((&selection{standing: standing}).status(), "a lock does not override that decision")
		}
		approval := state.ProjectApproval{Root: lock.Root, Package: a.Package, ID: a.Manifest.ID, Scopes: a.Grants,
			LockDigest: lock.Digest, At: h.now().UTC()}
		if err := tx.PutProjectApproval(approval); err != nil {
			return err
		}
		if err := tx.PutHealth(health); err != nil {
			return err
		}
		e := h.event(EventLockApproval, a.Manifest.ID, a.Manifest.Version, a.Package,
			map[string]string{"lock": string(lock.Digest)})
		e.Project = lock.Root
		return tx.AppendEvent(e)
	})
}
