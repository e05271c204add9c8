package pkgmgr

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// step is called with a name before every step of a change that a crash or a full
// disk could interrupt. It does nothing: tests end the process or fail the step.
var step = func(name string) error { return nil }

// A stage is a directory in which a change is made ready. Its lock is held by the
// process that works on it: a stage whose lock is free was left by a process that
// died, and recovery resolves and removes it.
//
//	staging/<name>/tree      the extracted package
//	staging/<name>/default   the hard-linked tree that will become plugins/<id>
//	staging/<name>/archive   the copy of the source archive
//	staging/<name>/intent    what is about to be done; see intent
//	staging/<name>/…         what was moved out of sight, to be removed or put back
type stage struct {
	home *Home
	path string
	lock *flock.Flock // nil for a scratch stage
	keep bool         // leave everything to recovery
}

// newStage makes an empty stage below the data directory. *ReadOnly where that
// cannot be written.
func (h *Home) newStage() (*stage, error) {
	if err := h.ensure(stagingDir); err != nil {
		return nil, err
	}
	for range 8 {
		var name [8]byte
		rand.Read(name[:])
		path := h.join(stagingDir, hex.EncodeToString(name[:]))
		// The lock exists before the directory, so that a directory without a
		// lock is always an abandoned one.
		lock, err := createLocked(path+".lock", nil)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = step("stage")
			if err == nil {
				err = os.Mkdir(path, 0o700)
			}
			if err == nil {
				return &stage{home: h, path: path, lock: lock}, nil
			}
			os.Remove(path + ".lock")
			lock.Unlock()
		}
		return nil, h.cannotWrite("staging", err)
	}
	return nil, fmt.Errorf("staging: %w", fs.ErrExist)
}

// scratchStage is newStage for work that only reads packages: where the data
// directory is read-only it stands below the system's temporary directory, of
// which nobody cleans up after a killed process.
func (h *Home) scratchStage() (*stage, error) {
	s, err := h.newStage()
	var readOnly *ReadOnly
	if !errors.As(err, &readOnly) {
		return s, err
	}
	path, err := os.MkdirTemp("", "switchyard-")
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	return &stage{home: h, path: path}, nil
}

func (s *stage) join(name string) string { return filepath.Join(s.path, name) }

// discard removes the stage and whatever is still in it, the intent first: from
// then on recovery has nothing to resolve.
func (s *stage) discard() {
	if s.keep {
		s.lock.Unlock()
		return
	}
	_ = step("discard") // nothing can fail here any more, but everything can be interrupted
	os.Remove(s.join(intentFile))
	_ = step("discard tree")
	removeTree(s.path)
	_ = step("discard lock")
	if s.lock != nil {
		os.Remove(s.path + ".lock")
		s.lock.Unlock()
	}
}

// createLocked creates a file that must not exist, fills it and locks it. Another
// process that looks for dead owners may take the file for dead before it is
// locked; that is fs.ErrExist, and the caller tries another name.
func createLocked(path string, content []byte) (*flock.Flock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	lock, ok, err := lockExisting(path)
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	if !ok {
		return nil, fs.ErrExist
	}
	return lock, nil
}

// lockExisting takes the lock of a file that exists. ok is false where another
// process holds it, or where the file is gone or was replaced.
func lockExisting(path string) (lock *flock.Flock, ok bool, err error) {
	lock = flock.New(path, flock.SetFlag(os.O_RDWR|noWait))
	ok, err = lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil || !ok {
		return nil, false, err
	}
	mine, err1 := lock.Stat()
	named, err2 := os.Lstat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
		lock.Unlock()
		return nil, false, nil
	}
	return lock, true, nil
}

// held reports whether a process holds the lock of a file. It reads only: several
// processes that look at once do not take each other for the holder, and it works
// on a read-only data directory.
func held(path string) bool {
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY|noWait))
	ok, err := lock.TryRLock()
	if ok {
		lock.Unlock()
	}
	return err == nil && !ok
}

// lockWait bounds the wait for another process's changes.
const lockWait = time.Minute

// lockMutations serializes changes of store, plugins and quarantine between
// processes, and resolves what killed ones left, so that whoever holds the lock
// finds the old state or the new state of every earlier change. It waits for at
// most lockWait, then reports *Busy.
func (h *Home) lockMutations(ctx context.Context) (unlock func(), err error) {
	unlock, err = h.lockRaw(ctx, lockWait)
	if err != nil {
		return nil, err
	}
	if err := h.resolveDead(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func (h *Home) lockRaw(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	if err := h.ensure(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l := flock.New(h.join(mutationLock), flock.SetFlag(os.O_CREATE|os.O_RDONLY|noWait))
	_, err = l.TryLockContext(bounded, 4*time.Millisecond)
	switch {
	case err == nil:
		return func() { l.Unlock() }, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &Busy{What: "the data directory's install lock"}
	}
	return nil, h.cannotWrite("data directory lock", err)
}

// cannotWrite turns what the file system says to a write into *ReadOnly where the
// data directory cannot be written at all.
func (h *Home) cannotWrite(what string, err error) error {
	if isReadOnly(err) {
		return &ReadOnly{Path: h.path}
	}
	return fmt.Errorf("%s: %w", what, err)
}
