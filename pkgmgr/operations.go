package pkgmgr

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// OperationRequest describes an operate call before it is sent.
type OperationRequest struct {
	Action         string
	Input          []byte // one JSON document
	IdempotencyKey string
	Dev            bool
}

// StartOperation records an operation as running, before its request is sent. With
// an idempotency key it decides in the same transaction whether the operation may
// run at all: the recorded one is returned where the plugin answered it already, for
// the same input; *Busy while one runs; *Outcome where it must not run again.
// *BadInput for an input that is no strict JSON.
func (h *Home) StartOperation(ctx context.Context, a *Approval, req OperationRequest) (replay *state.Operation, err error) {
	if err := ijson.Check(req.Input); err != nil {
		return nil, &BadInput{Action: req.Action, Err: err}
	}
	canonical, err := digest.Canonical(req.Input)
	if err != nil {
		return nil, &BadInput{Action: req.Action, Err: err}
	}
	op := state.Operation{
		ID: a.Call.ID, PluginID: a.Manifest.ID, Version: a.Manifest.Version, Package: a.Package,
		ProjectRoot: a.ProjectRoot, ProjectID: a.ProjectID, Action: req.Action, InputDigest: digest.Of(canonical),
		IdempotencyKey: req.IdempotencyKey, Dev: req.Dev, State: state.Running, StartedAt: h.now().UTC(),
	}
	err = h.update(ctx, func(tx *state.Tx) error {
		if req.IdempotencyKey != "" {
			earlier, err := optional(tx.OperationByKey(op.PluginID, op.Action, op.IdempotencyKey))
			if err != nil {
				return err
			}
			if earlier != nil {
				if again, err := mayRunAgain(*earlier, op); err != nil {
					return err
				} else if !again {
					replay = earlier
					return nil
				}
			}
		}
		return tx.StartOperation(op)
	})
	if isReadOnly(err) {
		return nil, &ReadOnly{Path: h.path}
	}
	return replay, err
}

// mayRunAgain decides about an operation whose key was used before. It is true
// only where the earlier one certainly had no effect.
func mayRunAgain(earlier, op state.Operation) (bool, error) {
	refuse := func(reason string) (bool, error) {
		return false, &Outcome{Operation: earlier.ID, Key: op.IdempotencyKey, State: string(earlier.State), Reason: reason}
	}
	switch {
	case earlier.InputDigest != op.InputDigest || earlier.ProjectRoot != op.ProjectRoot:
		return refuse("the key was used for another input or project")
	case earlier.State == state.Running:
		return false, &Busy{What: "an operation with this key", Operation: earlier.ID}
	case earlier.Result != nil:
		return false, nil // the plugin answered: that answer stands, whatever it was
	case earlier.ResultBytes > 0:
		return refuse("it was answered, and the answer is no longer kept")
	case earlier.EffectState == state.EffectNone:
		return true, nil
	}
	return refuse("its effect is " + string(earlier.EffectState) + "; it is never run again automatically")
}

// A CallRecord is what remains of a call: one durable transaction.
type CallRecord struct {
	Method    Method
	Action    string
	Health    state.Health
	Lines     []state.LogEntry
	Operation *state.Outcome // nil unless an operation was started
	Code      string         // of the fault, or ""
	Dev       bool
}

// RecordCall stores health, log lines, the operation's outcome and one line of
// history. On a read-only data directory it stores nothing, which is no error.
func (h *Home) RecordCall(ctx context.Context, a *Approval, r CallRecord) error {
	err := h.update(ctx, func(tx *state.Tx) error {
		if r.Health.Status != "" {
			if err := tx.PutHealth(r.Health); err != nil {
				return err
			}
		}
		if err := tx.AppendLogs(a.Manifest.ID, r.Lines); err != nil {
			return err
		}
		e := h.event(EventCall, a.Manifest.ID, a.Manifest.Version, a.Package, map[string]string{"method": string(r.Method)})
		e.Project = a.ProjectRoot
		if r.Action != "" {
			e.Detail["action"] = r.Action
		}
		if r.Code != "" {
			e.Detail["code"] = r.Code
		}
		if r.Dev {
			e.Detail["dev"] = "true"
		}
		if r.Operation != nil {
			if err := tx.FinishOperation(a.Call.ID, *r.Operation); err != nil {
				return err
			}
			e.Operation = a.Call.ID
			e.Detail["state"] = string(r.Operation.State)
		}
		return tx.AppendEvent(e)
	})
	if r.Operation == nil && isReadOnly(err) {
		return nil
	}
	return err
}

// CancelOperation records that an operation is to stop and tells its supervisor.
// It does not wait for the end.
func (h *Home) CancelOperation(ctx context.Context, id, by string) (state.Operation, error) {
	var op state.Operation
	err := h.update(ctx, func(tx *state.Tx) (err error) {
		if op, err = tx.Operation(id); err != nil {
			return err
		}
		if op.State != state.Running {
			return &Outcome{Operation: op.ID, Key: op.IdempotencyKey, State: string(op.State), Reason: "it has ended"}
		}
		return tx.RequestCancel(id, state.CancelRequest{At: h.now().UTC(), By: by})
	})
	if errors.Is(err, state.ErrNotFound) {
		return op, &NotFound{Kind: "operation", Name: id}
	}
	if err != nil {
		return op, err
	}
	_, err = h.requestStop(callOf(op), StopCancelled)
	return op, err
}

// Operation returns one operation with its result.
func (h *Home) Operation(ctx context.Context, id string) (op state.Operation, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		op, err = tx.Operation(id)
		return err
	})
	if errors.Is(err, state.ErrNotFound) {
		err = &NotFound{Kind: "operation", Name: id}
	}
	return op, err
}

// Operations returns the newest operations, newest first, of one plugin or, with
// id "", of all.
func (h *Home) Operations(ctx context.Context, id string, limit int) (list []state.Operation, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		list, err = tx.Operations(limit, func(op state.Operation) bool { return id == "" || op.PluginID == id })
		return err
	})
	return list, err
}

// History returns the newest events, newest first, of one plugin or, with id "",
// of all.
func (h *Home) History(ctx context.Context, id string, limit int) (list []state.Event, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		list, err = tx.Events(limit, func(e state.Event) bool { return id == "" || e.ID == id })
		return err
	})
	return list, err
}

// Logs returns the newest log lines of a plugin, oldest first, after a sequence
// number (0: from the start).
func (h *Home) Logs(ctx context.Context, id string, after uint64, limit int) (list []state.LogEntry, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		list, err = tx.Logs(id, after, limit)
		return err
	})
	return list, err
}

// An Obituary makes the receipt of an operation whose supervisor died, from its record and
// the manifest of its package; nil where the operation keeps none.
type Obituary func(op state.Operation, manifest Manifest) (*state.Receipt, error)

// Bury records that the supervisor of a call died: its operations are abandoned with an
// unknown effect and the receipts that write makes of them; nil makes none. The caller has
// ended the call's processes.
func (h *Home) Bury(ctx context.Context, callID string, write Obituary) error {
	err := h.abandon(ctx, callID, write)
	if isReadOnly(err) {
		return nil // nothing can be recorded or removed; the next command that can does it
	}
	if err != nil {
		return err
	}
	return h.removeMarker(callID)
}

// abandon ends the running operations of a call of which nobody knows how they went.
func (h *Home) abandon(ctx context.Context, callID string, write Obituary) error {
	return h.update(ctx, func(tx *state.Tx) error {
		running, err := tx.RunningOperations()
		if err != nil {
			return err
		}
		for _, op := range running {
			if callOf(op) != callID {
				continue
			}
			err = tx.FinishOperation(op.ID, state.Outcome{State: state.Abandoned, EffectState: state.EffectUnknown,
				FinishedAt: h.now().UTC(), Code: "abandoned", Message: "its supervisor died before the operation ended"})
			if err != nil {
				return err
			}
			if err := h.receiptOfDead(tx, op, write); err != nil {
				return err
			}
			e := h.event(EventAbandoned, op.PluginID, op.Version, op.Package, map[string]string{"action": op.Action})
			e.Project, e.Operation = op.ProjectRoot, op.ID
			if err := tx.AppendEvent(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// receiptOfDead stores the receipt of an operation that was running: the plugin's own, had
// it come, would be recorded together with its end. Without the record of its package
// nobody could say whose it would be.
func (h *Home) receiptOfDead(tx *state.Tx, op state.Operation, write Obituary) error {
	if write == nil {
		return nil
	}
	install, err := optional(tx.Install(op.Package))
	if err != nil || install == nil {
		return err
	}
	m, err := ParseManifest(install.ManifestJSON)
	if err != nil || m.Session == nil {
		return nil // a manifest of another time of this program; the operation's record stands
	}
	r, err := write(op, m)
	if err != nil || r == nil {
		return err
	}
	return tx.PutReceipt(*r)
}

// RecordAfter adds what a call showed after its record was written: log lines, and
// another health where health is not nil. On a read-only data directory it adds
// nothing, which is no error.
func (h *Home) RecordAfter(ctx context.Context, a *Approval, health *state.Health, lines []state.LogEntry) error {
	err := h.update(ctx, func(tx *state.Tx) error {
		if health != nil {
			if err := tx.PutHealth(*health); err != nil {
				return err
			}
		}
		return tx.AppendLogs(a.Manifest.ID, lines)
	})
	if isReadOnly(err) {
		return nil
	}
	return err
}
