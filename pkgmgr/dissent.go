package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// dissentsFile lies in revocations/: which blocks of signed lists are known and not
// followed on this machine.
const dissentsFile = "dissent.json"

// EventDissent is the history's kind of a dissent that was declared or withdrawn.
const EventDissent = "revocations.dissent"

// Dissents returns the dissents of this machine, sorted by digest, the expired ones
// too. A file that cannot be read is an error, never an empty one.
func (h *Home) Dissents() (*revlist.Dissents, error) {
	path := h.join(revokedDir, dissentsFile)
	raw, err := readOwn(path, revlist.MaxDissentBytes)
	var bad *Malformed
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &revlist.Dissents{}, nil
	case errors.As(err, &bad):
		return nil, bad
	case err != nil:
		return nil, fmt.Errorf("dissents: %w", err)
	}
	d, err := revlist.ReadDissents(bytes.NewReader(raw))
	if err != nil {
		return nil, &Malformed{Where: filepath.Dir(path), File: dissentsFile, Err: errors.New(err.Error())}
	}
	return d, nil
}

// Dissent records that a block of exactly one digest is not followed on this machine
// until it expires. It replaces an earlier one about its digest. A digest, a reason
// or a time that does not do is *revlist.Error.
func (h *Home) Dissent(ctx context.Context, d revlist.Dissent) error {
	return h.editDissents(ctx, func(all *revlist.Dissents) (*revlist.Dissents, error) { return all.With(d) },
		map[string]string{"digest": string(d.Digest), "reason": d.Reason, "expiresAt": d.ExpiresAt.UTC().Format(time.RFC3339)})
}

// WithdrawDissent follows the lists about a digest again and tells the running calls
// that they block to stop; stopped counts them. A digest without a dissent is *NotFound.
func (h *Home) WithdrawDissent(ctx context.Context, about digest.Digest) (stopped int, err error) {
	err = h.editDissents(ctx, func(all *revlist.Dissents) (*revlist.Dissents, error) {
		rest, found := all.Without(about)
		if !found {
			return nil, &NotFound{Kind: "dissent", Name: string(about)}
		}
		return rest, nil
	}, map[string]string{"digest": string(about), "withdrawn": "true"})
	if err != nil {
		return 0, err
	}
	return h.stopListed()
}

// editDissents replaces the dissents durably and in one step, and records it.
func (h *Home) editDissents(ctx context.Context, edit func(*revlist.Dissents) (*revlist.Dissents, error), detail map[string]string) error {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := h.Dissents()
	if err != nil {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := revlist.WriteDissents(&text, all); err != nil {
		return err
	}
	if err := h.ensure(revokedDir); err != nil {
		return err
	}
	if err := replaceFile(h.join(revokedDir, dissentsFile), text.Bytes()); err != nil {
		return h.cannotWrite("dissents", err)
	}
	return h.update(ctx, func(tx *state.Tx) error {
		return tx.AppendEvent(h.event(EventDissent, "", "", "", detail))
	})
}

// soften finds which of the blocks are not followed here.
func (h *Home) soften(list []Listed, pkg digest.Digest) error {
	var all *revlist.Dissents
	for i := range list {
		if list[i].Entry.Action != revlist.Block {
			continue
		}
		if all == nil {
			var err error
			if all, err = h.Dissents(); err != nil {
				return err
			}
		}
		_, list[i].Dissent = all.Soften(list[i].Entry, pkg, h.now())
	}
	return nil
}
