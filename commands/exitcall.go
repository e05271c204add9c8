package commands

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// classifyCall knows what can happen to a running plugin, and interrupts.
func (in *invocation) classifyCall(err error, f *failure) bool {
	var (
		failed    *runtime.Failed
		start     *process.StartError
		unhealthy *runtime.Unhealthy
		stopped   *runtime.Stopped
		lost      *runtime.Unrecorded
	)
	defer func() { // beside a failed or stopped call, what could not be recorded is a second fact
		if f.code != "call.unrecorded" && errors.As(err, &lost) {
			f.more = append(f.more, lost.Error())
		}
	}()
	if in.classifySession(err, f) {
		return true
	}
	switch {
	case errors.As(err, &failed):
		f.exit, f.code, f.message = exitPlugin, string(failed.Fault.Code), failed.Error()
		f.hint = in.next("logs", failed.ID)
		if failed.Method == pkgmgr.MethodOperate && failed.Fault.RPC != nil && failed.Fault.RPC.Code == plugin.CodeBadParams {
			f.hint = in.actionsHint(failed.ID)
		}
		f.details = faultyDetails{failed.ID, failed.Version, string(failed.Method), failed.Fault.Field, failed.Fault.Expected, failed.Fault.Found,
			failed.Exit.String(), failed.Stderr}
		for _, l := range failed.Stderr {
			f.more = append(f.more, failed.ID+": "+l)
		}
	case errors.As(err, &start):
		f.exit, f.code, f.message = exitPlugin, "plugin.start_failed", start.Error()
	case errors.As(err, &unhealthy):
		f.exit, f.code, f.hint = exitPlugin, "plugin.unhealthy", in.next("logs", unhealthy.ID)
	case errors.As(err, &stopped):
		f.exit, f.code, f.message = exitInterrupted, "interrupted", stopped.Error()
		if stopped.Cause == context.Canceled {
			f.message = "the call of " + stopped.ID + " was ended: interrupted"
		}
		if errors.Is(err, pkgmgr.ErrCancelled) {
			f.code = "cancelled"
		}
		if stopped.Operation != "" {
			f.hint = in.next("operations", "show", stopped.Operation)
		}
		f.details = stoppedDetails{stopped.ID, stopped.Operation}
	case errors.As(err, &lost):
		f.code, f.message, f.hint = "call.unrecorded", lost.Error(), in.next("doctor")
		d := unrecordedDetails{ID: lost.ID, Call: lost.Call}
		var answer *unrecordedAnswer
		if errors.As(err, &answer) {
			d.Answer = answer.data
			if run, ok := answer.data.(runData); ok && run.Method == string(pkgmgr.MethodOperate) {
				f.hint = in.next("operations", "show", lost.Call)
			}
		}
		if cause := (failure{}); in.classifyState(lost.Err, &cause) && cause.hint != "" {
			f.hint = cause.hint
		}
		f.details = d
	case errors.Is(err, runtime.ErrRequest), errors.Is(err, session.ErrTransport):
		f.exit, f.code, f.hint = exitUsage, "usage", in.next(helpOn(in.commandName())...)
	case errors.Is(err, call.ErrTooLarge), errors.Is(err, call.ErrInput):
		f.exit, f.code, f.hint = exitUsage, "input.invalid", in.next(helpOn(in.commandName())...)
	case errors.Is(err, errInterrupted):
		f.exit, f.code, f.message = exitInterrupted, "interrupted", err.Error()
	case errors.Is(err, context.Canceled) && in.interrupted():
		f.exit, f.code, f.message = exitInterrupted, "interrupted", errInterrupted.Error()
	default:
		return false
	}
	return true
}
