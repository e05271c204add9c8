package commands

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowOperation starts `run … operate` of a plugin that never answers, and returns
// once the plugin has got the request. The plugin ignores that its input closes.
func slowOperation(t *testing.T) (*exec.Cmd, *bytes.Buffer, func(want int, args ...string) string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a plugin")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(dir, "src")
	if err := makePlugin(src, "demo", "1.0.0", "slow", pipe); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "switchyard")
	if err := os.Link(self, program); err != nil {
		if err := os.Symlink(self, program); err != nil {
			t.Fatal(err)
		}
	}
	command := func(out *bytes.Buffer, args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		cmd.Stdout, cmd.Stderr = out, out
		return cmd
	}
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := command(&out, args...)
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Fatalf("%q: exit %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
	run(exitOK, "install", src)
	review := run(exitOK, "review", "demo")
	_, rest, _ := strings.Cut(review, "--fingerprint ")
	run(exitOK, "trust", "demo", "--fingerprint", strings.TrimSpace(rest))
	run(exitOK, "enable", "demo", "--scope", "project.metadata.read", "--scope", "project.operate")
	run(exitOK, "project", "trust", ".")
	var out bytes.Buffer
	cmd := command(&out, "run", "demo", "operate", "note", "--timeout", "10m")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return cmd, &out, run
}

func TestSecondInterruptEndsTheCallAtOnce(t *testing.T) {
	cmd, out, run := slowOperation(t)
	began := time.Now()
	for range 2 {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	// Two signals of one kind may be delivered as one: then the plugin had its grace.
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit %d after %v\n%s", code, time.Since(began), out)
	}
	if list := run(exitOK, "operations", "list"); !strings.Contains(list, "cancelled") {
		t.Errorf("%s", list)
	}
}

func TestTerminationIsAnInterrupt(t *testing.T) {
	cmd, out, run := slowOperation(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(out.String(), "switchyard operations show ") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if list := run(exitOK, "operations", "list"); !strings.Contains(list, "cancelled") {
		t.Errorf("%s", list)
	}
}

// When the program itself is killed, the plugin dies with it and the next command
// records the operation as abandoned.
func TestKilledSupervisorIsCleanedUp(t *testing.T) {
	cmd, _, run := slowOperation(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if list := run(exitOK, "operations", "list"); !strings.Contains(list, "abandoned") {
		t.Errorf("%s", list)
	}
}
