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
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// A stage is a directory in which a package is made ready. Its lock is held by
// the process that works on it: a stage whose lock is free was left by a
// process that died, and recover finishes or removes it.
//
//	staging/<name>/tree      the extracted package
//	staging/<name>/default   the hard-linked tree that will become plugins/<id>
//	staging/<name>/archive   the copy of the source archive
//	staging/<name>/intent    what commit is about to do; see intent
type stage struct {
	home *Home
	path string
	lock *flock.Flock
}

// An intent is written and synced before the first visible change of an install
// and says everything that is needed to finish it after a crash.
type intent struct {
	Record  state.Install `json:"record"`
	Default bool          `json:"default"` // plugins/<id> is to become this version
}

func (h *Home) newStage() (*stage, error) {
	if err := h.ensure(stagingDir); err != nil {
		return nil, err
	}
	for range 8 {
		var name [8]byte
		rand.Read(name[:])
		path := h.join(stagingDir, hex.EncodeToString(name[:]))
		// The lock exists before the directory, so that no other process ever
		// sees a directory without its lock.
		lock, err := createLocked(path+".lock", nil)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil && isReadOnly(err):
			return nil, &ReadOnly{Path: h.path}
		case err != nil:
			return nil, fmt.Errorf("staging: %w", err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			os.Remove(path + ".lock")
			lock.Unlock()
			return nil, fmt.Errorf("staging: %w", err)
		}
		return &stage{home: h, path: path, lock: lock}, nil
	}
	return nil, fmt.Errorf("staging: %w", fs.ErrExist)
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
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	ok, err := lock.TryLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrExist
	case err != nil:
		os.Remove(path)
		return nil, err
	case ok:
		mine, err1 := lock.Stat()
		named, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, named) {
			return lock, nil
		}
		lock.Unlock()
	}
	return nil, fs.ErrExist
}

func (s *stage) join(name string) string { return filepath.Join(s.path, name) }

// discard removes the stage and whatever is still in it.
func (s *stage) discard() {
	removeTree(s.path)
	os.Remove(s.path + ".lock")
	s.lock.Unlock()
}

// removeTree removes a tree of read-only directories. What cannot be removed
// stays for gc; nothing refers to it.
func removeTree(path string) error {
	filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// sealDirectories makes every directory below root read-only, root excluded:
// a directory must be writable while it is renamed into another parent.
func sealDirectories(root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || p == root {
			return err
		}
		return os.Chmod(p, 0o555)
	})
}

// linkTree makes dst a hard-linked copy of the sealed tree src.
func linkTree(src, dst string) error {
	return filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := dst + strings.TrimPrefix(p, src)
		if d.IsDir() {
			return os.Mkdir(target, 0o755)
		}
		return os.Link(p, target)
	})
}

// lockMutations serializes changes of store, plugins and quarantine between
// processes. It waits for at most a minute, then reports Busy.
func (h *Home) lockMutations(ctx context.Context) (unlock func(), err error) {
	if err := h.ensure(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	l := flock.New(h.join(mutationLock))
	ok, err := l.TryLockContext(ctx, 5*time.Millisecond)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &Busy{What: "the data directory's install lock"}
	case err != nil:
		if isReadOnly(err) {
			return nil, &ReadOnly{Path: h.path}
		}
		return nil, fmt.Errorf("data directory lock: %w", err)
	case !ok:
		return nil, &Busy{What: "the data directory's install lock"}
	}
	return func() { l.Unlock() }, nil
}

func (s *stage) writeIntent(in intent) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("intent: %w", err)
	}
	return os.WriteFile(s.join("intent"), raw, 0o600)
}

func readIntent(stagePath string) (intent, bool) {
	var in intent
	raw, err := os.ReadFile(filepath.Join(stagePath, "intent"))
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return intent{}, false
	}
	return in, true
}
