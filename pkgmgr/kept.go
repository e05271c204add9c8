package pkgmgr

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// packIntoStore packs the tree at where, which holds the package s, and keeps the
// archive in the store. The caller holds the mutation lock and records the digest.
// *Revoked if a denial covers the archive that this makes, *Integrity if the tree
// is not the package as pack sees it.
func (h *Home) packIntoStore(ctx context.Context, s subject, executable, where string) (digest.Digest, error) {
	if err := h.ensure(archivesDir); err != nil {
		return "", err
	}
	st, err := h.newStage()
	if err != nil {
		return "", err
	}
	defer st.discard()
	root, err := openTree(where)
	if err != nil {
		return "", err
	}
	defer root.Close()
	h.on.stage("packing " + label(s.ID, s.Version))
	sum, packed, err := packTo(ctx, root, st.join("archive"), archive.TarZst, executable)
	if err != nil {
		return "", err
	}
	if packed != s.Package {
		return "", &Integrity{What: "package digest", Expected: s.Package, Found: packed, Where: where,
			Causes: []string{"it holds files that pack leaves out, such as version control data"}}
	}
	s.Archive = sum
	if err := h.checkDenied(s); err != nil {
		return "", err
	}
	if err := h.addArchive(st, sum); err != nil {
		return "", h.cannotWrite("store", err)
	}
	return sum, nil
}

// keepForReview returns the digest of the archive that is kept of a package which
// is about to be trusted, so that a later review can list what was changed in it: the
// recorded one, else one that is packed from the tree at where. "" where that cannot
// be made, because of a bound, of what pack leaves out, or of a store that cannot be
// written: trust does not depend on it, and a note says so. A directory that is thrown
// away keeps none. The caller holds the mutation lock.
func (h *Home) keepForReview(ctx context.Context, c *Contents, where string) (digest.Digest, error) {
	var recorded *state.Install
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		recorded, err = optional(tx.Install(c.Package))
		return err
	})
	if err != nil {
		return "", err
	}
	switch {
	case recorded != nil && recorded.Archive != "":
		return recorded.Archive, nil
	case h.brief:
		return "", nil
	}
	sum, err := h.packIntoStore(ctx, c.subject(), c.Manifest.program(), where)
	if isFault(err) || errors.As(err, new(*Integrity)) || isReadOnly(err) {
		h.on.note("no archive of %s is kept, so that a later review cannot list changed files: %v",
			label(c.Manifest.ID, c.Manifest.Version), err)
		return "", nil
	}
	return sum, err
}

// packedHere reports whether the archive of a package is one that was packed from the
// directory it was installed from, rather than one that somebody gave.
func packedHere(in state.Install) bool {
	if in.Archive == "" || !filepath.IsAbs(in.Source) {
		return false
	}
	if info, err := os.Stat(in.Source); err == nil {
		return info.IsDir()
	}
	_, err := archive.FormatOf(in.Source)
	return err != nil // gone, and its name was not one of an archive
}
