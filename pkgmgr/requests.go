package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

const pluginStateDir = "plugin-state" // holds a directory of its own for each session plugin

// PluginState returns the directory that a session plugin keeps what it wants in, which
// outlives its processes and versions. It is made, 0700, where it is missing.
func (h *Home) PluginState(id string) (string, error) {
	if err := h.ensure(pluginStateDir); err != nil {
		return "", err
	}
	dir := h.join(pluginStateDir, id)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", h.cannotWrite("plugin state", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return "", h.cannotWrite("plugin state", err)
	case !info.IsDir():
		return "", &UnsafeDirectory{dir, "is not a directory"}
	case hasExecuteBits && info.Mode().Perm()&0o077 != 0:
		return "", &UnsafeDirectory{dir, "is open to others"}
	}
	return dir, nil
}

// A SessionOperation describes a request of a session before it is sent.
type SessionOperation struct {
	ID             string // operationId
	Action         string // CAPABILITY/OPERATION
	RequestDigest  digest.Digest
	IdempotencyKey string
	Retention      string // what the request says of it, "" where it says nothing
	Dev            bool
}

// StartRequest records a request as running, before it is sent. *Busy: one with its key
// is. Whether an earlier one with the key stands in its way is for the plugin's store of
// receipts to say, and for this host's copies where that is gone.
func (h *Home) StartRequest(ctx context.Context, a *Approval, r SessionOperation) error {
	op := state.Operation{
		ID: r.ID, Call: a.Call.ID, PluginID: a.Manifest.ID, Version: a.Manifest.Version, Package: a.Package,
		ProjectRoot: a.ProjectRoot, ProjectID: a.ProjectID, Action: r.Action, InputDigest: r.RequestDigest,
		IdempotencyKey: r.IdempotencyKey, Retention: r.Retention, Dev: r.Dev, State: state.Running, StartedAt: h.now().UTC(),
	}
	err := h.update(ctx, func(tx *state.Tx) error { return tx.StartOperation(op) })
	var held *state.KeyError
	switch {
	case errors.As(err, &held):
		return &Busy{What: "an operation with this key", Operation: held.ID}
	case isReadOnly(err):
		return &ReadOnly{Path: h.path}
	}
	return err
}

// RecordRequest ends a request: its outcome and its receipt, if there is one, are stored
// in one transaction, with one line of history.
func (h *Home) RecordRequest(ctx context.Context, a *Approval, id string, o state.Outcome, receipt *state.Receipt) error {
	return h.update(ctx, func(tx *state.Tx) error {
		op, err := tx.Operation(id)
		if err != nil {
			return err
		}
		if err := tx.FinishOperation(id, o); err != nil {
			return err
		}
		if receipt != nil {
			if err := tx.PutReceipt(*receipt); err != nil {
				return err
			}
		}
		e := h.event(EventCall, a.Manifest.ID, a.Manifest.Version, a.Package,
			map[string]string{"method": string(MethodRequest), "action": op.Action, "state": string(o.State)})
		if o.Code != "" {
			e.Detail["code"] = o.Code
		}
		if op.Dev {
			e.Detail["dev"] = "true"
		}
		e.Project, e.Operation = a.ProjectRoot, id
		return tx.AppendEvent(e)
	})
}

// Receipt returns this host's copy of one receipt, by its id, or by the operation's.
func (h *Home) Receipt(ctx context.Context, id string) (r state.Receipt, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		if r, err = tx.Receipt(id); !errors.Is(err, state.ErrNotFound) {
			return err
		}
		list, err := tx.Receipts(1, func(r state.Receipt) bool { return r.OperationID == id })
		if err == nil && len(list) == 0 {
			return fmt.Errorf("receipt %s: %w", id, state.ErrNotFound)
		}
		if err == nil {
			r = list[0]
		}
		return err
	})
	if errors.Is(err, state.ErrNotFound) {
		err = &NotFound{Kind: "receipt", Name: id}
	}
	return r, err
}

// ReceiptByKey returns this host's newest copy of what a key deduplicates, or nil.
func (h *Home) ReceiptByKey(ctx context.Context, pluginID, action, key string) (r *state.Receipt, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		r, err = optional(tx.ReceiptByKey(pluginID, action, key))
		return err
	})
	return r, err
}

// Receipts returns the newest receipts, newest first, of one plugin or, with id "", of
// all.
func (h *Home) Receipts(ctx context.Context, id string, limit int) (list []state.Receipt, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		list, err = tx.Receipts(limit, func(r state.Receipt) bool { return id == "" || r.PluginID == id })
		return err
	})
	return list, err
}

// CancelledOperations returns those of the call's running operations that somebody asked
// to end, and takes the request back that told the call so.
func (h *Home) CancelledOperations(ctx context.Context, c *Call) (ids []string, err error) {
	os.Remove(h.stopPath(c.ID, StopCancelled)) // before the look: one that comes after it is another
	err = h.state.View(ctx, func(tx *state.Tx) error {
		running, err := tx.RunningOperations()
		for _, op := range running {
			if op.Call == c.ID && op.Cancel != nil {
				ids = append(ids, op.ID)
			}
		}
		return err
	})
	return ids, err
}

// callOf is the call that an operation is part of.
func callOf(op state.Operation) string {
	if op.Call != "" {
		return op.Call
	}
	return op.ID
}
