package pkgmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Removed is one package that Uninstall or GC removed.
type Removed struct {
	ID, Version string
	Package     digest.Digest
	Path        string
	Bytes       int64
}

// Uninstall removes a package: every version where ref names none, else that one;
// *Ambiguous where several packages have that id and version. No other version becomes
// the default in place of one that goes: which code runs is not for an uninstall to
// choose, and a note says so. Trust and grants of what is removed are forgotten; archives stay until GC. A
// package that is running is *Busy, and nothing is removed.
func (h *Home) Uninstall(ctx context.Context, ref Ref) ([]Removed, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	holdings, err := h.holdings(ctx, ref.ID)
	if err != nil {
		return nil, err
	}
	var going []holding
	var removed []Removed
	var dirs, left []string
	if err := ref.alone(holdings, h); err != nil {
		return nil, err
	}
	for _, p := range holdings {
		if !ref.names(p.Subject) {
			left = append(left, p.Subject.Version)
			continue
		}
		if id, ok := h.inUse(p.Subject.Package); ok {
			return nil, &Busy{What: p.Subject.ID + " " + p.Subject.Version, Operation: id}
		}
		r := Removed{ID: p.Subject.ID, Version: p.Subject.Version, Package: p.Subject.Package, Path: h.pluginPath(p.Dir)}
		if r.Package != "" && exists(h.storePath(r.Package)) {
			r.Path = h.storePath(r.Package)
		}
		r.Bytes = treeBytes(r.Path)
		going, removed = append(going, p), append(removed, r)
		if p.Dir != "" {
			dirs = append(dirs, p.Dir)
		}
	}
	if len(dirs) > 1 {
		return nil, h.claimed(ref.ID, dirs) // which of them is meant is not for a program to say
	}
	if len(going) == 0 {
		return nil, h.notFound(ctx, ref)
	}
	if err := h.remove(ctx, going); err != nil {
		return removed, err
	}
	if len(dirs) > 0 && len(left) > 0 {
		slices.SortFunc(left, versionrange.Compare)
		h.on.note("%s has no default version now; still installed: %s", ref.ID, strings.Join(slices.Compact(left), ", "))
	}
	return removed, nil
}

// alone refuses a version that several packages of the store have.
func (r Ref) alone(holdings []holding, h *Home) error {
	if r.Version == "" || r.Digest != "" {
		return nil
	}
	var found []digest.Digest
	for _, p := range holdings {
		if r.names(p.Subject) && exists(h.storePath(p.Subject.Package)) && !slices.Contains(found, p.Subject.Package) {
			found = append(found, p.Subject.Package)
		}
	}
	if len(found) > 1 {
		return &Ambiguous{Ref: r.String(), Candidates: found}
	}
	return nil
}

// names reports whether the reference means the package.
func (r Ref) names(s subject) bool {
	return r.ID == s.ID && (r.Version == "" || r.Version == s.Version) && (r.Digest == "" || r.Digest == s.Package)
}

// remove moves packages out of sight, forgets them in one transaction, and deletes
// them.
func (h *Home) remove(ctx context.Context, going []holding) error {
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	in := intent{Action: actRemove, Packages: going}
	if err := s.writeIntent(in); err != nil {
		return h.cannotWrite("uninstall", err)
	}
	if err := s.syncIntent(); err != nil {
		return h.cannotWrite("uninstall", err)
	}
	// Readers wait for this transaction: none sees a record of what is gone.
	err = h.update(context.WithoutCancel(ctx), func(tx *state.Tx) error {
		for _, p := range going {
			if err := h.forgetPackage(tx, p); err != nil {
				return err
			}
		}
		if err := h.removeSteps(s, going); err != nil {
			return err
		}
		return step("commit")
	})
	if err == nil {
		return nil
	}
	if h.settleRemove(context.WithoutCancel(ctx), s, in) != nil {
		s.keep = true
	}
	return h.cannotWrite("uninstall", err)
}

// removalPlaces names, for the i-th package, what is moved and where to.
func (h *Home) removalPlaces(s *stage, i int, p holding) [][2]string {
	var moves [][2]string
	if p.Dir != "" {
		moves = append(moves, [2]string{h.pluginPath(p.Dir), s.join(fmt.Sprintf("plugin-%d", i))})
	}
	if p.Subject.Package != "" {
		moves = append(moves, [2]string{h.storePath(p.Subject.Package), s.join(fmt.Sprintf("store-%d", i))})
	}
	return moves
}

// removeSteps moves what is still there.
func (h *Home) removeSteps(s *stage, going []holding) error {
	for i, p := range going {
		for _, m := range h.removalPlaces(s, i, p) {
			if !exists(m[0]) {
				continue
			}
			if err := step("remove"); err != nil {
				return err
			}
			if err := moveTree(m[0], m[1]); err != nil {
				return err
			}
		}
	}
	return h.syncPlaces()
}

// settleRemove puts everything back while a record of it is left, and else takes
// away what is left on disk.
func (h *Home) settleRemove(ctx context.Context, s *stage, in intent) error {
	recorded := false
	err := h.state.View(ctx, func(tx *state.Tx) error {
		for _, p := range in.Packages {
			rec, err := optional(tx.Install(p.Subject.Package))
			if err != nil {
				return err
			}
			def, err := optional(tx.Default(p.Dir))
			if err != nil {
				return err
			}
			recorded = recorded || rec != nil || p.Dir != "" && def != nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !recorded {
		return h.removeSteps(s, in.Packages)
	}
	for i, p := range in.Packages {
		for _, m := range h.removalPlaces(s, i, p) {
			if err := putBack(m[1], m[0]); err != nil {
				return err
			}
		}
	}
	return h.syncPlaces()
}

// forgetPackage removes what is recorded about a package that goes. Decisions
// against it stay: they hold again when the same bytes come back.
func (h *Home) forgetPackage(tx *state.Tx, p holding) error {
	if p.Dir != "" {
		if err := tx.RemoveDefault(p.Dir); err != nil {
			return err
		}
		if err := tx.RemoveSeen(p.Dir); err != nil {
			return err
		}
	}
	if pkg := p.Subject.Package; pkg != "" {
		for _, forget := range []func(digest.Digest) error{tx.RemoveInstall, tx.RemoveTrust, tx.RemoveEnablement} {
			if err := forget(pkg); err != nil {
				return err
			}
		}
		if err := removeApprovals(tx, pkg); err != nil {
			return err
		}
		if err := removeDefaults(tx, pkg); err != nil {
			return err
		}
	}
	return tx.AppendEvent(h.event(EventUninstall, p.Subject.ID, p.Subject.Version, p.Subject.Package, nil))
}

// removeDefaults forgets which directories are recorded as holding a package, also
// one whose files are not that package any more.
func removeDefaults(tx *state.Tx, pkg digest.Digest) error {
	defaults, err := tx.Defaults()
	if err != nil {
		return err
	}
	for _, d := range defaults {
		if d.Package != pkg {
			continue
		}
		if err := tx.RemoveDefault(d.Dir); err != nil {
			return err
		}
	}
	return nil
}

// removeApprovals forgets what the locks of projects approved for a package.
func removeApprovals(tx *state.Tx, pkg digest.Digest) error {
	approvals, err := tx.ProjectApprovals("")
	if err != nil {
		return err
	}
	for _, a := range approvals {
		if a.Package != pkg {
			continue
		}
		if err := tx.RemoveProjectApproval(a.Root, pkg); err != nil {
			return err
		}
	}
	return nil
}
