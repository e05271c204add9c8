package state

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// readers is every way to read, by the name that a fault is reported with.
var readers = map[string]func(*Tx) error{
	"nothing":    func(*Tx) error { return nil },
	"installs":   func(tx *Tx) error { _, err := tx.Installs(); return err },
	"install":    func(tx *Tx) error { _, err := tx.Install(testDigest(3)); return err },
	"defaults":   func(tx *Tx) error { _, err := tx.Defaults(); return err },
	"default":    func(tx *Tx) error { _, err := tx.Default("plugin-003"); return err },
	"standings":  func(tx *Tx) error { _, err := tx.Standings(); return err },
	"trusts":     func(tx *Tx) error { _, err := tx.ProjectTrusts(); return err },
	"seen":       func(tx *Tx) error { _, err := tx.AllSeen(); return err },
	"events":     func(tx *Tx) error { _, err := tx.Events(0, nil); return err },
	"operations": func(tx *Tx) error { _, err := tx.Operations(0, nil); return err },
	"running":    func(tx *Tx) error { _, err := tx.RunningOperations(); return err },
	"logs":       func(tx *Tx) error { _, err := tx.Logs("plugin-003", 0, 0); return err },
	"result":     func(tx *Tx) error { _, err := tx.OperationByKey("p", "a", "a"); return err },
}

// TestNoise writes random bytes all over a database. Whatever then reads or writes it
// says that it is damaged or does its work, in words that are none of the program's
// runtime; and what the structure shows, every transaction says.
func TestNoise(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's pointer checks end the process where bbolt follows a damaged page")
	}
	d := open(t)
	fill(t, d, 4)
	b, err := os.ReadFile(d.Path())
	wantIs(t, err, nil)
	ctx := context.Background()
	const rounds = 60
	found := 0
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 60))
		c := bytes.Clone(b)
		for range 60 {
			c[random.IntN(len(c))] = byte(random.IntN(256))
		}
		d := damage(t, c)
		check := d.Check(ctx)
		structure := d.View(ctx, readers["nothing"])
		if structure != nil {
			found++
		}
		for name, read := range readers {
			for how, err := range map[string]error{"view": d.View(ctx, read), "update": d.Update(ctx, read)} {
				switch {
				case structure != nil && !errors.Is(err, ErrCorrupt):
					t.Errorf("seed %d: %s in %s: got %v on a database of which is said: %v", seed, name, how, err, structure)
				case errors.Is(err, ErrCorrupt):
					if check == nil {
						t.Errorf("seed %d: %s in %s: %v; the check found nothing", seed, name, how, err)
					}
				case err != nil && !errors.Is(err, ErrNotFound):
					t.Errorf("seed %d: %s in %s: %v", seed, name, how, err)
				}
				wantNeutral(t, err)
			}
		}
		wantNeutral(t, d.Update(ctx, func(tx *Tx) error { return recordRun(tx, testDigest(3), 3) }))
	}
	if found < rounds/2 {
		t.Errorf("only %d of %d damages were seen before reading", found, rounds)
	}
}

func wantNeutral(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, word := range []string{"runtime", "nil pointer", "invalid memory", "out of range", "goroutine", "assertion", "unsafe"} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%q in: %v", word, err)
		}
	}
}

// TestBoltsPanicsAreNeutral makes bbolt panic, as it does on a damaged database that
// is too large to be verified first.
func TestBoltsPanicsAreNeutral(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	err := d.Update(context.Background(), func(tx *Tx) error {
		var none *bolt.Bucket
		return none.Put([]byte("k"), nil)
	})
	wantIs(t, err, ErrCorrupt)
	wantNeutral(t, err)
	// And the locks are free.
	view(t, d, func(tx *Tx) error { return runLookups(tx, "plugin-000") })
}

// TestRecordUnderAnotherKey: a record that says it is another one is damage, to a
// look-up as to a listing.
func TestRecordUnderAnotherKey(t *testing.T) {
	d := open(t)
	fill(t, d, 2)
	update(t, d, func(tx *Tx) error {
		for _, id := range [...]bucketID{bucketInstalls, bucketDefaults, bucketSeen} {
			var key, value []byte
			err := tx.each(id, nil, func(k, v []byte) error { key, value = bytes.Clone(k), bytes.Clone(v); return nil })
			if err != nil || key == nil {
				t.Fatalf("%s: %v", bucketNames[id], err)
			}
			key[len(key)-1] ^= 1
			if err := tx.put(id, key, value); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range []string{"installs", "defaults", "seen"} {
		wantIs(t, d.View(context.Background(), readers[name]), ErrCorrupt)
	}
}

// TestBucketForValue: what is of the other kind is damage and not an absent record.
func TestBucketForValue(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	update(t, d, func(tx *Tx) error {
		b, err := tx.writableBucket(bucketDefaults)
		if err != nil {
			return err
		}
		if _, err := b.CreateBucket([]byte("odd")); err != nil {
			return err
		}
		return tx.put(bucketLogs, []byte("odd"), []byte("text"))
	})
	for _, do := range []func(context.Context, func(*Tx) error) error{d.View, d.Update} {
		wantIs(t, do(context.Background(), func(tx *Tx) error { _, err := tx.Default("odd"); return err }), ErrCorrupt)
		wantIs(t, do(context.Background(), func(tx *Tx) error { _, err := tx.Logs("odd", 0, 0); return err }), ErrCorrupt)
	}
}
