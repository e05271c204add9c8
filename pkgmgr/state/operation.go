package state

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	bolt "go.etcd.io/bbolt"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Bounds of the records of operations. Beyond them the oldest finished ones are dropped;
// a running one never is.
const (
	KeepOperations = 10_000
	KeepResults    = 1_000
	MaxResult      = 1 << 20 // bytes of one result
)

// An OperationState is where an operation stands. It starts as running and
// changes once.
type OperationState string

const (
	Running            OperationState = "running"
	Succeeded          OperationState = "succeeded"
	PartiallySucceeded OperationState = "partially_succeeded"
	Failed             OperationState = "failed"
	Cancelled          OperationState = "cancelled"
	Abandoned          OperationState = "abandoned" // its supervisor died first
)

// Terminal reports whether s is a state in which an operation can end.
func (s OperationState) Terminal() bool {
	switch s {
	case Succeeded, PartiallySucceeded, Failed, Cancelled, Abandoned:
		return true
	}
	return false
}

// canBecome is the table of transitions: running to any terminal state, and nothing else.
func (s OperationState) canBecome(next OperationState) bool {
	return s == Running && next.Terminal()
}

// An EffectState says what an operation did outside.
type EffectState string

const (
	EffectNone       EffectState = "none"
	EffectCommitted  EffectState = "committed"
	EffectPartial    EffectState = "partial"
	EffectRolledBack EffectState = "rolled_back"
	EffectUnknown    EffectState = "unknown"
)

// An Operation is one operate call, or one request of a session. Its key is ID, a UUIDv7, so that the order
// of keys is the order of starts.
type Operation struct {
	ID             string         `json:"id"`
	Call           string         `json:"call,omitzero"` // the call it was part of; "": the one with its id
	PluginID       string         `json:"pluginId"`
	Version        string         `json:"version"`
	Package        digest.Digest  `json:"package"`
	ProjectRoot    string         `json:"projectRoot,omitzero"`
	ProjectID      string         `json:"projectId,omitzero"`
	Action         string         `json:"action"`
	InputDigest    digest.Digest  `json:"inputDigest,omitzero"`
	IdempotencyKey string         `json:"idempotencyKey,omitzero"`
	Retention      string         `json:"retention,omitzero"` // of a session's request: how long its receipt lasts
	Dev            bool           `json:"dev,omitzero"`       // made by the author's loop
	State          OperationState `json:"state"`
	EffectState    EffectState    `json:"effectState,omitzero"`
	StartedAt      time.Time      `json:"startedAt"`
	FinishedAt     time.Time      `json:"finishedAt,omitzero"`
	Cancel         *CancelRequest `json:"cancel,omitzero"`
	Code           string         `json:"code,omitzero"`    // of the fault, or ""
	Message        string         `json:"message,omitzero"` // of the fault, or the summary
	ResultBytes    int            `json:"resultBytes,omitzero"`
	Result         jsontext.Value `json:"-"` // only from Tx.Operation; nil with ResultBytes > 0: no longer kept
}

// A CancelRequest asks the supervisor of an operation to end it.
type CancelRequest struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitzero"`
}

// An Outcome ends an operation.
type Outcome struct {
	State       OperationState
	EffectState EffectState
	FinishedAt  time.Time
	Code        string
	Message     string
	Result      jsontext.Value // one JSON document of at most MaxResult bytes, or nil
}

// StartOperation records a new operation as running. ErrExists: the id is taken.
// ErrKeyRunning: another operation of the same plugin id, action and idempotency key is running.
//
// After a finished one with that key the key belongs to the new operation; whether it
// may run again is for the caller to decide, in the same transaction, by OperationByKey.
func (tx *Tx) StartOperation(op Operation) error {
	if op.ID == "" || len(op.ID) > 128 || hasNUL(op.ID, op.PluginID, op.Action, op.IdempotencyKey) {
		return fmt.Errorf("%w: operation %q", ErrRecord, op.ID)
	}
	operations, err := tx.writableBucket(bucketOperations)
	if err != nil {
		return err
	}
	if operations.Get([]byte(op.ID)) != nil {
		return fmt.Errorf("operation %s: %w", op.ID, ErrExists)
	}
	if op.IdempotencyKey != "" {
		if err := tx.claimKey(op); err != nil {
			return err
		}
	}
	op.State, op.FinishedAt, op.ResultBytes = Running, time.Time{}, 0
	if err := tx.putOperation(op); err != nil {
		return err
	}
	if err := tx.put(bucketRunning, []byte(op.ID), []byte{1}); err != nil {
		return err
	}
	if err := operations.SetSequence(operations.Sequence() + 1); err != nil {
		return err
	}
	return tx.dropOldOperations(operations)
}

// claimKey gives the operation's idempotency key to it, unless a running one has it.
func (tx *Tx) claimKey(op Operation) error {
	key := operationKey(op.PluginID, op.Action, op.IdempotencyKey)
	holder, err := tx.get(bucketKeys, key)
	if err == nil {
		_, err = tx.get(bucketRunning, holder)
		if err == nil {
			return &KeyError{Key: op.IdempotencyKey, ID: string(holder)}
		}
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return tx.put(bucketKeys, key, []byte(op.ID))
}

func hasNUL(texts ...string) bool {
	for _, s := range texts {
		if strings.Contains(s, "\x00") {
			return true
		}
	}
	return false
}

func operationKey(pluginID, action, key string) []byte {
	return []byte(pluginID + "\x00" + action + "\x00" + key)
}

// FinishOperation ends a running operation, once. ErrTransition: it has ended, or
// the outcome's state is none to end in.
func (tx *Tx) FinishOperation(id string, o Outcome) error {
	op, err := tx.operation(id)
	if err != nil {
		return err
	}
	if !op.State.canBecome(o.State) {
		return &TransitionError{ID: id, From: op.State, To: o.State}
	}
	if len(o.Result) > MaxResult || o.Result != nil && !o.Result.IsValid() {
		return fmt.Errorf("%w: operation %s: its result of %d bytes is over %d or no JSON", ErrRecord, id, len(o.Result), MaxResult)
	}
	op.State, op.EffectState, op.FinishedAt = o.State, o.EffectState, o.FinishedAt
	op.Code, op.Message, op.ResultBytes = o.Code, o.Message, len(o.Result)
	if err := tx.putOperation(op); err != nil {
		return err
	}
	if err := tx.remove(bucketRunning, []byte(id)); err != nil {
		return err
	}
	if o.Result == nil {
		return nil
	}
	return tx.putResult(id, o.Result)
}

// RequestCancel records that a running operation shall end. The first request stays.
// ErrTransition: the operation has ended.
func (tx *Tx) RequestCancel(id string, r CancelRequest) error {
	op, err := tx.operation(id)
	if err != nil {
		return err
	}
	if op.State != Running {
		return &TransitionError{ID: id, From: op.State, To: Cancelled}
	}
	if op.Cancel != nil {
		return nil
	}
	op.Cancel = &r
	return tx.putOperation(op)
}

// Operation returns one operation with its result.
func (tx *Tx) Operation(id string) (Operation, error) {
	op, err := tx.operation(id)
	if err != nil {
		return Operation{}, err
	}
	if op.ResultBytes > 0 {
		v, err := tx.get(bucketResults, []byte(id))
		if err == nil {
			op.Result = jsontext.Value(v).Clone()
		} else if !errors.Is(err, ErrNotFound) {
			return Operation{}, err
		}
	}
	return op, nil
}

// OperationByKey returns the newest operation of a plugin id and action with an
// idempotency key, with its result.
func (tx *Tx) OperationByKey(pluginID, action, key string) (Operation, error) {
	if key == "" || hasNUL(pluginID, action, key) {
		return Operation{}, ErrNotFound
	}
	v, err := tx.get(bucketKeys, operationKey(pluginID, action, key))
	if err != nil {
		return Operation{}, err
	}
	id := string(v)
	op, err := tx.Operation(id)
	if errors.Is(err, ErrNotFound) {
		err = tx.damaged(bucketKeys, operationKey(pluginID, action, key), fmt.Errorf("operation %q does not exist", id))
	}
	return op, err
}

// Operations returns the newest operations, newest first, without results. keep
// selects; nil keeps all. A limit below one means all.
func (tx *Tx) Operations(limit int, keep func(Operation) bool) ([]Operation, error) {
	list := []Operation{}
	t, err := tx.tree(bucketOperations)
	if err != nil || t == nil {
		return list, err
	}
	err = tx.eachBackwards(bucketOperations, t, func(k, v []byte) error {
		op, err := tx.decodeOperation(k, v)
		if err != nil {
			return err
		}
		if keep == nil || keep(op) {
			list = append(list, op)
		}
		return stopAt(limit, len(list))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// RunningOperations returns the operations that have not ended, oldest first,
// at a cost that does not depend on how many have.
func (tx *Tx) RunningOperations() ([]Operation, error) {
	list := []Operation{}
	err := tx.each(bucketRunning, nil, func(k, _ []byte) error {
		op, err := tx.indexed(bucketRunning, k, k)
		if err != nil {
			return err
		}
		list = append(list, op)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (tx *Tx) operation(id string) (Operation, error) {
	v, err := tx.get(bucketOperations, []byte(id))
	if err != nil {
		return Operation{}, fmt.Errorf("operation %s: %w", id, err)
	}
	return tx.decodeOperation([]byte(id), v)
}

func (tx *Tx) decodeOperation(key, value []byte) (Operation, error) {
	var op Operation
	if err := json.Unmarshal(value, &op); err != nil {
		return Operation{}, tx.damaged(bucketOperations, key, err)
	}
	if op.ID != string(key) {
		return Operation{}, tx.damaged(bucketOperations, key, errEncoding)
	}
	return op, nil
}

func (tx *Tx) putOperation(op Operation) error {
	v, err := json.Marshal(op, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("%w: operation %s: %w", ErrRecord, op.ID, err)
	}
	return tx.put(bucketOperations, []byte(op.ID), v)
}

// putResult stores a result apart from its operation, so that listings and
// neighbours do not carry it, and drops the oldest beyond KeepResults.
func (tx *Tx) putResult(id string, result jsontext.Value) error {
	b, err := tx.writableBucket(bucketResults)
	if err != nil {
		return err
	}
	if err := b.Put([]byte(id), result); err != nil {
		return err
	}
	if b.Sequence() < KeepResults {
		return b.SetSequence(b.Sequence() + 1)
	}
	c := b.Cursor()
	k, _ := c.First()
	if string(k) == id {
		k, _ = c.Next()
	}
	return b.Delete(k)
}

// dropOldOperations removes the oldest finished operations beyond KeepOperations,
// with what refers to them.
func (tx *Tx) dropOldOperations(b *bolt.Bucket) error {
	for excess := int64(b.Sequence()) - KeepOperations; excess > 0; excess-- {
		op, err := tx.oldestFinished()
		if err != nil || op.ID == "" {
			return err
		}
		if err := tx.removeOperation(b, op); err != nil {
			return err
		}
	}
	return nil
}

// oldestFinished returns the first operation that has ended, or none.
func (tx *Tx) oldestFinished() (Operation, error) {
	var oldest Operation
	err := tx.each(bucketOperations, nil, func(k, v []byte) error {
		op, err := tx.decodeOperation(k, v)
		if err == nil && op.State.Terminal() {
			oldest, err = op, errStop
		}
		return err
	})
	return oldest, err
}

func (tx *Tx) removeOperation(b *bolt.Bucket, op Operation) error {
	id := []byte(op.ID)
	if op.IdempotencyKey != "" {
		key := operationKey(op.PluginID, op.Action, op.IdempotencyKey)
		holder, err := tx.get(bucketKeys, key)
		if err == nil && string(holder) == op.ID {
			err = tx.remove(bucketKeys, key)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	results, err := tx.writableBucket(bucketResults)
	if err != nil {
		return err
	}
	if results.Get(id) != nil {
		if err := results.Delete(id); err != nil {
			return err
		}
		if err := results.SetSequence(results.Sequence() - 1); err != nil {
			return err
		}
	}
	if err := b.Delete(id); err != nil {
		return err
	}
	return b.SetSequence(b.Sequence() - 1)
}
