package pkgmgr

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// RevokeReport says what a revocation did, or what undoing it did.
type RevokeReport struct {
	Denial      Denial
	Already     bool
	Quarantined []Moved // packages moved away, or back
	Stopped     int     // running calls that were told to stop
	StillDenied []Denial
}

// Moved is one package that went into quarantine or came back.
type Moved struct {
	ID, Version string
	Package     digest.Digest
	Path        string // where it is now
}

// quarantineNote lies beside a tree in quarantine: quarantine/<digest>.json. It
// says what the tree cannot say once the database is lost.
type quarantineNote struct {
	Denial  Denial  `json:"denial"`
	Subject subject `json:"subject"`
	// Default: it was the default version of its id.
	Default bool `json:"default,omitzero"`
}

// Revoke denies whatever the denial covers, now and later: the denial is durable
// before anything moves, running calls are told to stop, and every covered
// package goes to quarantine and loses trust and grants. From the denial on there
// is no way back but Unrevoke: what an error or a crash leaves undone, the next
// command does.
func (h *Home) Revoke(ctx context.Context, d Denial) (*RevokeReport, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d.At = h.now().UTC()
	denials, err := h.readDenials()
	if err != nil {
		return nil, err
	}
	out := &RevokeReport{Denial: d}
	if i := slices.IndexFunc(denials, func(o Denial) bool { return o.Subject() == d.Subject() }); i >= 0 {
		out.Already, out.Denial = true, denials[i]
		d = denials[i]
	}
	s, err := h.newStage()
	if err != nil {
		return nil, err
	}
	defer s.discard()
	if err := h.announce(s, intent{Action: actQuarantine, Denial: d}); err != nil {
		return nil, h.cannotWrite("revoke", err)
	}
	if !out.Already {
		if err := h.writeDenials(append(denials, d)); err != nil {
			return nil, err
		}
	}
	if err := h.enforce(ctx, d, out); err != nil {
		s.keep = true
		return out, h.cannotWrite("revoked, but", err)
	}
	return out, nil
}

// announce makes an intent durable.
func (h *Home) announce(s *stage, in intent) error {
	if err := s.writeIntent(in); err != nil {
		return err
	}
	return s.syncIntent()
}

// settleQuarantine enforces a denial that made it into the list, and forgets one
// that did not.
func (h *Home) settleQuarantine(ctx context.Context, in intent) error {
	denials, err := h.readDenials()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(denials, func(d Denial) bool { return d.Subject() == in.Denial.Subject() }) {
		return nil
	}
	return h.enforce(ctx, in.Denial, &RevokeReport{})
}

// enforce does what a denial in the list is for. It may be done again.
func (h *Home) enforce(ctx context.Context, d Denial, out *RevokeReport) (err error) {
	if err := step("stop calls"); err != nil {
		return err
	}
	if out.Stopped, err = h.stopCovered(d); err != nil {
		return err
	}
	if err := h.ensure(quarantineDir); err != nil {
		return err
	}
	holdings, err := h.holdings(ctx, "")
	if err != nil {
		return err
	}
	for _, p := range holdings {
		if p.Subject.Package == "" || !d.covers(p.Subject) {
			continue // what cannot be read has no identity, and cannot run
		}
		if err := h.quarantine(p, d); err != nil {
			return err
		}
		out.Quarantined = append(out.Quarantined, Moved{ID: p.Subject.ID, Version: p.Subject.Version,
			Package: p.Subject.Package, Path: h.quarantinePath(p.Subject.Package)})
	}
	return h.stripCovered(ctx, d, !out.Already || len(out.Quarantined) > 0)
}

// quarantine moves one package: first the store's tree (or, where there is none,
// the directory below plugins/ itself), then the directory below plugins/ goes.
func (h *Home) quarantine(p holding, d Denial) error {
	target := h.quarantinePath(p.Subject.Package)
	note, err := json.Marshal(quarantineNote{Denial: d, Subject: p.Subject, Default: p.Dir != ""})
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	if err := step("note"); err != nil {
		return err
	}
	if err := replaceFile(target+".json", note); err != nil {
		return err
	}
	places := []string{h.storePath(p.Subject.Package)}
	if p.Dir != "" {
		places = append(places, h.pluginPath(p.Dir))
	}
	for _, place := range places {
		if !exists(place) {
			continue
		}
		if err := step("quarantine"); err != nil {
			return err
		}
		if exists(target) {
			err = h.dropTree(place)
		} else {
			err = moveTree(place, target)
		}
		if err != nil {
			return err
		}
	}
	return h.syncPlaces()
}

// dropTree takes a tree out of sight in one step and then removes it.
func (h *Home) dropTree(path string) error {
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	return moveTree(path, s.join("dropped"))
}

// stripCovered takes trust, grants and approvals from everything that the denial
// covers, wherever it stands and even if it is not here at all.
func (h *Home) stripCovered(ctx context.Context, d Denial, news bool) error {
	trees, err := h.quarantinedTrees()
	if err != nil {
		return err
	}
	return h.update(ctx, func(tx *state.Tx) error {
		subjects, err := h.favoured(tx, trees)
		if err != nil {
			return err
		}
		for _, s := range subjects {
			if !d.covers(s) {
				continue
			}
			if err := strip(tx, s.Package); err != nil {
				return err
			}
		}
		if err := h.forgetDefaults(tx, trees); err != nil {
			return err
		}
		if err := step("commit"); err != nil {
			return err
		}
		if !news {
			return nil
		}
		return tx.AppendEvent(h.event(EventRevoke, d.PluginID, "", d.Digest,
			map[string]string{"subject": d.Subject(), "reason": d.Reason}))
	})
}

// forgetDefaults forgets that directories that are gone held packages that are in
// quarantine now: what is put there later is something else.
func (h *Home) forgetDefaults(tx *state.Tx, trees []digest.Digest) error {
	defaults, err := tx.Defaults()
	if err != nil {
		return err
	}
	for _, d := range defaults {
		if !slices.Contains(trees, d.Package) || exists(h.pluginPath(d.Dir)) {
			continue
		}
		if err := tx.RemoveDefault(d.Dir); err != nil {
			return err
		}
		if err := tx.RemoveSeen(d.Dir); err != nil {
			return err
		}
	}
	return nil
}

// favoured identifies the packages in quarantine and every other one that a
// decision favours.
func (h *Home) favoured(tx *state.Tx, trees []digest.Digest) ([]subject, error) {
	known := map[digest.Digest]subject{}
	for _, pkg := range trees {
		s, err := h.quarantinedSubject(tx, pkg)
		if err != nil {
			return nil, err
		}
		known[pkg] = s
	}
	add := func(s subject) error {
		if _, ok := known[s.Package]; ok {
			return nil
		}
		in, err := optional(tx.Install(s.Package))
		if in != nil {
			s = subjectOf(*in)
		}
		known[s.Package] = s
		return err
	}
	standings, err := tx.Standings()
	if err != nil {
		return nil, err
	}
	for pkg, st := range standings {
		if t := st.Trust; t != nil {
			if err := add(subject{ID: t.ID, Version: t.Version, Package: pkg, Fingerprint: t.Fingerprint}); err != nil {
				return nil, err
			}
		}
	}
	approvals, err := tx.ProjectApprovals("")
	if err != nil {
		return nil, err
	}
	for _, a := range approvals {
		if err := add(subject{ID: a.ID, Package: a.Package}); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Values(known)), nil
}

// strip forgets every decision in favour of a package.
func strip(tx *state.Tx, pkg digest.Digest) error {
	if err := tx.RemoveTrust(pkg); err != nil {
		return err
	}
	if err := tx.RemoveEnablement(pkg); err != nil {
		return err
	}
	return removeApprovals(tx, pkg)
}

// quarantinedSubject identifies a tree in quarantine by its record, else by the
// note beside it.
func (h *Home) quarantinedSubject(tx *state.Tx, pkg digest.Digest) (subject, error) {
	in, err := optional(tx.Install(pkg))
	if err != nil {
		return subject{}, err
	}
	if in != nil {
		return subjectOf(*in), nil
	}
	note, err := readQuarantineNote(h.quarantinePath(pkg))
	if err != nil {
		return subject{Package: pkg}, nil // lost: only its digest is known
	}
	note.Subject.Package = pkg
	return note.Subject, nil
}

func readQuarantineNote(path string) (quarantineNote, error) {
	var note quarantineNote
	raw, err := readOwn(path+".json", maxNoteBytes)
	if err != nil {
		return note, err
	}
	return note, ijson.Unmarshal(raw, &note)
}
