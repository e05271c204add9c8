package commands

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// A watcher calls seen once text has been written to it.
type watcher struct {
	bytes.Buffer
	text string
	seen func()
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.seen != nil && strings.Contains(w.String(), w.text) {
		w.seen()
		w.seen = nil
	}
	return n, err
}

// logs -f shows lines that are written while it runs, and ends with an interrupt.
func TestLogsFollow(t *testing.T) {
	env := sandbox(t)
	env.Args = []string{"approve", "demo"}
	env.Stdin = strings.NewReader("y\ny\ny\n")
	if code, _, stderr := env.run(); code != exitOK {
		t.Fatalf("approve: exit %d, %s", code, stderr)
	}
	env.Args = []string{"project", "trust", env.vars["HOME"]}
	if code, _, stderr := env.run(); code != exitOK {
		t.Fatalf("project trust: exit %d, %s", code, stderr)
	}
	inspect := newFakeEnv(t, "run", "demo", "inspect", "--project", env.vars["HOME"])
	inspect.vars = env.vars

	follower := newFakeEnv(t, "logs", "demo", "-f")
	follower.vars = env.vars
	out := &watcher{text: "inspecting with token="}
	follower.Stdout = out
	follower.Interrupts = func(parent context.Context, _ chan<- struct{}) (context.Context, func()) {
		ctx, cancel := context.WithCancel(parent)
		out.seen = cancel
		return ctx, cancel
	}
	done := make(chan int)
	go func() { done <- Main(follower.Env) }()
	if code, _, stderr := inspect.run(); code != exitOK {
		t.Errorf("inspect: exit %d, %s", code, stderr)
	}
	if code := <-done; code != exitInterrupted {
		t.Errorf("exit %d, %s", code, follower.err.String())
	}
	if strings.Contains(out.String(), "abcdef0123456789") {
		t.Errorf("a secret is shown: %s", out.String())
	}
}
