package state

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// sound returns the bytes of a sound database with many pages.
func sound(t testing.TB) []byte {
	t.Helper()
	d := open(t)
	fill(t, d, 60)
	startCounting(t, d)
	for i := range 5 {
		update(t, d, func(tx *Tx) error {
			if err := tx.StartOperation(Operation{ID: "op-" + string(rune('a'+i)), PluginID: "p", Action: "a", IdempotencyKey: string(rune('a' + i))}); err != nil {
				return err
			}
			return addOne(tx)
		})
	}
	if err := d.Check(context.Background()); err != nil {
		t.Fatalf("check: %v", err)
	}
	b, err := os.ReadFile(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// damage returns a database of these bytes.
func damage(t testing.TB, b []byte) *DB {
	t.Helper()
	d := open(t)
	if err := os.WriteFile(d.Path(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// wantCorrupt checks that every way in says *CorruptError with the path.
func wantCorrupt(t testing.TB, d *DB) {
	t.Helper()
	ctx := context.Background()
	for name, err := range map[string]error{
		"view":   d.View(ctx, func(*Tx) error { return nil }),
		"update": d.Update(ctx, func(*Tx) error { return nil }),
		"check":  d.Check(ctx),
	} {
		var c *CorruptError
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &c) || c.Path != d.Path() {
			t.Errorf("%s: got %v, want a *CorruptError of %s", name, err, d.Path())
		}
	}
}

func TestTruncatedDatabase(t *testing.T) {
	b := sound(t)
	var used int
	view(t, damage(t, b), func(tx *Tx) error { used = int(tx.file.Size()); return nil })
	if used < 20*os.Getpagesize() || used > len(b) {
		t.Fatalf("%d bytes in use of %d", used, len(b))
	}
	for _, size := range []int{0, 1, 511, 4096, 4097, 8192, 12288, 16384, used / 3, used / 2, used - 4096, used - 1} {
		wantCorrupt(t, damage(t, b[:size]))
	}
}

func TestGarbageInsteadOfDatabase(t *testing.T) {
	noise := make([]byte, 1<<16)
	src := rand.NewChaCha8([32]byte{1})
	_, _ = src.Read(noise)
	for _, b := range [][]byte{[]byte("not a database\n"), noise, make([]byte, 1<<16), bytes.Repeat([]byte("{}\n"), 9999)} {
		wantCorrupt(t, damage(t, b))
	}
}

func TestDatabaseOfAnotherProgram(t *testing.T) {
	d := open(t)
	update(t, d, func(tx *Tx) error {
		tx.dirty = true
		return tx.bolt.DeleteBucket([]byte(bucketNames[bucketMeta]))
	})
	wantCorrupt(t, d)
}

// TestDamageNeverPanics changes a sound database at random and uses it. Damage
// need not be found, but nothing else than ErrCorrupt may come of it.
func TestDamageNeverPanics(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's pointer checks end the process where bbolt follows a damaged page")
	}
	b := sound(t)
	const page = 4096
	random := rand.New(rand.NewPCG(7, 7))
	rounds, found := 400, 0
	for round := range rounds {
		c := bytes.Clone(b)
		switch at := random.IntN(len(c)/page) * page; round % 4 {
		case 0:
			clear(c[at : at+page])
		case 1: // a bit
			c[random.IntN(len(c))] ^= 1 << random.IntN(8)
		case 2: // a word in a page's header or its first elements
			copy(c[at+random.IntN(64):], []byte{0xff, 0xff, 0xff, 0x7f})
		case 3: // an old page in the place of another
			from := random.IntN(len(c)/page) * page
			copy(c[at:at+page], c[from:from+page])
		}
		d := damage(t, c)
		ctx := context.Background()
		errs := []error{
			d.Check(ctx),
			d.View(ctx, func(tx *Tx) error { return runLookups(tx, "plugin-003") }),
			d.Update(ctx, func(tx *Tx) error { return recordRun(tx, testDigest(3), 3) }),
			d.Check(ctx),
		}
		for i, err := range errs {
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotFound) && !errors.Is(err, syscall.EFBIG) {
				t.Fatalf("round %d, step %d: %v", round, i, err)
			}
		}
		if errs[0] != nil {
			found++
			if aside, err := d.Rebuild(ctx); err != nil || aside == "" && errs[3] != nil {
				t.Fatalf("round %d: rebuild: %q, %v", round, aside, err)
			}
			if err := d.Check(ctx); err != nil {
				t.Fatalf("round %d: after rebuild: %v", round, err)
			}
		}
	}
	t.Logf("%d of %d damages found", found, rounds)
	if found < rounds/10 {
		t.Errorf("only %d of %d damages found", found, rounds)
	}
}

func TestCorruptionReleasesEverything(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts open files in /proc")
	}
	d := damage(t, sound(t)[:16384])
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(to, d.dir) {
				n++
			}
		}
		return n
	}
	for range 20 {
		wantCorrupt(t, d)
	}
	if n := open(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}

func TestPanicOfTheCallerGoesOn(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	for name, run := range map[string]func(){
		"view": func() { _ = d.View(context.Background(), func(*Tx) error { panic("mine") }) },
		"update": func() {
			_ = d.Update(context.Background(), func(tx *Tx) error { _ = recordRun(tx, testDigest(0), 1); panic("mine") })
		},
		"bounds": func() {
			var none []int
			_ = d.View(context.Background(), func(*Tx) error { return errors.New(string(rune(none[len(none)]))) })
		},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil {
					t.Errorf("%s: the panic was swallowed", name)
				}
			}()
			run()
		}()
	}
	// The locks are free and nothing was written.
	update(t, d, func(tx *Tx) error {
		logs, err := tx.Logs("plugin-000", 0, 0)
		wantEqual(t, logs, []LogEntry{})
		return err
	})
}

func TestRebuild(t *testing.T) {
	ctx := context.Background()
	d := open(t)
	aside, err := d.Rebuild(ctx)
	wantIs(t, err, nil)
	wantEqual(t, aside, "")
	fill(t, d, 2)

	// Sound: left alone.
	aside, err = d.Rebuild(ctx)
	wantIs(t, err, nil)
	wantEqual(t, aside, "")
	view(t, d, func(tx *Tx) error { return runLookups(tx, "plugin-001") })

	// Damaged: kept beside a new one, twice.
	for _, want := range []string{".damaged-1", ".damaged-2"} {
		if err := os.WriteFile(d.Path(), []byte("broken"+want), 0o600); err != nil {
			t.Fatal(err)
		}
		aside, err = d.Rebuild(ctx)
		wantIs(t, err, nil)
		wantEqual(t, aside, d.Path()+want)
		kept, err := os.ReadFile(aside)
		wantIs(t, err, nil)
		wantEqual(t, string(kept), "broken"+want)
		view(t, d, func(tx *Tx) error {
			_, err := tx.Default("plugin-001")
			wantIs(t, err, ErrNotFound)
			return nil
		})
	}

	// Newer: refused and left alone.
	update(t, d, func(tx *Tx) error { return tx.put(bucketMeta, formatKey, []byte("7")) })
	_, err = d.Rebuild(ctx)
	wantIs(t, err, ErrNewer)
}

func TestMissingBesidePackages(t *testing.T) {
	ctx := context.Background()
	for _, entry := range []string{"store/sha256-00", "plugins/repo-facts", "quarantine/sha256-00"} {
		d := open(t)
		if err := os.MkdirAll(filepath.Join(d.dir, entry), 0o700); err != nil {
			t.Fatal(err)
		}
		wantIs(t, d.View(ctx, func(*Tx) error { return nil }), ErrMissing)
		wantIs(t, d.Update(ctx, func(*Tx) error { return nil }), ErrMissing)
		wantIs(t, d.Ensure(ctx), ErrMissing)
		if _, err := os.Lstat(d.Path()); err == nil {
			t.Fatal("a database was started")
		}
		if _, err := d.Rebuild(ctx); err != nil {
			t.Fatal(err)
		}
		view(t, d, func(*Tx) error { return nil })
	}
	// The skeleton of a data directory is not an installed package.
	d := open(t)
	for _, dir := range []string{"store/archives", "plugins", "quarantine", "staging"} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	wantIs(t, d.View(ctx, func(*Tx) error { return nil }), nil)
	wantIs(t, d.Ensure(ctx), nil)
}
