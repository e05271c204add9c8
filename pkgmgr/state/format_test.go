package state

import (
	"context"
	"errors"
	"os"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// withMigrations returns the same database as a later program would see it.
func withMigrations(d *DB, list ...migration) *DB {
	later := At(d.dir)
	later.migrations = append(later.migrations, list...)
	return later
}

// addDefault is a migration that leaves a trace.
func addDefault(dir string) migration {
	return func(tx *bolt.Tx) error {
		e := newEncoder(0)
		e.text(dir)
		e.text("migrated")
		e.digest(testDigest(1))
		e.time(noon)
		return tx.Bucket([]byte(bucketNames[bucketDefaults])).Put([]byte(dir), e.b)
	}
}

func TestMigrations(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	ran := 0
	count := func(m migration) migration {
		return func(tx *bolt.Tx) error { ran++; return m(tx) }
	}
	// Two steps at once, by a View.
	later := withMigrations(d, count(addDefault("first")), count(addDefault("second")))
	view(t, later, func(tx *Tx) error {
		_, err := tx.Default("first")
		_, err2 := tx.Default("second")
		return errors.Join(err, err2, runLookups(tx, "plugin-000"))
	})
	// Once only, by whomever.
	view(t, later, func(*Tx) error { return nil })
	update(t, later, func(*Tx) error { return nil })
	wantEqual(t, ran, 2)

	// The earlier program refuses, and names both formats.
	for _, err := range []error{
		d.View(context.Background(), func(*Tx) error { t.Error("View ran"); return nil }),
		d.Update(context.Background(), func(*Tx) error { t.Error("Update ran"); return nil }),
		d.Ensure(context.Background()),
		d.Check(context.Background()),
	} {
		var e *FormatError
		if !errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) || !errors.As(err, &e) || e.Found != d.known()+2 || e.Known != d.known() {
			t.Errorf("got %v", err)
		}
	}

	// One step more, which stays although the change after it fails.
	third := withMigrations(d, nil, nil, count(addDefault("third")))
	failure := errors.New("mine")
	err := third.Update(context.Background(), func(*Tx) error { return failure })
	if err != failure {
		t.Errorf("got %v, want the function's own error", err)
	}
	view(t, third, func(tx *Tx) error { _, err := tx.Default("third"); return err })
	wantEqual(t, ran, 3)
}

func TestFailingMigrationChangesNothing(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	failure := errors.New("mine")
	later := withMigrations(d, addDefault("first"), func(*bolt.Tx) error { return failure })
	wantIs(t, later.Update(context.Background(), func(*Tx) error { t.Error("ran"); return nil }), failure)
	wantIs(t, later.View(context.Background(), func(*Tx) error { t.Error("ran"); return nil }), failure)
	view(t, d, func(tx *Tx) error {
		_, err := tx.Default("first")
		wantIs(t, err, ErrNotFound)
		return nil
	})
}

func TestStrangeFormat(t *testing.T) {
	for _, value := range []string{"", "0", "-1", "one", "1.0"} {
		d := open(t)
		update(t, d, func(tx *Tx) error { return tx.put(bucketMeta, formatKey, []byte(value)) })
		wantCorrupt(t, d)
	}
}

func TestFilesAndDirectoryArePrivate(t *testing.T) {
	d := At(t.TempDir() + "/new data/é")
	update(t, d, func(tx *Tx) error { return tx.PutProjectTrust(ProjectTrust{Root: "/p"}) })
	for path, want := range map[string]os.FileMode{d.Path(): 0o600, d.lockPath(): 0o600, d.dir: os.ModeDir | 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestUpdateThatFailsChangesNothing(t *testing.T) {
	d := open(t)
	failure := errors.New("mine")
	err := d.Update(context.Background(), func(tx *Tx) error {
		if err := tx.PutProjectTrust(ProjectTrust{Root: "/p", At: noon}); err != nil {
			return err
		}
		// What was written shows inside the transaction.
		if got, err := tx.ProjectTrust("/p"); err != nil || got.At != noon {
			t.Errorf("%+v, %v", got, err)
		}
		return failure
	})
	if err != failure {
		t.Fatalf("got %v, want the function's own error", err)
	}
	view(t, d, func(tx *Tx) error {
		_, err := tx.ProjectTrust("/p")
		wantIs(t, err, ErrNotFound)
		return nil
	})
}

func TestUpdateWithoutChangeWritesNothing(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	before, err := os.ReadFile(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	update(t, d, func(tx *Tx) error { return runLookups(tx, "plugin-000") })
	after, err := os.ReadFile(d.Path())
	if err != nil || string(before) != string(after) {
		t.Errorf("the file changed, %v", err)
	}
}

func TestTransactionIsOverAfterItsFunction(t *testing.T) {
	d := open(t)
	update(t, d, func(tx *Tx) error { return tx.PutProjectTrust(ProjectTrust{Root: "/p"}) })
	var inView, inUpdate *Tx
	view(t, d, func(tx *Tx) error { inView = tx; return nil })
	update(t, d, func(tx *Tx) error { inUpdate = tx; return nil })
	for _, tx := range []*Tx{inView, inUpdate} {
		_, err := tx.ProjectTrust("/p")
		wantIs(t, err, ErrTxDone)
		_, err = tx.Events(0, nil)
		wantIs(t, err, ErrTxDone)
		wantIs(t, tx.RemoveProjectTrust("/p"), ErrTxDone)
		wantIs(t, tx.AppendEvent(Event{}), ErrTxDone)
	}
}

func TestViewRefusesChanges(t *testing.T) {
	empty, d := open(t), open(t)
	fill(t, d, 1)
	for _, d := range []*DB{empty, d} {
		view(t, d, func(tx *Tx) error {
			wantIs(t, tx.PutProjectTrust(ProjectTrust{Root: "/p"}), ErrReadOnly)
			wantIs(t, tx.RemoveTrust(testDigest(0)), ErrReadOnly)
			wantIs(t, tx.AppendEvent(Event{}), ErrReadOnly)
			wantIs(t, tx.AppendLogs("a", []LogEntry{{}}), ErrReadOnly)
			wantIs(t, tx.StartOperation(operation(1)), ErrReadOnly)
			return nil
		})
	}
}

func TestRemovers(t *testing.T) {
	d := open(t)
	pkg := testDigest(0)
	fill(t, d, 2)
	update(t, d, func(tx *Tx) error {
		for _, root := range []string{"/home/u/project", "/home/u/project 2", "/home/u"} {
			if err := tx.PutProjectApproval(ProjectApproval{Root: root, Package: pkg}); err != nil {
				return err
			}
		}
		return tx.PutBlock(Block{Package: pkg, Kind: BlockDisabled})
	})
	for range 2 { // the second time there is nothing to remove
		update(t, d, func(tx *Tx) error {
			return errors.Join(tx.RemoveInstall(pkg), tx.RemoveDefault("plugin-000"), tx.RemoveSeen("plugin-000"), tx.RemoveEnablement(pkg),
				tx.RemoveBlock(pkg, BlockDisabled), tx.RemoveTrust(pkg), tx.RemoveProjectTrust("/home/u/project"))
		})
	}
	view(t, d, func(tx *Tx) error {
		_, err := tx.Install(pkg)
		wantIs(t, err, ErrNotFound)
		_, err = tx.Default("plugin-000")
		wantIs(t, err, ErrNotFound)
		_, err = tx.Seen("plugin-000")
		wantIs(t, err, ErrNotFound)
		s, err := tx.Standing(pkg)
		wantIs(t, err, nil)
		if s.Trust != nil || s.Enablement != nil || s.Blocked(BlockDisabled) != nil || s.Health == nil {
			t.Errorf("%+v", s)
		}
		_, err = tx.ProjectTrust("/home/u/project")
		wantIs(t, err, ErrNotFound)
		approvals, err := tx.ProjectApprovals("/home/u/project")
		wantEqual(t, approvals, []ProjectApproval{})
		all, err2 := tx.ProjectApprovals("")
		wantEqual(t, len(all), 2) // of neighbours by name
		return errors.Join(err, err2, runLookupsWithoutProject(tx, "plugin-001"))
	})
	wantIs(t, d.Check(t.Context()), nil)
}

func runLookupsWithoutProject(tx *Tx, dir string) error {
	def, err := tx.Default(dir)
	if err != nil {
		return err
	}
	_, err = tx.Install(def.Package)
	return err
}
