//go:build unix

package runtime_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/call"
)

// A row is a behaviour of a plugin and what a call of it comes to.
type row struct {
	behaviour string
	code      call.Code // "" for a good answer
	exit      string    // how the process must have ended; "" for any
	warning   string    // part of the warning of a good answer, "" for none
	says      string    // part of the error's message
}

// faults fail the call and mark the plugin as unhealthy.
var faults = []row{
	{behaviour: "exit-before-initialize", code: call.CodeExited, exit: "exit status 0"},
	{behaviour: "crash-before-initialize", code: call.CodeCrashed, exit: "exit status 3"},
	{behaviour: "crash-at-initialize", code: call.CodeCrashed, exit: "exit status 4"},
	{behaviour: "crash-at-method", code: call.CodeCrashed, exit: "exit status 5"},
	{behaviour: "signal-at-method", code: call.CodeCrashed, exit: "ended by SIGKILL"},
	{behaviour: "truncated-at-method", code: call.CodeExited, exit: "exit status 0"},
	{behaviour: "stderr-and-crash", code: call.CodeCrashed, exit: "exit status 3"},

	{behaviour: "banner", code: call.CodeBanner, says: "Welcome to the example plugin!"},
	{behaviour: "banner-at-method", code: call.CodeMalformed},
	{behaviour: "empty-line", code: call.CodeMalformed},
	{behaviour: "malformed", code: call.CodeMalformed},
	{behaviour: "malformed-init", code: call.CodeMalformed},
	{behaviour: "two-values", code: call.CodeMalformed},
	{behaviour: "duplicate-member", code: call.CodeMalformed},
	{behaviour: "invalid-utf8", code: call.CodeMalformed},
	{behaviour: "both", code: call.CodeMalformed},
	{behaviour: "neither", code: call.CodeMalformed},
	{behaviour: "endless", code: call.CodeOversized},
	{behaviour: "size-above-limit", code: call.CodeOversized},
	{behaviour: "unknown-member", code: call.CodeUnknownField},
	{behaviour: "unknown-in-result", code: call.CodeUnknownField},
	{behaviour: "wrong-id", code: call.CodeWrongID},
	{behaviour: "null-id", code: call.CodeWrongID},
	{behaviour: "early-answer", code: call.CodeExtraOutput},

	{behaviour: "mismatch-id", code: call.CodeIdentityMismatch, says: "plugin.id"},
	{behaviour: "mismatch-name", code: call.CodeIdentityMismatch, says: "plugin.name"},
	{behaviour: "mismatch-version", code: call.CodeIdentityMismatch, says: "plugin.version"},
	{behaviour: "mismatch-schema", code: call.CodeIdentityMismatch, says: "plugin.schemaVersion"},
	{behaviour: "mismatch-protocol", code: call.CodeIdentityMismatch, says: "plugin.protocolVersion"},
	{behaviour: "mismatch-capabilities", code: call.CodeIdentityMismatch, says: "plugin.capabilities"},
	{behaviour: "mismatch-scopes", code: call.CodeIdentityMismatch, says: "plugin.requestedScopes"},
	{behaviour: "mismatch-grants", code: call.CodeIdentityMismatch, says: "grantedScopes"},
	{behaviour: "mismatch-negotiated", code: call.CodeProtocolMismatch, says: "protocolVersion"},
	{behaviour: "error-protocol", code: call.CodeProtocolMismatch},
	{behaviour: "error-code", code: call.CodeMalformed, says: "none of the protocol's"},
	{behaviour: "error-long", code: call.CodeMalformed, says: "1025 bytes, at most 1024"},

	{behaviour: "daemon-of-crash", code: call.CodeCrashed, exit: "exit status 7"},
	{behaviour: "daemon-and-broken-message", code: call.CodeMalformed},
}

// timeouts are faults of plugins that must be ended by force.
var timeouts = []row{
	{behaviour: "hang-before-initialize", code: call.CodeTimeout, exit: "killed: the call took too long", says: "initialize"},
	{behaviour: "hang-at-initialize", code: call.CodeTimeout, exit: "killed: the call took too long", says: "initialize"},
	{behaviour: "hang-at-method", code: call.CodeTimeout, exit: "killed: the call took too long", says: "project.inspect"},
	{behaviour: "hang-in-message", code: call.CodeTimeout, exit: "killed: the call took too long", says: "20 bytes"},
	{behaviour: "stop-at-method", code: call.CodeTimeout, exit: "killed: the call took too long"},
	{behaviour: "ignore-signals", code: call.CodeTimeout, exit: "killed: the call took too long"},
	{behaviour: "daemon-of-hang", code: call.CodeTimeout, exit: "killed: the call took too long"},
}

// answers are good ones. With a warning the plugin is degraded, else healthy.
var answers = []row{
	{behaviour: "good"},
	{behaviour: "split"},
	{behaviour: "reordered-identity"},
	{behaviour: "size-below-limit"},
	{behaviour: "size-at-limit"},
	{behaviour: "stderr-flood"},
	{behaviour: "stderr-no-text"},
	{behaviour: "stderr-one-line"},
	{behaviour: "crash-after-answer", warning: "exit status 6"},
	{behaviour: "extra-output", warning: "wrote more than the answer"},
	{behaviour: "extra-at-end", warning: "wrote more than the answer"},
	{behaviour: "child", warning: "left behind"},
	{behaviour: "child-in-own-session", warning: "left behind"},
	{behaviour: "daemon", warning: "left behind"},
	{behaviour: "daemon-holding-pipes", warning: "left behind"},
	{behaviour: "daemon-without-mark", warning: "left behind"},
	{behaviour: "daemon-ignoring-signals", warning: "left behind"},
	{behaviour: "daemon-stopped", warning: "left behind"},
	{behaviour: "daemon-before-initialize", warning: "left behind"},
	{behaviour: "fork-chain", warning: "left behind"},
}

// TestFaults holds that a fault of a plugin fails only its call, with a code of its
// own, is recorded, and leaves nothing behind.
func TestFaults(t *testing.T) {
	t.Parallel()
	// Two halves, each in a world of its own, so that they may run side by side.
	for half := range 2 {
		t.Run(fmt.Sprint(half), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, allScopes...)
			for i, r := range faults {
				if i%2 == half && (!raced || i%8 == half) {
					w.wantFault(r, time.Minute)
				}
			}
			w.wantGood()
		})
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	for _, r := range timeouts {
		// A machine that is too busy to start the plugin in that time gives the
		// same code at an earlier step, so the step is tried again with more.
		for timeout := 500 * time.Millisecond; ; timeout *= 4 {
			began := time.Now()
			err := w.callBehaving(r, timeout)
			if took := time.Since(began); took < timeout || took > timeout+30*time.Second {
				t.Errorf("%s took %v, with a timeout of %v", r.behaviour, took, timeout)
			}
			if timeout > 20*time.Second || strings.Contains(fmt.Sprint(err), r.says) {
				w.judgeFault(r, err)
				break
			}
		}
	}
	w.wantGood()
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	for i, r := range answers {
		if raced && i%4 > 0 {
			continue
		}
		w.behave(r.behaviour)
		result, err := w.inspect(time.Minute)
		if err != nil {
			t.Errorf("%s: %v", r.behaviour, err)
			continue
		}
		w.wantNothingLeft()
		want := state.HealthHealthy
		if r.warning != "" {
			want = state.HealthDegraded
		}
		if got := strings.Join(result.Warnings, "|"); !strings.Contains(got, r.warning) || (got == "") != (r.warning == "") {
			t.Errorf("%s: warnings %q, want %q", r.behaviour, got, r.warning)
		}
		if health, event := w.recorded(); health.Status != want || event.Detail["code"] != "" {
			t.Errorf("%s: health %+v, event %+v", r.behaviour, health, event)
		}
	}
	// One that ignores the end of its stdin is ended after the grace.
	w.behave("ignore-stdin-close")
	result, err := w.health()
	if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "still running 3s after") {
		t.Errorf("ignore-stdin-close: %+v, %v", result, err)
	}
	w.wantNothingLeft()
	w.wantGood()
}

// TestErrorAnswers holds that an error in good form fails the call and says nothing
// against the plugin's health.
func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	before, _ := w.recorded()
	for _, behaviour := range []string{"error-result", "error-scope", "error-init", "error-longest"} {
		w.behave(behaviour)
		_, err := w.inspect(0)
		var failed *runtime.Failed
		if !errors.As(err, &failed) || failed.Fault.Code != call.CodeError || failed.Fault.RPC == nil {
			t.Errorf("%s: %v", behaviour, err)
		}
		if health, event := w.recorded(); health != before || event.Detail["code"] != string(call.CodeError) {
			t.Errorf("%s: health %+v, event %+v", behaviour, health, event)
		}
		w.wantNothingLeft()
	}
}

// callBehaving makes the plugin behave as r says and returns what the call came to.
func (w *world) callBehaving(r row, timeout time.Duration) error {
	w.t.Helper()
	w.behave(r.behaviour)
	_, err := w.inspect(timeout)
	w.wantNothingLeft()
	return err
}

func (w *world) wantFault(r row, timeout time.Duration) {
	w.t.Helper()
	began := time.Now()
	err := w.callBehaving(r, timeout)
	if took := time.Since(began); took > timeout/2 {
		w.t.Errorf("%s took %v", r.behaviour, took)
	}
	w.judgeFault(r, err)
}

func (w *world) judgeFault(r row, err error) {
	w.t.Helper()
	var failed *runtime.Failed
	if !errors.As(err, &failed) {
		w.t.Errorf("%s: %v, want %s", r.behaviour, err, r.code)
		return
	}
	if failed.Fault.Code != r.code || !strings.Contains(err.Error(), r.says) || r.exit != "" && failed.Exit.String() != r.exit {
		w.t.Errorf("%s: %s, %v, %v; want %+v", r.behaviour, failed.Fault.Code, failed.Exit, err, r)
	}
	health, event := w.recorded()
	if health.Status != state.HealthUnhealthy || health.Code != string(r.code) || event.Detail["code"] != string(r.code) {
		w.t.Errorf("%s: recorded health %+v, event %+v", r.behaviour, health, event)
	}
	if r.behaviour == "stderr-and-crash" && (len(failed.Stderr) != 1 || failed.Stderr[0] != "cannot open the database") {
		w.t.Errorf("%s: last lines %q", r.behaviour, failed.Stderr)
	}
}

// wantGood holds that nothing of what happened before disturbs a good call.
func (w *world) wantGood() {
	w.t.Helper()
	w.behave("good")
	if r, err := w.health(); err != nil || len(r.Warnings) > 0 {
		w.t.Errorf("a good call: %+v, %v", r, err)
	}
	if health, _ := w.recorded(); health.Status != state.HealthHealthy || health.Code != "" {
		w.t.Errorf("health after a good call: %+v", health)
	}
	w.wantNothingLeft()
}
