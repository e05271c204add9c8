package pkgmgr

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Used reports what Use did.
type Used struct {
	ID, Version, Previous string
	Package               digest.Digest
	Status                Status
	Unchanged             bool
}

// Use makes an installed version the default of its id. Trust and grants belong
// to the version: one that was reviewed before needs no second review.
func (h *Home) Use(ctx context.Context, ref Ref) (*Used, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	sel, err := h.selectPackage(ctx, ref, nil, lockGuides, "")
	if err != nil {
		return nil, err
	}
	if sel.install == nil || sel.path != h.storePath(sel.recorded) {
		return nil, &ForeignDirectory{Path: sel.path, ID: ref.ID}
	}
	if err := h.checkDenied(sel.subject()); err != nil {
		return nil, err
	}
	p, err := h.plan(ctx, *sel.install, DefaultReplace)
	if err != nil {
		return nil, err
	}
	if !p.inStore {
		return nil, h.storeDamaged(ctx, sel.recorded)
	}
	out := &Used{ID: p.ID, Version: p.Version, Package: p.Package, Previous: p.Previous, Status: sel.status(), Unchanged: p.Unchanged}
	if p.Unchanged {
		return out, nil
	}
	if err := h.makeDefault(ctx, p, EventUse); err != nil {
		return nil, err
	}
	return out, nil
}

// makeDefault publishes a version that stands in the store already.
func (h *Home) makeDefault(ctx context.Context, p *plan, event string) error {
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	if err := h.prepare(s, p); err != nil {
		return err
	}
	return h.publish(ctx, s, p, event)
}

// storeDamaged says how the store's tree of a package differs from its digest, or
// which rule it breaks.
func (h *Home) storeDamaged(ctx context.Context, pkg digest.Digest) error {
	found, err := hashPath(ctx, h.storePath(pkg))
	if err != nil && !isFault(err) {
		return err
	}
	if found == pkg {
		if err := checkSealed(h.storePath(pkg)); err != nil {
			return err
		}
		return checkModes(h.storePath(pkg))
	}
	damage := &Integrity{What: "package digest", Expected: pkg, Found: found, Where: h.storePath(pkg),
		Causes: []string{"files in the store were changed after the install"}}
	return errors.Join(damage, err)
}
