package pkgmgr

import (
	"context"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Status is where a package stands with the people who decide about it.
type Status string

// Every status, worst first.
const (
	StatusBroken    Status = "broken"
	StatusRevoked   Status = "revoked"
	StatusChanged   Status = "changed"
	StatusUntrusted Status = "untrusted"
	StatusTrusted   Status = "disabled" // trusted, no grants yet or any more
	StatusEnabled   Status = "enabled"
)

// A selection is the package that a reference names, as it is recorded: nothing
// of the package itself has been read yet.
type selection struct {
	ref      Ref
	dirName  string        // below plugins/; "" for a version that is only in the store
	path     string        // the tree that is read and run
	recorded digest.Digest // what was installed or last trusted there; "" for neither
	install  *state.Install
	manifest *Manifest // of install, once it was parsed
	wanted   bool      // one package is meant, by version, by digest or by the lock
	foreign  bool      // the package that is meant has another id
	stated   subject   // by the manifest of a package that was put there by hand
	standing state.Standing
	lock     *Lock
	locked   *lockfile.Plugin // the lock's entry; nil outside a project with a lock
	approval *state.ProjectApproval
	project  *state.ProjectTrust
	strange  []string // names below plugins/ that may claim the id beside dirName
}

// LockUse says what a lock does to a selection.
type lockUse int

const (
	// lockBinds: only what the lock names, in its version.
	lockBinds lockUse = iota
	// lockGuides: the lock's version where it names one and nothing else was asked for.
	lockGuides
)

// selectPackage finds the package that ref names under lock, and everything that
// is recorded about it, in one read of the database. projectRoot is the resolved
// project directory whose trust matters, or "".
func (h *Home) selectPackage(ctx context.Context, ref Ref, lock *Lock, use lockUse, projectRoot string) (*selection, error) {
	sel := &selection{ref: ref, lock: lock}
	var want digest.Digest
	if lock != nil {
		entry, ok := lock.File.Plugin(ref.ID)
		switch {
		case ok && (use == lockBinds || ref.Version == "" && ref.Digest == ""):
			p, _, ok := entry.For(HostPlatform())
			if !ok {
				return nil, &Drift{Lock: lock.Path, ID: ref.ID, What: DriftPlatform, Found: HostPlatform()}
			}
			if ref.Version != "" && ref.Version != entry.Version || ref.Digest != "" && ref.Digest != p.Package {
				return nil, &Drift{Lock: lock.Path, ID: ref.ID, What: DriftVersion, Wanted: entry.Version, Found: ref.String()}
			}
			want, sel.locked = p.Package, &entry
		case !ok && use == lockBinds:
			return nil, &Drift{Lock: lock.Path, ID: ref.ID, What: DriftNotLocked}
		}
	}
	if ref.Digest != "" {
		want = ref.Digest
	}
	err := h.state.View(ctx, func(tx *state.Tx) error {
		if err := h.find(tx, sel, want); err != nil {
			return err
		}
		if use == lockBinds {
			if err := h.lookForStrangers(tx, sel); err != nil {
				return err
			}
		}
		return sel.load(tx, projectRoot)
	})
	if err != nil {
		return nil, err
	}
	if err := h.place(ctx, sel); err != nil || use != lockBinds {
		return sel, err
	}
	return sel, h.likeLocked(sel)
}

// likeLocked compares what was recorded of a locked package with the rest of the
// lock's entry: a lock that pairs a package with digests of another one is no record
// of a review. The package digest itself is how the package was found.
func (h *Home) likeLocked(sel *selection) error {
	if sel.locked == nil || sel.install == nil {
		return nil
	}
	p, _, _ := sel.locked.For(HostPlatform())
	drift := h.driftFrom(p, *sel.install)
	if drift == nil {
		return nil
	}
	if err := h.checkDenied(sel.subject()); err != nil {
		return err // the stronger reason
	}
	drift.Lock, drift.ID = sel.lock.Path, sel.ref.ID
	return drift
}

// driftFrom returns the first digest of a recorded package that is not the locked
// one, or nil. Another archive than the one it was installed from is as good once
// `ci` has read it: then the store holds it. One that was packed from the directory it
// was installed from says nothing about other archives.
func (h *Home) driftFrom(p lockfile.Platform, in state.Install) *Drift {
	switch {
	case in.Manifest != p.Manifest:
		return &Drift{What: DriftManifest, Wanted: string(p.Manifest), Found: string(in.Manifest)}
	case in.Fingerprint != p.Fingerprint:
		return &Drift{What: DriftFingerprint, Wanted: string(p.Fingerprint), Found: string(in.Fingerprint)}
	case in.Archive != "" && in.Archive != p.Archive && !exists(h.archivePath(p.Archive)) && !packedHere(in):
		return &Drift{What: DriftArchive, Wanted: string(p.Archive), Found: string(in.Archive)}
	}
	return nil
}

// find decides which package is meant. A digest that belongs to another id, in the
// reference or in the lock, names nothing.
func (h *Home) find(tx *state.Tx, sel *selection, want digest.Digest) error {
	def, err := optional(tx.Default(sel.ref.ID))
	if err != nil {
		return err
	}
	if def != nil && def.ID != sel.ref.ID {
		def = nil // a directory of that name holds another plugin
	}
	sel.wanted = want != "" || sel.ref.Version != ""
	if want == "" && sel.wanted {
		if want, err = h.versionOf(tx, sel.ref); err != nil {
			return err
		}
	}
	switch {
	case !sel.wanted && def != nil:
		sel.recorded, sel.dirName = def.Package, def.Dir
	case want != "" && def != nil && def.Package == want:
		sel.recorded, sel.dirName = want, def.Dir
	default:
		sel.recorded = want
	}
	if sel.recorded == "" {
		return nil // perhaps put below plugins/ by hand: place looks
	}
	if sel.install, err = optional(tx.Install(sel.recorded)); err != nil {
		return err
	}
	if sel.install != nil && sel.install.ID != sel.ref.ID {
		sel.install, sel.foreign = nil, true
	}
	return nil
}

// versionOf returns the package digest of the one installed package with the
// reference's id and version, or "" where there is none. Those that are here go
// before those in quarantine.
func (h *Home) versionOf(tx *state.Tx, ref Ref) (digest.Digest, error) {
	installs, err := tx.Installs()
	if err != nil {
		return "", err
	}
	var found, here []digest.Digest
	for _, in := range installs {
		if in.ID != ref.ID || in.Version != ref.Version {
			continue
		}
		found = append(found, in.Package)
		if exists(h.storePath(in.Package)) {
			here = append(here, in.Package)
		}
	}
	if len(here) > 0 {
		found = here
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", &Ambiguous{Ref: ref.String(), Candidates: found}
}

// load reads what was decided about the recorded package. A lock's approval counts
// only for the package that the lock names.
func (sel *selection) load(tx *state.Tx, projectRoot string) (err error) {
	if sel.recorded != "" {
		if sel.standing, err = tx.Standing(sel.recorded); err != nil {
			return err
		}
		if sel.locked != nil {
			if sel.approval, err = optional(tx.ProjectApproval(sel.lock.Root, sel.recorded)); err != nil {
				return err
			}
		}
	}
	if projectRoot != "" {
		sel.project, err = optional(tx.ProjectTrust(projectRoot))
	}
	return err
}

// status says where the recorded package stands, from decisions alone.
func (sel *selection) status() Status {
	s := sel.standing
	switch {
	case s.Blocked(state.BlockChanged) != nil:
		return StatusChanged
	case sel.byPerson(), sel.approvedByLock():
		return StatusEnabled
	case s.Trust != nil:
		return StatusTrusted
	}
	return StatusUntrusted
}

// byPerson reports whether a person reviewed the package and granted scopes.
func (sel *selection) byPerson() bool {
	return sel.standing.Trust != nil && sel.standing.Enablement != nil
}

// approvedByLock reports whether the lock's approval stands in for a person's: it
// never overrides an untrust, a disable or a change.
func (sel *selection) approvedByLock() bool {
	return sel.approval != nil && len(sel.standing.Blocks) == 0
}

// grants returns the scopes that hold: those enabled by a person or approved by
// the lock, and under a lock at most those that it names.
func (sel *selection) grants() []manifest.Scope {
	var granted []manifest.Scope
	switch {
	case sel.status() != StatusEnabled:
	case sel.byPerson():
		granted = sel.standing.Enablement.Scopes
	default:
		granted = sel.approval.Scopes
	}
	if sel.locked == nil {
		return granted
	}
	return slices.DeleteFunc(slices.Clone(granted), func(s manifest.Scope) bool {
		return !slices.Contains(sel.locked.Grants, string(s))
	})
}

// subject is what denials are compared with.
func (sel *selection) subject() subject {
	if sel.install != nil {
		s := subjectOf(*sel.install)
		if sel.manifest != nil {
			s.Publisher, s.recorded = sel.manifest.publisher(), nil
		}
		return s
	}
	if sel.recorded == "" && sel.stated.ID == sel.ref.ID {
		return sel.stated
	}
	s := subject{ID: sel.ref.ID, Version: sel.ref.Version, Package: sel.recorded}
	if t := sel.standing.Trust; t != nil {
		s.Version, s.Fingerprint = t.Version, t.Fingerprint
	}
	return s
}

func (sel *selection) version() string { return sel.subject().Version }

func (sel *selection) fingerprint() digest.Digest { return sel.subject().Fingerprint }

// blockDetail says in words why a recorded package is blocked, or "".
func (sel *selection) blockDetail() string {
	for _, kind := range []state.BlockKind{state.BlockChanged, state.BlockUntrusted, state.BlockDisabled} {
		if b := sel.standing.Blocked(kind); b != nil {
			return b.Detail
		}
	}
	return ""
}

// recordedManifest returns the manifest as it was when the package was recorded, and
// its bytes. It serves decisions that precede the rehash, which binds it to the
// files.
func (sel *selection) recordedManifest(h *Home) (Manifest, []byte, error) {
	if sel.install == nil {
		root, err := openTree(sel.path)
		if err != nil {
			return Manifest{}, nil, err
		}
		defer root.Close()
		return readManifest(root, sel.path)
	}
	m, err := sel.parsed()
	if err != nil {
		return Manifest{}, nil, &Malformed{Where: h.state.Path(), File: sel.install.ID, Err: err}
	}
	return *m, sel.install.ManifestJSON, nil
}

// parsed returns the manifest of install, which it parses once.
func (sel *selection) parsed() (*Manifest, error) {
	if sel.manifest == nil {
		m, err := ParseManifest(sel.install.ManifestJSON)
		if err != nil {
			return nil, err
		}
		sel.manifest = &m
	}
	return sel.manifest, nil
}
