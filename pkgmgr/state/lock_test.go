package state

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// hold starts an Update that holds the database until the returned function is called.
func hold(t *testing.T, d *DB) (release func()) {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := d.Update(context.Background(), func(tx *Tx) error {
			close(held)
			<-free
			return addOne(tx)
		})
		if err != nil {
			t.Errorf("update: %v", err)
		}
	})
	<-held
	return func() {
		close(free)
		done.Wait()
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	d := open(t)
	startCounting(t, d)
	release := hold(t, d)
	nothing := func(*Tx) error { t.Error("ran beside a writer"); return nil }
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for _, err := range []error{d.Update(ctx, nothing), d.View(ctx, nothing)} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	for _, transaction := range []func(context.Context, func(*Tx) error) error{d.Update, d.View} {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		waiting := make(chan error)
		go func() { waiting <- transaction(ctx, nothing) }()
		cancel(cause)
		if err := <-waiting; !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel2 := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel2()
	wantIs(t, d.Update(ctx, nothing), ErrBusy)
	release()

	// Those who gave up do not keep the lock.
	for range 5 {
		update(t, d, addOne)
		view(t, d, func(tx *Tx) error { _, err := counter(tx); return err })
	}
	checkCounting(t, d, 6, 6)
}

func TestGoroutinesLoseNothing(t *testing.T) {
	d := open(t)
	startCounting(t, d)
	const goroutines, each = 16, 5
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range each {
				if err := d.Update(ctx, addOne); err != nil {
					t.Error(err)
				}
				if err := d.View(ctx, func(tx *Tx) error { _, err := counter(tx); return err }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	checkCounting(t, d, goroutines*each, goroutines*each)
}

// TestReadersRunTogether: a View waits for no other View.
func TestReadersRunTogether(t *testing.T) {
	d := open(t)
	fill(t, d, 1)
	view(t, d, func(tx *Tx) error {
		view(t, d, func(tx *Tx) error { return runLookups(tx, "plugin-000") })
		return runLookups(tx, "plugin-000")
	})
}

// TestChildrenDoNotHoldLocks: a child started inside a transaction outlives it.
func TestChildrenDoNotHoldLocks(t *testing.T) {
	d := open(t)
	startCounting(t, d)
	var children []runningChild
	begin := func(tx *Tx) error {
		children = append(children, start(t, child(t, "wait", d)))
		_, err := counter(tx)
		return err
	}
	update(t, d, begin)
	view(t, d, begin)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wantIs(t, d.Update(ctx, addOne), nil)
	for _, c := range children {
		c.stdin.Close()
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestWithoutSideFile: who removes it loses nothing.
func TestWithoutSideFile(t *testing.T) {
	d := open(t)
	startCounting(t, d)
	if err := os.Remove(d.lockPath()); err != nil {
		t.Fatal(err)
	}
	view(t, d, func(tx *Tx) error { _, err := counter(tx); return err })
	if _, err := os.Lstat(d.lockPath()); err == nil {
		t.Error("a View created the side file")
	}
	update(t, d, addOne)
	checkCounting(t, d, 1, 1)
}
