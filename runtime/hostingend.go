package runtime

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// SessionFailed says that a session plugin failed: the fault, how the process ended, and
// the last lines that it wrote to stderr, redacted.
type SessionFailed struct {
	ID, Version string
	Fault       *session.Fault
	Exit        process.Exit
	Stderr      []string
}

func (e *SessionFailed) Error() string { return e.ID + " " + e.Version + ": " + e.Fault.Error() }

func (e *SessionFailed) Unwrap() error { return e.Fault }

// conclude records the session and says what ended it.
func (r *hosting) conclude(err error, last ending) (*Ended, error) {
	err = r.explain(err, last.exit)
	a := r.approval
	rec := r.recordOf(Code(err))
	rec.Health = r.health(err)
	if len(r.secrets) > 0 && r.client != nil && !r.client.Agreed().Features.Has(wire.SecretsInject) {
		r.warnings = append(r.warnings, "it was given no secrets: it does not take any with "+string(wire.SecretsInject))
	}
	out := &Ended{Call: a.Call.ID, ID: a.Manifest.ID, Version: a.Manifest.Version, Granted: a.Grants, Health: rec.Health, Warnings: r.warnings}
	if r.child != nil && err == nil {
		result := &Result{health: rec.Health, Warnings: r.warnings}
		r.judge(result, last)
		out.Warnings, out.Health, rec.Health = result.Warnings, result.health, result.health
	}
	recorded := r.write(func(ctx context.Context) error { return r.host.Home.RecordCall(ctx, a, rec) })
	r.close(last, recorded)
	if r.child == nil {
		return nil, errors.Join(err, recorded)
	}
	if recorded != nil {
		return out, errors.Join(err, recorded)
	}
	return out, err
}

// explain completes a fault of the plugin with what the child's end shows; other errors
// stay as they are.
func (r *hosting) explain(err error, exit process.Exit) error {
	if err == nil {
		return nil
	}
	if stopped := r.whyStopped(); stopped != nil {
		return stopped
	}
	var f *session.Fault
	if !errors.As(err, &f) || r.child == nil {
		return err
	}
	if f.Code == wire.CodePluginCrashed && !exit.Clean() && !exit.Killed {
		f = f.AfterCrash(exit.String())
	}
	if f.Code == wire.CodePluginCrashed && r.approval.Manifest.EntryKind() == pkgmgr.EntryPython && (exit.Code == exitPythonTooOld || exit.Code == exitNoPythonSDK) {
		g := *f
		if g.Text = "the interpreter could not start it"; len(lastLines(r.child, 1)) > 0 {
			g.Text += ": " + lastLines(r.child, 1)[0]
		}
		f = &g
	}
	return &SessionFailed{ID: r.approval.Manifest.ID, Version: r.approval.Manifest.Version, Fault: f, Exit: exit, Stderr: lastLines(r.child, 5)}
}

// whyStopped returns why the session was ended from outside, nil where it was not.
func (r *hosting) whyStopped() error {
	r.mu.Lock()
	stop := r.stop
	r.mu.Unlock()
	if stop == nil {
		return nil
	}
	return r.wasStopped(stop)
}

// health is what the session showed of the plugin: unhealthy after a fault of its own.
func (r *hosting) health(err error) state.Health {
	now := r.host.now().UTC()
	h := state.Health{Package: r.approval.Package, At: now}
	var failed *SessionFailed
	switch {
	case errors.As(err, &failed) && !blameless(failed.Fault.Code):
		h.Status, h.Code, h.Message = state.HealthUnhealthy, string(failed.Fault.Code), cut(failed.Fault.Error())
	case err != nil && blames(err):
		h.Status, h.Code, h.Message = state.HealthUnhealthy, Code(err), cut(err.Error())
	case r.report != nil:
		h.Status, h.Message = state.HealthStatus(r.report.Status), cut(r.report.Message)
	case err != nil || r.client == nil:
		return state.Health{} // nothing was shown
	default:
		h.Status = state.HealthHealthy
		if status, message := r.client.Start(); status == wire.InitDegraded {
			h.Status, h.Message = state.HealthDegraded, cut(message)
		}
	}
	return h
}

// blameless are the codes that end a session without a fault of the plugin's.
func blameless(c wire.Code) bool {
	switch c {
	case wire.CodePermissionDenied, wire.CodeInvalidArgument, wire.CodeSchemaMismatch, wire.CodeSchemaUnknownMember:
		return true // it refused the settings
	}
	return false
}
