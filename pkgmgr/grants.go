package pkgmgr

import (
	"context"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Grants are the parts that the grants of one package are made of. It decides
// nothing: a call asks its Decision.
type Grants struct {
	Version  string
	Package  digest.Digest    // the package that the reference selects
	Trusted  bool             // a person reviewed it, and it did not change since
	Enabled  bool             // a person enabled it
	Recorded []manifest.Scope // what that person granted, whatever a lock says
	Lock     string           // path of the lock that names the package, or ""
	Ceiling  []manifest.Scope // the lock's grants
}

// GrantsOf returns what is recorded about the package that ref selects under lock.
// The lock's version goes first where ref names none.
func (h *Home) GrantsOf(ctx context.Context, ref Ref, lock *Lock) (*Grants, error) {
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return nil, err
	}
	g := &Grants{Version: sel.version(), Package: sel.recorded}
	g.Trusted = sel.standing.Trust != nil && sel.standing.Blocked(state.BlockChanged) == nil
	if g.Trusted && sel.byPerson() {
		g.Enabled, g.Recorded = true, sel.standing.Enablement.Scopes
	}
	if lock == nil {
		return g, nil
	}
	if entry, ok := lock.File.Plugin(ref.ID); ok {
		if p, _, ok := entry.For(HostPlatform()); ok && p.Package == sel.recorded {
			g.Lock, g.Ceiling = lock.Path, []manifest.Scope{}
			for _, s := range entry.Grants {
				g.Ceiling = append(g.Ceiling, manifest.Scope(s))
			}
		}
	}
	return g, nil
}

// ManifestOf returns the manifest that was recorded of the package that ref selects:
// what its files say by now is a review's to find out.
func (h *Home) ManifestOf(ctx context.Context, ref Ref, lock *Lock) (Manifest, error) {
	sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
	if err != nil {
		return Manifest{}, err
	}
	m, _, err := sel.recordedManifest(h)
	return m, err
}
