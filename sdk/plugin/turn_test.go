package plugin_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

// where answers whether the handler runs on the goroutine that reads.
func where(context.Context, *plugin.Operation) (any, error) {
	return strings.Contains(string(debug.Stack()), "(*connection).read("), nil
}

// A short operation runs on the goroutine that reads, as long as calls of it are short.
func TestTurn(t *testing.T) {
	var slow atomic.Bool
	s := plugintest.OpenSession(t, newSession(t, op{name: "where", request: "any", response: "any", handler: func(ctx context.Context, o *plugin.Operation) (any, error) {
		if slow.Swap(false) {
			time.Sleep(20 * time.Millisecond)
		}
		return where(ctx, o)
	}}), plugintest.SessionConfig{})
	reading := func() bool {
		return string(call(t, s, plugintest.Request{Operation: "where"}).Response.Payload) == "true"
	}
	found := 0
	for range 1000 { // on a busy machine a short call may be a long one
		if reading() {
			found++
		}
	}
	if found == 0 {
		t.Error("no short call ran on the goroutine that reads")
	}
	for slowly := false; !slowly; slowly = reading() { // the slow one may itself run beside
		slow.Store(true)
	}
	for n := range 50 {
		if reading() {
			t.Fatalf("call %d after a slow one ran on the goroutine that reads", n)
		}
	}
}

// Whatever a handler does, the frames that come meanwhile are read.
func TestTurnIsTaken(t *testing.T) {
	release, spin := make(chan struct{}, 1), new(atomic.Bool)
	handlers := map[string]plugin.OperationHandler{
		"waits": func(context.Context, *plugin.Operation) (any, error) { <-release; return nil, nil },
		"spins": func(context.Context, *plugin.Operation) (any, error) {
			for !spin.Load() {
			}
			return nil, nil
		}, //nolint
		"listens": func(ctx context.Context, _ *plugin.Operation) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
		"ends":   func(context.Context, *plugin.Operation) (any, error) { runtime.Goexit(); return nil, nil },
		"panics": func(context.Context, *plugin.Operation) (any, error) { panic("") },
	}
	ops := []op{{name: "free", request: "any", response: "any", handler: func(context.Context, *plugin.Operation) (any, error) {
		spin.Store(true)
		select {
		case release <- struct{}{}:
		default:
		}
		return nil, nil
	}}}
	for name, h := range handlers {
		ops = append(ops, op{name: name, request: "any", response: "any", handler: h})
	}
	s := plugintest.OpenSession(t, newSession(t, ops...), plugintest.SessionConfig{})
	for name := range handlers {
		for range 3 { // the first alone, the others perhaps beside the reading
			spin.Store(false)
			c := start(t, s, plugintest.Request{Operation: name, Deadline: time.Now().Add(time.Minute)})
			if err := s.Heartbeat(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch name {
			case "listens":
				if err := c.Cancel("enough"); err != nil {
					t.Fatal(err)
				}
			case "ends":
				continue // never answered, and holds up nothing
			default:
				call(t, s, plugintest.Request{Operation: "free"})
			}
			out, err := c.Wait()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if name == "listens" && out.Cancelled == nil || name != "listens" && name != "panics" && out.Response == nil {
				t.Errorf("%s: %+v", name, out)
			}
		}
	}
}

// After a pause without operations, too, one that takes its time does not keep the turn.
func TestTurnIsTakenAfterAPause(t *testing.T) {
	release := make(chan struct{}, 1)
	s := plugintest.OpenSession(t, newSession(t,
		op{name: "short", request: "any", response: "any", handler: where},
		op{name: "waits", request: "any", response: "any", handler: func(context.Context, *plugin.Operation) (any, error) { <-release; return nil, nil }},
	), plugintest.SessionConfig{})
	call(t, s, plugintest.Request{Operation: "short"})
	time.Sleep(500 * time.Millisecond) // many times what the looking lasts
	c := start(t, s, plugintest.Request{Operation: "waits"})
	if err := s.Heartbeat(); err != nil {
		t.Error("nothing is read beside the operation:", err)
	}
	release <- struct{}{}
	if out, err := c.Wait(); err != nil || out.Response == nil {
		t.Errorf("%+v %v", out, err)
	}
}
