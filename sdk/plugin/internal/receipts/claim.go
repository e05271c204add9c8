package receipts

import (
	"errors"
	"os"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A Claim is the right to run an operation and the duty to say how it ended.
type Claim struct {
	store *Store
	name  string
	lock  *os.File
	keyed bool
}

// patience is how long a claim waits for another that is only just beginning or
// ending, before it calls the operation running.
const patience = 200 * time.Millisecond

// Claim asks for the operation that draft describes: a receipt that is in_progress,
// with effect unknown. Exactly one of the first two results is set if the error is
// nil: the claim, and the draft is on the disk; or the record of an attempt that has
// ended, which is to be answered again. The error is a *Refusal, or what the disk
// failed with.
func (s *Store) Claim(draft *wire.Receipt) (*Claim, *Record, error) {
	if err := s.create(); err != nil {
		return nil, nil, err
	}
	name := nameOf(draft)
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		// Most answers need no lock: records are replaced as a whole.
		before, err := s.read(name)
		if err != nil {
			return nil, nil, err
		}
		switch verdict, refusal := s.judge(before, draft); verdict {
		case replay:
			return nil, before, nil
		case refuse:
			return nil, nil, refusal
		}
		lock, err := tryLock(s.path(name, ".lock"))
		if err != nil {
			return nil, nil, err
		}
		if lock != nil {
			claim, record, err := s.locked(name, lock, draft)
			if claim == nil {
				lock.Close()
			}
			return claim, record, err
		}
		if before != nil && before.Receipt.ExecutionState == wire.ExecutionInProgress {
			return nil, nil, running(&before.Receipt)
		}
		if time.Since(begin) > patience {
			return nil, nil, &Refusal{Code: wire.CodeConflict, Message: "the operation is running"}
		}
	}
}

// locked decides while nobody else can.
func (s *Store) locked(name string, lock *os.File, draft *wire.Receipt) (*Claim, *Record, error) {
	before, err := s.read(name)
	if err != nil {
		return nil, nil, err
	}
	switch verdict, refusal := s.judge(before, draft); verdict {
	case replay:
		return nil, before, nil
	case refuse:
		return nil, nil, refusal
	case undecided:
		// Its holder is gone: it died before it could say how it ended.
		abandon(&before.Receipt)
		before.Receipt.IssuedAt = s.now()
		if err := s.write(name, before); err != nil {
			return nil, nil, err
		}
		return nil, nil, never(&before.Receipt)
	}
	claim := &Claim{store: s, name: name, lock: lock, keyed: draft.IdempotencyKey != ""}
	if err := s.write(name, &Record{Receipt: *draft}); err != nil {
		return nil, nil, err
	}
	return claim, nil, nil
}

// The verdicts on a request, by the record of its tuple.
const (
	run       = iota // it may run, once it holds the lock
	undecided        // in_progress: whoever can lock it knows that its holder is gone
	replay
	refuse
)

// judge is the table of docs/protocol-session.md, rule S-97.
func (s *Store) judge(before *Record, draft *wire.Receipt) (verdict int, refusal *Refusal) {
	if before == nil || !s.now().Before(before.Receipt.ExpiresAt) {
		return run, nil
	}
	r := &before.Receipt
	if r.RequestDigest != draft.RequestDigest {
		return refuse, &Refusal{Code: wire.CodeAlreadyExists, Message: "the idempotency key belongs to another request", Receipt: r}
	}
	switch {
	case r.ExecutionState == wire.ExecutionInProgress:
		return undecided, nil
	case r.ExecutionState == wire.ExecutionAbandoned, r.EffectState == wire.EffectUnknown, r.EffectState == wire.EffectPartial:
		return refuse, never(r)
	case r.ExecutionState == wire.ExecutionCancelled && r.EffectState == wire.EffectNone:
		return run, nil
	case r.ExecutionState == wire.ExecutionCancelled:
		return refuse, &Refusal{Code: wire.CodeFailedPrecondition, Message: "an earlier attempt was cancelled after it had an effect", Receipt: r}
	case r.ExecutionState == wire.ExecutionFailed && r.EffectState == wire.EffectNone && before.Error != nil && before.Error.Retryable:
		return run, nil
	}
	return replay, nil
}

func never(r *wire.Receipt) *Refusal {
	return &Refusal{Code: wire.CodeFailedPrecondition, Message: "the effect of an earlier attempt is not known; it is never run again by itself", Receipt: r}
}

func running(r *wire.Receipt) *Refusal {
	return &Refusal{Code: wire.CodeConflict, Message: "the operation is running", Receipt: r, Existing: wire.Some(r.OperationID)}
}

// Finish puts the end of the operation on the disk and lets go of the claim.
func (c *Claim) Finish(r *Record) error {
	err := c.store.write(c.name, r)
	return errors.Join(err, c.release())
}

// Abandon lets go of the claim and leaves the record in_progress, which from now on
// means abandoned.
func (c *Claim) Abandon() error { return c.release() }

func (c *Claim) release() error {
	if !c.keyed { // nobody else can want the lock: nothing of it need stay
		os.Remove(c.lock.Name())
	}
	return c.lock.Close()
}
