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

// Stopped says that a running call was ended from outside.
type Stopped struct {
	ID        string
	Operation string // id, "" for health and inspect
	Cause     error  // context.Canceled, pkgmgr.ErrCancelled or *pkgmgr.Revoked
}

func (e *Stopped) Error() string { return fmt.Sprintf("the call of %s was ended: %v", e.ID, e.Cause) }

// Is makes every stop an interruption.
func (e *Stopped) Is(target error) bool { return target == ErrInterrupted }
func (e *Stopped) Unwrap() error        { return e.Cause }

// call starts the child for an approval, exchanges one method with it, ends it in
// order and records what happened.
func (h *Host) call(ctx context.Context, a *pkgmgr.Approval, req Request) (*Result, error) {
	r := &running{host: h, approval: a, req: req}
	result, fault := r.exchange(ctx)
	return r.settle(ctx, result, fault)
}

// running is one call between its approval and its record.
type running struct {
	host     *Host
	approval *pkgmgr.Approval
	req      Request
	child    *process.Child
	client   *call.Client
	sent     bool // the method's request may have reached the plugin
	stop     error
}

// exchange speaks the protocol. The error is a *call.Fault, a *process.StartError,
// or a decision that changed meanwhile; a stop from outside is r.stop.
func (r *running) exchange(outer context.Context) (*Result, error) {
	a, h := r.approval, r.host
	child, err := process.Start(process.Spec{
		Executable: a.Executable, Path: a.Path, Args: a.Manifest.Arguments, Dir: a.Dir,
		Env: process.Environment(h.Lookup, plugin.Protocol, a.Dir, a.ProjectRoot), CallID: a.Call.ID,
	})
	if err != nil {
		return nil, err
	}
	r.child = child
	timeout := r.req.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	deadline, cancel := context.WithTimeoutCause(context.Background(), timeout, errTimeout)
	defer cancel()
	ctx, end := context.WithCancelCause(deadline)
	defer end(nil)
	defer r.watch(outer, end)()
	// Whatever the plugin does, the end of the context ends the exchange.
	defer context.AfterFunc(ctx, func() { child.Kill(context.Cause(ctx).Error()) })()
	r.client = call.New(child.Stdin, child.Stdout)
	hello := call.Hello{HostVersion: h.Version, Identity: a.Manifest.Identity(), Grants: a.Grants}
	if err := r.client.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	if r.req.Method == pkgmgr.MethodOperate {
		if err := a.Recheck(ctx); err != nil {
			return nil, err
		}
	}
	out := &Result{Call: a.Call.ID, ID: a.Manifest.ID, Version: a.Manifest.Version, Granted: a.Grants}
	if err := r.ask(ctx, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ask sends the one method of the call.
func (r *running) ask(ctx context.Context, out *Result) (err error) {
	defer func() {
		unsent := errors.Is(err, call.ErrTooLarge) || errors.Is(err, call.ErrInput) || errors.Is(err, call.ErrNotGranted)
		r.sent = !unsent
	}()
	switch r.req.Method {
	case pkgmgr.MethodHealth:
		answer, err := r.client.Health(ctx)
		out.Health = &answer
		return err
	case pkgmgr.MethodInspect:
		answer, err := r.client.Inspect(ctx, project(r.approval))
		out.Inspect = &answer
		return err
	case pkgmgr.MethodOperate:
		answer, err := r.client.Operate(ctx, plugin.OperateRequest{Project: project(r.approval), Action: r.req.Action, Input: r.req.Input})
		out.Operate = &answer
		return err
	}
	return fmt.Errorf("internal error: method %q", r.req.Method)
}

// watch sees a stop from outside: it closes the plugin's stdin, gives it the grace
// to finish, and then ends the exchange. The returned function ends the watch.
func (r *running) watch(outer context.Context, end context.CancelCauseFunc) (done func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		poll := time.NewTicker(pkgmgr.StopPoll)
		defer poll.Stop()
		for {
			select {
			case <-quit:
				return
			case <-outer.Done():
				r.stop = context.Cause(outer)
			case <-poll.C:
				why, asked := r.approval.Call.StopRequested()
				if !asked {
					continue
				}
				r.stop = pkgmgr.ErrCancelled
				if why == pkgmgr.StopRevoked {
					r.stop = &pkgmgr.Revoked{ID: r.approval.Manifest.ID, Version: r.approval.Manifest.Version,
						Package: r.approval.Package, Denial: pkgmgr.Denial{Reason: "revoked while it was running"}}
				}
			}
			break
		}
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
