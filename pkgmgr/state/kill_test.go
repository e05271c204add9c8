package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// killAt starts a child, kills it after some of its lines and up to a few
// milliseconds, and returns what it said in all.
func killAt(t *testing.T, c runningChild, random *rand.Rand) (lines []string) {
	t.Helper()
	c.stdin.Close()
	for range 1 + random.IntN(4) {
		if !c.out.Scan() {
			t.Fatalf("the child ended by itself: %v", c.cmd.Wait())
		}
		lines = append(lines, c.out.Text())
	}
	// The moment of death is what this test varies, so it is not tied to anything.
	for until := time.Now().Add(time.Duration(random.IntN(3000)) * time.Microsecond); time.Now().Before(until); {
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	_ = c.cmd.Wait()
	return lines
}

// TestKilledInUpdates kills a writer at random points. What was committed is
// there, what was not is not, and all records agree.
func TestKilledInUpdates(t *testing.T) {
	rounds := 200
	if testing.Short() || raceEnabled {
		rounds = 20
	}
	d := open(t)
	startCounting(t, d)
	random := rand.New(rand.NewPCG(1, 2))
	inside := 0
	for range rounds {
		lines := killAt(t, start(t, child(t, "endless", d)), random)
		committed, begun := -1, -1
		for _, l := range lines {
			if l == "done" {
				committed = begun
			} else if n, err := strconv.Atoi(l); err == nil {
				begun = n
				if committed < 0 {
					committed = n - 1
				}
			}
		}
		if begun < 0 {
			t.Fatalf("the child said %q", lines)
		}
		if begun > committed {
			inside++
		}
		checkCounting(t, d, committed, begun)
	}
	if err := d.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	n := checkCounting(t, d, rounds/2, 1<<30)
	t.Logf("%d kills, %d of them between begin and end of a commit, %d updates", rounds, inside, n)
	if inside == 0 {
		t.Error("no kill hit a commit")
	}
}

// TestKilledInCreate kills a process that creates databases. Each is absent or
// complete.
func TestKilledInCreate(t *testing.T) {
	rounds := 40
	if testing.Short() || raceEnabled {
		rounds = 5
	}
	random := rand.New(rand.NewPCG(3, 4))
	unfinished := 0
	for range rounds {
		d := open(t)
		reported := killAt(t, start(t, child(t, "create", d)), random)
		dirs, err := os.ReadDir(d.dir)
		if err != nil {
			t.Fatal(err)
		}
		complete := 0
		for _, dir := range dirs {
			one := At(filepath.Join(d.dir, dir.Name()))
			if _, err := os.Lstat(one.Path()); errors.Is(err, os.ErrNotExist) {
				unfinished++
			} else {
				complete++
			}
			wantIs(t, one.Check(context.Background()), nil)
			update(t, one, func(tx *Tx) error { return tx.AppendEvent(Event{Kind: "x"}) })
			if _, err := os.Lstat(one.Path() + ".new"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the half-made file stays: %v", err)
			}
		}
		if complete < len(reported) {
			t.Fatalf("%d complete, %d reported", complete, len(reported))
		}
	}
	t.Logf("%d kills, %d of them before a database was in place", rounds, unfinished)
}
