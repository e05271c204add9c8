package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// errTimeout is the cause of a call that took too long.
var errTimeout = errors.New("the call took too long")

// Stopped says that a call was ended from outside.
type Stopped struct {
	ID        string
	Operation string // id, "" for health and inspect
	Cause     error  // the cause of Run's context, pkgmgr.ErrCancelled or *pkgmgr.Revoked
}

func (e *Stopped) Error() string { return fmt.Sprintf("the call of %s was ended: %v", e.ID, e.Cause) }

// Is makes every stop an interruption.
func (e *Stopped) Is(target error) bool { return target == ErrInterrupted }
func (e *Stopped) Unwrap() error        { return e.Cause }

// call starts the child for an approval, exchanges one method with it, ends it in
// order and records what happened.
func (h *Host) call(ctx context.Context, a *pkgmgr.Approval, req Request, environment func(*pkgmgr.Approval) []string) (*Result, error) {
	if a.Manifest.Session != nil { // health alone: other methods are not offered
		return h.sessionHealth(ctx, a, req, environment)
	}
	r := &running{host: h, approval: a, req: req, environment: environment}
	result, fault := r.exchange(ctx)
	if fault != nil {
		return nil, r.fail(fault)
	}
	return result, r.conclude(result)
}

// running is one call between its approval and its record.
type running struct {
	host        *Host
	approval    *pkgmgr.Approval
	req         Request
	environment func(*pkgmgr.Approval) []string
	child       *process.Child // nil until it has started
	client      *call.Client
	sent        bool   // the method's request may have reached the plugin
	logged      uint64 // the last line of stderr that is recorded

	// Of the watch, to be read when it has ended.
	stop  error     // why the call was ended from outside, or nil
	until time.Time // the end of the grace that the stop gave; zero without one
}

// exchange starts the child and speaks the protocol. The error is a *call.Fault,
// a *process.StartError, a *Stopped, or a decision that changed meanwhile; a stop
// during the exchange is r.stop.
func (r *running) exchange(outer context.Context) (*Result, error) {
	a := r.approval
	if err := r.stopped(outer); err != nil {
		return nil, err
	}
	child, err := process.Start(process.Spec{
		Executable: a.Executable, Path: a.Path, Args: a.Manifest.Arguments, Dir: a.Dir,
		Env: r.environment(a), CallID: a.Call.ID, Now: r.host.now,
	})
	if err != nil {
		return nil, err
	}
	r.child = child
	deadline, cancel := context.WithTimeoutCause(context.Background(), r.req.timeout(), errTimeout)
	defer cancel()
	ctx, end := context.WithCancelCause(deadline)
	defer end(nil)
	defer r.watch(outer, end)()
	// Whatever the plugin does, the end of the context ends the exchange, also
	// where reads of a pipe cannot be interrupted.
	defer context.AfterFunc(ctx, func() { child.Kill(context.Cause(ctx).Error()) })()
	out, err := r.converse(outer, ctx)
	if err != nil && ctx.Err() != nil {
		child.Kill(context.Cause(ctx).Error()) // its time is over: no further grace
	}
	return out, err
}

// converse sends initialize and the one method of the call.
func (r *running) converse(outer, ctx context.Context) (*Result, error) {
	a := r.approval
	r.client = call.New(r.child.Stdin, r.child.Stdout)
	hello := call.Hello{HostVersion: r.host.Version, Identity: a.Manifest.Identity(), Grants: a.Grants}
	if err := r.client.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	out := &Result{Call: a.Call.ID, ID: a.Manifest.ID, Version: a.Manifest.Version, Granted: a.Grants}
	var err error
	switch r.req.Method {
	case pkgmgr.MethodHealth:
		var answer plugin.HealthResult
		answer, err = r.client.Health(ctx)
		out.Health = &answer
	case pkgmgr.MethodInspect:
		var answer plugin.InspectResult
		answer, err = r.client.Inspect(ctx, project(a))
		out.Inspect = &answer
	case pkgmgr.MethodOperate:
		// The last look before the effect.
		if err := a.Recheck(ctx); err != nil {
			return nil, err
		}
		if err := r.stopped(outer); err != nil {
			return nil, err
		}
		var answer plugin.OperateResult
		answer, err = r.client.Operate(ctx, plugin.OperateRequest{Project: project(a), Action: r.req.Action, Input: r.req.Input})
		r.sent = !unsent(err)
		out.Operate = &answer
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// unsent reports whether err says that nothing of the method's request was sent.
func unsent(err error) bool {
	var f *call.Fault
	return errors.Is(err, call.ErrTooLarge) || errors.Is(err, call.ErrInput) || errors.Is(err, call.ErrNotGranted) ||
		errors.As(err, &f) && f.Code == call.CodeExtraOutput // seen before a request is written
}

// stopped returns a *Stopped if the call has been ended from outside already.
func (r *running) stopped(outer context.Context) error {
	if outer.Err() != nil {
		return r.wasStopped(context.Cause(outer))
	}
	if why, asked := r.approval.Call.StopRequested(); asked {
		return r.wasStopped(r.cause(why))
	}
	return nil
}

func (r *running) wasStopped(cause error) *Stopped {
	s := &Stopped{ID: r.approval.Manifest.ID, Cause: cause}
	if r.req.Method == pkgmgr.MethodOperate {
		s.Operation = r.approval.Call.ID
	}
	return s
}

// cause says what another process's request to stop means.
func (r *running) cause(why pkgmgr.StopReason) error {
	if why != pkgmgr.StopRevoked {
		return pkgmgr.ErrCancelled
	}
	// What a request to stop was about is not part of it. Where no denial tells, it is
	// this package.
	m := r.approval.Manifest
	denial := pkgmgr.Denial{Digest: r.approval.Package, Reason: "a revocation that was lifted since ended the call"}
	var revoked *pkgmgr.Revoked
	if err := r.approval.NotRevoked(); errors.As(err, &revoked) {
		denial = revoked.Denial
	} else if err != nil {
		denial.Reason = "a revocation ended the call; the list of them cannot be read: " + err.Error()
	}
	if denial.Reason == "" { // a list written by hand
		denial.Reason = "no reason is recorded"
	}
	return &pkgmgr.Revoked{ID: m.ID, Version: m.Version, Package: r.approval.Package, Denial: denial}
}

// watch sees a stop from outside: it closes the plugin's stdin, gives it the grace
// to finish, and then ends the exchange. The returned function ends the watch.
func (r *running) watch(outer context.Context, end context.CancelCauseFunc) (done func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		if r.stop = r.awaitStop(outer, quit); r.stop == nil {
			return
		}
		r.until = r.host.now().Add(process.DefaultGrace)
		r.child.Stdin.Close()
		grace := time.NewTimer(process.DefaultGrace)
		defer grace.Stop()
		select {
		case <-quit:
		case <-r.child.Done():
		case <-grace.C:
		case <-r.host.Force:
		}
		end(r.stop)
	}()
	return func() { close(quit); <-gone }
}

// awaitStop returns why the call is to end, or nil when quit is closed first.
func (r *running) awaitStop(outer context.Context, quit <-chan struct{}) error {
	poll := time.NewTicker(pkgmgr.StopPoll)
	defer poll.Stop()
	for {
		select {
		case <-quit:
			return nil
		case <-outer.Done():
			return context.Cause(outer)
		case <-poll.C:
			if why, asked := r.approval.Call.StopRequested(); asked {
				return r.cause(why)
			}
		}
	}
}
