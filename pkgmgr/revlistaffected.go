package pkgmgr

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// An Affected is a package that a signed list names, and how it concerns this machine
// and the project at hand.
type Affected struct {
	ID, Version string
	Package     digest.Digest
	Listed      []Listed // what blocks it first
	Installed   bool
	Locked      string    // the platform under which the lock names it, "" where it does not
	Calls       int       // that the history still holds
	LastCall    time.Time // zero: none is recorded
}

// Affected returns what signed lists name among what is installed, what the lock names
// for any platform, and what was called in the past, also where it is gone: sorted by
// id, version and digest. A package that is gone is compared by what is still recorded
// of it.
func (h *Home) Affected(ctx context.Context, lock *Lock) ([]Affected, error) {
	lists, err := h.openLists()
	if err != nil {
		return nil, err
	}
	defer lists.close()
	if len(lists) == 0 {
		return nil, nil
	}
	type known struct {
		subject
		Affected
	}
	found := map[digest.Digest]*known{}
	note := func(s subject) *Affected {
		k := found[s.Package]
		if k == nil {
			k = &known{Affected: Affected{ID: s.ID, Version: s.Version, Package: s.Package}}
			found[s.Package] = k
		}
		k.subject = subject{ID: s.ID, Version: s.Version, Package: s.Package, Archive: cmp.Or(k.Archive, s.Archive),
			Manifest: cmp.Or(k.Manifest, s.Manifest), Fingerprint: cmp.Or(k.Fingerprint, s.Fingerprint), Publisher: cmp.Or(k.publisher(), s.publisher())}
		return &k.Affected
	}
	holdings, err := h.holdings(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, p := range holdings {
		if p.Subject.Package != "" {
			note(p.Subject).Installed = true
		}
	}
	if lock != nil {
		for _, e := range lock.File.Plugins {
			for platform, at := range e.Platforms {
				a := note(subject{ID: e.ID, Version: e.Version, Package: at.Package, Archive: at.Archive, Manifest: at.Manifest, Fingerprint: at.Fingerprint})
				if a.Locked == "" || platform < a.Locked {
					a.Locked = platform
				}
			}
		}
	}
	err = h.state.View(ctx, func(tx *state.Tx) error {
		called := func(id, version string, pkg digest.Digest, at time.Time) error {
			s := subject{ID: id, Version: version, Package: pkg}
			if in, err := optional(tx.Install(pkg)); err != nil {
				return err
			} else if in != nil {
				s = subjectOf(*in)
			}
			a := note(s)
			a.Calls++
			if at.After(a.LastCall) {
				a.LastCall = at
			}
			return nil
		}
		events, err := tx.Events(0, func(e state.Event) bool { return (e.Kind == EventCall || e.Kind == EventAbandoned) && e.Package != "" })
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := called(e.ID, e.Version, e.Package, e.At); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Affected
	for _, k := range found {
		if k.Listed, err = h.listedIn(lists, k.subject, nil); err != nil {
			return nil, err
		}
		if len(k.Listed) > 0 {
			out = append(out, k.Affected)
		}
	}
	slices.SortFunc(out, func(a, b Affected) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Package, b.Package))
	})
	return out, nil
}
