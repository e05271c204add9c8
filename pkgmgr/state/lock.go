package state

import (
	"context"
	"fmt"
)

// A lockMode says what a lock excludes.
type lockMode int

const (
	exclusive lockMode = iota // every other lock
	shared                    // exclusive locks
)

// lock takes the lock on the side file at path and returns its release. The
// wait is the kernel's, so a waiter goes on the moment the lock is free.
//
// Such a wait cannot be interrupted. When ctx ends first, lock returns at once and
// leaves the waiting to a goroutine that gives the lock up as soon as it has it.
func lock(ctx context.Context, path string, mode lockMode) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := openLock(path, mode)
	if err != nil {
		return nil, err
	}
	if ok, err := f.try(mode); err != nil {
		f.release()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	} else if ok {
		return f.release, nil
	}
	if ctx.Done() == nil {
		if err := f.wait(mode); err != nil {
			f.release()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return f.release, nil
	}
	got := make(chan error)
	go func() {
		err := f.wait(mode)
		select {
		case got <- err:
		case <-ctx.Done():
			f.release()
		}
	}()
	select {
	case err := <-got:
		if err != nil {
			f.release()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return f.release, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("lock %s: %w: %w", path, ErrBusy, context.Cause(ctx))
	}
}
