package state

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roleVariable makes the test binary a child with a role instead of a test run.
const roleVariable = "STATE_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := childRoles[role](At(os.Args[1]), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

var childRoles = map[string]func(*DB, []string) error{
	"count":     childCount,
	"endless":   childEndless,
	"create":    childCreate,
	"read":      childRead,
	"wait":      func(*DB, []string) error { ready(); return nil },
	"read-only": childReadOnly,
}

// child prepares the test binary in a role on the database's directory. It starts
// working when its stdin is closed.
func child(t testing.TB, role string, d *DB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{d.dir}, args...)...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// ready says so on stdout and waits for stdin to be closed.
func ready() {
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// childCount makes n updates, each of which adds one to a counter kept in a
// default's id, writes one log line and one event. It prints its longest wait.
func childCount(d *DB, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	ready()
	var longest time.Duration
	for range n {
		start := time.Now()
		err := d.Update(context.Background(), func(tx *Tx) error {
			longest = max(longest, time.Since(start))
			return addOne(tx)
		})
		if err != nil {
			return err
		}
	}
	fmt.Println(longest.Nanoseconds())
	return nil
}

func counter(tx *Tx) (int, error) {
	r, err := tx.Default("counter")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(r.ID)
}

// addOne adds one to the counter, and says so in every other kind of place.
func addOne(tx *Tx) error {
	n, err := counter(tx)
	if err != nil {
		return err
	}
	n++
	if err := tx.SetDefault(Default{Dir: "counter", ID: strconv.Itoa(n), Package: testDigest(0)}); err != nil {
		return err
	}
	if err := tx.AppendLogs("counter", []LogEntry{{Line: strconv.Itoa(n)}}); err != nil {
		return err
	}
	return tx.AppendEvent(Event{Kind: "count", ID: strconv.Itoa(n)})
}

// startCounting records the counter as zero.
func startCounting(t testing.TB, d *DB) {
	update(t, d, func(tx *Tx) error {
		return tx.SetDefault(Default{Dir: "counter", ID: "0", Package: testDigest(0)})
	})
}

// childRead reads until it is killed.
func childRead(d *DB, _ []string) error {
	ready()
	for {
		if err := d.View(context.Background(), func(tx *Tx) error { _, err := counter(tx); return err }); err != nil {
			return err
		}
	}
}

// childEndless updates until it is killed. It prints the counter before each
// commit and "done" after it.
func childEndless(d *DB, _ []string) error {
	ready()
	for {
		err := d.Update(context.Background(), func(tx *Tx) error {
			if err := addOne(tx); err != nil {
				return err
			}
			n, err := counter(tx)
			fmt.Println(n)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Println("done")
	}
}

// childCreate creates databases in directories 0, 1, 2, … until it is killed.
func childCreate(d *DB, _ []string) error {
	ready()
	for n := 0; ; n++ {
		if err := At(filepath.Join(d.dir, strconv.Itoa(n))).Ensure(context.Background()); err != nil {
			return err
		}
		fmt.Println("done")
	}
}

// A running child with its two pipes.
type runningChild struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Scanner
}

// start starts a child and waits until it is ready.
func start(t testing.TB, cmd *exec.Cmd) runningChild {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := runningChild{cmd: cmd, stdin: stdin, out: bufio.NewScanner(stdout)}
	if !c.out.Scan() || c.out.Text() != "ready" {
		t.Fatalf("child said %q: %v", c.out.Text(), cmd.Wait())
	}
	return c
}

func TestFiftyProcessesLoseNothing(t *testing.T) {
	const processes, each = 50, 10
	d := At(t.TempDir() + "/data dir é")
	startCounting(t, d)
	children := make([]runningChild, processes)
	for i := range children {
		children[i] = start(t, child(t, "count", d, strconv.Itoa(each)))
	}
	began := time.Now()
	for _, c := range children {
		c.stdin.Close()
	}
	var longest time.Duration
	for _, c := range children {
		var last string
		for c.out.Scan() {
			last = c.out.Text()
		}
		if err := c.cmd.Wait(); err != nil {
			t.Fatalf("child: %v", err)
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Duration(ns))
	}
	total := time.Since(began)
	t.Logf("%d processes × %d updates in %v, %v an update; longest wait %v", processes, each, total, total/(processes*each), longest)
	checkCounting(t, d, processes*each, processes*each)
}

// checkCounting checks that the counter is between low and high and that logs
// and events agree with it.
func checkCounting(t testing.TB, d *DB, low, high int) int {
	t.Helper()
	var n int
	view(t, d, func(tx *Tx) error {
		var err error
		if n, err = counter(tx); err != nil {
			return err
		}
		if n < low || n > high {
			t.Fatalf("the counter is %d, want %d to %d", n, low, high)
		}
		logs, err := tx.Logs("counter", 0, 0)
		if err != nil {
			return err
		}
		if len(logs) != min(n, KeepLogs) {
			t.Fatalf("%d log lines, counter %d", len(logs), n)
		}
		for i, l := range logs {
			if want := n - len(logs) + 1 + i; l.Line != strconv.Itoa(want) || l.Seq != uint64(want) {
				t.Fatalf("log line %d is %+v, want %d", i, l, want)
			}
		}
		events, err := tx.Events(0, nil)
		if err != nil {
			return err
		}
		if len(events) != n {
			t.Fatalf("%d events, counter %d", len(events), n)
		}
		for i, e := range events {
			if e.ID != strconv.Itoa(n-i) {
				t.Fatalf("event %d is %+v, want %d", i, e, n-i)
			}
		}
		return nil
	})
	return n
}

func TestWriterIsNotStarvedByReaders(t *testing.T) {
	d := open(t)
	startCounting(t, d)
	for range 20 {
		c := start(t, child(t, "read", d))
		c.stdin.Close()
	}
	var longest, sum time.Duration
	const updates = 50
	for range updates {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := d.Update(ctx, func(tx *Tx) error {
			waited := time.Since(began)
			longest, sum = max(longest, waited), sum+waited
			return addOne(tx)
		})
		cancel()
		if err != nil {
			t.Fatalf("update beside readers: %v", err)
		}
	}
	t.Logf("wait of a writer beside 20 readers: mean %v, longest %v", sum/updates, longest)
}
