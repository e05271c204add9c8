package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// KeepReceipts bounds the receipts: beyond it the oldest that have expired are dropped,
// and if none has, the oldest.
const KeepReceipts = 100_000

// A Receipt is this host's copy of one receipt, signed. Its key is ID, a UUID.
type Receipt struct {
	ID          string        `json:"id"`
	PluginID    string        `json:"pluginId"`
	Version     string        `json:"version"`
	Package     digest.Digest `json:"package,omitzero"`
	Action      string        `json:"action"` // CAPABILITY/OPERATION
	OperationID string        `json:"operationId"`
	Key         string        `json:"idempotencyKey,omitzero"`
	Execution   string        `json:"executionState"`
	Effect      string        `json:"effectState"`
	IssuedAt    time.Time     `json:"issuedAt"`
	ExpiresAt   time.Time     `json:"expiresAt"`
	RecordedAt  time.Time     `json:"recordedAt"`
	// Own says that this host made it, for an operation whose process died before it
	// could; the plugin's takes its place when it comes.
	Own       bool           `json:"own,omitzero"`
	Document  jsontext.Value `json:"document"` // {receipt, keyId, signature}
	Result    jsontext.Value `json:"result,omitzero"`
	Retryable bool           `json:"retryable,omitzero"` // of a failure: what its error said
	Failure   jsontext.Value `json:"failure,omitzero"`   // the error of a failed operation, as it was sent
}

func receiptKey(pluginID, action, key string) []byte { return operationKey(pluginID, action, key) }

// PutReceipt stores a copy. One that this host made for the same operation is replaced.
func (tx *Tx) PutReceipt(r Receipt) error {
	if r.ID == "" || hasNUL(r.ID, r.PluginID, r.Action, r.Key) || len(r.Result) > MaxResult {
		return fmt.Errorf("%w: receipt %q", ErrRecord, r.ID)
	}
	b, err := tx.writableBucket(bucketReceipts)
	if err != nil {
		return err
	}
	if r.Key != "" {
		key := receiptKey(r.PluginID, r.Action, r.Key)
		before, err := tx.ReceiptByKey(r.PluginID, r.Action, r.Key)
		if err == nil && before.Own && before.ID != r.ID && before.OperationID == r.OperationID {
			if err := tx.removeReceipt(before.ID); err != nil {
				return err
			}
		} else if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := tx.put(bucketReceiptKeys, key, []byte(r.ID)); err != nil {
			return err
		}
	}
	v, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("%w: receipt %s: %w", ErrRecord, r.ID, err)
	}
	if b.Get([]byte(r.ID)) == nil {
		if err := b.SetSequence(b.Sequence() + 1); err != nil {
			return err
		}
	}
	if err := tx.put(bucketReceipts, []byte(r.ID), v); err != nil {
		return err
	}
	if b.Sequence() <= KeepReceipts {
		return nil
	}
	return tx.dropReceipt(r.RecordedAt)
}

// dropReceipt removes the first receipt that has expired, or the first of all: ids rise
// with the time in which they were made.
func (tx *Tx) dropReceipt(now time.Time) error {
	var first, expired string
	err := tx.each(bucketReceipts, nil, func(k, v []byte) error {
		r, err := tx.decodeReceipt(k, v)
		if err != nil {
			return err
		}
		if first == "" {
			first = r.ID
		}
		if r.ExpiresAt.Before(now) {
			expired = r.ID
			return errStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	if expired != "" {
		first = expired
	}
	return tx.removeReceipt(first)
}

func (tx *Tx) removeReceipt(id string) error {
	r, err := tx.Receipt(id)
	if err != nil {
		return err
	}
	if r.Key != "" {
		key := receiptKey(r.PluginID, r.Action, r.Key)
		if holder, err := tx.get(bucketReceiptKeys, key); err == nil && string(holder) == id {
			if err := tx.remove(bucketReceiptKeys, key); err != nil {
				return err
			}
		} else if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	b, err := tx.writableBucket(bucketReceipts)
	if err != nil {
		return err
	}
	if err := b.Delete([]byte(id)); err != nil {
		return err
	}
	return b.SetSequence(b.Sequence() - 1)
}

// Receipt returns one receipt.
func (tx *Tx) Receipt(id string) (Receipt, error) {
	v, err := tx.get(bucketReceipts, []byte(id))
	if err != nil {
		return Receipt{}, fmt.Errorf("receipt %s: %w", id, err)
	}
	return tx.decodeReceipt([]byte(id), v)
}

// ReceiptByKey returns the newest receipt of what an idempotency key deduplicates.
func (tx *Tx) ReceiptByKey(pluginID, action, key string) (Receipt, error) {
	if key == "" || hasNUL(pluginID, action, key) {
		return Receipt{}, ErrNotFound
	}
	v, err := tx.get(bucketReceiptKeys, receiptKey(pluginID, action, key))
	if err != nil {
		return Receipt{}, err
	}
	id := string(v)
	r, err := tx.Receipt(id)
	if errors.Is(err, ErrNotFound) {
		err = tx.damaged(bucketReceiptKeys, receiptKey(pluginID, action, key), fmt.Errorf("receipt %q does not exist", id))
	}
	return r, err
}

// Receipts returns the newest receipts, newest first. keep selects; nil keeps all. A
// limit below one means all.
func (tx *Tx) Receipts(limit int, keep func(Receipt) bool) ([]Receipt, error) {
	list := []Receipt{}
	t, err := tx.tree(bucketReceipts)
	if err != nil || t == nil {
		return list, err
	}
	err = tx.eachBackwards(bucketReceipts, t, func(k, v []byte) error {
		r, err := tx.decodeReceipt(k, v)
		if err != nil {
			return err
		}
		if keep == nil || keep(r) {
			list = append(list, r)
		}
		return stopAt(limit, len(list))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (tx *Tx) decodeReceipt(key, value []byte) (Receipt, error) {
	var r Receipt
	if err := json.Unmarshal(value, &r); err != nil {
		return Receipt{}, tx.damaged(bucketReceipts, key, err)
	}
	if r.ID != string(key) {
		return Receipt{}, tx.damaged(bucketReceipts, key, errEncoding)
	}
	return r, nil
}
