package state

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func operation(n int) Operation {
	return Operation{
		ID: fmt.Sprintf("0190-%06d", n), PluginID: "repo-facts", Version: "1.0.0", Package: testDigest(1),
		ProjectRoot: "/p", ProjectID: "u", Action: "inventory", InputDigest: testDigest(2), StartedAt: noon,
	}
}

func TestOperationLife(t *testing.T) {
	d := open(t)
	op := operation(1)
	op.IdempotencyKey = "key\twith é"
	result := jsontext.Value(`{"status":"succeeded","output":{"n":1}}`)
	cancel := CancelRequest{At: noon, By: "pid 7", Reason: "revoked"}
	update(t, d, func(tx *Tx) error {
		op.State = Succeeded // is not believed
		return tx.StartOperation(op)
	})
	op.State = Running
	view(t, d, func(tx *Tx) error {
		got, err := tx.Operation(op.ID)
		wantEqual(t, got, op)
		running, err2 := tx.RunningOperations()
		wantEqual(t, running, []Operation{op})
		return errors.Join(err, err2)
	})
	update(t, d, func(tx *Tx) error {
		wantIs(t, tx.StartOperation(op), ErrExists)
		if err := tx.RequestCancel(op.ID, cancel); err != nil {
			return err
		}
		// The first request stays.
		return tx.RequestCancel(op.ID, CancelRequest{By: "somebody else"})
	})
	op.Cancel = &cancel
	update(t, d, func(tx *Tx) error {
		return tx.FinishOperation(op.ID, Outcome{State: PartiallySucceeded, EffectState: EffectPartial, FinishedAt: noon, Code: "c", Message: "m \xff", Result: result})
	})
	op.State, op.EffectState, op.FinishedAt = PartiallySucceeded, EffectPartial, noon
	op.Code, op.Message, op.ResultBytes, op.Result = "c", "m \ufffd", len(result), result
	view(t, d, func(tx *Tx) error {
		got, err := tx.Operation(op.ID)
		wantEqual(t, got, op)
		byKey, err2 := tx.OperationByKey("repo-facts", "inventory", op.IdempotencyKey)
		wantEqual(t, byKey, op)
		_, err3 := tx.OperationByKey("repo-facts", "other", op.IdempotencyKey)
		wantIs(t, err3, ErrNotFound)
		running, err4 := tx.RunningOperations()
		wantEqual(t, running, []Operation{})
		listed, err5 := tx.Operations(0, nil)
		bare := op
		bare.Result = nil
		wantEqual(t, listed, []Operation{bare})
		return errors.Join(err, err2, err4, err5)
	})
	update(t, d, func(tx *Tx) error {
		var e *TransitionError
		err := tx.RequestCancel(op.ID, cancel)
		wantIs(t, err, ErrTransition)
		if !errors.As(err, &e) || e.From != PartiallySucceeded || e.ID != op.ID {
			t.Errorf("%#v", e)
		}
		wantIs(t, tx.RequestCancel("none", cancel), ErrNotFound)
		return nil
	})
}

func TestOperationTransitions(t *testing.T) {
	states := []OperationState{Running, Succeeded, PartiallySucceeded, Failed, Cancelled, Abandoned, "", "invented"}
	d := open(t)
	n := 0
	allowed := 0
	for _, from := range states[:6] {
		for _, to := range states {
			n++
			update(t, d, func(tx *Tx) error {
				op := operation(n)
				if err := tx.StartOperation(op); err != nil {
					return err
				}
				if from != Running {
					if err := tx.FinishOperation(op.ID, Outcome{State: from}); err != nil {
						return err
					}
				}
				err := tx.FinishOperation(op.ID, Outcome{State: to})
				if from == Running && to.Terminal() {
					allowed++
					return err
				}
				wantIs(t, err, ErrTransition)
				if got, err := tx.Operation(op.ID); err != nil || got.State != from {
					t.Errorf("%s to %s left it %s, %v", from, to, got.State, err)
				}
				return nil
			})
		}
	}
	if allowed != 5 {
		t.Errorf("%d transitions allowed, want 5", allowed)
	}
	wantIs(t, d.Check(t.Context()), nil)
}

func TestIdempotencyKeyBelongsToOneRunningOperation(t *testing.T) {
	d := open(t)
	first, second, other := operation(1), operation(2), operation(3)
	first.IdempotencyKey, second.IdempotencyKey, other.IdempotencyKey = "k", "k", "k"
	other.Action = "another action"
	update(t, d, func(tx *Tx) error { return errors.Join(tx.StartOperation(first), tx.StartOperation(other)) })
	update(t, d, func(tx *Tx) error {
		err := tx.StartOperation(second)
		var e *KeyError
		if !errors.Is(err, ErrKeyRunning) || !errors.As(err, &e) || e.ID != first.ID || e.Key != "k" {
			t.Errorf("got %v", err)
		}
		if err := tx.FinishOperation(first.ID, Outcome{State: Failed, EffectState: EffectNone}); err != nil {
			return err
		}
		return tx.StartOperation(second)
	})
	view(t, d, func(tx *Tx) error {
		op, err := tx.OperationByKey("repo-facts", "inventory", "k")
		wantEqual(t, op.ID, second.ID)
		return err
	})
	wantIs(t, d.Check(t.Context()), nil)
}

func TestRecordsThatCannotBeStored(t *testing.T) {
	d := open(t)
	update(t, d, func(tx *Tx) error {
		long := operation(1)
		long.IdempotencyKey = string(bytes.Repeat([]byte("k"), 40_000))
		nul := operation(2)
		nul.Action = "a\x00b"
		if err := tx.StartOperation(operation(3)); err != nil {
			t.Fatal(err)
		}
		big := jsontext.Value(`"` + string(bytes.Repeat([]byte("x"), MaxResult)) + `"`)
		for name, err := range map[string]error{
			"no id":            tx.StartOperation(Operation{}),
			"long key":         tx.StartOperation(long),
			"NUL":              tx.StartOperation(nul),
			"large result":     tx.FinishOperation(operation(3).ID, Outcome{State: Succeeded, Result: big}),
			"no JSON":          tx.FinishOperation(operation(3).ID, Outcome{State: Succeeded, Result: jsontext.Value("{")}),
			"install":          tx.PutInstall(Install{Package: "sha256:00"}),
			"default":          tx.SetDefault(Default{Dir: "", Package: testDigest(1)}),
			"default digest":   tx.SetDefault(Default{Dir: "x"}),
			"trust":            tx.PutTrust(Trust{}),
			"block kind":       tx.PutBlock(Block{Package: testDigest(1), Kind: "invented"}),
			"root":             tx.PutProjectTrust(ProjectTrust{}),
			"root with NUL":    tx.PutProjectTrust(ProjectTrust{Root: "/a\x00b"}),
			"approval":         tx.PutProjectApproval(ProjectApproval{Root: "/a"}),
			"approval root":    tx.PutProjectApproval(ProjectApproval{Package: testDigest(1)}),
			"seen":             tx.PutSeen(Seen{Dir: "x"}),
			"logs without id":  tx.AppendLogs("", []LogEntry{{}}),
			"seen of no name":  tx.PutSeen(Seen{Package: testDigest(1)}),
			"seen, very large": tx.PutSeen(Seen{Dir: "x", Package: testDigest(1), Stats: []FileStat{{Path: string(make([]byte, maxValue))}}}),
			"event":            tx.AppendEvent(Event{Kind: string(make([]byte, maxValue))}),
		} {
			if !errors.Is(err, ErrRecord) {
				t.Errorf("%s: got %v, want ErrRecord", name, err)
			}
		}
		return nil
	})
	wantIs(t, d.Check(t.Context()), nil)
}

func TestOldOperationsAreDropped(t *testing.T) {
	d := open(t)
	const extra = 5
	update(t, d, func(tx *Tx) error {
		for n := range KeepOperations + extra {
			op := operation(n)
			op.IdempotencyKey = fmt.Sprint(n)
			if err := tx.StartOperation(op); err != nil {
				return err
			}
			if n == 1 {
				continue // stays running
			}
			o := Outcome{State: Succeeded}
			if n%8 == 0 {
				o.Result = jsontext.Value("1")
			}
			if err := tx.FinishOperation(op.ID, o); err != nil {
				return err
			}
		}
		return nil
	})
	wantIs(t, d.Check(t.Context()), nil)
	view(t, d, func(tx *Tx) error {
		all, err := tx.Operations(0, nil)
		if err != nil {
			return err
		}
		wantEqual(t, len(all), KeepOperations)
		wantEqual(t, all[0].ID, operation(KeepOperations+extra-1).ID)
		wantEqual(t, all[len(all)-1].ID, operation(1).ID)
		wantEqual(t, all[len(all)-2].ID, operation(extra+1).ID)
		_, err = tx.OperationByKey("repo-facts", "inventory", "0")
		wantIs(t, err, ErrNotFound)
		old, err := tx.Operation(operation(8).ID)
		if err != nil || old.ResultBytes != 1 || old.Result != nil {
			t.Errorf("an old result: %+v, %v", old, err)
		}
		few, err := tx.Operations(2, func(op Operation) bool { return op.State == Running || op.ID == operation(77).ID })
		wantEqual(t, len(few), 2)
		wantEqual(t, few[0].ID, operation(77).ID)
		wantEqual(t, few[1].ID, operation(1).ID)
		kept, err2 := tx.Operation(operation(KeepOperations).ID)
		wantEqual(t, string(kept.Result), "1")
		return errors.Join(err, err2)
	})
	// The result of the oldest operation, which ends last, is not the one to go.
	update(t, d, func(tx *Tx) error {
		return tx.FinishOperation(operation(1).ID, Outcome{State: Succeeded, Result: jsontext.Value("2")})
	})
	view(t, d, func(tx *Tx) error {
		op, err := tx.Operation(operation(1).ID)
		wantEqual(t, string(op.Result), "2")
		return err
	})
	wantIs(t, d.Check(t.Context()), nil)
}

func TestLogsKeepTheNewest(t *testing.T) {
	d := open(t)
	entries := func(from, n int) []LogEntry {
		list := make([]LogEntry, n)
		for i := range list {
			list[i] = LogEntry{At: noon, Package: testDigest(1), Call: "c", Line: fmt.Sprint(from + i), Truncated: i == 0}
		}
		return list
	}
	batch := entries(1, 3)
	update(t, d, func(tx *Tx) error { return errors.Join(tx.AppendLogs("a", batch), tx.AppendLogs("b", entries(1, 1))) })
	wantEqual(t, batch[2].Seq, uint64(3))
	view(t, d, func(tx *Tx) error {
		got, err := tx.Logs("a", 0, 0)
		wantEqual(t, got, batch)
		got, err2 := tx.Logs("a", 0, 2)
		wantEqual(t, got, batch[1:])
		got, err3 := tx.Logs("a", 2, 0)
		wantEqual(t, got, batch[2:])
		got, err4 := tx.Logs("none", 0, 0)
		wantEqual(t, got, []LogEntry{})
		return errors.Join(err, err2, err3, err4)
	})
	for n, batch := range []int{KeepLogs - 2, 1, 2500, 7} {
		before := uint64(0)
		update(t, d, func(tx *Tx) error {
			list, err := tx.Logs("a", 0, 1)
			if err != nil {
				return err
			}
			before = list[0].Seq
			return tx.AppendLogs("a", entries(int(before)+1, batch))
		})
		view(t, d, func(tx *Tx) error {
			list, err := tx.Logs("a", 0, 0)
			wantEqual(t, len(list), KeepLogs)
			for i, e := range list {
				if want := before + uint64(batch-KeepLogs+1+i); e.Seq != want || e.Line != fmt.Sprint(want) {
					t.Fatalf("batch %d: entry %d is %+v, want %d", n, i, e, want)
				}
			}
			other, err2 := tx.Logs("b", 0, 0)
			wantEqual(t, len(other), 1)
			return errors.Join(err, err2)
		})
	}
	wantIs(t, d.Check(t.Context()), nil)
}

func TestEventsKeepTheNewest(t *testing.T) {
	d := open(t)
	event := Event{At: noon, Kind: "trust", ID: "a", Version: "1", Package: testDigest(1), Project: "/p", Operation: "o", Detail: map[string]string{"from": "lock", "bad": "\xff"}}
	update(t, d, func(tx *Tx) error { return tx.AppendEvent(event) })
	view(t, d, func(tx *Tx) error {
		event.Seq, event.Detail["bad"] = 1, "\ufffd"
		got, err := tx.Events(0, nil)
		wantEqual(t, got, []Event{event})
		return err
	})
	update(t, d, func(tx *Tx) error {
		for i := range KeepEvents + 4 {
			kind := "run"
			if i%1000 == 0 {
				kind = "install"
			}
			if err := tx.AppendEvent(Event{Kind: kind}); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, d, func(tx *Tx) error {
		all, err := tx.Events(0, nil)
		wantEqual(t, len(all), KeepEvents)
		wantEqual(t, all[0].Seq, uint64(KeepEvents+5))
		wantEqual(t, all[len(all)-1].Seq, uint64(6))
		some, err2 := tx.Events(3, func(e Event) bool { return e.Kind == "install" })
		wantEqual(t, len(some), 3)
		wantEqual(t, some[0].Seq, uint64(10002))
		return errors.Join(err, err2)
	})
	wantIs(t, d.Check(t.Context()), nil)
}
