//go:build unix

package runtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
)

// A pending call runs in a goroutine of the test.
type pending struct {
	result *runtime.Result
	err    error
	done   chan struct{}
}

func (w *world) begin(req runtime.Request) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.result, p.err = w.run(req)
	}()
	return p
}

func (p *pending) wait() (*runtime.Result, error) {
	<-p.done
	return p.result, p.err
}

// TestOperation holds that an operation is recorded before its request is sent, and
// with its result after the answer.
func TestOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work("slow-start", gate)
	p := w.begin(operation("", `{"b":1,"a":[true,null]}`))
	w.awaitReached() // initialize is not answered yet
	if op := w.newest(); op.State != state.Running || op.Action != "touch" || op.Package != w.pkg || op.ProjectRoot != w.project {
		t.Errorf("before initialize: %+v", op)
	}
	w.letGo()
	w.awaitReached() // the plugin has the request
	op := w.newest()
	if op.State != state.Running || op.EffectState != "" || len(w.effects()) != 1 {
		t.Errorf("after the request: %+v, effects %q", op, w.effects())
	}
	w.letGo()
	result, err := p.wait()
	w.must(err)
	if result.Call != op.ID || string(result.Operate.Output) != `{"b":1,"a":[true,null]}` {
		t.Errorf("result: %+v", result)
	}
	op, err = w.home.Operation(t.Context(), op.ID)
	w.must(err)
	var kept map[string]any
	w.must(json.Unmarshal(op.Result, &kept))
	if op.State != state.Succeeded || op.EffectState != state.EffectCommitted || op.Message != "touched" || kept["summary"] != "touched" {
		t.Errorf("recorded: %+v, %v", op, kept)
	}
	if _, event := w.recorded(); event.Operation != op.ID || event.Detail["state"] != "succeeded" || event.Detail["action"] != "touch" ||
		event.Project != w.project {
		t.Errorf("history: %+v", event)
	}
	w.wantNothingLeft()
}

// TestOutcomes holds what is recorded for each way in which an operation can end,
// and what the same key then means: never a second effect unless there certainly was
// no first one.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	for i, c := range []struct {
		options []string
		state   state.OperationState
		effect  state.EffectState
		again   string // "replay", "rerun" or "refuse"
	}{
		{nil, state.Succeeded, state.EffectCommitted, "replay"},
		{[]string{"fail"}, state.Failed, state.EffectUnknown, "replay"},
		{[]string{"partial"}, state.PartiallySucceeded, state.EffectPartial, "replay"},
		{[]string{"refuse=-32000"}, state.Failed, state.EffectUnknown, "refuse"},
		{[]string{"refuse=-32602"}, state.Failed, state.EffectUnknown, "refuse"},
		{[]string{"refuse=-32003"}, state.Failed, state.EffectUnknown, "refuse"},
		{[]string{"refuse=-32602", "late"}, state.Failed, state.EffectUnknown, "refuse"},
		{[]string{"refuse=-32003", "late"}, state.Failed, state.EffectUnknown, "refuse"},
		{[]string{"instead", "error-method"}, state.Failed, state.EffectNone, "rerun"},
		{[]string{"instead", "error-state"}, state.Failed, state.EffectNone, "rerun"},
		{[]string{"crash"}, state.Failed, state.EffectUnknown, "refuse"},
	} {
		name := fmt.Sprint(c.options)
		key := fmt.Sprint("key-", i)
		if w.work(c.options...); slices.Contains(c.options, "instead") {
			w.behave(c.options[1])
		}
		before := len(w.effects())
		first, err := w.run(operation(key, `{"a":1}`))
		op := w.newest()
		if op.State != c.state || op.EffectState != c.effect || op.IdempotencyKey != key || (err == nil) != (first != nil) {
			t.Errorf("%s: %+v, %v", name, op, err)
		}
		if c.effect == state.EffectNone && len(w.effects()) != before {
			t.Errorf("%s: the test's plugin had an effect", name)
		}
		before = len(w.effects())

		w.work() // now it would succeed
		second, err := w.run(operation(key, ` {"a": 1} `))
		var outcome *pkgmgr.Outcome
		switch c.again {
		case "replay":
			if err != nil || !second.Replayed || second.Call != op.ID || second.Operate.Status != first.Operate.Status ||
				string(second.Operate.Output) != string(first.Operate.Output) || len(w.effects()) != before {
				t.Errorf("%s: replay: %+v, %v, effects %q", name, second, err, w.effects())
			}
		case "rerun":
			if err != nil || second.Replayed || second.Call == op.ID || len(w.effects()) != before+1 {
				t.Errorf("%s: rerun: %+v, %v, effects %q", name, second, err, w.effects())
			}
		case "refuse":
			if !errors.As(err, &outcome) || outcome.Operation != op.ID || len(w.effects()) != before {
				t.Errorf("%s: refuse: %+v, %v, effects %q", name, second, err, w.effects())
			}
		}
		before = len(w.effects())
		if _, err := w.run(operation(key, `{"a":2}`)); !errors.As(err, &outcome) || len(w.effects()) != before {
			t.Errorf("%s: another input: %v", name, err)
		}
		w.wantNothingLeft()
	}
	// Without a key there is no memory; a key belongs to an action.
	before := len(w.effects())
	other := operation("key-0", `{"a":1}`)
	other.Action = "stroke"
	for _, req := range []runtime.Request{operation("", "{}"), operation("", "{}"), other} {
		if r, err := w.run(req); err != nil || r.Replayed {
			t.Errorf("%+v: %+v, %v", req, r, err)
		}
	}
	if n := len(w.effects()); n != before+3 {
		t.Errorf("%d effects, want 3", n-before)
	}
}

// TestKeyWhileRunning holds that the key of a running operation is busy, and that
// the operation is not disturbed.
func TestKeyWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate)
	p := w.begin(operation("key", "{}"))
	w.awaitReached()
	running := w.newest().ID
	var busy *pkgmgr.Busy
	if _, err := w.run(operation("key", "{}")); !errors.As(err, &busy) || busy.Operation != running {
		t.Errorf("the same key: %v", err)
	}
	if a := w.start(job{Do: "run", Request: operation("key", "{}")}).answer(); a.Busy != running {
		t.Errorf("the same key in another process: %+v", a)
	}
	w.letGo()
	if r, err := p.wait(); err != nil || r.Call != running {
		t.Errorf("%+v, %v", r, err)
	}
	if n := len(w.effects()); n != 1 {
		t.Errorf("%d effects", n)
	}
	w.wantNothingLeft()
}

// TestOneEffect has 20 processes perform the same operation at once.
func TestOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	tools := make([]*tool, processes())
	for i := range tools {
		tools[i] = w.start(job{Do: "run", Request: operation("key", "{}"), Wait: true})
	}
	for _, k := range tools {
		k.in.Close()
	}
	ran := 0
	for i, k := range tools {
		switch a := k.answer(); {
		case a.Err == "" && !a.Replayed:
			ran++
		case a.Err != "" && a.Busy == "":
			t.Errorf("process %d: %+v", i, a)
		}
	}
	if n := len(w.effects()); n != 1 || ran != 1 {
		t.Errorf("%d effects, %d of %d processes say that they had it", n, ran, len(tools))
	}
	if r, err := w.run(operation("key", "{}")); err != nil || !r.Replayed {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
	w.wantNothingLeft()
}

// TestTooLarge holds that a request that no message has room for has no effect and
// is not held against the plugin.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	before, _ := w.recorded()
	input := make([]byte, 1<<20)
	for i := range input {
		input[i] = 'x'
	}
	input[0], input[len(input)-1] = '"', '"'
	_, err := w.run(operation("key", string(input)))
	if runtime.Code(err) != "input.invalid" {
		t.Errorf("%v", err)
	}
	if op := w.newest(); op.State != state.Failed || op.EffectState != state.EffectNone || op.Code != "input.invalid" {
		t.Errorf("%+v", op)
	}
	if health, _ := w.recorded(); health != before || len(w.effects()) != 0 {
		t.Errorf("health %+v, effects %q", health, w.effects())
	}
	w.wantNothingLeft()
}

// TestUnrecorded takes the database away while a call runs: the caller learns what the
// plugin answered and that it is not recorded, and the next command makes the best of it.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	database, aside := filepath.Join(w.data, "state.db"), filepath.Join(w.dir, "aside")
	for _, option := range []string{gate, "crash"} {
		w.work(gate, option)
		p := w.begin(operation("key-"+option, "{}"))
		w.awaitReached()
		id := w.newest().ID
		w.must(os.Rename(database, aside))
		w.letGo()
		result, err := p.wait()
		var unrecorded *runtime.Unrecorded
		if !errors.As(err, &unrecorded) || unrecorded.Call != id || !errors.Is(err, state.ErrMissing) {
			t.Errorf("%s: %v", option, err)
		}
		var failed *runtime.Failed
		if crashed := option == "crash"; crashed != errors.As(err, &failed) || crashed != (result == nil) {
			t.Errorf("%s: %+v, %v", option, result, err)
		}
		w.must(os.Rename(aside, database))
		if op := w.newest(); op.State != state.Running {
			t.Errorf("%s: recorded %+v", option, op)
		}
		if n, err := w.host.Recover(t.Context()); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", option, n, err)
		}
		if op := w.newest(); op.ID != id || op.State != state.Abandoned || op.EffectState != state.EffectUnknown {
			t.Errorf("%s: recorded %+v", option, op)
		}
		var outcome *pkgmgr.Outcome
		if _, err := w.run(operation("key-"+option, "{}")); !errors.As(err, &outcome) {
			t.Errorf("%s: run again with the key: %v", option, err)
		}
		w.wantNothingLeft()
	}
}

// TestLogs holds that the newest 1,000 lines of stderr are kept, redacted, over all
// calls of the plugin, good and bad.
func TestLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.work("stderr=3")
	_, err := w.inspect(0)
	w.must(err)
	w.behave("stderr-and-crash")
	if _, err := w.inspect(0); err == nil {
		t.Error("no crash")
	}
	logs, err := w.home.Logs(t.Context(), "sample", 0, 0)
	w.must(err)
	if len(logs) != 4 || logs[0].Line != "line 0 password=[redacted]" || logs[3].Line != "cannot open the database" ||
		logs[0].Call == logs[3].Call || logs[0].Package != w.pkg {
		t.Errorf("logs: %+v", logs)
	}
	w.work("stderr=1500")
	r, err := w.health()
	w.must(err)
	logs, err = w.home.Logs(t.Context(), "sample", 0, 0)
	w.must(err)
	if len(logs) != 1000 || logs[0].Line != "line 500 password=[redacted]" || logs[999].Line != "line 1499 password=[redacted]" || logs[999].Call != r.Call {
		t.Errorf("%d lines, from %+v to %+v", len(logs), logs[0], logs[len(logs)-1])
	}
	events, err := w.home.History(t.Context(), "sample", 0)
	w.must(err)
	calls := 0
	for _, e := range events {
		if e.Kind == pkgmgr.EventCall {
			calls++
		}
		if time.Since(e.At) > time.Hour || e.At.IsZero() {
			t.Errorf("event %+v", e)
		}
	}
	if calls != 4 { // of enable, and these three
		t.Errorf("%d calls in %+v", calls, events)
	}
}

// TestClock holds that every time of a record is the host's.
func TestClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	w.host.Now = func() time.Time { return at }
	w.work("stderr=1")
	_, err := w.run(operation("", "{}"))
	w.must(err)
	logs, err := w.home.Logs(t.Context(), "sample", 0, 0)
	w.must(err)
	health, _ := w.recorded()
	op := w.newest()
	if len(logs) != 1 || !logs[0].At.Equal(at) || !health.At.Equal(at) || !op.FinishedAt.Equal(at) {
		t.Errorf("log %+v, health %+v, operation finished at %v", logs, health, op.FinishedAt)
	}
}
