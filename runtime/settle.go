package runtime

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// settle ends the child in order and records the call. The durable record overlaps
// the child's exit; what only the exit shows is added afterwards.
func (r *running) settle(ctx context.Context, result *Result, fault error) (*Result, error) {
	ended := r.finish(fault == nil)
	var last ending
	if fault != nil {
		// The exit says why: wait for it before anything is recorded.
		last = <-ended
		fault = r.explain(fault, last.exit)
	}
	// The record is written whatever ended the call.
	err := r.host.Home.RecordCall(context.WithoutCancel(ctx), r.approval, r.record(result, fault))
	if fault != nil {
		return nil, errors.Join(fault, err)
	}
	last = <-ended
	return result, errors.Join(err, r.recordEnding(ctx, result, last))
}

// An ending is how a child left.
type ending struct {
	exit  process.Exit
	noise error // what it wrote after its answer, a *call.Fault
}

// finish closes the child's stdin, waits for its end, and meanwhile listens for
// output that nothing asked for.
func (r *running) finish(listen bool) <-chan ending {
	ended := make(chan ending, 1)
	if r.child == nil {
		ended <- ending{}
		return ended
	}
	go func() {
		noise := make(chan error, 1)
		if listen {
			ctx, cancel := context.WithTimeout(context.Background(), process.DefaultGrace)
			defer cancel()
			r.child.Stdin.Close()
			go func() { noise <- r.client.End(ctx) }()
		} else {
			noise <- nil
		}
		exit := r.child.Finish(r.forced(), process.DefaultGrace)
		ended <- ending{exit, <-noise}
	}()
	return ended
}

// forced returns a context that ends at a forced stop, or with the child.
func (r *running) forced() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		defer end(nil)
		select {
		case <-r.host.Force:
			end(ErrInterrupted)
		case <-r.child.Done():
		}
	}()
	return ctx
}

// explain completes a fault with what the child's end shows.
func (r *running) explain(fault error, exit process.Exit) error {
	if r.stop != nil {
		s := &Stopped{ID: r.approval.Manifest.ID, Cause: r.stop}
		if r.req.Method == pkgmgr.MethodOperate {
			s.Operation = r.approval.Call.ID
		}
		return s
	}
	var f *call.Fault
	if !errors.As(fault, &f) {
		return fault
	}
	f = f.AfterExit(exit.String(), !exit.Clean() && !exit.Killed)
	return &Failed{ID: r.approval.Manifest.ID, Version: r.approval.Manifest.Version, Method: r.req.Method,
		Fault: f, Exit: exit, Stderr: lastLines(r.child, 5)}
}

// Failed says that a plugin failed a call: the fault, how the process ended, and
// the last lines that it wrote to stderr, redacted.
type Failed struct {
	ID, Version string
	Method      pkgmgr.Method
	Fault       *call.Fault
	Exit        process.Exit
	Stderr      []string
}

func (e *Failed) Error() string {
	return e.ID + " " + e.Version + ": " + string(e.Method) + ": " + e.Fault.Error()
}

func (e *Failed) Unwrap() error { return e.Fault }

func lastLines(c *process.Child, n int) []string {
	lines := c.Stderr.Lines(0)
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Text
	}
	return out
}

// record says what a call leaves behind.
func (r *running) record(result *Result, fault error) pkgmgr.CallRecord {
	now := r.host.now().UTC()
	rec := pkgmgr.CallRecord{Method: r.req.Method, Action: r.req.Action, Dev: r.req.Dev, Code: Code(fault)}
	if fault != nil && r.child != nil {
		rec.Lines = r.lines(0)
	}
	health := state.Health{Package: r.approval.Package, At: now, Status: state.HealthHealthy}
	var failed *Failed
	var start *process.StartError
	switch {
	case result != nil && result.Health != nil:
		health = healthRecord(r.approval, result.Health, now)
	case result != nil:
	case errors.As(fault, &failed) && failed.Fault.Code == call.CodeError:
		health = state.Health{} // the plugin refused or failed the request, in good form
	case errors.As(fault, &failed), errors.As(fault, &start):
		health.Status, health.Code, health.Message = state.HealthUnhealthy, rec.Code, fault.Error()
	default:
		health = state.Health{} // ended from outside, or a decision changed: it says nothing about the plugin
	}
	rec.Health = health
	if r.req.Method == pkgmgr.MethodOperate {
		rec.Operation = r.outcome(result, fault, now)
	}
	return rec
}

// outcome is the end of an operation. Its effect is "none" only where the request
// certainly was not acted upon.
func (r *running) outcome(result *Result, fault error, now time.Time) *state.Outcome {
	if result != nil {
		o := &state.Outcome{FinishedAt: now, Message: result.Operate.Summary}
		o.Result, _ = json.Marshal(result.Operate)
		switch result.Operate.Status {
		case plugin.Succeeded:
			o.State, o.EffectState = state.Succeeded, state.EffectCommitted
		case plugin.PartiallySucceeded:
			o.State, o.EffectState = state.PartiallySucceeded, state.EffectPartial
		default:
			o.State, o.EffectState = state.Failed, state.EffectUnknown
		}
		return o
	}
	o := &state.Outcome{State: state.Failed, EffectState: state.EffectUnknown, FinishedAt: now,
		Code: Code(fault), Message: fault.Error()}
	if errors.Is(fault, ErrInterrupted) {
		o.State = state.Cancelled
	}
	var failed *Failed
	if !r.sent || errors.As(fault, &failed) && refused(failed.Fault) {
		o.EffectState = state.EffectNone
	}
	return o
}

// refused reports whether the plugin answered that it did not even begin.
func refused(f *call.Fault) bool {
	if f.RPC == nil {
		return false
	}
	switch f.RPC.Code {
	case plugin.CodeMalformed, plugin.CodeUnknownMethod, plugin.CodeBadParams, plugin.CodeProtocolMismatch,
		plugin.CodeState, plugin.CodeNotGranted:
		return true
	}
	return false
}

// recordEnding adds log lines that came after the record, and marks a plugin that
// answered and then did not leave in order.
func (r *running) recordEnding(ctx context.Context, result *Result, last ending) error {
	var what []string
	var f *call.Fault
	switch exit := last.exit; {
	case errors.As(last.noise, &f) && f.Code == call.CodeExtraOutput:
		what = append(what, f.Message)
	case exit.Killed, exit.Code != 0:
		what = append(what, exit.String())
	}
	if last.exit.Leftovers > 0 {
		what = append(what, "processes that it left behind were ended")
	}
	if last.exit.Survivors > 0 {
		what = append(what, "processes that it left behind could not be ended")
	}
	n, _ := r.child.Stderr.Size()
	if len(what) == 0 && n == 0 {
		return nil
	}
	var health *state.Health
	if len(what) > 0 {
		warning := "after its answer: " + strings.Join(what, "; ")
		result.Warnings = append(result.Warnings, warning)
		health = &state.Health{Package: r.approval.Package, At: r.host.now().UTC(), Status: state.HealthDegraded,
			Code: "plugin.disorderly", Message: warning}
	}
	return r.host.Home.RecordAfter(context.WithoutCancel(ctx), r.approval, health, r.lines(0))
}

func (r *running) lines(after uint64) []state.LogEntry {
	var out []state.LogEntry
	for _, l := range r.child.Stderr.Lines(after) {
		out = append(out, state.LogEntry{At: l.At.UTC(), ID: r.approval.Manifest.ID, Package: r.approval.Package,
			Call: r.approval.Call.ID, Line: l.Text, Truncated: l.Cut > 0})
	}
	return out
}

// replayed returns the recorded result of an operation that ran before.
func replayed(a *pkgmgr.Approval, op state.Operation) (*Result, error) {
	out := &Result{Call: op.ID, ID: a.Manifest.ID, Version: op.Version, Granted: a.Grants, Replayed: true,
		Operate: &plugin.OperateResult{}}
	return out, json.Unmarshal(op.Result, out.Operate)
}

// Code is the stable code of what ended a call, "" for nil.
func Code(err error) string {
	var f *call.Fault
	var start *process.StartError
	var revoked *pkgmgr.Revoked
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return string(f.Code)
	case errors.As(err, &start):
		return "plugin.start_failed"
	case errors.As(err, &revoked):
		return "revoked"
	case errors.Is(err, ErrInterrupted):
		return "cancelled"
	}
	return "decision.changed"
}
