package runtime

import (
	"context"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/session"
)

// watch sees stops from outside: it asks what is in flight to stop, gives it the grace,
// and then ends the child. The returned function ends the watch.
func (r *hosting) watch(outer context.Context, end context.CancelCauseFunc) (done func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		cause := r.awaitStop(outer, quit)
		if cause == nil {
			return
		}
		r.halt(cause)
		grace := time.NewTimer(process.DefaultGrace)
		defer grace.Stop()
		select {
		case <-quit:
		case <-r.child.Done():
		case <-grace.C:
		case <-r.host.Force:
		}
		end(cause)
		select {
		case <-quit: // it ended by itself, in order
		default:
			r.child.Kill(cause.Error())
		}
	}()
	return func() { close(quit); <-gone }
}

// awaitStop returns why the session is to end, or nil when quit is closed first. Single
// operations that somebody asked to end are told so.
func (r *hosting) awaitStop(outer context.Context, quit <-chan struct{}) error {
	poll := time.NewTicker(pkgmgr.StopPoll)
	defer poll.Stop()
	for {
		select {
		case <-quit:
			return nil
		case <-outer.Done():
			return context.Cause(outer)
		case <-poll.C:
			why, asked := r.approval.Call.StopRequested()
			if !asked {
				continue
			}
			if why == pkgmgr.StopRevoked {
				return r.cause(why)
			}
			ids, err := r.host.Home.CancelledOperations(context.Background(), r.approval.Call)
			if err != nil {
				return err
			}
			for _, id := range ids {
				r.cancel(id, pkgmgr.ErrCancelled)
			}
		}
	}
}

// halt takes no more requests and asks those in flight to stop.
func (r *hosting) halt(cause error) {
	r.mu.Lock()
	r.halted, r.stop = cause, cause
	r.until = r.host.now().Add(process.DefaultGrace)
	open := make([]*Running, 0, len(r.open))
	for _, o := range r.open {
		open = append(open, o)
	}
	r.mu.Unlock()
	for _, o := range open {
		o.Cancel(cause)
	}
}

func (r *hosting) cancel(operation string, cause error) {
	r.mu.Lock()
	o := r.open[operation]
	r.mu.Unlock()
	if o != nil {
		o.Cancel(cause)
	}
}

// settleAll records the ends of requests whose results nobody asked for.
func (r *hosting) settleAll() {
	r.mu.Lock()
	open := make([]*Running, 0, len(r.open))
	for _, o := range r.open {
		open = append(open, o)
	}
	r.mu.Unlock()
	for _, o := range open {
		o.Cancel(session.ErrDraining)
		_, _ = o.Result() // recorded; nobody asked
	}
}
