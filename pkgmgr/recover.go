package pkgmgr

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// recover finishes or undoes what killed commands left in staging/. Where nothing
// was left it costs one directory read; on a read-only directory it does nothing.
func (h *Home) recover() error {
	entries, err := os.ReadDir(h.join(stagingDir))
	if err != nil {
		return nil // nothing was ever staged, or it cannot be read: later steps say so
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		path := h.join(stagingDir, name)
		if !isLock {
			continue
		}
		lock := flock.New(path + ".lock")
		if ok, err := lock.TryLock(); err != nil || !ok {
			continue // alive, or not ours to clean (read-only)
		}
		s := &stage{home: h, path: path, lock: lock}
		if err := h.finish(s); err != nil {
			lock.Unlock()
			return fmt.Errorf("recovering an interrupted install: %w", err)
		}
		s.discard()
	}
	return nil
}

// finish completes an install whose default had been swapped or whose tree stands
// in the store without needing a swap, and leaves every other one undone.
func (h *Home) finish(s *stage) error {
	in, ok := readIntent(s.path)
	if !ok {
		return nil // killed before anything was visible
	}
	ctx := context.Background()
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := h.restoreAltered(s, in.Record); err != nil {
		return err
	}
	inStore, err := os.Lstat(filepath.Join(h.storePath(in.Record.Package), manifest.FileName))
	if err != nil {
		return nil
	}
	if in.Default {
		inPlugins, err := os.Lstat(filepath.Join(h.pluginPath(in.Record.ID), manifest.FileName))
		if err != nil || !os.SameFile(inStore, inPlugins) {
			return h.forget(ctx, in.Record)
		}
	}
	if h.checkDenied(subjectOf(in.Record)) != nil {
		return nil // revoked meanwhile: discovery and every call refuse it
	}
	return h.recordInstall(ctx, in.Record, in.Default)
}

// restoreAltered puts back a store tree that a repair had moved aside when the
// repair died before its own tree was in place.
func (h *Home) restoreAltered(s *stage, rec state.Install) error {
	if _, err := os.Lstat(s.join("altered")); err != nil {
		return nil
	}
	if _, err := os.Lstat(h.storePath(rec.Package)); err == nil {
		return nil
	}
	return moveTree(s.join("altered"), h.storePath(rec.Package))
}

// forget removes a store tree that no record names.
func (h *Home) forget(ctx context.Context, rec state.Install) error {
	var recorded *state.Install
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		recorded, err = optional(tx.Install(rec.Package))
		return err
	})
	if err != nil || recorded != nil {
		return err
	}
	return removeTree(h.storePath(rec.Package))
}
