package session

import (
	"sync"
	"time"
)

// A turn is the right to read the connection. A goroutine of the client has it, or whoever
// waits for the result of a request: where requests follow one after the other, nothing is
// handed from one goroutine to another then. It is given up between two frames.
type turn struct {
	interrupt func(time.Time) error // makes a read end at that time; nil: only the client's goroutine reads
	wake      chan struct{}         // of the client's goroutine, while it stands by

	mu       sync.Mutex
	standing bool  // the client's goroutine stands by
	resting  bool  // and looks at nothing until it is woken
	wanted   bool  // it is to read as soon as nobody does
	over     bool  // nothing more is read
	leader   *Call // for whose end somebody reads
	broken   bool  // the leader's read was interrupted
	led      int   // requests for which somebody read
	alone    int   // results in a row that were waited for while nothing else was in flight
}

const (
	// pause is how long nobody need read after a request for whose end somebody did.
	pause = 2 * time.Millisecond
	// habit is how many results in a row make the client's goroutine stand by.
	habit = 4
)

// init makes a turn of which the client's goroutine has the right to read conn.
func (t *turn) init(conn any) {
	t.wake = make(chan struct{}, 1)
	if c, ok := conn.(interface{ SetReadDeadline(time.Time) error }); ok && c.SetReadDeadline(time.Time{}) == nil {
		t.interrupt = c.SetReadDeadline
	}
}

// standBy waits, if others are to read, until they do not. It is called by the client's
// goroutine and reports whether there is more to read.
func (t *turn) standBy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.interrupt == nil || t.wanted || t.alone < habit {
		t.wanted = false
		return !t.over
	}
	t.standing, t.alone = true, 0
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for led := -1; !t.over && (t.leader != nil || !t.wanted && led != t.led); {
		tick := timer.C
		if t.resting = t.leader != nil && led == t.led; t.resting {
			tick = nil // a request that takes its time: yield will tell
		}
		led = t.led
		t.mu.Unlock()
		select {
		case <-t.wake:
		case <-tick:
		}
		t.mu.Lock()
		timer.Reset(pause)
	}
	t.standing, t.wanted, t.resting = false, false, false
	return !t.over
}

// rouse makes the client's goroutine read, unless somebody does who will let it.
func (t *turn) rouse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alone = 0
	if t.standing {
		t.wanted = true
		t.signal()
	}
}

func (t *turn) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// lead gives the turn to whoever waits for the end of the call, if nobody has it.
func (t *turn) lead(call *Call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.standing || t.wanted || t.over || t.leader != nil {
		return false
	}
	t.leader = call
	t.led++
	return true
}

// yield ends the lead. others is that frames for somebody else are expected.
func (t *turn) yield(others bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leader = nil
	if t.broken {
		t.broken = false
		_ = t.interrupt(time.Time{}) // as it was; a closed connection needs none
	}
	t.wanted = t.wanted || others
	if t.wanted || t.resting {
		t.signal()
	}
}

// release makes whoever reads for the end of the call look at it.
func (t *turn) release(call *Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leader == call && !t.broken {
		t.broken = true
		_ = t.interrupt(time.Unix(1, 0)) // a closed connection ends the read by itself
	}
}

// answered counts a terminal frame. alone is that its end was waited for and that nothing
// else is in flight.
func (t *turn) answered(alone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alone++; !alone {
		t.alone = 0
	}
}

// end makes nobody read any more.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.signal()
}
