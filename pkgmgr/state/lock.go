package state

import (
	"context"
	"fmt"
)

// Two advisory locks keep transactions apart, both waited for in the kernel.
//
// The queue is state.lock, and whoever takes it takes it alone. A writer keeps it
// to the end of its transaction; a reader keeps it only until it has the other
// lock, shared. So a writer that waits for readers lets no new reader pass, and
// readers, however many, do not starve it. (Were readers to share the queue, then
// on a busy machine one of them would nearly always be in it, asleep.)
//
// The other is bbolt's own lock on state.db. bbolt polls for it every 50 ms, so it
// is taken on bbolt's own open file before bbolt asks for it, and bbolt finds it
// taken. Where the system does not allow that (holdQueue), it is left to bbolt, and readers
// share the queue and keep it to the end.

// A lockMode says what a lock excludes.
type lockMode int

const (
	exclusive lockMode = iota // every other lock
	shared                    // exclusive locks
)

// enterQueue opens the side file at path, which a writer creates, and takes its lock.
func enterQueue(ctx context.Context, path string, writer bool) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mode := exclusive
	if holdQueue && !writer {
		mode = shared
	}
	f, err := openLock(path, writer)
	if err != nil {
		return nil, err
	}
	leave = func() {
		f.unlock()
		f.close()
	}
	if err := acquire(ctx, f, mode, f.close); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return leave, nil
}

// acquire takes the lock of an open file. The wait is the kernel's, so a waiter
// goes on the moment the lock is free. If the lock is not taken, acquire sees to it that
// closeFile is called.
//
// Such a wait cannot be interrupted. When ctx ends first, acquire returns at once
// with ErrBusy and leaves the waiting to a goroutine, which gives the lock up as soon as
// it has it.
func acquire(ctx context.Context, f lockFile, mode lockMode, closeFile func()) error {
	ok, err := f.try(mode)
	if ok {
		return nil
	}
	if err == nil && ctx.Done() == nil {
		err = f.wait(mode)
		ok = err == nil
	}
	if ok {
		return nil
	}
	if err != nil {
		closeFile()
		return err
	}
	got := make(chan error)
	go func() {
		err := f.wait(mode)
		select {
		case got <- err:
		case <-ctx.Done():
			f.unlock()
			closeFile()
		}
	}()
	select {
	case err := <-got:
		if err != nil {
			closeFile()
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
	}
}
