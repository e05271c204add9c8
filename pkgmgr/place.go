package pkgmgr

import (
	"context"
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// place finds the tree of the selection on disk. The default version is what
// plugins/<dir> holds: where that is gone, only a reference to a version or a lock
// finds the version in the store.
func (h *Home) place(ctx context.Context, sel *selection) error {
	sel.path = ""
	switch {
	case sel.recorded != "" && !sel.foreign:
		h.placeRecorded(sel)
	case !sel.wanted:
		if err := h.placeByHand(ctx, sel); err != nil {
			return err
		}
	}
	if sel.path != "" {
		return nil
	}
	if sel.install != nil || sel.recorded != "" {
		if err := h.checkDenied(sel.subject()); err != nil {
			return err // moved to quarantine: say so rather than "not found"
		}
	}
	if sel.locked != nil {
		return &Drift{Lock: sel.lock.Path, ID: sel.ref.ID, What: DriftNotInstalled,
			Wanted: sel.locked.Version + " " + string(sel.recorded)}
	}
	return h.notFound(ctx, sel.ref)
}

func (h *Home) placeRecorded(sel *selection) {
	if sel.dirName != "" && !exists(h.pluginPath(sel.dirName)) {
		sel.dirName = ""
		if !sel.wanted {
			return
		}
	}
	switch stored := h.storePath(sel.recorded); {
	case sel.install != nil && exists(stored):
		sel.path = stored
	case sel.dirName != "":
		sel.path = h.pluginPath(sel.dirName)
	}
}

// placeByHand looks for a directory below plugins/ that states the id.
func (h *Home) placeByHand(ctx context.Context, sel *selection) error {
	claims, err := h.claims(sel.ref.ID)
	if err != nil || len(claims) == 0 {
		return err
	}
	if len(claims) > 1 {
		return h.claimed(sel.ref.ID, claims)
	}
	sel.dirName = claims[0]
	// It may have been trusted there.
	err = h.state.View(ctx, func(tx *state.Tx) error {
		def, err := optional(tx.Default(sel.dirName))
		if err != nil || def == nil || def.ID != sel.ref.ID {
			return err
		}
		sel.recorded = def.Package
		if sel.install, err = optional(tx.Install(def.Package)); err != nil {
			return err
		}
		return sel.load(tx, "")
	})
	if err != nil {
		return err
	}
	if sel.recorded != "" {
		h.placeRecorded(sel)
		return nil
	}
	sel.path = h.pluginPath(sel.dirName)
	sel.stated = h.stated(sel.path)
	return nil
}

// stated is what the manifest of a package says that was never recorded. Its other
// digests are not known without reading it whole.
func (h *Home) stated(path string) subject {
	root, err := openTree(path)
	if err != nil {
		return subject{}
	}
	defer root.Close()
	m, raw, err := readManifest(root, path)
	if err != nil {
		return subject{}
	}
	s := subject{ID: m.ID, Version: m.Version, Publisher: m.publisher()}
	s.Manifest, _ = m.digestOf(raw)
	return s
}

// notFound says that a package is in quarantine, where it is, and otherwise names
// its versions in the store, or the ids that look like the one that was asked for.
func (h *Home) notFound(ctx context.Context, ref Ref) error {
	e := &NotFound{Kind: "plugin", Name: ref.String()}
	var installs []state.Install
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		installs, err = tx.Installs()
		return err
	})
	if err != nil {
		return err
	}
	r := &records{installs: map[digest.Digest]state.Install{}}
	for _, in := range installs {
		r.installs[in.Package] = in
		if in.ID == ref.ID && exists(h.storePath(in.Package)) {
			e.Near = append(e.Near, Ref{ID: in.ID, Version: in.Version}.String())
		}
	}
	quarantined, err := h.quarantined(r)
	if err != nil {
		return err
	}
	for _, i := range quarantined {
		if ref.names(subject{ID: i.ID, Version: i.Version, Package: i.Package}) {
			return &Revoked{ID: i.ID, Version: i.Version, Package: i.Package, Denial: *i.Denial}
		}
	}
	slices.Sort(e.Near)
	if e.Near = slices.Compact(e.Near); e.Near == nil {
		if dirs, err := h.pluginDirs(); err == nil {
			e.Near = near(ref.ID, dirs)
		}
	}
	return e
}
