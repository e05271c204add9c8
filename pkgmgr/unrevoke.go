package pkgmgr

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Unrevoke lifts the denial with this subject and brings back every package in
// quarantine that no other denial covers. It comes back untrusted. A package whose
// files were changed in quarantine stays there: the rest is done, and the error is
// an *Integrity beside the report.
func (h *Home) Unrevoke(ctx context.Context, subjectText string) (*RevokeReport, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if d, err := digest.Parse(subjectText); err == nil {
		subjectText = string(d)
	}
	denials, err := h.readDenials()
	if err != nil {
		return nil, err
	}
	out := &RevokeReport{}
	rest := slices.DeleteFunc(slices.Clone(denials), func(d Denial) bool {
		if d.Subject() == subjectText {
			out.Denial = d
			return true
		}
		return false
	})
	listed := len(rest) != len(denials)
	if !listed {
		if out.Denial, err = h.deniedByQuarantine(ctx, subjectText, denials); err != nil {
			return nil, err
		}
	}
	going, err := h.releasable(ctx, rest, out)
	if err != nil {
		return nil, err
	}
	s, err := h.newStage()
	if err != nil {
		return nil, err
	}
	defer s.discard()
	if err := h.announce(s, intent{Action: actRelease, Denial: out.Denial, Packages: going}); err != nil {
		return nil, h.cannotWrite("unrevoke", err)
	}
	if listed {
		if err := h.writeDenials(rest); err != nil {
			return nil, err
		}
	}
	if err := h.release(ctx, out.Denial, going, out); err != nil {
		var damaged *Integrity
		s.keep = !errors.As(err, &damaged)
		return out, h.cannotWrite("not revoked any more, but", err)
	}
	return out, nil
}

// deniedByQuarantine finds the denial that a tree in quarantine stands for when the
// list of denials lost it: named as it was made, or by the package digest.
func (h *Home) deniedByQuarantine(ctx context.Context, text string, denials []Denial) (lost Denial, err error) {
	trees, err := h.quarantinedTrees()
	if err != nil {
		return lost, err
	}
	found := false
	err = h.state.View(ctx, func(tx *state.Tx) error {
		for _, pkg := range trees {
			s, err := h.quarantinedSubject(tx, pkg)
			if err != nil {
				return err
			}
			if found || coveredBy(denials, s) != nil {
				continue // the list says why it is there
			}
			lost, found = Denial{Digest: pkg, Reason: inQuarantine}, string(pkg) == text
			if note, err := readQuarantineNote(h.quarantinePath(pkg)); err == nil && !found && note.Denial.Subject() == text {
				lost, found = note.Denial, true
			}
		}
		return nil
	})
	if err != nil || found {
		return lost, err
	}
	e := &NotFound{Kind: "revocation", Name: text}
	for _, d := range denials {
		e.Near = append(e.Near, d.Subject())
	}
	return Denial{}, e
}

// coveredBy returns the first denial that covers s, or nil.
func coveredBy(denials []Denial, s subject) *Denial {
	for i := range denials {
		if denials[i].covers(s) {
			return &denials[i]
		}
	}
	return nil
}

// releasable returns what the lifted denial covered and no remaining one does, in the
// order in which it may become the default version of its id: first the one that was
// before, then by falling version.
func (h *Home) releasable(ctx context.Context, rest []Denial, out *RevokeReport) ([]holding, error) {
	trees, err := h.quarantinedTrees()
	if err != nil {
		return nil, err
	}
	var going []holding
	before := map[digest.Digest]int{} // 0 for what was the default version, else 1
	err = h.state.View(ctx, func(tx *state.Tx) error {
		for _, pkg := range trees {
			s, err := h.quarantinedSubject(tx, pkg)
			if err != nil {
				return err
			}
			if !out.Denial.covers(s) {
				continue
			}
			if other := coveredBy(rest, s); other != nil {
				if !slices.Contains(out.StillDenied, *other) {
					out.StillDenied = append(out.StillDenied, *other)
				}
				h.renote(s, *other)
				continue
			}
			going, before[pkg] = append(going, holding{Subject: s}), 1
			if note, err := readQuarantineNote(h.quarantinePath(pkg)); err == nil && note.Default {
				before[pkg] = 0
			}
		}
		return nil
	})
	slices.SortStableFunc(going, func(a, b holding) int {
		return cmp.Or(before[a.Subject.Package]-before[b.Subject.Package],
			versionrange.Compare(b.Subject.Version, a.Subject.Version))
	})
	return going, err
}

// renote tells a tree in quarantine why it stays there. Without it, the list of
// denials still does.
func (h *Home) renote(s subject, d Denial) {
	path := h.quarantinePath(s.Package)
	old, err := readQuarantineNote(path)
	note := quarantineNote{Denial: d, Subject: s, Default: err == nil && old.Default}
	if raw, err := json.Marshal(note); err == nil {
		_ = replaceFile(path+".json", raw)
	}
}

// settleRelease brings back what a lifted denial covered, unless the denial is
// still in the list.
func (h *Home) settleRelease(ctx context.Context, in intent) error {
	denials, err := h.readDenials()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(denials, func(d Denial) bool { return d.Subject() == in.Denial.Subject() }) {
		return nil
	}
	err = h.release(ctx, in.Denial, in.Packages, &RevokeReport{})
	var damaged *Integrity
	if errors.As(err, &damaged) {
		return nil // it stays in quarantine
	}
	return err
}

// release brings packages back. It may be done again.
func (h *Home) release(ctx context.Context, d Denial, going []holding, out *RevokeReport) error {
	if err := h.ensure(storeDir, pluginsDir); err != nil {
		return err
	}
	var damaged error
	for _, p := range going {
		m, err := h.bringBack(ctx, p.Subject)
		var integrity *Integrity
		switch {
		case errors.As(err, &integrity):
			damaged = errors.Join(damaged, err)
		case err != nil:
			return err
		default:
			out.Quarantined = append(out.Quarantined, m)
		}
	}
	err := h.update(ctx, func(tx *state.Tx) error {
		return tx.AppendEvent(h.event(EventUnrevoke, d.PluginID, "", d.Digest, map[string]string{"subject": d.Subject()}))
	})
	return errors.Join(damaged, err)
}

// bringBack moves one package out of quarantine into the store, and makes it the
// default version where its id has none. It stays untrusted.
func (h *Home) bringBack(ctx context.Context, s subject) (Moved, error) {
	from, place := h.quarantinePath(s.Package), h.storePath(s.Package)
	m := Moved{ID: s.ID, Version: s.Version, Package: s.Package, Path: place}
	// Nothing in favour of it may come back before the tree does.
	err := h.update(ctx, func(tx *state.Tx) error { return strip(tx, s.Package) })
	if err != nil {
		return m, err
	}
	if exists(from) {
		if err := h.outOfQuarantine(ctx, from, place, s.Package); err != nil {
			return m, err
		}
	}
	if err := os.Remove(from + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	c, err := readTree(ctx, place)
	if err != nil {
		return m, err
	}
	rec := recordOf(c, "quarantine", h.now().UTC())
	rec.Archive = s.Archive
	m.ID, m.Version = rec.ID, rec.Version
	p, err := h.plan(ctx, rec, DefaultKeep)
	var claimed *Claimed
	var foreign *ForeignDirectory
	if errors.As(err, &claimed) || errors.As(err, &foreign) {
		// Somebody else's directory has the id now: this one stays in the store.
		return m, h.update(ctx, func(tx *state.Tx) error { return tx.PutInstall(rec) })
	}
	if err != nil || p.Unchanged {
		return m, err
	}
	if old, _, err := h.recordsFor(ctx, rec); err != nil {
		return m, err
	} else if old != nil {
		p.Install = *old
	}
	return m, h.makeDefault(ctx, p, EventInstall)
}

// outOfQuarantine moves a tree that still has its digest into the store.
func (h *Home) outOfQuarantine(ctx context.Context, from, place string, pkg digest.Digest) error {
	found, err := hashPath(ctx, from)
	if err != nil && !isFault(err) {
		return err
	}
	if err != nil || found != pkg {
		damage := &Integrity{What: "package digest", Expected: pkg, Found: found, Where: from,
			Causes: []string{"the files were changed while they were in quarantine"}}
		return errors.Join(damage, err)
	}
	if err := step("release"); err != nil {
		return err
	}
	if exists(place) {
		err = h.dropTree(from)
	} else {
		err = moveTree(from, place)
	}
	if err != nil {
		return err
	}
	return h.syncPlaces()
}
