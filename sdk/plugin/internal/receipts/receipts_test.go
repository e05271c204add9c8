package receipts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

const sha = "sha256:4444444444444444444444444444444444444444444444444444444444444444"

// draft returns a receipt that asks to run what body says under key.
func draft(key, body string) *wire.Receipt {
	digest, err := wire.RequestDigest("effects", "append", "1.0", json.RawMessage(`"`+body+`"`))
	if err != nil {
		panic(err)
	}
	now := time.Now()
	return &wire.Receipt{ReceiptID: wire.NewUUID(), PluginID: "org.example.a", PublisherID: "org.example", PackageVersion: "1.0.0", ManifestDigest: sha,
		CapabilityID: "effects", OperationName: "append", OperationVersion: "1.0", OperationID: wire.NewUUID(), IdempotencyKey: key, Attempt: 1,
		ExecutionState: wire.ExecutionInProgress, EffectState: wire.EffectUnknown, StartedAt: now, IssuedAt: now, RequestDigest: digest,
		ExpiresAt: now.Add(Lifetime(wire.RetentionShort))}
}

// ended returns the record of an operation that ended.
func ended(r *wire.Receipt, state wire.ExecutionState, effect wire.EffectState, retryable bool) *Record {
	out := &Record{Receipt: *r}
	out.Receipt.ExecutionState, out.Receipt.EffectState = state, effect
	switch state {
	case wire.ExecutionCompleted:
		out.Result = json.RawMessage(`{"done":true}`)
	case wire.ExecutionFailed:
		out.Receipt.ErrorCode = wire.CodeUnavailable
		out.Error = &Failure{Code: wire.CodeUnavailable, Message: "no\nluck", Retryable: retryable}
	}
	return out
}

// TestTable is rule S-97, row by row.
func TestTable(t *testing.T) {
	for name, tc := range map[string]struct {
		state     wire.ExecutionState
		effect    wire.EffectState
		retryable bool
		want      string // run, replay, or a code
	}{
		"completed":                    {wire.ExecutionCompleted, wire.EffectCommitted, false, "replay"},
		"completed, no effect":         {wire.ExecutionCompleted, wire.EffectNone, false, "replay"},
		"completed, undone":            {wire.ExecutionCompleted, wire.EffectRolledBack, false, "replay"},
		"completed, effect unknown":    {wire.ExecutionCompleted, wire.EffectUnknown, false, "failed_precondition"},
		"completed, effect partial":    {wire.ExecutionCompleted, wire.EffectPartial, false, "failed_precondition"},
		"failed, none, retryable":      {wire.ExecutionFailed, wire.EffectNone, true, "run"},
		"failed, none, final":          {wire.ExecutionFailed, wire.EffectNone, false, "replay"},
		"failed, committed, retryable": {wire.ExecutionFailed, wire.EffectCommitted, true, "replay"},
		"failed, undone, retryable":    {wire.ExecutionFailed, wire.EffectRolledBack, true, "replay"},
		"failed, unknown":              {wire.ExecutionFailed, wire.EffectUnknown, true, "failed_precondition"},
		"failed, partial":              {wire.ExecutionFailed, wire.EffectPartial, true, "failed_precondition"},
		"cancelled, none":              {wire.ExecutionCancelled, wire.EffectNone, false, "run"},
		"cancelled, committed":         {wire.ExecutionCancelled, wire.EffectCommitted, false, "failed_precondition"},
		"abandoned":                    {wire.ExecutionAbandoned, wire.EffectUnknown, false, "failed_precondition"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Open(t.TempDir())
			first := draft("k", "x")
			claim, _, err := s.Claim(first)
			if err != nil {
				t.Fatal(err)
			}
			record := ended(first, tc.state, tc.effect, tc.retryable)
			if err := claim.Finish(record); err != nil {
				t.Fatal(err)
			}
			claim, replayed, err := s.Claim(draft("k", "x"))
			got := "run"
			var refused *Refusal
			switch {
			case errors.As(err, &refused):
				got = string(refused.Code)
				if refused.Receipt == nil || refused.Receipt.ReceiptID != first.ReceiptID {
					t.Errorf("the refusal has the receipt %+v", refused.Receipt)
				}
			case err != nil:
				t.Fatal(err)
			case replayed != nil:
				got = "replay"
				if a, b := replayed.appendJSON(nil), record.appendJSON(nil); !bytes.Equal(a, b) {
					t.Errorf("replayed\n%s\nnot\n%s", a, b)
				}
			default:
				claim.Abandon()
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			// Another request under the same key, whatever became of the first.
			if _, _, err := s.Claim(draft("k", "y")); !errors.As(err, &refused) || refused.Code != wire.CodeAlreadyExists {
				t.Errorf("another payload: %v", err)
			}
			other, _, err := s.Claim(draft("k2", "y"))
			if err != nil {
				t.Errorf("another key: %v", err)
			} else {
				other.Abandon()
			}
			// An expired receipt means nothing.
			s.now = func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }
			again, _, err := s.Claim(draft("k", "y"))
			if err != nil {
				t.Errorf("after expiry: %v", err)
			} else {
				again.Abandon()
			}
		})
	}
}

func TestRunning(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir)
	first := draft("k", "x")
	claim, _, err := s.Claim(first)
	if err != nil {
		t.Fatal(err)
	}
	var refused *Refusal
	if _, _, err := Open(dir).Claim(draft("k", "x")); !errors.As(err, &refused) || refused.Code != wire.CodeConflict || refused.Existing != wire.Some(first.OperationID) {
		t.Errorf("while it runs: %+v", err)
	}
	query := &wire.ReceiptQuery{PluginID: first.PluginID, CapabilityID: first.CapabilityID, OperationName: first.OperationName, IdempotencyKey: "k"}
	if r, err := s.Find(query); err != nil || r == nil || r.ExecutionState != wire.ExecutionInProgress {
		t.Errorf("found %+v %v", r, err)
	}
	// Its holder goes away without a word.
	if err := claim.Abandon(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Find(query); err != nil || r == nil || r.ExecutionState != wire.ExecutionAbandoned || r.EffectState != wire.EffectUnknown {
		t.Errorf("found %+v %v", r, err)
	}
	for range 2 {
		if _, _, err := s.Claim(draft("k", "x")); !errors.As(err, &refused) || refused.Code != wire.CodeFailedPrecondition ||
			refused.Receipt.ExecutionState != wire.ExecutionAbandoned || refused.Receipt.OperationID != first.OperationID {
			t.Errorf("after its holder died: %+v", err)
		}
	}
}

func TestWithoutKey(t *testing.T) {
	s := Open(t.TempDir())
	var ids []wire.UUID
	for range 3 { // nothing is deduplicated
		r := draft("", "x")
		claim, _, err := s.Claim(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := claim.Finish(ended(r, wire.ExecutionCompleted, wire.EffectCommitted, false)); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ReceiptID)
	}
	for _, id := range ids {
		if r, err := s.Find(&wire.ReceiptQuery{ReceiptID: wire.Some(id)}); err != nil || r == nil || r.ReceiptID != id {
			t.Errorf("%s: %+v %v", id, r, err)
		}
	}
	if r, err := s.Find(&wire.ReceiptQuery{ReceiptID: wire.Some(wire.NewUUID())}); err != nil || r != nil {
		t.Errorf("a receipt that is none: %+v %v", r, err)
	}
	if locks, _ := filepath.Glob(filepath.Join(s.dir, "*.lock")); len(locks) != 0 {
		t.Errorf("%d locks are left", len(locks))
	}
	keyed := draft("k", "x")
	claim, _, err := s.Claim(keyed)
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Finish(ended(keyed, wire.ExecutionCompleted, wire.EffectCommitted, false)); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Find(&wire.ReceiptQuery{ReceiptID: wire.Some(keyed.ReceiptID)}); err != nil || r == nil || r.IdempotencyKey != "k" {
		t.Errorf("by id, of one with a key: %+v %v", r, err)
	}
}

func TestDamagedRecord(t *testing.T) {
	s := Open(t.TempDir())
	r := draft("k", "x")
	claim, _, err := s.Claim(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Finish(ended(r, wire.ExecutionCompleted, wire.EffectCommitted, false)); err != nil {
		t.Fatal(err)
	}
	path := s.path(nameOf(r), ".json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", string(whole[:len(whole)/2]), `{"receipt":{}}`, strings.Replace(string(whole), "completed", "finished", 1), string(whole) + "x",
		strings.Replace(string(whole), `{"receipt"`, `{"more":1,"receipt"`, 1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// It must not run: what it did is not known.
		if claim, record, err := s.Claim(draft("k", "x")); err == nil || claim != nil || record != nil {
			t.Errorf("%.40q: %v %v %v", text, claim, record, err)
		}
	}
}

func TestSweep(t *testing.T) {
	s := Open(t.TempDir())
	if err := s.Sweep(); err != nil {
		t.Errorf("an empty store: %v", err)
	}
	for i, retention := range []wire.Retention{wire.RetentionEphemeral, wire.RetentionNone, wire.RetentionShort, wire.RetentionAudit} {
		r := draft("k"+strconv.Itoa(i), "x")
		r.ExpiresAt = r.StartedAt.Add(Lifetime(retention))
		claim, _, err := s.Claim(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := claim.Finish(ended(r, wire.ExecutionCompleted, wire.EffectNone, false)); err != nil {
			t.Fatal(err)
		}
	}
	left := s.path("x.123", ".tmp")
	if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ days, want int }{{0, 4}, {2, 3}, {8, 2}, {31, 1}, {366, 0}} {
		s.now = func() time.Time { return time.Now().AddDate(0, 0, step.days) }
		if err := s.Sweep(); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(s.dir, "*.json")); len(left) != step.want {
			t.Errorf("after %d days %d records are left, want %d", step.days, len(left), step.want)
		}
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead process left behind: %v", err)
	}
}

// What the tests below start is this test binary, told by its environment what to be.
const (
	envRole = "SWITCHYARD_TEST_RECEIPTS_ROLE"
	envDir  = "SWITCHYARD_TEST_RECEIPTS_DIR"
	envStep = "SWITCHYARD_TEST_RECEIPTS_STEP"
)

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "":
		os.Exit(m.Run())
	case "killed":
		killedAt(os.Getenv(envDir), os.Getenv(envStep))
	case "storm":
		storm(os.Getenv(envDir))
	}
}

func role(name, dir string, more ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append([]string{envRole + "=" + name, envDir + "=" + dir}, more...)...)
	return cmd
}

// killedAt claims, has its effect and finishes, and kills itself at the nth step on
// the disk, counted over all of that.
func killedAt(dir, step string) {
	stop, err := strconv.Atoi(step)
	if err != nil {
		panic(err)
	}
	s, n := Open(dir), 0
	s.step = func(string) {
		if n++; n == stop {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
	}
	r := draft("k", "x")
	claim, replayed, err := s.Claim(r)
	if err != nil {
		fmt.Println("refused", err)
		os.Exit(0)
	}
	if replayed != nil {
		fmt.Println("replayed")
		os.Exit(0)
	}
	effect(dir)
	if err := claim.Finish(ended(r, wire.ExecutionCompleted, wire.EffectCommitted, false)); err != nil {
		fmt.Println("not finished", err)
		os.Exit(1)
	}
	fmt.Println("ran")
	os.Exit(0)
}

// effect leaves a mark that can be counted.
func effect(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "effects.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := f.WriteString("effect\n"); err != nil {
		panic(err)
	}
	f.Close()
}

func effects(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "effects.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

// TestKilledAtEachStep kills a process before every step that it takes on the disk,
// and looks at what it leaves: a whole record or none, and at most one effect,
// however often it is tried afterwards.
func TestKilledAtEachStep(t *testing.T) {
	const steps = 10 // five of the claim, five of the end
	for step := 1; step <= steps+1; step++ {
		dir := t.TempDir()
		out, err := role("killed", dir, envStep+"="+strconv.Itoa(step)).CombinedOutput()
		if killed := err != nil; killed != (step <= steps) {
			t.Fatalf("step %d: %v\n%s", step, err, out)
		}
		before := effects(t, dir)
		s := Open(dir)
		record, err := s.read(nameOf(draft("k", "x")))
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		for range 3 {
			if out, err := role("killed", dir, envStep+"=0").CombinedOutput(); err != nil {
				t.Fatalf("step %d, again: %v\n%s", step, err, out)
			}
		}
		after := effects(t, dir)
		query := &wire.ReceiptQuery{PluginID: "org.example.a", CapabilityID: "effects", OperationName: "append", IdempotencyKey: "k"}
		receipt, err := s.Find(query)
		if err != nil || receipt == nil {
			t.Fatalf("step %d: no receipt: %v", step, err)
		}
		switch {
		case record == nil: // killed before the claim was there: it ran afterwards, once
			if before != 0 || after != 1 || receipt.ExecutionState != wire.ExecutionCompleted {
				t.Errorf("step %d: %d effects, then %d, %s", step, before, after, receipt.ExecutionState)
			}
		case record.Receipt.ExecutionState == wire.ExecutionInProgress: // killed between claim and end
			if after != before || receipt.ExecutionState != wire.ExecutionAbandoned || receipt.EffectState != wire.EffectUnknown {
				t.Errorf("step %d: %d effects, then %d, %s", step, before, after, receipt.ExecutionState)
			}
		default: // the end is there
			if before != 1 || after != 1 || receipt.ExecutionState != wire.ExecutionCompleted {
				t.Errorf("step %d: %d effects, then %d, %s", step, before, after, receipt.ExecutionState)
			}
		}
	}
}

// storm asks for the same operation again and again until it is answered with its
// result a number of times.
func storm(dir string) {
	s := Open(dir)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			for answered := 0; answered < 250; {
				r := draft("k", "x")
				claim, replayed, err := s.Claim(r)
				var refused *Refusal
				switch {
				case errors.As(err, &refused) && refused.Code == wire.CodeConflict:
					time.Sleep(time.Millisecond)
				case err != nil:
					fmt.Println(err)
					os.Exit(1)
				case replayed != nil:
					answered++
				default:
					effect(dir)
					time.Sleep(20 * time.Millisecond)
					if err := claim.Finish(ended(r, wire.ExecutionCompleted, wire.EffectCommitted, false)); err != nil {
						fmt.Println(err)
						os.Exit(1)
					}
					answered++
				}
			}
		})
	}
	wg.Wait()
	os.Exit(0)
}

// TestReplayStorm asks 10,000 times for one operation, in eight processes at once,
// and counts its effects.
func TestReplayStorm(t *testing.T) {
	dir := t.TempDir()
	var running []*exec.Cmd
	var outputs []*bytes.Buffer
	for range 8 {
		cmd, out := role("storm", dir), new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running, outputs = append(running, cmd), append(outputs, out)
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, outputs[i])
		}
	}
	if n := effects(t, dir); n != 1 {
		t.Errorf("%d effects", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, Directory, "*.tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
