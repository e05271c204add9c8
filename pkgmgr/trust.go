package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Trusted reports what Trust recorded.
type Trusted struct {
	ID, Version          string
	Package, Fingerprint digest.Digest
	Already              bool // exactly this package was trusted before
	Status               Status
}

// Trust records that a person reviewed exactly the package that stands there now.
// given is what the person read in the review: the package digest, or the
// fingerprint where the package holds nothing but manifest and executable. The
// plugin stays disabled.
func (h *Home) Trust(ctx context.Context, ref Ref, lock *Lock, given digest.Digest) (*Trusted, error) {
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return nil, err
	}
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, where, err := h.survey(ctx, sel)
	if err != nil {
		return nil, err
	}
	subject := c.subject()
	if sel.install != nil && sel.recorded == c.Package {
		subject.Archive = sel.install.Archive
	}
	if err := h.checkDenied(subject); err != nil {
		return nil, err
	}
	if err := c.matches(given, where); err != nil {
		return nil, err
	}
	out := &Trusted{ID: c.Manifest.ID, Version: c.Manifest.Version, Package: c.Package, Fingerprint: c.Fingerprint}
	return out, h.state.Update(ctx, func(tx *state.Tx) error { return h.recordTrust(tx, sel, c, where, out) })
}

func (h *Home) recordTrust(tx *state.Tx, sel *selection, c *Contents, where string, out *Trusted) error {
	now := h.now().UTC()
	standing, err := tx.Standing(c.Package)
	if err != nil {
		return err
	}
	intact := standing.Blocked(state.BlockChanged) == nil
	if standing.Trust != nil && intact {
		out.Already, out.Status = true, StatusTrusted
		if standing.Enablement != nil {
			out.Status = StatusEnabled
		}
		return nil
	}
	out.Status = StatusTrusted
	recorded, err := optional(tx.Install(c.Package))
	if err != nil {
		return err
	}
	if recorded == nil { // put there by hand, or changed since it was installed
		err := tx.PutInstall(state.Install{
			Package: c.Package, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint,
			ID: c.Manifest.ID, Version: c.Manifest.Version, Name: c.Manifest.Name, Source: where,
			InstalledAt: now, Files: len(c.Files), Bytes: c.Bytes,
			Executable: c.Manifest.Executable, ManifestJSON: c.ManifestBytes,
		})
		if err != nil {
			return err
		}
	}
	if sel.dirName != "" && sel.recorded != c.Package {
		d := state.Default{Dir: sel.dirName, ID: c.Manifest.ID, Package: c.Package, Since: now}
		if err := tx.SetDefault(d); err != nil {
			return err
		}
	}
	for _, kind := range []state.BlockKind{state.BlockUntrusted, state.BlockChanged} {
		if err := tx.RemoveBlock(c.Package, kind); err != nil {
			return err
		}
	}
	if err := tx.RemoveEnablement(c.Package); err != nil {
		return err
	}
	err = tx.PutTrust(state.Trust{Package: c.Package, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
		Version: c.Manifest.Version, At: now, Via: "review"})
	if err != nil {
		return err
	}
	return tx.AppendEvent(h.event(EventTrust, c.Manifest.ID, c.Manifest.Version, c.Package, nil))
}

func (c *Contents) subject() subject {
	return subject{ID: c.Manifest.ID, Version: c.Manifest.Version, Package: c.Package,
		Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint}
}

// matches compares what a person read in a review with what stands there.
func (c *Contents) matches(given digest.Digest, where string) error {
	if given == c.Package {
		return nil
	}
	if given == c.Fingerprint {
		if len(c.Files) == 2 {
			return nil
		}
		return &PartialFingerprint{ID: c.Manifest.ID, Files: len(c.Files), Package: c.Package}
	}
	return &Integrity{What: "package digest", Expected: given, Found: c.Package, Where: where, Causes: []string{
		"the package was reinstalled or changed after the review",
		"the digest belongs to another version or platform of the package",
	}}
}

// survey reads the package as it stands now: the default directory where the
// selection has one, else the version in the store.
func (h *Home) survey(ctx context.Context, sel *selection) (*Contents, string, error) {
	where := sel.path
	if sel.dirName != "" && !sameInodes(sel.path, h.pluginPath(sel.dirName)) {
		where = h.pluginPath(sel.dirName)
	}
	c, err := readTree(ctx, where)
	return c, where, err
}

// readTree reads an installed tree whole.
func readTree(ctx context.Context, path string) (*Contents, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("package: %w", err)
	}
	defer root.Close()
	tree, err := archive.HashDir(ctx, root)
	if err != nil {
		return nil, err
	}
	return readContents(root, tree, path)
}

// Untrusted reports what Untrust and Disable did.
type Untrusted struct {
	ID, Version string
	Package     digest.Digest
	Was         Status
	Status      Status
}

// Untrust forgets the review of a package and every grant. It is recorded as a
// decision that no lock overrides.
func (h *Home) Untrust(ctx context.Context, ref Ref, lock *Lock) (*Untrusted, error) {
	return h.withdraw(ctx, ref, lock, state.BlockUntrusted, EventUntrust)
}

// Disable revokes the grants of a package and keeps the review. It is recorded as
// a decision that no lock overrides.
func (h *Home) Disable(ctx context.Context, ref Ref, lock *Lock) (*Untrusted, error) {
	return h.withdraw(ctx, ref, lock, state.BlockDisabled, EventDisable)
}

func (h *Home) withdraw(ctx context.Context, ref Ref, lock *Lock, kind state.BlockKind, event string) (*Untrusted, error) {
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return nil, err
	}
	if sel.recorded == "" {
		return &Untrusted{ID: ref.ID, Was: StatusUntrusted, Status: StatusUntrusted}, nil
	}
	out := &Untrusted{ID: sel.ref.ID, Version: sel.version(), Package: sel.recorded, Was: sel.status()}
	err = h.state.Update(ctx, func(tx *state.Tx) error {
		now := h.now().UTC()
		if err := tx.RemoveEnablement(sel.recorded); err != nil {
			return err
		}
		if kind == state.BlockUntrusted {
			if err := tx.RemoveTrust(sel.recorded); err != nil {
				return err
			}
		}
		if err := tx.PutBlock(state.Block{Package: sel.recorded, Kind: kind, At: now}); err != nil {
			return err
		}
		if err := sel.load(tx, ""); err != nil {
			return err
		}
		out.Status = sel.status()
		return tx.AppendEvent(h.event(event, out.ID, out.Version, out.Package, nil))
	})
	return out, err
}

// Enabled reports what RecordEnable stored.
type Enabled struct {
	ID, Version string
	Package     digest.Digest
	Granted     []manifest.Scope
	Withheld    []manifest.Scope // requested and not granted
	Health      state.Health
}

// RecordEnable stores the grants of an approval after its initialize and health
// exchange went well. The decisions are read once more in the same transaction.
func (h *Home) RecordEnable(ctx context.Context, a *Approval, health state.Health) (*Enabled, error) {
	if a.decision.offer == nil || a.decision.byLock {
		return nil, errors.New("internal error: this approval was not made for enabling")
	}
	if err := a.decision.NotRevoked(); err != nil {
		return nil, err
	}
	out := &Enabled{ID: a.Manifest.ID, Version: a.Manifest.Version, Package: a.Package, Granted: a.Grants, Health: health,
		Withheld: without(a.Manifest.RequestedScopes, a.Grants)}
	return out, h.state.Update(ctx, func(tx *state.Tx) error {
		standing, err := tx.Standing(a.Package)
		if err != nil {
			return err
		}
		if standing.Trust == nil || standing.Blocked(state.BlockChanged) != nil {
			return a.decision.needs(StatusUntrusted, "the trust was taken back while the plugin was starting")
		}
		now := h.now().UTC()
		if err := tx.PutEnablement(state.Enablement{Package: a.Package, Scopes: a.Grants, At: now}); err != nil {
			return err
		}
		if err := tx.RemoveBlock(a.Package, state.BlockDisabled); err != nil {
			return err
		}
		if err := tx.PutHealth(health); err != nil {
			return err
		}
		names := make([]string, len(a.Grants))
		for i, s := range a.Grants {
			names[i] = string(s)
		}
		return tx.AppendEvent(h.event(EventEnable, out.ID, out.Version, out.Package,
			map[string]string{"scopes": strings.Join(names, " ")}))
	})
}

// changed records that the files of a trusted package are not the reviewed ones:
// it disables the package and revokes its grants. Because an install may just be
// replacing the tree, it looks again while no install can.
func (h *Home) changed(ctx context.Context, sel *selection, found digest.Digest) error {
	refusal := &NeedsDecision{ID: sel.ref.ID, Version: sel.version(), Package: found, Status: StatusChanged,
		Detail: fmt.Sprintf("its files are no longer the reviewed ones (reviewed %s)", sel.recorded)}
	unlock, err := h.lockMutations(ctx)
	var readOnly *ReadOnly
	if errors.As(err, &readOnly) {
		return refusal
	}
	if err != nil {
		return err
	}
	defer unlock()
	current, err := h.currentDefault(ctx, sel)
	if err != nil {
		return err
	}
	if current != sel.recorded {
		return &Superseded{ID: sel.ref.ID}
	}
	if intact, err := h.intact(ctx, sel); err != nil {
		return err
	} else if intact {
		return &Superseded{ID: sel.ref.ID}
	}
	return errors.Join(refusal, h.markChanged(ctx, sel.recorded, sel.ref.ID, sel.version(), found))
}

// markChanged blocks a package digest and takes its grants.
func (h *Home) markChanged(ctx context.Context, recorded digest.Digest, id, version string, found digest.Digest) error {
	err := h.state.Update(ctx, func(tx *state.Tx) error {
		standing, err := tx.Standing(recorded)
		if err != nil || standing.Blocked(state.BlockChanged) != nil {
			return err
		}
		if err := tx.RemoveEnablement(recorded); err != nil {
			return err
		}
		b := state.Block{Package: recorded, Kind: state.BlockChanged, At: h.now().UTC(),
			Detail: "its installed files were changed after the review"}
		if err := tx.PutBlock(b); err != nil {
			return err
		}
		return tx.AppendEvent(h.event(EventChanged, id, version, recorded, map[string]string{"found": string(found)}))
	})
	if isReadOnly(err) {
		return nil
	}
	return err
}

// currentDefault returns what is recorded now for the selection's place.
func (h *Home) currentDefault(ctx context.Context, sel *selection) (digest.Digest, error) {
	if sel.dirName == "" {
		return sel.recorded, nil
	}
	var now digest.Digest
	err := h.state.View(ctx, func(tx *state.Tx) error {
		def, err := optional(tx.Default(sel.dirName))
		if def != nil {
			now = def.Package
		}
		return err
	})
	return now, err
}

// intact reports whether the selection's files are the recorded ones.
func (h *Home) intact(ctx context.Context, sel *selection) (bool, error) {
	for _, p := range []string{sel.path, h.pluginPath(sel.dirName)} {
		if sel.dirName == "" && p != sel.path {
			continue
		}
		found, err := hashPath(ctx, p)
		var refused *archive.Refusal
		if errors.As(err, &refused) || errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if found != sel.recorded {
			return false, nil
		}
	}
	return true, nil
}

func (h *Home) event(kind, id, version string, pkg digest.Digest, detail map[string]string) state.Event {
	return state.Event{At: h.now().UTC(), Kind: kind, ID: id, Version: version, Package: pkg, Detail: detail}
}
