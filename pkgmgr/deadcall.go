package pkgmgr

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// Leave ends the call here and leaves its marker, unlocked: what is unfinished, a
// process that could not be ended or an operation whose end could not be recorded,
// is then for the next command, as if this supervisor had died. It may be called
// more than once, and makes End do nothing.
func (c *Call) Leave() {
	if c.lock != nil {
		c.lock.Unlock()
		c.lock = nil
	}
}

// A DeadCall is a call whose supervisor died. Its marker is locked by the process
// that cleans up after it, so that two do not, and so that a call which was only
// about to begin under that id takes another one.
type DeadCall struct {
	ID   string
	home *Home
	lock *flock.Flock
}

// TakeDeadCalls takes over every dead call that no other process has taken. The
// caller releases each. On a read-only data directory there are none to be taken.
func (h *Home) TakeDeadCalls() []*DeadCall {
	var taken []*DeadCall
	for _, id := range h.callIDs() {
		lock, ok, err := lockExisting(h.join(runningDir, id))
		if ok && err == nil {
			taken = append(taken, &DeadCall{ID: id, home: h, lock: lock})
		}
	}
	return taken
}

// Abandon records the call's operations that have not ended as abandoned with an unknown
// effect, and the receipts that write makes of them; nil makes none. The caller has ended
// the call's processes, or knows that it cannot.
func (d *DeadCall) Abandon(ctx context.Context, write Obituary) error {
	return d.home.abandon(ctx, d.ID, write)
}

// Remove removes what marks the call. The caller has recorded its end.
func (d *DeadCall) Remove() error {
	for _, why := range stopReasons {
		if err := os.Remove(d.home.stopPath(d.ID, why)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return d.home.cannotWrite("call marker", err)
		}
	}
	if err := os.Remove(d.home.join(runningDir, d.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.home.cannotWrite("call marker", err)
	}
	return nil
}

// Release lets go of the call. One that was not removed is there for the next command.
func (d *DeadCall) Release() { d.lock.Unlock() }
