package runtime_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// hold returns a descriptor of a process, so that its end can be waited for.
func hold(t *testing.T, pid string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// ended reports whether a process ends within a time.
func ended(t *testing.T, fd int, within time.Duration) bool {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(deadline).Milliseconds())))
		if err == nil {
			return n > 0
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

// TestKilledTool kills the tool in the middle of an operation of a plugin that has
// left a process in a session of its own behind. The plugin dies with the tool; the next
// command ends the rest, and nobody calls the plugin again for that operation. It runs
// alone: what the tool leaves becomes a child of this process, and another call of it
// could end that as its own.
func TestKilledTool(t *testing.T) {
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate, "stubborn", "daemon")
	k := w.start(job{Do: "run", Request: operation("key", "{}")})
	w.awaitReached()
	id := w.newest().ID
	pids := lines(t, w.pids())
	if len(pids) != 2 {
		t.Fatalf("processes: %q", pids)
	}
	child, daemon := hold(t, pids[0]), hold(t, pids[1])

	w.must(k.cmd.Process.Kill())
	k.cmd.Wait()
	if !ended(t, child, 20*time.Second) {
		t.Error("the plugin survives the tool")
	}
	if ended(t, daemon, 0) {
		t.Fatal("the test's daemon did not survive, so that nothing is left to be ended")
	}
	if op := w.newest(); op.State != state.Running || len(w.calls()) != 1 {
		t.Errorf("recorded: %+v, marked %q", op, w.calls())
	}

	w.work()
	a := w.start(job{Do: "run", Request: operation("key", "{}")}).answer()
	if a.Ended != 1 || a.Outcome != "abandoned" {
		t.Errorf("the next command: %+v", a)
	}
	if !ended(t, daemon, 20*time.Second) {
		t.Error("the daemon survives the next command")
	}
	op, err := w.home.Operation(t.Context(), id)
	w.must(err)
	if op.State != state.Abandoned || op.EffectState != state.EffectUnknown || op.Code != "abandoned" {
		t.Errorf("recorded: %+v", op)
	}
	if _, event := w.recorded(); event.Kind != "operation.abandoned" || event.Operation != id {
		t.Errorf("history: %+v", event)
	}
	if n := len(w.effects()); n != 1 {
		t.Errorf("%d effects", n)
	}
	if a := w.start(job{Do: "recover"}).answer(); a.Ended != 0 || a.Err != "" {
		t.Errorf("the command after that: %+v", a)
	}
	w.wantNothingLeft()
}

// TestRecoverLeavesTheLiving has another process look for dead calls while one lives.
func TestRecoverLeavesTheLiving(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	w.makeGate()
	w.work(gate)
	p := w.begin(operation("", "{}"))
	w.awaitReached()
	for range 3 {
		if a := w.start(job{Do: "recover"}).answer(); a.Ended != 0 || a.Err != "" {
			t.Errorf("%+v", a)
		}
	}
	if n, err := w.host.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	w.letGo()
	if _, err := p.wait(); err != nil {
		t.Error(err)
	}
	w.wantNothingLeft()
}
