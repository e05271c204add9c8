package commands

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime/session/sessiontest"
)

// placeWithSession has the session plugin of the scripts, enabled, controlled from the
// directory control.
func placeWithSession(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	src, control := filepath.Join(p.dir, "src"), filepath.Join(p.dir, "control")
	if err := os.Mkdir(control, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sessiontest.Write(src, control, sessiontest.Executable); err != nil {
		t.Fatal(err)
	}
	if _, err := pkgmgr.WriteDigests(src); err != nil {
		t.Fatal(err)
	}
	p.run("install", "src")
	_, rest, _ := strings.Cut(p.run("review", sessiontest.ID), "--fingerprint ")
	p.run("trust", sessiontest.ID, "--fingerprint", strings.TrimSpace(rest))
	p.run("enable", sessiontest.ID, "--scope", "filesystem.read")
	return p
}

// holding starts a request that the plugin holds until it is cancelled, and returns when
// it does.
func (p *place) holding(args ...string) (*exec.Cmd, *bytes.Buffer) {
	p.t.Helper()
	cmd := p.command(p.program, append([]string{"run", sessiontest.ID, "test.ops/write", "--input", `{"line":"x","then":"hold"}`, "--deadline", "10m"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cmd.Process.Kill() })
	p.awaitFile("held")
	return cmd, &out
}

func (p *place) awaitFile(name string) {
	p.t.Helper()
	for range 6000 {
		if _, err := os.Stat(filepath.Join(p.dir, "control", name)); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatalf("the plugin never left %s", name)
}

// The first interrupt asks the plugin to stop: it says that it was cancelled, and what it
// had done by then, in a receipt of its own.
func TestSessionInterruptIsCooperative(t *testing.T) {
	p := placeWithSession(t)
	cmd, out := p.holding("--idempotency-key", "k")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(out.String(), "Ctrl-C again ends it at once") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if list := p.run("receipts", "list", "--json"); !strings.Contains(list, `"executionState": "cancelled"`) || !strings.Contains(list, `"effectState": "committed"`) ||
		!strings.Contains(list, `"byHost": false`) {
		t.Errorf("%s", list)
	}
	if list := p.run("operations", "list"); !strings.Contains(list, "cancelled") {
		t.Errorf("%s", list)
	}
}

// A plugin that does not stop is ended by the second interrupt, and what it did is then not
// known. That nothing waits for the grace is TestSessionStops' in runtime.
func TestSessionSecondInterruptKills(t *testing.T) {
	p := placeWithSession(t)
	if err := os.WriteFile(filepath.Join(p.dir, "control", "control"), []byte("stubborn"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd, out := p.holding("--idempotency-key", "k")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // two signals of one kind at once would be delivered as one
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit %d\n%s", code, out)
	}
	if list := p.run("receipts", "list", "--json"); !strings.Contains(list, `"effectState": "unknown"`) || !strings.Contains(list, `"byHost": true`) {
		t.Errorf("%s", list)
	}
}

// When the program itself is killed after the effect, the next command leaves a receipt of
// this host's; it verifies, and the key is never used for a second effect.
func TestSessionOfKilledSupervisor(t *testing.T) {
	p := placeWithSession(t)
	cmd, _ := p.holding("--idempotency-key", "k")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if list := p.run("receipts", "list", "--json"); !strings.Contains(list, `"executionState": "abandoned"`) || !strings.Contains(list, `"effectState": "unknown"`) ||
		!strings.Contains(list, `"byHost": true`) || !strings.Contains(list, `"idempotencyKey": "k"`) {
		t.Fatalf("%s", list)
	}
	operations := p.run("operations", "list", "--json")
	_, id, _ := strings.Cut(operations, `"id": "`)
	id, _, _ = strings.Cut(id, `"`)
	p.write("receipt.json", p.run("receipts", "show", "--document", id))
	if out := p.run("receipts", "verify", "receipt.json"); !strings.Contains(out, "Verified") {
		t.Errorf("%s", out)
	}
	again := p.command(p.program, "run", sessiontest.ID, "test.ops/write", "--input", `{"line":"x","then":"hold"}`, "--idempotency-key", "k")
	out, _ := again.CombinedOutput()
	if code := again.ProcessState.ExitCode(); code != exitPlugin || !strings.Contains(string(out), "failed_precondition") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if effects, err := os.ReadFile(filepath.Join(p.dir, "control", "effects")); err != nil || string(effects) != "x\n" {
		t.Errorf("%q, %v", effects, err)
	}
}

// Progress is shown on a terminal, and ends with the request; without one nothing is.
func TestSessionProgressOnTerminal(t *testing.T) {
	p := placeWithSession(t)
	s := onTerminal(t, 80, p.command(p.program, "run", sessiontest.ID, "test.ops/write", "--input", `{"line":"x","then":"hold"}`, "--deadline", "10m"))
	s.await("holding")
	s.keys("\x03")
	if code, rest := s.end(); code != exitInterrupted {
		t.Errorf("exit %d, %q", code, rest)
	}
	if err := os.Remove(filepath.Join(p.dir, "control", "held")); err != nil {
		t.Fatal(err)
	}
	cmd, out := p.holding()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if strings.Contains(out.String(), "holding") {
		t.Errorf("%s", out)
	}
}
