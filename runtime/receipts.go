package runtime

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/receipt"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// KeysDir is where a host's key for receipts is, below the data directory.
const KeysDir = "keys"

// Obituary returns what makes this host's receipts of operations whose supervisor died:
// they were abandoned, and what they did is not known. dir is the data directory.
func Obituary(dir string, now func() time.Time) pkgmgr.Obituary {
	return func(op state.Operation, m pkgmgr.Manifest) (*state.Receipt, error) {
		capability, name, _ := strings.Cut(op.Action, "/")
		_, declared, ok := m.Session.Operation(capability, name)
		id, valid := wire.ParseUUID(op.ID)
		if !ok || !valid || !declared.HasReceipts() {
			return nil, nil
		}
		r := &wire.Receipt{
			ReceiptID: wire.NewUUID(), PluginID: m.Session.Plugin.PluginID, PublisherID: m.Session.Publisher.PublisherID, PackageVersion: m.Session.PackageVersion,
			ManifestDigest: strings.ToLower(m.Session.Provenance.ManifestDigest), CapabilityID: capability, OperationName: name,
			OperationVersion: declared.OperationVersion, OperationID: id, IdempotencyKey: op.IdempotencyKey, Attempt: 1,
			ExecutionState: wire.ExecutionAbandoned, EffectState: wire.EffectUnknown, StartedAt: op.StartedAt, IssuedAt: now().UTC(),
			RequestDigest: string(op.InputDigest), ExpiresAt: op.StartedAt.Add(lifetime(wire.Retention(op.Retention))),
		}
		return signedCopy(filepath.Join(dir, KeysDir), r, op.Package, now(), byHost)
	}
}

// Obituary is the function Obituary for this host.
func (h *Host) Obituary(op state.Operation, m pkgmgr.Manifest) (*state.Receipt, error) {
	return Obituary(h.Home.Path(), h.now)(op, m)
}

// author says who made a receipt.
type author int

const (
	byPlugin author = iota
	byHost
)

// signedCopy makes this host's copy of a receipt.
func signedCopy(keys string, r *wire.Receipt, pkg digest.Digest, now time.Time, by author) (*state.Receipt, error) {
	key, err := receipt.Open(keys)
	if err != nil {
		return nil, err
	}
	document, err := key.Sign(r.AppendJSON(nil))
	if err != nil {
		return nil, err
	}
	return &state.Receipt{
		ID: r.ReceiptID.String(), PluginID: r.PluginID, Version: r.PackageVersion, Package: pkg, Action: r.CapabilityID + "/" + r.OperationName,
		OperationID: r.OperationID.String(), Key: r.IdempotencyKey, Execution: string(r.ExecutionState), Effect: string(r.EffectState),
		IssuedAt: r.IssuedAt, ExpiresAt: r.ExpiresAt, RecordedAt: now.UTC(), Own: by == byHost, Document: jsontext.Value(document),
	}, nil
}

// copyOf makes this host's signed copy of a receipt that came with the end of a request, or
// that the host made for want of one.
func (h *Host) copyOf(a *pkgmgr.Approval, r *wire.Receipt, o *Running, by author) (*state.Receipt, error) {
	kept, err := signedCopy(filepath.Join(h.Home.Path(), KeysDir), r, a.Package, h.now(), by)
	if err != nil {
		return nil, err
	}
	var said *wire.Error
	switch {
	case o.err == nil && o.result != nil && keepsResult(o) && len(o.result.Payload) <= state.MaxResult:
		kept.Result = jsontext.Value(o.result.Payload)
	case errors.As(o.err, &said):
		kept.Retryable = said.Retryable
		kept.Failure = jsontext.Value((&wire.Error{Code: said.Code, Message: said.Message, Retryable: said.Retryable, BlameDomain: said.BlameDomain, Severity: said.Severity}).AppendJSON(nil))
	}
	return kept, nil
}

// ownReceipt is what this host can tell of an operation whose process ended before it
// could: it was abandoned, and what it did is not known.
func (o *Running) ownReceipt(out state.Outcome) *wire.Receipt {
	m := o.r.approval.Manifest.Session
	execution := wire.ExecutionAbandoned
	var fault *session.Fault
	if out.State == state.Cancelled && !errors.As(o.err, &fault) {
		execution = wire.ExecutionCancelled
	}
	return &wire.Receipt{
		ReceiptID: wire.NewUUID(), PluginID: m.Plugin.PluginID, PublisherID: m.Publisher.PublisherID, PackageVersion: m.PackageVersion,
		ManifestDigest: peerOf(o.r.approval, o.r.schemas).ManifestDigest, CapabilityID: o.op.CapabilityID, OperationName: o.op.Name,
		OperationVersion: o.op.Version, OperationID: o.req.OperationID, IdempotencyKey: o.req.IdempotencyKey, Attempt: max(1, o.req.Attempt),
		ExecutionState: execution, EffectState: wire.EffectUnknown, StartedAt: o.started, IssuedAt: out.FinishedAt, RequestDigest: o.digest,
		ExpiresAt: o.started.Add(lifetime(o.req.Retention)),
	}
}

// lifetime is how long a receipt lasts.
func lifetime(r wire.Retention) time.Duration {
	const day = 24 * time.Hour
	switch r {
	case wire.RetentionNone:
		return 7 * day
	case wire.RetentionEphemeral:
		return day
	case wire.RetentionAudit:
		return 365 * day
	}
	return 30 * day
}

// fromCopy answers a request from this host's copy of its receipt, where there is a
// terminal one and the plugin's own store, which decides as long as it is there, does not
// know the receipt any more. It reports whether the request is answered; an error is the
// answer, too.
func (o *Running) fromCopy(ctx context.Context) (answered bool, err error) {
	r := o.r
	plugin := r.approval.Manifest.ID
	kept, err := r.host.Home.ReceiptByKey(ctx, plugin, o.op.CapabilityID+"/"+o.op.Name, o.req.IdempotencyKey)
	if err != nil || kept == nil || !kept.ExpiresAt.After(r.host.now()) {
		return false, err
	}
	if !r.client.Agreed().Features.Has(wire.Receipts) {
		return false, nil
	}
	_, err = r.client.Receipt(ctx, wire.ReceiptQuery{PluginID: plugin, CapabilityID: o.op.CapabilityID, OperationName: o.op.Name, IdempotencyKey: o.req.IdempotencyKey})
	var said *wire.Error
	if err == nil {
		return false, nil // the plugin's store decides
	}
	if !errors.As(err, &said) || said.Code != wire.CodeNotFound {
		return false, err
	}
	return o.replay(kept)
}

// replay decides by the protocol's table of receipts.
func (o *Running) replay(kept *state.Receipt) (answered bool, err error) {
	var signed receipt.Signed
	if err := ijson.Unmarshal(kept.Document, &signed); err != nil {
		return false, err
	}
	var r wire.Receipt
	if err := wire.Decode(signed.Receipt, &r); err != nil {
		return false, err
	}
	refuse := func(code wire.Code, text string) (bool, error) {
		return true, &wire.Error{Code: code, Message: text, BlameDomain: code.Blame(wire.BlameCaller), Severity: wire.SeverityError, Receipt: &r}
	}
	none := r.EffectState == wire.EffectNone
	uncertain := r.EffectState == wire.EffectUnknown || r.EffectState == wire.EffectPartial
	switch {
	case r.RequestDigest != o.digest:
		return refuse(wire.CodeAlreadyExists, "the key was used for another request")
	case r.ExecutionState == wire.ExecutionAbandoned, uncertain:
		return refuse(wire.CodeFailedPrecondition, "an earlier attempt ended without anybody knowing what it did; it is never run again automatically")
	case r.ExecutionState == wire.ExecutionCompleted && len(kept.Result) == 0:
		return refuse(wire.CodeFailedPrecondition, "it was completed, and its result was not kept")
	case r.ExecutionState == wire.ExecutionCompleted:
		o.result = &RequestResult{Operation: o.ID, Payload: []byte(kept.Result), Class: o.class(), Receipt: &r, Replayed: true, FromCopy: true}
		return true, nil
	case r.ExecutionState == wire.ExecutionFailed && none && kept.Retryable, r.ExecutionState == wire.ExecutionCancelled && none:
		return false, nil // it may run again
	case r.ExecutionState == wire.ExecutionFailed && len(kept.Failure) > 0:
		failure := new(wire.Error)
		if err := wire.Decode([]byte(kept.Failure), failure); err != nil {
			return false, err
		}
		failure.Receipt = &r
		return true, failure
	}
	return refuse(wire.CodeFailedPrecondition, "an earlier attempt with this key has ended")
}

func (o *Running) class() wire.PayloadClass {
	if o.req.Class == "" {
		return wire.ClassInternal
	}
	return o.req.Class
}
