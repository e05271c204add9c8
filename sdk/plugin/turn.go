package plugin

import (
	"sync/atomic"
	"time"
)

// A turn is the right to read the frames of a connection; one goroutine has it. It runs
// short operations by itself, because a change of the goroutine costs more than most of
// them do. An operation that takes longer loses the turn to a new goroutine, so that
// nothing which comes meanwhile waits for it longer than two looks.
type turn struct {
	begun    uint64          // operations that the reading goroutine has begun; its own
	entry    *operationEntry // of the last one
	running  atomic.Uint64   // the number of the one that it runs, 0 if it reads
	watching atomic.Bool     // a goroutine looks at running
}

const (
	// look is how often it is looked whether an operation keeps the turn.
	look = time.Millisecond
	// looks without an operation end the looking, until the next one.
	looks = 50
	// apart is how many calls of an operation are not tried on the reading goroutine after
	// one that took the turn's time.
	apart = 100
)

// alone reports whether the next call of the operation is to have a goroutine of its
// own: it waits for frames or for the disk, or has shown that it takes its time.
func (e *operationEntry) alone() bool {
	return e.streamIn || e.streamOut || e.receipts || e.slow.Load() > 0 && e.slow.Add(-1) >= 0
}

// perform runs an operation on the reading goroutine. It reports whether that still has
// the turn; if not, it must read and touch nothing more.
func (c *connection) perform(op *Operation) (mine bool) {
	t := &c.turn
	t.begun++
	n := t.begun
	t.entry = op.entry
	t.running.Store(n)
	if !t.watching.Load() && t.watching.CompareAndSwap(false, true) {
		go c.watchTurn()
	}
	returned := false
	defer func() {
		c.work.Done()
		mine = t.running.CompareAndSwap(n, 0)
		if mine && !returned { // the handler has ended its goroutine
			go c.read()
		}
	}()
	op.serve()
	returned = true
	return
}

// watchTurn takes the turn from operations that keep it, as long as there are any.
func (c *connection) watchTurn() {
	t := &c.turn
	last, quiet := uint64(0), 0
	for {
		time.Sleep(look)
		n := t.running.Load()
		switch {
		case n != 0 && n == last:
			if t.running.CompareAndSwap(n, 0) {
				t.entry.slow.Store(apart)
				go c.read()
			}
		case n != 0:
			quiet = 0
		case quiet < looks:
			quiet++
		default:
			t.watching.Store(false)
			if t.running.Load() == 0 || !t.watching.CompareAndSwap(false, true) {
				return
			}
		}
		last = n
	}
}
