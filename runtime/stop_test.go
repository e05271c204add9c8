//go:build unix

package runtime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// wantCancelled holds what a stopped operation leaves: one effect at most, a record
// that says so, and no process.
func (w *world) wantCancelled(id, code string) {
	w.t.Helper()
	op, err := w.home.Operation(w.t.Context(), id)
	w.must(err)
	if op.State != state.Cancelled || op.EffectState != state.EffectUnknown || op.Code != code {
		w.t.Errorf("recorded: %+v", op)
	}
	if health, event := w.recorded(); health.Status == state.HealthUnhealthy || event.Detail["code"] != code || event.Operation != id {
		w.t.Errorf("health %+v, event %+v", health, event)
	}
	w.wantNothingLeft()
}

// TestCancel has another process cancel an operation.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate)
	p := w.begin(operation("key", "{}"))
	w.awaitReached()
	id := w.newest().ID
	if a := w.start(job{Do: "cancel", ID: id}).answer(); a.Err != "" {
		t.Errorf("cancel: %+v", a)
	}
	_, err := p.wait()
	var stopped *runtime.Stopped
	if !errors.As(err, &stopped) || !errors.Is(err, pkgmgr.ErrCancelled) || !errors.Is(err, runtime.ErrInterrupted) || stopped.Operation != id {
		t.Errorf("%v", err)
	}
	w.wantCancelled(id, "cancelled")
	if !w.told() {
		t.Error("the plugin was not told")
	}
	if op := w.newest(); op.Cancel == nil || op.Cancel.By != "another process" {
		t.Errorf("recorded: %+v", op)
	}
	var outcome *pkgmgr.Outcome
	if a := w.start(job{Do: "cancel", ID: id}).answer(); a.Outcome != "cancelled" {
		t.Errorf("cancelled twice: %+v", a)
	}
	if _, err := w.run(operation("key", "{}")); !errors.As(err, &outcome) || outcome.Operation != id || len(w.effects()) != 1 {
		t.Errorf("run again with the key: %v", err)
	}
}

// TestCancelBeforeRequest cancels an operation that has not been sent: it has had no
// effect, so the key may be used again.
func TestCancelBeforeRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work("slow-start", "stubborn")
	p := w.begin(operation("key", "{}"))
	w.awaitReached()
	_, err := w.home.CancelOperation(t.Context(), w.newest().ID, "test")
	w.must(err)
	w.letGo()
	if _, err := p.wait(); !errors.Is(err, pkgmgr.ErrCancelled) {
		t.Errorf("%v", err)
	}
	if op := w.newest(); op.State != state.Cancelled || op.EffectState != state.EffectNone {
		t.Errorf("recorded: %+v", op)
	}
	w.wantNothingLeft()
	w.work()
	if r, err := w.run(operation("key", "{}")); err != nil || r.Replayed || len(w.effects()) != 1 {
		t.Errorf("run again with the key: %+v, %v", r, err)
	}
}

// TestFinishedDespiteCancel holds that an answer which the plugin gives within the
// grace stands: the effect is known.
func TestFinishedDespiteCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate, "stubborn")
	ctx, cancel := context.WithCancel(t.Context())
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		req := operation("", "{}")
		req.Ref, req.Project = sample, w.project
		p.result, p.err = w.host.Run(ctx, req)
	}()
	w.awaitReached()
	cancel()
	w.letGo()
	if _, err := p.wait(); err != nil {
		t.Errorf("%v", err)
	}
	if op := w.newest(); op.State != state.Succeeded || op.EffectState != state.EffectCommitted {
		t.Errorf("recorded: %+v", op)
	}
	w.wantNothingLeft()
}

// TestStubborn holds the order of an end from outside: stdin closes, the grace
// passes, the tree is ended; and that force skips the grace.
func TestStubborn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate, "stubborn", "daemon")
	end := func(interrupts int) time.Duration {
		t.Helper()
		k := w.start(job{Do: "run", Request: operation("", "{}")})
		w.awaitReached()
		id := w.newest().ID
		began := time.Now()
		w.must(k.cmd.Process.Signal(os.Interrupt))
		if k.awaitInterrupted(); interrupts == 2 {
			w.must(k.cmd.Process.Signal(os.Interrupt))
		}
		if a := k.answer(); !a.Stopped || a.Code != "cancelled" {
			t.Errorf("%+v", a)
		}
		took := time.Since(began)
		w.wantCancelled(id, "cancelled")
		return took
	}
	if took := end(1); took < process.DefaultGrace {
		t.Errorf("ended after %v, within the grace", took)
	}
	for attempt := 1; ; attempt++ { // the machine may be busy
		took := end(2)
		if took < process.DefaultGrace {
			break
		}
		if attempt == 3 {
			t.Errorf("forced, and ended after %v", took)
			break
		}
	}
}

// TestInterrupt sends an interrupt to the process group of the tool, as a terminal
// does: the plugin is told by the end of its stdin, not by the signal. It runs alone,
// because other calls of this process could take a tool with its own group for theirs.
func TestInterrupt(t *testing.T) {
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate)
	k := w.start(job{Do: "run", Request: operation("", "{}"), Group: true})
	w.awaitReached()
	id := w.newest().ID
	w.must(syscall.Kill(-k.cmd.Process.Pid, syscall.SIGINT))
	if a := k.answer(); !a.Stopped || a.Code != "cancelled" {
		t.Errorf("%+v", a)
	}
	w.wantCancelled(id, "cancelled")
	if _, err := os.Lstat(filepath.Join(w.dir, "interrupted")); err == nil || !w.told() {
		t.Error("the signal reached the plugin, or the end of its stdin did not")
	}
}

// TestNothingStartsAfterInterrupt holds that a call whose context has ended starts
// nothing.
func TestNothingStartsAfterInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.work("trace")
	w.started()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := operation("", "{}")
	req.Ref, req.Project = sample, w.project
	if _, err := w.host.Run(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if w.started() {
		t.Error("the plugin was started")
	}
	w.wantNothingLeft()
}

// TestRevokeWhileRunning holds that a revocation ends calls of every method.
func TestRevokeWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	for _, req := range []runtime.Request{
		{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodHealth}},
		{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodInspect}},
		operation("", "{}"),
	} {
		w.work(gate)
		p := w.begin(req)
		w.awaitReached()
		report, err := w.home.Revoke(t.Context(), pkgmgr.Denial{PluginID: "sample", Reason: "leaks"})
		w.must(err)
		if report.Stopped != 1 {
			t.Errorf("%s: %d calls were told to stop", req.Method, report.Stopped)
		}
		_, err = p.wait()
		var revoked *pkgmgr.Revoked
		if !errors.As(err, &revoked) || !errors.Is(err, runtime.ErrInterrupted) || revoked.Denial.Reason != "leaks" {
			t.Errorf("%s: %v", req.Method, err)
		}
		if !w.told() {
			t.Errorf("%s: the plugin was not told", req.Method)
		}
		if req.Method == pkgmgr.MethodOperate {
			w.wantCancelled(w.newest().ID, "revoked")
		}
		w.wantNothingLeft()
		if _, err := w.run(req); !errors.As(err, &revoked) {
			t.Errorf("%s after the revocation: %v", req.Method, err)
		}
		_, err = w.home.Unrevoke(t.Context(), "sample")
		w.must(err)
		w.work()
		w.approve(allScopes...)
	}
}

// TestRevocationIsNamed holds that a call which a revocation ended says which one and
// why, however the revocation was spelt, and also when by then it cannot be read or is
// no longer there.
func TestRevocationIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	ctx := t.Context()
	w.makeGate()
	denials := filepath.Join(w.data, "revocations", "local.json")
	request := func(denials func() error) func() error { // to stop, by itself
		return func() error {
			if err := denials(); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(w.data, "running", w.newest().ID+".revoke"), nil, 0o600)
		}
	}
	write := func(text string) func() error {
		return request(func() error {
			if err := os.MkdirAll(filepath.Dir(denials), 0o700); err != nil {
				return err
			}
			return os.WriteFile(denials, []byte(text), 0o600)
		})
	}
	revoke := func(d pkgmgr.Denial) func() error {
		return func() error { _, err := w.home.Revoke(ctx, d); return err }
	}
	pkg := string(w.pkg)
	for _, c := range []struct {
		name            string
		revoke          func() error
		subject, reason string
	}{
		{"digest", revoke(pkgmgr.Denial{Digest: w.pkg, Reason: "leaks"}), pkg, "leaks"},
		{"id", revoke(pkgmgr.Denial{PluginID: "sample", Reason: "leaks"}), "sample", "leaks"},
		{"range", revoke(pkgmgr.Denial{PluginID: "sample", Range: "<2", Reason: "leaks"}), "sample@<2", "leaks"},
		{"lifted since", request(func() error { return nil }), pkg, "lifted since"},
		{"unreadable", write("?"), pkg, "cannot be read"},
		{"without a reason", write(`{"version":1,"denials":[{"pluginId":"sample","reason":"","at":"2024-01-01T00:00:00Z"}]}`), "sample", "no reason is recorded"},
	} {
		w.work(gate)
		p := w.begin(operation("", "{}"))
		w.awaitReached()
		w.must(c.revoke())
		_, err := p.wait()
		if c.name == "unreadable" {
			w.must(os.Remove(denials))
		}
		var revoked *pkgmgr.Revoked
		if !errors.As(err, &revoked) || !errors.Is(err, runtime.ErrInterrupted) {
			t.Errorf("%s: %v", c.name, err)
		} else if d := revoked.Denial; d.Subject() != c.subject || !strings.Contains(d.Reason, c.reason) ||
			!strings.Contains(err.Error(), "("+c.subject+"): ") || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", c.name, err)
		}
		w.wantCancelled(w.newest().ID, "revoked")
		w.told()
		w.work()
		if c.name == "unreadable" {
			continue
		}
		if _, err := w.home.Unrevoke(ctx, c.subject); err != nil && c.name != "lifted since" {
			t.Fatalf("%s: %v", c.name, err)
		}
		w.must(w.restore())
	}
}

// TestWithdrawnWhileStarting takes a decision back between the start of the plugin and
// the request of the operation, which then is not sent.
func TestWithdrawnWhileStarting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	ctx := t.Context()
	w.makeGate()
	for _, c := range []struct {
		name, code string
		withdraw   func() error
	}{
		{"nothing", "", func() error { return nil }},
		{"trust", "decision.changed", func() error { _, err := w.home.Untrust(ctx, sample, nil); return err }},
		{"grants", "decision.changed", func() error { _, err := w.home.Disable(ctx, sample, nil); return err }},
		{"a needed grant", "decision.changed", func() error {
			_, err := w.host.Enable(ctx, sample, nil, []manifest.Scope{scopeMetadata, scopeFiles})
			return err
		}},
		{"another grant", "decision.changed", func() error {
			_, err := w.host.Enable(ctx, sample, nil, []manifest.Scope{scopeMetadata, scopeOperate})
			return err
		}},
		{"project", "decision.changed", func() error { return w.home.UntrustProject(ctx, w.project) }},
		{"everything", "revoked", func() error {
			_, err := w.home.Revoke(ctx, pkgmgr.Denial{Digest: w.pkg, Reason: "leaks"})
			return err
		}},
	} {
		before := len(w.effects())
		w.work("slow-start")
		p := w.begin(operation("", "{}"))
		w.awaitReached()
		w.work() // for what withdraw starts
		w.must(c.withdraw())
		w.letGo()
		_, err := p.wait()
		if runtime.Code(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
		op := w.newest()
		if c.code == "" {
			if op.State != state.Succeeded || len(w.effects()) != before+1 {
				t.Errorf("%s: %+v", c.name, op)
			}
		} else if op.EffectState != state.EffectNone || op.Code != c.code || len(w.effects()) != before {
			t.Errorf("%s: recorded %+v", c.name, op)
		}
		w.wantNothingLeft()
		w.must(w.restore())
	}
}

// restore makes every decision again.
func (w *world) restore() error {
	ctx := w.t.Context()
	var missing *pkgmgr.NotFound
	if _, err := w.home.Unrevoke(ctx, string(w.pkg)); err != nil && !errors.As(err, &missing) {
		return err
	}
	w.approve(allScopes...)
	return nil
}
