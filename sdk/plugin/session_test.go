package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func echo(_ context.Context, op *plugin.Operation) (any, error) { return op.Payload, nil }

// hold waits to be cancelled.
func hold(ctx context.Context, op *plugin.Operation) (any, error) {
	op.Progress(plugin.ProgressUpdate{Message: "holding"})
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func call(t testing.TB, s *plugintest.Session, r plugintest.Request) *plugintest.Outcome {
	t.Helper()
	if r.Capability == "" {
		r.Capability = "test"
	}
	out, err := s.Call(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func start(t testing.TB, s *plugintest.Session, r plugintest.Request) *plugintest.Call {
	t.Helper()
	r.Capability = "test"
	c, err := s.Start(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func holding(o *plugintest.Outcome) bool { return len(o.Progress) > 0 }

func codeOf(o *plugintest.Outcome) string {
	if o.Error == nil {
		return ""
	}
	return string(o.Error.Code)
}

func TestSessionAnswers(t *testing.T) {
	const canary = "CANARY-9f2"
	s := plugintest.OpenSession(t, newSession(t,
		op{name: "echo", request: "any", response: "any", handler: echo},
		op{name: "item", handler: echo},
		op{name: "plain", request: "any", handler: func(context.Context, *plugin.Operation) (any, error) { return nil, errors.New(canary) }},
		op{name: "panics", request: "any", handler: func(context.Context, *plugin.Operation) (any, error) { panic(canary) }},
		op{name: "wrong", request: "any", handler: func(context.Context, *plugin.Operation) (any, error) { return map[string]string{"n": canary}, nil }},
		op{name: "no-json", request: "any", response: "any", handler: func(context.Context, *plugin.Operation) (any, error) { return func() {}, nil }},
		op{name: "twice", request: "any", response: "any", handler: func(context.Context, *plugin.Operation) (any, error) { return json.RawMessage(`{"a":1,"a":2}`), nil }},
		op{name: "meant", request: "any", handler: func(context.Context, *plugin.Operation) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", plugin.NewPluginError(plugin.Unavailable, "not now"))
		}},
		op{name: "fatal", request: "any", handler: func(context.Context, *plugin.Operation) (any, error) {
			return nil, &plugin.PluginError{Code: wire.CodeEnvelopeInvalid, Message: "mine"}
		}},
		op{name: "large", request: "any", response: "any", handler: func(context.Context, *plugin.Operation) (any, error) { return strings.Repeat("x", 70_000), nil }},
		op{name: "secret", request: "any", handler: func(_ context.Context, op *plugin.Operation) (any, error) {
			token, err := op.Secret("/token")
			if err != nil {
				return nil, err
			}
			op.Progress(plugin.ProgressUpdate{Message: "with " + token})
			details, _ := json.Marshal(map[string]string{"token": token})
			return nil, &plugin.PluginError{Code: plugin.Unavailable, Message: "refused " + token, Details: details}
		}},
		op{name: "grant", request: "any", handler: func(_ context.Context, op *plugin.Operation) (any, error) {
			_, err := op.Grant("network")
			return nil, err
		}},
	), plugintest.SessionConfig{MaxFrameBytes: 64 << 10})
	if out := call(t, s, plugintest.Request{Operation: "echo", Payload: json.RawMessage(` { "b" : [null, 1e2] } `)}); out.Response == nil || string(out.Response.Payload) != `{ "b" : [null, 1e2] }` {
		t.Errorf("echo: %+v", out)
	}
	for _, tc := range []struct {
		operation string
		payload   string
		code      string
		blame     wire.Blame
	}{
		{"item", `{"n":1}`, "", ""},
		{"item", `{"n":"` + canary + `"}`, "schema.mismatch", "host"},
		{"item", `{"n":1,"` + "more" + `":"` + canary + `"}`, "schema.unknown_member", "host"},
		{"plain", `1`, "internal", "plugin"},
		{"panics", `1`, "internal", "plugin"},
		{"wrong", `1`, "schema.mismatch", "plugin"},
		{"no-json", `1`, "internal", "plugin"},
		{"twice", `1`, "internal", "plugin"},
		{"meant", `1`, "unavailable", "environment"},
		{"fatal", `1`, "internal", "plugin"},
		{"large", `1`, "resource_exhausted", "environment"},
		{"secret", `1`, "unavailable", "environment"},
		{"grant", `1`, "permission_denied", "host"},
		{"nothing", `1`, "unknown_operation", "host"},
	} {
		out := call(t, s, plugintest.Request{Operation: tc.operation, Payload: json.RawMessage(tc.payload), Secrets: map[string]string{"/token": canary}})
		if codeOf(out) != tc.code || out.Error != nil && out.Error.BlameDomain != tc.blame {
			t.Errorf("%s: %+v, want %s", tc.operation, out.Error, tc.code)
		}
		if out.Error != nil {
			if text := string(out.Error.AppendJSON(nil)); strings.Contains(text, canary) {
				t.Errorf("%s: the frame says %s", tc.operation, text)
			}
		}
		for _, p := range out.Progress {
			if strings.Contains(p.Message, canary) {
				t.Errorf("%s: progress says %s", tc.operation, p.Message)
			}
		}
	}
	for name, r := range map[string]plugintest.Request{
		"unsupported_operation_version": {Operation: "echo", Version: "9.9"},
		"permission_denied":             {Operation: "echo", GrantID: "never"},
		"payload_class.denied":          {Operation: "echo", Class: wire.ClassSecret},
		"deadline_exceeded":             {Operation: "echo", Deadline: time.Now().Add(-time.Second)},
		"secret.unresolved":             {Operation: "secret", Payload: 1},
	} {
		if out := call(t, s, r); codeOf(out) != name {
			t.Errorf("%s: %+v", name, out.Error)
		}
	}
}

func TestSessionServesManyAtOnce(t *testing.T) {
	const most = 8
	var running, peak atomic.Int64
	release := make(chan struct{})
	s := plugintest.OpenSession(t, newSession(t, op{name: "wait", request: "any", response: "any", handler: func(context.Context, *plugin.Operation) (any, error) {
		now := running.Add(1)
		for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
		}
		<-release
		running.Add(-1)
		return "done", nil
	}}), plugintest.SessionConfig{Limits: plugin.Limits{MaxInFlight: most}})
	var calls []*plugintest.Call
	for range most {
		calls = append(calls, start(t, s, plugintest.Request{Operation: "wait"}))
	}
	for running.Load() < most {
		time.Sleep(time.Millisecond)
	}
	if out := call(t, s, plugintest.Request{Operation: "wait"}); codeOf(out) != "resource_exhausted" || !out.Error.Retryable {
		t.Errorf("one too many: %+v", out)
	}
	for range 3 { // frames are answered while handlers are busy
		if err := s.Heartbeat(); err != nil {
			t.Fatal(err)
		}
		if h, err := s.Health(false); err != nil || h.Status != plugin.Healthy {
			t.Fatalf("%+v %v", h, err)
		}
	}
	close(release)
	for _, c := range calls {
		if out, err := c.Wait(); err != nil || out.Response == nil {
			t.Errorf("%+v %v", out, err)
		}
	}
	if peak.Load() != most {
		t.Errorf("%d at a time", peak.Load())
	}
	if out := call(t, s, plugintest.Request{Operation: "wait"}); out.Response == nil {
		t.Errorf("afterwards: %+v", out.Error)
	}
}

func count(_ context.Context, o *plugin.Operation) (any, error) {
	var in struct {
		N      int    `json:"n"`
		Filler string `json:"filler"`
	}
	if err := o.DecodePayload(&in); err != nil {
		return nil, err
	}
	for n := range in.N {
		if err := o.Send(map[string]any{"n": n, "filler": in.Filler}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func relay(_ context.Context, o *plugin.Operation) (any, error) {
	for item, err := range o.Items() {
		if err != nil {
			return nil, err
		}
		if err := o.Send(item); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func TestSessionResponseStream(t *testing.T) {
	s := plugintest.OpenSession(t, newSession(t, op{name: "count", out: true, receipts: true, handler: count}, op{name: "hold", request: "any", handler: hold}), plugintest.SessionConfig{})
	out := call(t, s, plugintest.Request{Operation: "count", Payload: map[string]int{"n": 5000}})
	if out.Response == nil || len(out.Items) != 5000 || out.Ended == nil || out.Ended.ItemCount != 5000 || string(out.Response.Payload) != "null" ||
		out.Receipt().ItemCount != 5000 || out.Receipt().ByteCount != out.Ended.ByteCount {
		t.Fatalf("%+v", out)
	}
	// Credit for three items of any size, then for two more; the call checks that none
	// is exceeded.
	c := start(t, s, plugintest.Request{Operation: "count", Payload: map[string]int{"n": 5}, CreditItems: 3, CreditBytes: 1 << 20})
	items := func(n int) func(*plugintest.Outcome) bool {
		return func(o *plugintest.Outcome) bool { return len(o.Items) >= n }
	}
	if err := c.WaitFor(items(3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Heartbeat(); err != nil { // a stream that waits holds up nothing
		t.Fatal(err)
	}
	if err := c.Grant(2, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Wait(); err != nil || out.Response == nil || len(out.Items) != 5 {
		t.Errorf("%+v %v", out, err)
	}
	// An item larger than every grant will never be covered.
	if out := call(t, s, plugintest.Request{Operation: "count", Payload: map[string]any{"n": 1, "filler": strings.Repeat("x", 5000)}, CreditItems: 5, CreditBytes: 1000}); codeOf(out) != "resource_exhausted" {
		t.Errorf("%+v", out)
	}
	// Cancelled while it waits for credit.
	c = start(t, s, plugintest.Request{Operation: "count", Payload: map[string]int{"n": 5}, CreditItems: 1, CreditBytes: 1 << 20})
	if err := c.WaitFor(items(1)); err != nil {
		t.Fatal(err)
	}
	if err := c.Cancel("enough"); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Wait(); err != nil || out.Cancelled == nil || out.Receipt().ItemCount != 1 {
		t.Errorf("%+v %v", out, err)
	}
}

func TestSessionRelay(t *testing.T) {
	s := plugintest.OpenSession(t, newSession(t, op{name: "relay", in: true, out: true, handler: relay}, op{name: "lazy", in: true, handler: hold}), plugintest.SessionConfig{})
	c := start(t, s, plugintest.Request{Operation: "relay"})
	filler := strings.Repeat("é", 20_000) // credit for bytes runs out before that for items
	for n := range 1000 {
		item := map[string]any{"n": n}
		if n%100 == 0 {
			item["filler"] = filler
		}
		if err := c.Send(item); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Wait(); err != nil || out.Response == nil || len(out.Items) != 1000 {
		t.Fatalf("%+v %v", out.Error, err)
	}
	// An item that the schema refuses ends the request, not the session.
	c = start(t, s, plugintest.Request{Operation: "relay"})
	if err := c.Send(map[string]string{"n": "one"}); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Wait(); err != nil || codeOf(out) != "schema.mismatch" || out.Error.BlameDomain != wire.BlameHost {
		t.Errorf("%+v %v", out, err)
	}
	for name, send := range map[string]func(id wire.UUID){
		"invalid_argument": func(id wire.UUID) { s.Send(&wire.StreamItem{RequestID: id, Index: 7, Payload: []byte(`{"n":1}`)}) },
		"flow_control_violation": func(id wire.UUID) {
			for n := range 200 { // which nobody reads
				s.Send(&wire.StreamItem{RequestID: id, Index: int64(n), Payload: []byte(`{"n":1}`)})
			}
		},
	} {
		c := start(t, s, plugintest.Request{Operation: "lazy"})
		send(c.RequestID())
		if out, err := c.Wait(); err != nil || codeOf(out) != name {
			t.Errorf("%s: %+v %v", name, out, err)
		}
	}
}

func TestSessionProgress(t *testing.T) {
	s := plugintest.OpenSession(t, newSession(t, op{name: "busy", request: "any", response: "any", handler: func(ctx context.Context, o *plugin.Operation) (any, error) {
		begin := time.Now()
		for n := int64(0); ; n++ {
			o.Progress(plugin.ProgressUpdate{Message: "step", Current: &n})
			if time.Since(begin) > 900*time.Millisecond {
				return n, nil
			}
			time.Sleep(time.Millisecond)
		}
	}}), plugintest.SessionConfig{})
	out := call(t, s, plugintest.Request{Operation: "busy"})
	if n := len(out.Progress); out.Response == nil || n < 5 || n > wire.ProgressPerSecond {
		t.Errorf("%d updates in a second: %+v", n, out.Error)
	}
	last := int64(-1)
	for _, p := range out.Progress {
		if *p.Current <= last {
			t.Errorf("%d after %d", *p.Current, last)
		}
		last = *p.Current
	}
	if got := fmt.Sprint(last); got != string(out.Response.Payload) {
		t.Errorf("the last update is %s, the operation came to %s", got, out.Response.Payload)
	}
}

func TestSessionCancellation(t *testing.T) {
	stubborn := make(chan struct{})
	s := plugintest.OpenSession(t, newSession(t,
		op{name: "hold", request: "any", receipts: true, handler: hold},
		op{name: "answer", request: "any", response: "any", receipts: true, handler: func(ctx context.Context, o *plugin.Operation) (any, error) {
			o.Progress(plugin.ProgressUpdate{Message: "holding"})
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), plugin.ErrCancelled) {
				return nil, errors.New("another cause")
			}
			return "finished all the same", nil
		}},
		op{name: "fail", request: "any", handler: func(ctx context.Context, o *plugin.Operation) (any, error) {
			o.Progress(plugin.ProgressUpdate{Message: "holding"})
			<-ctx.Done()
			return nil, plugin.NewPluginError(plugin.Unavailable, "while cancelled")
		}},
		op{name: "unexplained", request: "any", receipts: true, handler: func(ctx context.Context, _ *plugin.Operation) (any, error) {
			<-ctx.Done()
			return nil, errors.New("half done")
		}},
		op{name: "declared", request: "any", receipts: true, handler: func(ctx context.Context, _ *plugin.Operation) (any, error) {
			<-ctx.Done()
			return nil, &plugin.PluginError{Code: plugin.Unavailable, Effect: plugin.EffectPartial}
		}},
		op{name: "made-up", request: "any", receipts: true, handler: func(ctx context.Context, o *plugin.Operation) (any, error) {
			o.Effect("maybe")
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}},
		op{name: "stuck", request: "any", receipts: true, handler: func(_ context.Context, o *plugin.Operation) (any, error) {
			o.Progress(plugin.ProgressUpdate{Message: "holding"})
			<-stubborn
			return nil, nil
		}},
	), plugintest.SessionConfig{})
	defer close(stubborn)
	for operation, check := range map[string]func(*plugintest.Outcome) bool{
		"hold": func(o *plugintest.Outcome) bool {
			return o.Cancelled != nil && o.Receipt().ExecutionState == wire.ExecutionCancelled
		},
		"answer": func(o *plugintest.Outcome) bool {
			return o.Response != nil && o.Receipt().ExecutionState == wire.ExecutionCompleted
		},
		"fail": func(o *plugintest.Outcome) bool { return codeOf(o) == "unavailable" },
	} {
		c := start(t, s, plugintest.Request{Operation: operation})
		if err := c.WaitFor(holding); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Cancel("enough"); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := c.Wait(); err != nil || !check(out) {
			t.Errorf("%s: %+v %v", operation, out, err)
		}
		if err := c.Cancel("too late"); err != nil {
			t.Fatal(err)
		}
	}
	// A deadline does not hide what a handler says of its effect, or that it failed otherwise.
	for operation, want := range map[string]plugin.EffectState{"hold": plugin.EffectNone, "unexplained": plugin.EffectUnknown, "declared": plugin.EffectPartial, "made up": plugin.EffectUnknown} {
		out := call(t, s, plugintest.Request{Operation: strings.ReplaceAll(operation, " ", "-"), Deadline: time.Now().Add(50 * time.Millisecond)})
		if codeOf(out) != "deadline_exceeded" || out.Receipt().EffectState != want {
			t.Errorf("%s: %+v, the receipt says %q", operation, out.Error, out.Receipt().EffectState)
		}
	}
	// A deadline is answered even if the handler does not listen, and its effect is then
	// not known.
	begin := time.Now()
	out := call(t, s, plugintest.Request{Operation: "stuck", Deadline: time.Now().Add(50 * time.Millisecond), IdempotencyKey: "k"})
	if codeOf(out) != "deadline_exceeded" || out.Receipt().EffectState != wire.EffectUnknown || time.Since(begin) > 3*time.Second {
		t.Errorf("after %v: %+v", time.Since(begin), out.Error)
	}
	if out := call(t, s, plugintest.Request{Operation: "stuck", IdempotencyKey: "k"}); codeOf(out) != "failed_precondition" {
		t.Errorf("%+v", out.Error)
	}
}

// TestSessionCancelRace lets answers and cancels cross, ten thousand times. The host
// of the test holds that each request ends once.
func TestSessionCancelRace(t *testing.T) {
	s := plugintest.OpenSession(t, newSession(t, op{name: "short", request: "any", response: "any", handler: func(ctx context.Context, o *plugin.Operation) (any, error) {
		if n, err := strconv.Atoi(string(o.Payload)); err == nil && n%100 == 0 {
			time.Sleep(3 * time.Millisecond) // so that the next calls run beside the reading
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return o.Payload, nil
	}}), plugintest.SessionConfig{})
	races, workers := 10_000, 8
	if testing.Short() {
		races = 500
	}
	var cancelled, answered atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range races / workers {
				c := start(t, s, plugintest.Request{Operation: "short", Payload: n})
				if (n+w)%3 == 0 {
					time.Sleep(time.Duration(n%50) * time.Microsecond)
				}
				if err := c.Cancel("race"); err != nil {
					t.Error(err)
					return
				}
				out, err := c.Wait()
				switch {
				case err != nil:
					t.Error(err)
					return
				case out.Cancelled != nil:
					cancelled.Add(1)
				case out.Response != nil:
					answered.Add(1)
				default:
					t.Errorf("%+v", out.Error)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d cancelled, %d answered", cancelled.Load(), answered.Load())
	if cancelled.Load() == 0 || answered.Load() == 0 {
		t.Error("the race had one winner only")
	}
}

// TestSessionDeadlineAndClock holds that a deadline is converted once: setting the
// clock neither ends an operation nor keeps it alive.
func TestSessionDeadlineAndClock(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			p := newSession(t, op{name: "hold", request: "any", handler: hold})
			var offset atomic.Int64
			plugin.SetWall(p, func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
			s := plugintest.OpenSession(t, p, plugintest.SessionConfig{})
			begin := time.Now()
			c := start(t, s, plugintest.Request{Operation: "hold", Deadline: begin.Add(500 * time.Millisecond)})
			if err := c.WaitFor(holding); err != nil {
				t.Fatal(err)
			}
			offset.Store(int64(step))
			out, err := c.Wait()
			if took := time.Since(begin); err != nil || codeOf(out) != "deadline_exceeded" || took < 400*time.Millisecond || took > 5*time.Second {
				t.Errorf("after %v: %+v %v", took, out, err)
			}
		})
	}
}

func TestSessionSettingsAndHealth(t *testing.T) {
	p := newSession(t, op{name: "settings", request: "any", response: "any", handler: func(_ context.Context, o *plugin.Operation) (any, error) { return o.Settings(), nil }})
	p.Settings(func(_ context.Context, settings json.RawMessage) (any, error) {
		var s map[string]any
		if err := json.Unmarshal(settings, &s); err != nil {
			return nil, err
		}
		if s["bad"] != nil {
			return nil, &plugin.SettingsError{Problems: []plugin.SettingsProblem{{Path: "/bad", Message: "not this"}}}
		}
		s["normal"] = true
		return s, nil
	})
	s := plugintest.OpenSession(t, p, plugintest.SessionConfig{Settings: map[string]int{"a": 1}})
	if out := call(t, s, plugintest.Request{Operation: "settings"}); string(out.Response.Payload) != `{"a":1,"normal":true}` {
		t.Errorf("in force: %s", out.Response.Payload)
	}
	if got, err := s.ValidateSettings(map[string]int{"b": 2}); err != nil || string(got) != `{"b":2,"normal":true}` {
		t.Errorf("%s %v", got, err)
	}
	var refused *plugin.SettingsError
	if _, err := s.ValidateSettings(map[string]int{"bad": 2}); !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != "/bad" {
		t.Errorf("%v", err)
	}
	if out := call(t, s, plugintest.Request{Operation: "settings"}); string(out.Response.Payload) != `{"a":1,"normal":true}` {
		t.Errorf("validating changed what is in force: %s", out.Response.Payload)
	}
	var fatal *wire.Error
	if _, err := plugintest.StartSession(p, plugintest.SessionConfig{Settings: map[string]int{"bad": 1}}); !errors.As(err, &fatal) || fatal.Code != wire.CodeInvalidArgument || fatal.Severity != wire.SeverityFatal {
		t.Errorf("settings that the plugin refuses: %v", err)
	}
	if h, err := s.Health(true); err != nil || h.Status != plugin.Healthy {
		t.Fatalf("%+v %v", h, err)
	}
	p.SetHealth(plugin.Healthy, "") // no change
	p.SetHealth(plugin.Degraded, "slow")
	select {
	case h := <-s.HealthChanges():
		if h.Status != plugin.Degraded || h.Message != "slow" {
			t.Errorf("%+v", h)
		}
	case <-time.After(5 * time.Second):
		t.Error("nobody was told")
	}
}

func TestSessionEnds(t *testing.T) {
	newOne := func(t *testing.T) *plugin.SessionPlugin {
		return newSession(t, op{name: "hold", request: "any", handler: hold}, op{name: "echo", request: "any", response: "any", handler: echo})
	}
	t.Run("goAway", func(t *testing.T) {
		s := plugintest.OpenSession(t, newOne(t), plugintest.SessionConfig{})
		c := start(t, s, plugintest.Request{Operation: "hold"})
		if err := c.WaitFor(holding); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Send(&wire.GoAway{Reason: "update", GraceMs: 1000}); err != nil {
			t.Fatal(err)
		}
		if out := call(t, s, plugintest.Request{Operation: "echo"}); codeOf(out) != "unavailable" {
			t.Errorf("a later request: %+v", out)
		}
		if err := s.Heartbeat(); err != nil {
			t.Error(err)
		}
		if err := c.Cancel("the end"); err != nil {
			t.Fatal(err)
		}
		if out, err := c.Wait(); err != nil || out.Cancelled == nil {
			t.Errorf("%+v %v", out, err)
		}
	})
	// The two below speak frames themselves.
	for name, tc := range map[string]struct {
		end  func(in io.Closer, cancel context.CancelFunc)
		want []wire.MessageType
	}{
		"end of input":  {func(in io.Closer, _ context.CancelFunc) { in.Close() }, []wire.MessageType{wire.TypeCancelled}},
		"asked to stop": {func(_ io.Closer, cancel context.CancelFunc) { cancel() }, []wire.MessageType{wire.TypeGoAway, wire.TypeCancelled}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFrameHost(t, newOne(t))
			h.ready()
			id := wire.NewUUID()
			h.send(&wire.Request{RequestID: id, OperationID: wire.NewUUID(), Attempt: 1, CapabilityID: "test", OperationName: "hold", OperationVersion: "1.0", PayloadClass: wire.ClassInternal, Payload: []byte("1")})
			h.expect(wire.TypeProgress)
			tc.end(h.in, h.cancel)
			for _, want := range tc.want {
				body := h.expect(want)
				if g, ok := body.(*wire.GoAway); ok && g.LastAcceptedSequence != 3 {
					t.Errorf("%+v", g)
				}
			}
			if err := h.end(); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("fatal", func(t *testing.T) {
		h := newFrameHost(t, newOne(t))
		h.ready()
		h.send(&wire.Request{RequestID: wire.NewUUID(), OperationID: wire.NewUUID(), Attempt: 1, CapabilityID: "test", OperationName: "hold", OperationVersion: "1.0", PayloadClass: wire.ClassInternal, Payload: []byte("1")})
		h.expect(wire.TypeProgress)
		h.raw(`{"protocolVersion":"1.2"}`)
		if e := h.expect(wire.TypeError).(*wire.Error); e.Code != wire.CodeEnvelopeInvalid || e.Severity != wire.SeverityFatal || e.RequestID.Set {
			t.Errorf("%+v", e)
		}
		begin := time.Now()
		if err := h.end(); err == nil || time.Since(begin) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if h.next() != nil {
			t.Error("frames after a fatal error")
		}
	})
}
