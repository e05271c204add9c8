package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// changed is called when the files of a recorded package were found to be other
// ones. Because an install may just be replacing the tree, it looks again while no
// install can: it returns *Superseded where the files and the records fit after
// all or belong to another install by now, and else records the change, which
// disables the package and takes its grants, and returns *NeedsDecision.
func (h *Home) changed(ctx context.Context, sel *selection, found digest.Digest, fault error) error {
	refusal := &NeedsDecision{ID: sel.ref.ID, Version: sel.version(), Package: found, Status: StatusChanged,
		Detail: fmt.Sprintf("its files are no longer the recorded ones (%s)", sel.recorded)}
	why := changedFiles
	switch {
	case errors.As(fault, new(*Unsealed)):
		refusal.Detail = fault.Error() + resealed
		why = refusal.Detail
	case fault != nil:
		refusal.Detail += ": " + fault.Error()
		why += ": " + fault.Error()
	}
	unlock, err := h.lockMutations(ctx)
	var readOnly *ReadOnly
	var busy *Busy
	switch {
	case errors.As(err, &readOnly):
		return refusal // nobody can be replacing anything
	case errors.As(err, &busy), ctx.Err() != nil:
		return err
	case err != nil:
		return errors.Join(refusal, err)
	}
	defer unlock()
	if fits, err := h.fits(ctx, sel); err != nil {
		return err
	} else if fits {
		return &Superseded{ID: sel.ref.ID}
	}
	return errors.Join(refusal, h.markChangedWhy(ctx, sel.recorded, sel.ref.ID, sel.version(), found, why))
}

// fits reports whether the selection's files are the recorded ones and keep every rule
// that a call checks, or whether the records say something else of their place by now.
func (h *Home) fits(ctx context.Context, sel *selection) (bool, error) {
	var in *state.Install
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		in, err = optional(tx.Install(sel.recorded))
		return err
	})
	if err != nil || in == nil {
		return err == nil, err
	}
	now, err := h.currentDefault(ctx, sel)
	if err != nil || now.Package != sel.recorded {
		return err == nil, err
	}
	sound, err := holds(ctx, sel.path, sel.recorded)
	if err == nil && sound {
		sound, err = isSealed(sel.path)
	}
	if err == nil && sound {
		sound, err = statesManifest(sel.path, in.ManifestJSON)
	}
	if err != nil || !sound || sel.dirName == "" {
		return sound, err
	}
	return h.mirrorSound(ctx, sel.dirName, sel.recorded)
}

// statesManifest reports whether the manifest of a tree is the recorded one, byte for
// byte.
func statesManifest(tree string, recorded []byte) (bool, error) {
	root, err := openTree(tree)
	if err != nil {
		return false, err
	}
	defer root.Close()
	_, raw, err := readManifest(root, tree)
	if isFault(err) {
		return false, nil
	}
	return bytes.Equal(raw, recorded), err
}

// currentDefault returns what is recorded now for the selection's place.
func (h *Home) currentDefault(ctx context.Context, sel *selection) (state.Default, error) {
	if sel.dirName == "" {
		return state.Default{Package: sel.recorded}, nil
	}
	var now state.Default
	err := h.state.View(ctx, func(tx *state.Tx) error {
		def, err := optional(tx.Default(sel.dirName))
		if def != nil {
			now = *def
		}
		return err
	})
	return now, err
}

// markChanged records a change. On a read-only data directory the refusal alone
// must do.
func (h *Home) markChanged(ctx context.Context, recorded digest.Digest, id, version string, found digest.Digest) error {
	return h.markChangedWhy(ctx, recorded, id, version, found, changedFiles)
}

// changedFiles is why a package is blocked whose files have another digest.
const changedFiles = "its installed files were changed after the review"

func (h *Home) markChangedWhy(ctx context.Context, recorded digest.Digest, id, version string, found digest.Digest, why string) error {
	err := h.update(ctx, func(tx *state.Tx) error {
		return h.blockChanged(tx, recorded, id, version, found, why)
	})
	if isReadOnly(err) {
		return nil
	}
	return err
}

// blockChanged blocks a package digest that somebody had decided for, and takes its
// grants. why is what people are told.
func (h *Home) blockChanged(tx *state.Tx, recorded digest.Digest, id, version string, found digest.Digest, why string) error {
	standing, err := tx.Standing(recorded)
	if err != nil || standing.Blocked(state.BlockChanged) != nil {
		return err
	}
	if favoured, err := isFavoured(tx, standing); err != nil || !favoured {
		return err
	}
	if err := tx.RemoveEnablement(recorded); err != nil {
		return err
	}
	b := state.Block{Package: recorded, Kind: state.BlockChanged, At: h.now().UTC(), Detail: why}
	if err := tx.PutBlock(b); err != nil {
		return err
	}
	return tx.AppendEvent(h.event(EventChanged, id, version, recorded, map[string]string{"found": string(found)}))
}

// isFavoured reports whether a person or a project's lock decided for the package.
func isFavoured(tx *state.Tx, s state.Standing) (bool, error) {
	if s.Trust != nil || s.Enablement != nil {
		return true, nil
	}
	approvals, err := tx.ProjectApprovals("")
	for _, a := range approvals {
		if a.Package == s.Package {
			return true, nil
		}
	}
	return false, err
}
