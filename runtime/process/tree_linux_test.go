package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/runtime/process"
)

// marked lists living processes whose environment holds the call's id, found
// by other means than the package's own.
func marked(t testing.TB, callID string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		t.Fatalf("cannot list processes: %v", err)
	}
	var found []string
	for _, path := range paths {
		environ, _ := os.ReadFile(path)
		if bytes.Contains(environ, []byte(process.MarkVariable+"="+callID+"\x00")) {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}

// wantNone fails if a process of the call lives: one that carries its mark or
// one that recorded its pid in the file pids.
func wantNone(t testing.TB, callID, pids string) (recorded int) {
	t.Helper()
	if left := marked(t, callID); len(left) > 0 {
		t.Errorf("marked processes are left: %v", left)
	}
	if pids == "" {
		return 0
	}
	data, err := os.ReadFile(pids)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(data)) {
		recorded++
		if alive(pid) {
			t.Errorf("recorded process %s is left", pid)
		}
	}
	return recorded
}

// alive reports whether the pid is a process of this test binary that has not
// exited.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	after := stat[bytes.LastIndexByte(stat, ')')+1:]
	cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	return !bytes.HasPrefix(after, []byte(" Z")) && bytes.Contains(cmdline, []byte("-misbehave"))
}

func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		behaviour string
		least     int // processes that must have been started
		leftovers int // -1: any number
	}{
		{"child", 1, 1},
		{"child-in-own-group", 1, 1},
		{"child-in-own-session", 1, 1},
		{"daemon", 1, 1},
		{"daemon-holding-pipes", 1, 1},
		{"daemon-without-mark", 1, 1},
		{"daemon-ignoring-signals", 1, 1},
		{"daemon-stopped", 1, 1},
		{"daemon-of-crash", 1, 1},
		{"daemon-of-hang", 1, 1},
		{"daemon-before-initialize", 1, 1},
		{"daemon-and-broken-message", 1, 1},
		{"fork-bomb", 31, 31},
		{"fork-chain", 1, -1},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			s := spec(t, c.behaviour, "pids="+pids)
			child := start(t, s)
			if c.behaviour == "daemon-of-hang" {
				fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
				fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`)
				awaitPids(t, pids)
				child.Kill("hanging")
			} else {
				call(t, child)
			}
			began := time.Now()
			exit := finish(child)
			if recorded := wantNone(t, s.CallID, pids); recorded < c.least {
				t.Errorf("only %d processes were started", recorded)
			}
			if c.leftovers >= 0 && exit.Leftovers != c.leftovers {
				t.Errorf("%d leftovers, want %d", exit.Leftovers, c.leftovers)
			}
			if exit.Survivors != 0 {
				t.Errorf("exit: %+v", exit)
			}
			t.Logf("%v, %d leftovers, ended in %v", exit, exit.Leftovers, time.Since(began))
		})
	}
}

// awaitPids returns when a process has recorded itself. The file system has no
// event to wait for, so it polls, bounded by the test's own deadline.
func awaitPids(t testing.TB, path string) []string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if data, err := os.ReadFile(path); err == nil && bytes.HasSuffix(data, []byte("\n")) {
			return strings.Fields(string(data))
		}
	}
	t.Fatal("no process was recorded")
	return nil
}

// TestStrangersAreLeftAlone runs other children of this process beside calls
// that leave daemons behind: in this process's group, in one of their own, in a
// session of their own, all with the mark of another call. It does not run in
// parallel, so that none is started in the moment of another test's Start.
func TestStrangersAreLeftAlone(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var strangers []*exec.Cmd
	for _, attr := range []*syscall.SysProcAttr{{}, {Setpgid: true}, {Setsid: true}} {
		cmd := exec.Command(self, "-helper", "wait")
		cmd.SysProcAttr = attr
		cmd.Env = append(os.Environ(), process.MarkVariable+"=someone-else")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		strangers = append(strangers, cmd)
	}
	for _, behaviour := range []string{"daemon-holding-pipes", "daemon-without-mark", "fork-chain"} {
		child := start(t, spec(t, behaviour))
		call(t, child)
		finish(child)
	}
	for i, cmd := range strangers {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stranger %d: %v", i, err)
		}
		err := cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
			t.Errorf("stranger %d did not live until it was told to end: %v", i, err)
		}
	}
}

// TestOwnGroup holds that the terminal's signals do not reach the child.
func TestOwnGroup(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	c := start(t, s)
	pids := marked(t, s.CallID)
	if len(pids) != 1 {
		t.Fatalf("processes: %v", pids)
	}
	stat, err := os.ReadFile("/proc/" + pids[0] + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if group := fields[2]; group != pids[0] {
		t.Errorf("pid %s is in group %s", pids[0], group)
	}
	finish(c)
}

// helperMain lets the test binary be other processes than plugins.
func helperMain() {
	if len(os.Args) < 3 || os.Args[1] != "-helper" {
		return
	}
	switch os.Args[2] {
	case "wait": // until stdin closes
		os.Stdin.Read(make([]byte, 1))
	case "supervisor": // starts a call and is killed in the middle of it
		supervisor(os.Args[3], os.Args[4], os.Args[5])
	}
	os.Exit(0)
}

func supervisor(behaviour, callID, pids string) {
	self, _ := os.Executable()
	f, err := os.Open(self)
	if err != nil {
		panic(err)
	}
	dir := filepath.Dir(pids)
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifest), 0o644); err != nil {
		panic(err)
	}
	child, err := process.Start(process.Spec{
		Executable: f, Path: self, Dir: dir, CallID: callID,
		Args: []string{"-misbehave", behaviour, "pids=" + pids},
		Env:  process.Environment(os.LookupEnv, "switchyard.plugin/v1", dir),
	})
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`)
	os.Stdin.Read(make([]byte, 1))
}

// TestSupervisorKilled ends a supervisor with SIGKILL: its child dies at once,
// and the next process ends what else the call left.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	for _, behaviour := range []string{"hang-at-method", "child", "daemon-holding-pipes", "daemon-without-mark", "daemon-stopped", "fork-bomb"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			callID, pids := newCallID(), filepath.Join(t.TempDir(), "pids")
			cmd := exec.Command(self, "-helper", "supervisor", behaviour, callID, pids)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hanging := behaviour == "hang-at-method"
			var child string
			if hanging {
				child = awaitMarked(t, callID)
			} else {
				awaitPids(t, pids)
			}
			cmd.Process.Kill()
			cmd.Wait()
			if hanging {
				// The kernel delivers the signal as the supervisor exits; the child
				// may take a moment to die of it.
				for deadline := time.Now().Add(10 * time.Second); alive(child); {
					if time.Now().After(deadline) {
						t.Fatal("the child outlives its supervisor")
					}
				}
			}
			ended, err := process.Sweep([]string{"not-this-one", callID})
			if err != nil {
				t.Error(err)
			}
			if !hanging && ended == 0 {
				t.Error("nothing was left to end: the test shows nothing")
			}
			wantNone(t, callID, pids)
			if again, err := process.Sweep([]string{callID}); again != 0 || err != nil {
				t.Errorf("second sweep: %d, %v", again, err)
			}
		})
	}
	if n, err := process.Sweep(nil); n != 0 || err != nil {
		t.Errorf("empty sweep: %d, %v", n, err)
	}
}

func awaitMarked(t testing.TB, callID string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if pids := marked(t, callID); len(pids) == 1 {
			return pids[0]
		}
	}
	t.Fatal("no process appeared")
	return ""
}

// TestSweepSparesOthers sweeps while a live call of another id runs.
func TestSweepSparesOthers(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	c := start(t, s)
	if n, err := process.Sweep([]string{newCallID(), s.CallID + "x", s.CallID[:len(s.CallID)-1] + "-"}); n != 0 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if lines := call(t, c); len(lines) != 2 {
		t.Errorf("answers: %q", lines)
	}
	if exit := finish(c); !exit.Clean() {
		t.Errorf("exit: %+v", exit)
	}
}

// TestNoDescriptorLeaks holds that a call leaves this process's descriptors
// and threads as they were.
func TestNoDescriptorLeaks(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	s := spec(t, "good")
	run := func() {
		s.CallID = newCallID()
		c, err := process.Start(s)
		if err != nil {
			t.Fatal(err)
		}
		call(t, c)
		c.Finish(context.Background(), process.DefaultGrace)
		c.Stdout.Close()
		bad := s
		bad.Dir = "/nonexistent"
		process.Start(bad)
	}
	run()
	before := count()
	for range 20 {
		run()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

// TestUnprivileged runs the tree tests as an ordinary user, who may not signal
// just anybody and is bound by hard limits.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test runs unprivileged already")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The binary may lie where others cannot reach it.
	dir, err := os.MkdirTemp("", "unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "process.test")
	// Copied by another process: this one keeps forking, which would make the
	// file busy.
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^(TestNothingSurvives|TestSupervisorKilled|TestParallelCalls|TestOpenedFileRuns)$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("cannot become another user: ", err)
	}
	if err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNested supervises a supervisor that is killed: what its own call left
// carries the inner mark only, and still nothing survives the outer sweep of
// both.
func TestNested(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	inner, pids := newCallID(), filepath.Join(t.TempDir(), "pids")
	s.Args = []string{"-helper", "supervisor", "daemon-holding-pipes", inner, pids}
	c := start(t, s)
	awaitPids(t, pids)
	c.Kill("interrupted")
	finish(c)
	if _, err := process.Sweep([]string{inner}); err != nil {
		t.Error(err)
	}
	wantNone(t, s.CallID, "")
	wantNone(t, inner, pids)
}
