package runtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime/call"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

const (
	recordWait = 30 * time.Second       // for other processes' transactions
	listenWait = 500 * time.Millisecond // from the end of the tree to the end of its output
	maxMessage = plugin.MaxErrorBytes   // of what a record repeats of a plugin's words
)

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

// Unrecorded says that a call was made and its end could not be recorded. The next
// command that can write records an operation as abandoned, its effect unknown.
type Unrecorded struct {
	ID, Call string
	Err      error
}

func (e *Unrecorded) Error() string {
	return fmt.Sprintf("the call %s of %s was made, but its end could not be recorded: %v", e.Call, e.ID, e.Err)
}

func (e *Unrecorded) Unwrap() error { return e.Err }

// fail ends the child after a fault, records the call, and returns the fault with
// what the exit shows. The exit says why: it is waited for before anything is recorded.
func (r *running) fail(fault error) error {
	if r.child != nil {
		r.child.Stdout.Close() // nobody listens any more: a plugin that goes on writing must not block
	}
	last := r.leave()
	fault = r.explain(fault, last.exit)
	err := r.write(func(ctx context.Context) error { return r.host.Home.RecordCall(ctx, r.approval, r.failure(fault)) })
	r.close(last, err)
	if err != nil {
		return errors.Join(fault, err)
	}
	return fault
}

// conclude ends the child after a good answer and records the call. The durable
// record overlaps the child's exit; what only the exit shows is added afterwards.
func (r *running) conclude(result *Result) error {
	rec, err := r.success(result)
	recorded := make(chan error, 1)
	go func() {
		recorded <- r.write(func(ctx context.Context) error {
			if err != nil {
				return err
			}
			return r.host.Home.RecordCall(ctx, r.approval, rec)
		})
	}()
	last := r.leave()
	err = <-recorded
	r.judge(result, last)
	lines, _ := r.lines()
	var worse *state.Health
	if result.health != rec.Health {
		worse = &result.health
	}
	if err == nil && (worse != nil || len(lines) > 0) {
		err = r.write(func(ctx context.Context) error { return r.host.Home.RecordAfter(ctx, r.approval, worse, lines) })
	}
	r.close(last, err)
	return err
}

// write performs a transaction that a stop of the call does not end.
func (r *running) write(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordWait)
	defer cancel()
	if err := do(ctx); err != nil {
		return &Unrecorded{ID: r.approval.Manifest.ID, Call: r.approval.Call.ID, Err: err}
	}
	return nil
}

// close leaves the call to the next command if something of it is unfinished.
func (r *running) close(last ending, err error) {
	if err != nil || last.exit.Survivors > 0 {
		r.approval.Call.Leave()
	}
}

// An ending is how a child left.
type ending struct {
	exit  process.Exit
	noise error // what it wrote after its answer, a *call.Fault
}

// leave closes the child's stdin, waits for the end of its tree, and meanwhile listens
// for output that nothing asked for.
func (r *running) leave() ending {
	c := r.child
	if c == nil {
		return ending{}
	}
	c.Stdin.Close()
	noise := make(chan error, 1)
	go func() {
		err := r.client.End(context.Background())
		c.Stdout.Close() // what comes after extra output must not block the plugin
		noise <- err
	}()
	ctx, done := r.forced()
	defer done()
	exit := c.Finish(ctx, r.grace())
	select {
	case err := <-noise:
		return ending{exit, err}
	case <-time.After(listenWait): // somebody outside the tree holds its stdout
		c.Stdout.Close()
		return ending{exit, <-noise}
	}
}

// grace is how long the child may still take to exit.
func (r *running) grace() time.Duration {
	if r.until.IsZero() {
		return process.DefaultGrace
	}
	return max(0, r.until.Sub(r.host.now()))
}

// forced returns a context that a forced stop ends.
func (r *running) forced() (ctx context.Context, done func()) {
	if r.host.Force == nil {
		return context.Background(), func() {}
	}
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-r.host.Force:
			end(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

// explain completes a fault with what the child's end shows.
func (r *running) explain(fault error, exit process.Exit) error {
	if r.stop != nil {
		return r.wasStopped(r.stop)
	}
	var f *call.Fault
	if !errors.As(fault, &f) {
		return fault
	}
	if !exit.Clean() && !exit.Killed {
		f = f.AfterCrash(exit.String())
	}
	return &Failed{ID: r.approval.Manifest.ID, Version: r.approval.Manifest.Version, Method: r.req.Method,
		Fault: f, Exit: exit, Stderr: lastLines(r.child, 5)}
}

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

// success is the record of a call that was answered well.
func (r *running) success(result *Result) (pkgmgr.CallRecord, error) {
	now := r.host.now().UTC()
	rec := r.recordOf("")
	rec.Health = state.Health{Package: r.approval.Package, At: now, Status: state.HealthHealthy}
	if answer := result.Health; answer != nil {
		rec.Health.Status, rec.Health.Message = state.HealthStatus(answer.Status), cut(answer.Message)
	}
	result.health = rec.Health
	if result.Operate == nil {
		return rec, nil
	}
	o := &state.Outcome{FinishedAt: now, Message: cut(result.Operate.Summary)}
	switch result.Operate.Status {
	case plugin.Succeeded:
		o.State, o.EffectState = state.Succeeded, state.EffectCommitted
	case plugin.PartiallySucceeded:
		o.State, o.EffectState = state.PartiallySucceeded, state.EffectPartial
	default:
		o.State, o.EffectState = state.Failed, state.EffectUnknown
	}
	rec.Operation = o
	kept, err := json.Marshal(result.Operate)
	if len(kept) > state.MaxResult {
		// The effect is the plugin's answer, not the room there is for it.
		o.Message = cut("(its result of " + strconv.Itoa(len(kept)) + " bytes is too large to be kept) " + o.Message)
		return rec, err
	}
	o.Result = kept
	return rec, err
}

// failure is the record of a call that was not. Of an operation the effect is "none"
// only where the request certainly was not acted upon.
func (r *running) failure(fault error) pkgmgr.CallRecord {
	now := r.host.now().UTC()
	rec := r.recordOf(Code(fault))
	if blames(fault) {
		rec.Health = state.Health{Package: r.approval.Package, At: now, Status: state.HealthUnhealthy,
			Code: rec.Code, Message: cut(fault.Error())}
	}
	if r.req.Method != pkgmgr.MethodOperate {
		return rec
	}
	rec.Operation = &state.Outcome{State: state.Failed, EffectState: state.EffectUnknown, FinishedAt: now,
		Code: rec.Code, Message: cut(fault.Error())}
	if errors.Is(fault, ErrInterrupted) {
		rec.Operation.State = state.Cancelled
	}
	if !r.sent || refused(fault) {
		rec.Operation.EffectState = state.EffectNone
	}
	return rec
}

func (r *running) recordOf(code string) pkgmgr.CallRecord {
	rec := pkgmgr.CallRecord{Method: r.req.Method, Action: r.req.Action, Dev: r.req.Dev, Code: code}
	rec.Lines, r.logged = r.lines()
	return rec
}

// blames reports whether a fault makes the plugin unhealthy. An error answer does
// not: the plugin refused or failed the request in good form. A stop from outside, a
// decision that changed and a machine without room for a process say nothing about it.
func blames(fault error) bool {
	var failed *Failed
	if errors.As(fault, &failed) {
		return failed.Fault.Code != call.CodeError
	}
	var start *process.StartError
	if !errors.As(fault, &start) {
		return false
	}
	for _, scarce := range [...]error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(start, scarce) {
			return false
		}
	}
	return true
}

// refused reports whether the plugin answered that it did not even begin. Bad params
// and a missing grant are no such answers: the protocol lets a plugin give them while it
// works, too, on finding that it cannot take the input or lacks a scope.
func refused(fault error) bool {
	var failed *Failed
	if !errors.As(fault, &failed) || failed.Fault.RPC == nil {
		return false
	}
	switch failed.Fault.RPC.Code {
	case plugin.CodeMalformed, plugin.CodeUnknownMethod, plugin.CodeProtocolMismatch, plugin.CodeState:
		return true
	}
	return false
}

// judge adds to a result what a plugin did after its answer: one that did not leave in
// order is degraded at best.
func (r *running) judge(result *Result, last ending) {
	var what []string
	var noise *call.Fault
	exit := last.exit
	if errors.As(last.noise, &noise) && noise.Code == call.CodeExtraOutput {
		what = append(what, noise.Message)
	}
	if exit.Killed || exit.Code != 0 {
		what = append(what, exit.String())
	}
	if exit.Leftovers > 0 {
		what = append(what, "processes that it left behind were ended")
	}
	if exit.Survivors > 0 {
		what = append(what, "processes that it left behind could not be ended")
	}
	if len(what) == 0 {
		return
	}
	warning := "after its answer: " + strings.Join(what, "; ")
	result.Warnings = append(result.Warnings, warning)
	if result.health.Status != state.HealthUnhealthy {
		result.health = state.Health{Package: r.approval.Package, At: r.host.now().UTC(), Status: state.HealthDegraded,
			Code: "plugin.disorderly", Message: warning}
	}
}

// lines returns what the plugin wrote to stderr and is not recorded yet, and the
// number of the last line.
func (r *running) lines() (out []state.LogEntry, last uint64) {
	if r.child == nil {
		return nil, 0
	}
	last = r.logged
	for _, l := range r.child.Stderr.Lines(r.logged) {
		last = l.Seq
		out = append(out, state.LogEntry{At: l.At.UTC(), ID: r.approval.Manifest.ID, Package: r.approval.Package,
			Call: r.approval.Call.ID, Line: l.Text, Truncated: l.Cut > 0})
	}
	return out, last
}

// replayed returns the recorded result of an operation that ran before.
func replayed(a *pkgmgr.Approval, op state.Operation) (*Result, error) {
	out := &Result{Call: op.ID, ID: a.Manifest.ID, Version: op.Version, Granted: a.Grants, Replayed: true,
		Operate: &plugin.OperateResult{}}
	return out, json.Unmarshal(op.Result, out.Operate)
}

// cut bounds what a record repeats of foreign text, at the end of a character.
func cut(s string) string {
	const more = "…"
	if len(s) <= maxMessage {
		return s
	}
	n := maxMessage - len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}

// Code is the stable code of what ended a call, "" for nil.
func Code(err error) string {
	var (
		fault   *call.Fault
		start   *process.StartError
		revoked *pkgmgr.Revoked
		needs   *pkgmgr.NeedsDecision
		denied  *pkgmgr.Denied
		broken  *session.Fault
		said    *wire.Error
		bad     *session.BadRequest
		up      *session.GivenUp
		stopped *session.Cancelled
		not     *session.NotAccepted
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &fault):
		return string(fault.Code)
	case errors.As(err, &said):
		return string(said.Code)
	case errors.As(err, &bad):
		return string(bad.Code)
	case errors.Is(err, session.ErrDeadline):
		return string(wire.CodeDeadlineExceeded)
	case errors.As(err, &start):
		return "plugin.start_failed"
	case errors.As(err, &revoked):
		return "revoked"
	case errors.Is(err, ErrInterrupted), errors.As(err, &stopped), errors.As(err, &up):
		return "cancelled"
	case errors.As(err, &broken):
		return string(broken.Code)
	case errors.As(err, &not):
		return string(wire.CodeUnavailable)
	case errors.As(err, &needs), errors.As(err, &denied):
		return "decision.changed"
	case errors.Is(err, call.ErrTooLarge), errors.Is(err, call.ErrInput):
		return "input.invalid"
	case errors.Is(err, state.ErrBusy):
		return "busy"
	}
	return "internal"
}
