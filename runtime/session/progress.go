package session

import (
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// A pump shows the progress of one request from a goroutine of its own, which the first
// update starts and the end of the request ends. The call's mu guards newest and ran.
type pump struct {
	each   func(wire.ProgressUpdate)
	newest *wire.ProgressUpdate
	wake   chan struct{}
	ran    chan struct{} // closed when the goroutine has ended; nil if there was none
}

// progress takes an update.
func (c *Client) progress(e *wire.Envelope) *Fault {
	var w wire.ProgressUpdate
	if err := wire.Decode(e.Body, &w); err != nil {
		return c.badBody(e, err)
	}
	call, f := c.callOf(e.Type, w.RequestID)
	if call == nil {
		return f
	}
	if f := call.belongs(e, w.OperationID, false); f != nil {
		return f
	}
	w.Message = c.opts.Masked.Hide(w.Message)
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.each == nil || call.ending() {
		return nil
	}
	call.newest = &w
	if call.ran == nil {
		call.ran, call.wake = make(chan struct{}), make(chan struct{}, 1)
		go call.show()
	}
	select {
	case call.wake <- struct{}{}:
	default:
	}
	return nil
}

func (call *Call) show() {
	defer close(call.ran)
	for {
		over := false
		select {
		case <-call.wake:
		case <-call.done:
			over = true
		}
		call.mu.Lock()
		update := call.newest
		call.newest = nil
		call.mu.Unlock()
		if update != nil {
			call.each(*update)
		}
		if over {
			return
		}
	}
}

// wait returns when nothing will be shown any more.
func (p *pump) wait() {
	if p.ran != nil { // not started any more once the request has ended
		<-p.ran
	}
}
