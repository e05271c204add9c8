package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/runtime/process"
	"github.com/switchyard-plugins/switchyard/runtime/process/misbehave"
)

func TestMain(m *testing.M) {
	misbehave.Main()
	helperMain()
	os.Exit(m.Run())
}

const manifest = `{"schemaVersion":"switchyard.plugin-manifest/v1","id":"sample","name":"Sample","version":"1.0.0",` +
	`"protocolVersion":"switchyard.plugin/v1","executable":"sample","arguments":[],` +
	`"capabilities":["project.inspect"],"requestedScopes":["project.metadata.read"]}`

var callNumber struct {
	sync.Mutex
	n int
}

// newCallID is unique among the test processes of this machine.
func newCallID() string {
	callNumber.Lock()
	defer callNumber.Unlock()
	callNumber.n++
	return fmt.Sprintf("test-%d-%d", os.Getpid(), callNumber.n)
}

// spec describes this test binary behaving as name, in a package directory.
func spec(t testing.TB, name string, options ...string) process.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	return process.Spec{
		Executable: f, Path: self, Args: misbehave.Args(name, options...), Dir: dir,
		Env:    process.Environment(os.LookupEnv, "switchyard.plugin/v1", dir),
		CallID: newCallID(),
	}
}

func start(t testing.TB, s process.Spec) *process.Child {
	t.Helper()
	c, err := process.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill("test cleanup")
		c.Finish(context.Background(), 0)
		c.Stdout.Close()
	})
	return c
}

// call sends initialize and one method and returns the lines that came back;
// an early end of stdout ends it.
func call(t testing.TB, c *process.Child) []string {
	t.Helper()
	out := bufio.NewReader(c.Stdout)
	var lines []string
	for id, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"switchyard.plugin/v1","grantedScopes":[]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`,
	} {
		if _, err := c.Stdin.WriteString(request + "\n"); err != nil {
			t.Logf("request %d: %v", id+1, err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Logf("answer %d: %q, %v", id+1, line, err)
			return lines
		}
		lines = append(lines, line)
	}
	return lines
}

func finish(c *process.Child) process.Exit {
	return c.Finish(context.Background(), process.DefaultGrace)
}

func TestOrderlyCall(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	c := start(t, s)
	if lines := call(t, c); len(lines) != 2 || !strings.Contains(lines[1], "healthy") {
		t.Fatalf("answers: %q", lines)
	}
	exit := finish(c)
	if !exit.Clean() || exit.Leftovers != 0 || exit.String() != "exit status 0" || exit.Elapsed <= 0 {
		t.Errorf("exit: %+v", exit)
	}
	if again := finish(c); again != exit {
		t.Errorf("second Finish: %+v", again)
	}
	c.Kill("too late")
	wantNone(t, s.CallID, "")
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		behaviour, want string
	}{
		{"exit-before-initialize", "exit status 0"},
		{"crash-before-initialize", "exit status 3"},
		{"crash-at-initialize", "exit status 4"},
		{"crash-at-method", "exit status 5"},
		{"crash-after-answer", "exit status 6"},
		{"signal-at-method", "ended by SIGKILL"},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			child := start(t, spec(t, c.behaviour))
			call(t, child)
			if exit := finish(child); exit.String() != c.want || exit.Killed {
				t.Errorf("exit: %+v, want %q", exit, c.want)
			}
		})
	}
}

// TestStdinOrder holds the order of an orderly end: stdin closes first, the
// child is only killed when the grace is over.
func TestIgnoresStdinClose(t *testing.T) {
	t.Parallel()
	c := start(t, spec(t, "ignore-stdin-close"))
	call(t, c)
	began := time.Now()
	exit := c.Finish(context.Background(), 50*time.Millisecond)
	if !exit.Killed || exit.Signal != "SIGKILL" || !strings.Contains(exit.Reason, "50ms") {
		t.Errorf("exit: %+v", exit)
	}
	if took := time.Since(began); took < 50*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestFinishEndsWithContext(t *testing.T) {
	t.Parallel()
	c := start(t, spec(t, "ignore-stdin-close"))
	call(t, c)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted by the user"))
	if exit := c.Finish(ctx, time.Hour); exit.Reason != "interrupted by the user" {
		t.Errorf("exit: %+v", exit)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	for _, behaviour := range []string{"hang-at-method", "ignore-signals", "stop-at-method"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			s := spec(t, behaviour)
			c := start(t, s)
			go func() {
				awaitLine(c) // the answer to initialize: the behaviour is under way
				c.Kill("first")
				c.Kill("second")
			}()
			fmt.Fprintln(c.Stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
			fmt.Fprintln(c.Stdin, `{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`)
			<-c.Done()
			if exit := finish(c); !exit.Killed || exit.Reason != "first" || exit.String() != "killed: first" {
				t.Errorf("exit: %+v", exit)
			}
			wantNone(t, s.CallID, "")
		})
	}
}

func awaitLine(c *process.Child) { bufio.NewReader(c.Stdout).ReadString('\n') }

// TestOpenedFileRuns replaces the path after the file was opened: the opened
// file is what runs.
func TestOpenedFileRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux executes an inode")
	}
	t.Parallel()
	s := spec(t, "good")
	real := s.Path
	s.Path = filepath.Join(s.Dir, "sample")
	if err := os.WriteFile(s.Path, []byte("#!/bin/sh\nexit 99\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, s)
	if lines := call(t, c); len(lines) != 2 {
		t.Errorf("answers: %q", lines)
	}
	if exit := finish(c); !exit.Clean() {
		t.Errorf("exit: %+v; %s ran instead of %s", exit, s.Path, real)
	}
}

func TestFaultySpec(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*process.Spec){
		"no executable":   func(s *process.Spec) { s.Executable = nil },
		"relative path":   func(s *process.Spec) { s.Path = "sample" },
		"relative dir":    func(s *process.Spec) { s.Dir = "." },
		"no call id":      func(s *process.Spec) { s.CallID = "" },
		"long call id":    func(s *process.Spec) { s.CallID = strings.Repeat("x", 65) },
		"foreign call id": func(s *process.Spec) { s.CallID = "a=b" },
		"mark in env":     func(s *process.Spec) { s.Env = append(s.Env, process.MarkVariable+"=x") },
		"no assignment":   func(s *process.Spec) { s.Env = append(s.Env, "x") },
	} {
		s := spec(t, "good")
		change(&s)
		if _, err := process.Start(s); !errors.Is(err, process.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var startError *process.StartError
	s := spec(t, "good")
	s.Dir = filepath.Join(s.Dir, "missing")
	if _, err := process.Start(s); !errors.As(err, &startError) {
		t.Errorf("missing directory: %v", err)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s = spec(t, "good")
	s.Executable = dir
	if _, err := process.Start(s); !errors.As(err, &startError) {
		t.Errorf("directory as executable: %v", err)
	}
}

// TestTextFileBusy starts a program that was written a moment ago, while other
// children are being forked: their copy of the writer's descriptor makes the
// kernel refuse now and then.
func TestTextFileBusy(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("Linux only, and slow")
	}
	t.Parallel()
	s := spec(t, "good")
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip(err)
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 25 {
				s := s
				s.CallID = newCallID()
				s.Path = filepath.Join(s.Dir, fmt.Sprintf("true-%d-%d", worker, i))
				if err := os.WriteFile(s.Path, program, 0o755); err != nil {
					t.Error(err)
					return
				}
				f, err := os.Open(s.Path)
				if err != nil {
					t.Error(err)
					return
				}
				s.Executable = f
				c, err := process.Start(s)
				f.Close()
				if err != nil {
					t.Error(err)
					return
				}
				if exit := finish(c); !exit.Clean() {
					t.Errorf("exit: %+v", exit)
				}
				c.Stdout.Close()
			}
		})
	}
	group.Wait()
}

func TestParallelCalls(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	behaviours := []string{"good", "daemon-holding-pipes", "good", "daemon-without-mark", "child", "good"}
	for i := range 4 * len(behaviours) {
		s := spec(t, behaviours[i%len(behaviours)])
		group.Go(func() {
			c := start(t, s)
			lines := call(t, c)
			exit := finish(c)
			if len(lines) != 2 || !exit.Clean() {
				t.Errorf("%s: %d lines, %+v", s.Args[1], len(lines), exit)
			}
			want := 1
			if s.Args[1] == "good" {
				want = 0
			}
			if runtime.GOOS == "linux" && exit.Leftovers != want {
				t.Errorf("%s: %d leftovers", s.Args[1], exit.Leftovers)
			}
		})
	}
	group.Wait()
}

// TestStderrFlood holds that 10 MiB of stderr, which nobody reads while the
// call runs, neither block the child nor stay in memory.
func TestStderrFlood(t *testing.T) {
	t.Parallel()
	for _, behaviour := range []string{"stderr-flood", "stderr-no-text", "stderr-one-line"} {
		c := start(t, spec(t, behaviour))
		if lines := call(t, c); len(lines) != 2 {
			t.Errorf("%s: answers: %q", behaviour, lines)
		}
		if exit := finish(c); !exit.Clean() {
			t.Errorf("%s: %+v", behaviour, exit)
		}
		lines, size := c.Stderr.Size()
		kept := c.Stderr.Lines(0)
		switch behaviour {
		case "stderr-flood":
			if lines != misbehave.StderrFlood/64 || size != misbehave.StderrFlood || len(kept) != process.MaxLines {
				t.Errorf("%d lines, %d bytes, %d kept", lines, size, len(kept))
			}
			if last := kept[len(kept)-1].Text; last != fmt.Sprintf("%063d", misbehave.StderrFlood/64-1) {
				t.Errorf("last line %q", last)
			}
		case "stderr-no-text":
			if n := int64(2 * misbehave.StderrFlood); lines != uint64(n) || size != n || len(kept) != process.MaxLines {
				t.Errorf("%d lines, %d bytes, %d kept", lines, size, len(kept))
			}
			if last := kept[len(kept)-1]; last.Text != "" || last.Seq != 2*misbehave.StderrFlood {
				t.Errorf("last line %+v", last)
			}
		default:
			if len(kept) != 1 || len(kept[0].Text) != process.MaxLineBytes || kept[0].Cut != 1<<20-process.MaxLineBytes {
				t.Errorf("%d lines kept", len(kept))
			}
		}
	}
}

func TestStderrIsRedacted(t *testing.T) {
	t.Parallel()
	c := start(t, spec(t, "stderr-secrets"))
	call(t, c)
	finish(c)
	lines := c.Stderr.Lines(0)
	for _, line := range lines {
		if strings.Contains(line.Text, "canary") {
			t.Errorf("secret in %q", line.Text)
		}
	}
	if len(lines) != 7 || lines[6].Text != "done" {
		t.Errorf("lines: %+v", lines)
	}
}

// TestChildEnvironment asks a real child what it was given.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("SWITCHYARD_CANARY_TOKEN", "canary")
	s := spec(t, "environment")
	c := start(t, s)
	call(t, c)
	finish(c)
	var names []string
	for _, line := range c.Stderr.Lines(0) {
		name, value, _ := strings.Cut(line.Text, "=")
		names = append(names, name)
		if strings.Contains(value, "canary") {
			t.Errorf("inherited: %q", line.Text)
		}
		if name == process.MarkVariable && value != s.CallID {
			t.Errorf("mark: %q", value)
		}
	}
	for _, name := range names {
		switch name {
		case process.ProtocolVariable, process.MarkVariable, "PATH", "TMPDIR", "LANG", "SYSTEMROOT":
		default:
			t.Errorf("unexpected variable %q", name)
		}
	}
	if !slices.Contains(names, process.ProtocolVariable) || !slices.Contains(names, process.MarkVariable) {
		t.Errorf("variables: %q", names)
	}
}

func TestGuarantees(t *testing.T) {
	all := process.Guarantees()
	if len(all) == 0 {
		t.Fatal("none reported")
	}
	var names []string
	for _, g := range all {
		if g.Name == "" || g.Detail == "" {
			t.Errorf("incomplete: %+v", g)
		}
		names = append(names, g.Name)
		t.Logf("%-20s %-5v %s", g.Name, g.Holds, g.Detail)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(all) {
		t.Error("repeated names")
	}
}
