package process_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
		{"daemon-of-hang", 1, -1},
		{"daemon-before-initialize", 1, 1},
		{"daemon-and-broken-message", 1, 1},
		{"fork-bomb", 31, 31},
		{"fork-chain", 1, -1},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			ready := newReady(t)
			s := spec(t, c.behaviour, "pids="+pids, "ready="+ready.Name())
			child := start(t, s)
			if c.behaviour == "daemon-of-hang" {
				fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
				fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`)
				await(t, ready)
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

// newReady returns a named pipe in which helpers report that they run.
// TestNoMarkIsNeeded ends a process that erased every mark: it came to this process
// while no other call was supervised.
func TestNoMarkIsNeeded(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	ready := newReady(t)
	s := spec(t, "daemon-without-any-mark", "pids="+pids, "ready="+ready.Name())
	child := start(t, s)
	call(t, child)
	exit := finish(child)
	if recorded := wantNone(t, s.CallID, pids); recorded != 1 || exit.Leftovers != 1 || exit.Survivors != 0 {
		t.Errorf("%d processes were started; exit: %+v", recorded, exit)
	}
}

func newReady(t testing.TB) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that no open blocks
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

// await returns when something was written to the pipe.
func await(t testing.TB, pipe *os.File) {
	t.Helper()
	if err := pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe.Read(make([]byte, 1)); err != nil {
		t.Fatalf("no process reported itself: %v", err)
	}
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
	case "spy":
		spy(os.Getppid())
	case "supervisor": // starts a call and is killed in the middle of it
		supervisor(os.Args[3], os.Args[4], os.Args[5:])
	}
	os.Exit(0)
}

// supervisor says "started" when its child runs, and waits to be killed.
func supervisor(behaviour, callID string, options []string) {
	self, _ := os.Executable()
	f, err := os.Open(self)
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "package")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifest), 0o644); err != nil {
		panic(err)
	}
	child, err := process.Start(process.Spec{
		Executable: f, Path: self, Dir: dir, CallID: callID,
		Args: append([]string{"-misbehave", behaviour}, options...),
		Env:  process.Environment(os.LookupEnv, "switchyard.plugin/v1", dir),
	})
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	fmt.Fprintln(child.Stdin, `{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`)
	fmt.Println("started")
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
			callID, pids, ready := newCallID(), filepath.Join(t.TempDir(), "pids"), newReady(t)
			cmd := exec.Command(self, "-helper", "supervisor", behaviour, callID, "pids="+pids, "ready="+ready.Name())
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatalf("supervisor says %q, %v", line, err)
			}
			child := hold(t, marked(t, callID))
			hanging := behaviour == "hang-at-method"
			if !hanging {
				await(t, ready)
			}
			cmd.Process.Kill()
			cmd.Wait()
			if !child.gone(10 * time.Second) {
				t.Error("the child outlives its supervisor")
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

// held is a process whose end can be waited for.
type held int

// hold takes hold of the oldest of the processes: the child that the supervisor
// started. That child may start others meanwhile.
func hold(t testing.TB, pids []string) held {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("the supervisor has no child")
	}
	lowest := 0
	for _, s := range pids {
		if pid, err := strconv.Atoi(s); err == nil && (lowest == 0 || pid < lowest) {
			lowest = pid
		}
	}
	fd, err := unix.PidfdOpen(lowest, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return held(fd)
}

// gone reports whether the process has ended within the time.
func (h held) gone(within time.Duration) bool {
	for deadline := time.Now().Add(within); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h), Events: unix.POLLIN}}, int(max(time.Until(deadline), 0).Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
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
	cmd := exec.Command(program, "-test.v", "-test.run", "^(TestNothingSurvives|TestSupervisorKilled|TestParallelCalls|TestOpenedFileRuns|TestClosedToChildren|TestNested)$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("cannot become another user: ", err)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestClosedToChildren")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNested supervises a supervisor that is killed: what its own call left
// carries the inner mark only, and still nothing survives the outer sweep of
// both.
func TestNested(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	inner, pids, ready := newCallID(), filepath.Join(t.TempDir(), "pids"), newReady(t)
	s.Args = []string{"-helper", "supervisor", "daemon-holding-pipes", inner, "pids=" + pids, "ready=" + ready.Name()}
	s.Env = append(s.Env, "TMPDIR="+t.TempDir())
	c := start(t, s)
	await(t, ready)
	c.Kill("interrupted")
	finish(c)
	if _, err := process.Sweep([]string{inner}); err != nil {
		t.Error(err)
	}
	wantNone(t, s.CallID, "")
	wantNone(t, inner, pids)
}
