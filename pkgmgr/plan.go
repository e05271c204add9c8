package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// A plan is what an install or a change of the default version will do, decided
// from records and directories as they are.
type plan struct {
	Installed
	inStore bool // the store's tree is there, intact and sealed
}

// plan decides what publishing rec will do. Directories are looked at before the
// records: a directory that is seen was put there by a transaction that the records
// then show.
func (h *Home) plan(ctx context.Context, rec state.Install, rule DefaultRule) (*plan, error) {
	claims, err := h.claims(rec.ID)
	if err != nil {
		return nil, err
	}
	if len(claims) > 1 || (len(claims) == 1 && claims[0] != rec.ID) {
		return nil, h.claimed(rec.ID, append(claims, rec.ID))
	}
	taken, err := h.placeOf(rec.ID)
	if err != nil {
		return nil, err
	}
	p := &plan{Installed: Installed{Install: rec}}
	old, current, err := h.recordsFor(ctx, rec)
	if err != nil {
		return nil, err
	}
	if old != nil {
		p.InstalledAt = old.InstalledAt
		if p.Archive == "" {
			p.Archive = old.Archive
		}
	}
	switch {
	case !taken:
		current = nil // its directory is gone: in quarantine, or removed by hand
	case current == nil:
		return nil, &ForeignDirectory{Path: h.pluginPath(rec.ID), ID: rec.ID}
	}
	if err := p.setDefault(current, rule); err != nil {
		return nil, err
	}
	return p, h.comparePresent(ctx, p, old != nil && sameFacts(*old, rec), current)
}

// sameFacts reports whether two records say the same about the package itself. A
// record that does not, of the same digest, was damaged and is written again.
func sameFacts(a, b state.Install) bool {
	return a.ID == b.ID && a.Version == b.Version && a.Manifest == b.Manifest && a.Fingerprint == b.Fingerprint &&
		a.Executable == b.Executable && bytes.Equal(a.ManifestJSON, b.ManifestJSON)
}

// placeOf reports whether plugins/<id> exists. Whatever is no package of that id
// there would be lost by a swap, and is refused.
func (h *Home) placeOf(id string) (bool, error) {
	path := h.pluginPath(id)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, &ForeignDirectory{Path: path, ID: id}
	}
	if held, err := h.dirHolds(id); err != nil {
		return false, err
	} else if held != "" && held != id {
		return false, &ForeignDirectory{Path: path, ID: held}
	}
	return true, nil
}

// recordsFor returns the record of rec's package and that of the id's default
// version, nil where there is none.
func (h *Home) recordsFor(ctx context.Context, rec state.Install) (old, current *state.Install, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) error {
		def, err := optional(tx.Default(rec.ID))
		if err != nil {
			return err
		}
		if def != nil {
			if current, err = optional(tx.Install(def.Package)); err != nil {
				return err
			}
		}
		old, err = optional(tx.Install(rec.Package))
		return err
	})
	return old, current, err
}

// setDefault decides whether the package becomes the default version in place of
// current.
func (p *plan) setDefault(current *state.Install, rule DefaultRule) error {
	if current == nil {
		p.Default = true
		return nil
	}
	p.Previous = current.Version
	if current.Package != p.Package && current.Version == p.Version {
		p.SameVersion = current.Package
	}
	switch {
	case rule == DefaultReplace, current.Package == p.Package:
		p.Default = true
	case rule == DefaultKeep:
	case versionrange.Compare(p.Version, current.Version) >= 0:
		p.Default = true
	case rule == DefaultUpgrade:
		return &Downgrade{ID: p.ID, Installed: current.Version, Offered: p.Version}
	}
	return nil
}

// comparePresent decides whether anything is to be done at all.
func (h *Home) comparePresent(ctx context.Context, p *plan, recorded bool, current *state.Install) (err error) {
	if p.inStore, err = h.storeSound(ctx, p.Package); err != nil || !recorded {
		return err
	}
	inPlace := !p.Default
	isCurrent := current != nil && current.Package == p.Package
	if p.inStore && isCurrent {
		if inPlace, err = h.mirrorSound(ctx, p.ID, p.Package); err != nil {
			return err
		}
	}
	p.Unchanged = p.inStore && inPlace
	p.Repaired = !p.inStore || isCurrent && !inPlace
	return nil
}

// fits reports whether what was made ready for an earlier plan is what this one
// needs.
func (p *plan) fits(earlier *plan) bool {
	return earlier != nil && !earlier.Unchanged && p.Default == earlier.Default && p.inStore == earlier.inStore
}

// missingArchive reports whether the store lacks the archive that was just read.
func (h *Home) missingArchive(rec state.Install) (bool, error) {
	if rec.Archive == "" {
		return false, nil
	}
	found, err := hashFile(h.archivePath(rec.Archive))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && found != rec.Archive, err
}
