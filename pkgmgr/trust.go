package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

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
// plugin stays disabled. A package that was put below plugins/ by hand, or changed
// there, comes into the store with that; of one without an archive one is kept, see
// keepForReview.
func (h *Home) Trust(ctx context.Context, ref Ref, lock *Lock, given digest.Digest) (*Trusted, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := h.onlyClaim(ref.ID); err != nil {
		return nil, err
	}
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return nil, err
	}
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
	if err := checkOwners(where); err != nil {
		return nil, err
	}
	if err := h.vouched(ctx, c, where, subject.Archive, lock); err != nil {
		return nil, err
	}
	kept, err := h.keepForReview(ctx, c, where)
	if err != nil {
		return nil, err
	}
	if err := h.intoStore(ctx, c, where); err != nil {
		return nil, err
	}
	replaced, err := h.damagedBefore(ctx, sel, c)
	if err != nil {
		return nil, err
	}
	out := &Trusted{ID: c.Manifest.ID, Version: c.Manifest.Version, Package: c.Package, Fingerprint: c.Fingerprint}
	err = h.update(ctx, func(tx *state.Tx) error {
		if err := h.recordTrust(tx, sel, c, where, kept, out); err != nil {
			return err
		}
		if replaced {
			if err := tx.RemoveInstall(sel.recorded); err != nil {
				return err
			}
		}
		return step("commit")
	})
	if err != nil {
		return nil, h.cannotWrite("trust", err)
	}
	if replaced && exists(h.storePath(sel.recorded)) {
		_ = h.dropTree(h.storePath(sel.recorded)) // nothing names it any more: else gc removes it
	}
	return out, nil
}

// damagedBefore reports whether the package that was recorded in this place was
// changed into the one that is trusted now, so that nothing is left of it.
func (h *Home) damagedBefore(ctx context.Context, sel *selection, c *Contents) (bool, error) {
	if sel.dirName == "" || sel.recorded == "" || sel.recorded == c.Package {
		return false, nil
	}
	intact, err := h.storeIntact(ctx, sel.recorded)
	return err == nil && !intact, err
}

// intoStore puts the tree at where into the store, hard-linked, unless it stands
// there intact already. Its files become read-only. What a crash leaves is a tree
// that nothing names.
func (h *Home) intoStore(ctx context.Context, c *Contents, where string) error {
	place := h.storePath(c.Package)
	if where == place {
		return nil
	}
	if sound, err := h.storeSound(ctx, c.Package); err != nil || sound {
		return err
	}
	if err := h.ensure(storeDir); err != nil {
		return err
	}
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	if err := linkTree(where, s.join("tree")); err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	if err := sealFiles(s.join("tree")); err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	if err := sealDirectories(s.join("tree")); err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	found, err := hashPath(ctx, s.join("tree"))
	if err != nil {
		return err
	}
	if found != c.Package {
		return &Integrity{What: "package digest", Expected: c.Package, Found: found, Where: where,
			Causes: []string{"its files are being changed at this moment"}}
	}
	if err := syncTree(s.path); err != nil {
		return fmt.Errorf("staging: sync: %w", err)
	}
	if err := h.putIntoStore(s, c.Package); err != nil {
		return h.cannotWrite("store", errors.Join(err, putBack(s.join("altered"), place)))
	}
	return syncDirs(h.join(storeDir))
}

func (h *Home) recordTrust(tx *state.Tx, sel *selection, c *Contents, where string, kept digest.Digest, out *Trusted) error {
	now := h.now().UTC()
	standing, err := tx.Standing(c.Package)
	if err != nil {
		return err
	}
	recorded, err := optional(tx.Install(c.Package))
	if err != nil {
		return err
	}
	in := recordOf(c, where, now) // put there by hand, or changed since it was installed
	if recorded != nil {
		in = *recorded
	}
	if recorded == nil || in.Archive != kept && in.Archive == "" {
		in.Archive = kept
		if err := tx.PutInstall(in); err != nil {
			return err
		}
	}
	if sel.dirName != "" && sel.recorded != c.Package {
		if sel.recorded != "" {
			if err := h.blockChanged(tx, sel.recorded, c.Manifest.ID, sel.version(), c.Package, changedFiles); err != nil {
				return err
			}
		}
		d := state.Default{Dir: sel.dirName, ID: c.Manifest.ID, Package: c.Package, Since: now}
		if err := tx.SetDefault(d); err != nil {
			return err
		}
	}
	if standing.Trust != nil && standing.Blocked(state.BlockChanged) == nil {
		out.Already, out.Status = true, StatusTrusted
		if standing.Enablement != nil {
			out.Status = StatusEnabled
		}
		return nil
	}
	out.Status = StatusTrusted
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
		Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint, Publisher: c.Manifest.publisher()}
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

// surveyed selects a package and reads it as it stands now. Where the files are not
// the recorded ones because an install got in between, both are read again; where
// they were changed, that is recorded.
func (h *Home) surveyed(ctx context.Context, ref Ref, lock *Lock) (*selection, *Contents, string, error) {
	for try := 1; ; try++ {
		sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
		if err != nil {
			return nil, nil, "", err
		}
		c, where, err := h.survey(ctx, sel)
		if err == nil && c.Package == sel.recorded || try == rehashTries {
			return sel, c, where, err
		}
		again, jerr := h.judgeSurvey(ctx, sel, c, err)
		if jerr != nil {
			return nil, nil, "", jerr
		}
		if !again {
			return sel, c, where, err
		}
	}
}

// judgeSurvey says whether to look again at a package that is not what its record
// says.
func (h *Home) judgeSurvey(ctx context.Context, sel *selection, c *Contents, fault error) (again bool, err error) {
	if errors.Is(fault, fs.ErrNotExist) {
		return true, nil
	}
	if fault != nil && !isFault(fault) {
		return false, nil
	}
	if sel.recorded == "" {
		now, err := h.currentDefault(ctx, sel)
		return err == nil && now.Package != "", err
	}
	var found digest.Digest
	if c != nil {
		found = c.Package
	}
	err = h.changed(ctx, sel, found, fault)
	var superseded *Superseded
	var busy *Busy
	switch {
	case errors.As(err, &superseded):
		return true, nil
	case errors.As(err, &busy), ctx.Err() != nil:
		return false, err
	}
	return false, nil // changed; what could not be recorded of it is recorded by the next command
}

// survey reads the default directory where the selection has one, else the version
// in the store. A tree that others could write is refused: what is read is not what
// will be there.
func (h *Home) survey(ctx context.Context, sel *selection) (*Contents, string, error) {
	where := sel.path
	if sel.dirName != "" && !sameInodes(sel.path, h.pluginPath(sel.dirName)) {
		where = h.pluginPath(sel.dirName)
	}
	if err := unreadable(where, checkSealed(where)); err != nil {
		return nil, where, err
	}
	c, err := readTree(ctx, where)
	return c, where, err
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
	err = h.update(ctx, func(tx *state.Tx) error {
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
	return out, h.update(ctx, func(tx *state.Tx) error {
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
