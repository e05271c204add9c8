package plugin

import (
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// progressEvery keeps a request below wire.ProgressPerSecond in any second, with one
// frame to spare for the update that is held when the operation ends.
const progressEvery = time.Second / (wire.ProgressPerSecond - 2)

// A progressPacer holds the newest update until it may be sent.
type progressPacer struct {
	mu   sync.Mutex
	next time.Time
	held *wire.ProgressUpdate
	wait *time.Timer
	over bool
}

// Progress tells the host how far the operation is. It never waits: of more than 20 a
// second the newest are sent. Without the feature progress.v1 it does nothing.
func (o *Operation) Progress(u ProgressUpdate) {
	if !o.conn.features.Has(wire.Progress) {
		return
	}
	b := &wire.ProgressUpdate{
		RequestID: o.request.RequestID, OperationID: o.request.OperationID, Message: shortened(o.hide(u.Message)),
		PercentCompleted: bounded100(u.PercentCompleted), Current: countable(u.Current), Total: countable(u.Total),
	}
	p := &o.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := time.Now(); {
	case p.over:
	case !now.Before(p.next) && p.held == nil:
		p.next = now.Add(progressEvery)
		o.send(b)
	default:
		p.held = b
		if p.wait == nil {
			p.wait = time.AfterFunc(p.next.Sub(now), o.releaseProgress)
		}
	}
}

// releaseProgress sends the update that was held.
func (o *Operation) releaseProgress() {
	p := &o.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait = nil
	if p.held != nil && !p.over {
		o.send(p.held)
		p.held, p.next = nil, time.Now().Add(progressEvery)
	}
}

// flushProgress sends what is held and ends all progress, before the terminal frame.
func (o *Operation) flushProgress() {
	p := &o.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait != nil {
		p.wait.Stop()
	}
	if p.held != nil && !o.silent {
		o.send(p.held)
	}
	p.held, p.over = nil, true
}

// bounded100 returns a percentage that may be sent: NaN is none.
func bounded100(f *float64) *float64 {
	if f == nil || *f != *f {
		return nil
	}
	v := min(max(*f, 0), 100)
	return &v
}

func countable(n *int64) *int64 {
	if n == nil || *n < 0 || *n > wire.MaxSafeInteger {
		return nil
	}
	v := *n
	return &v
}
