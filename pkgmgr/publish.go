package pkgmgr

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

func (h *Home) storePath(d digest.Digest) string      { return h.join(storeDir, d.DirName()) }
func (h *Home) archivePath(d digest.Digest) string    { return h.join(archivesDir, d.Hex()) }
func (h *Home) quarantinePath(d digest.Digest) string { return h.join(quarantineDir, d.DirName()) }
func (h *Home) pluginPath(dirName string) string      { return h.join(pluginsDir, dirName) }

// commit makes a staged package visible, or reports that nothing is to be done.
// What takes long, links and the one sync, is done before the lock is taken; what
// was decided for it is decided again under the lock.
func (h *Home) commit(ctx context.Context, s *staged, rec state.Install, o InstallOptions) (*Installed, error) {
	early, done := h.planEarly(ctx, s, rec, o)
	if done {
		return &early.Installed, nil
	}
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := h.checkDenied(subjectOf(rec)); err != nil {
		return nil, err // revoked while this was being extracted
	}
	p, err := h.plan(ctx, rec, o.Default)
	if err != nil || o.DryRun {
		return installedOf(p), err
	}
	if p.Unchanged {
		return &p.Installed, h.keepArchive(ctx, s, rec, o)
	}
	if !p.fits(early) || !h.linksFit(s.stage, p) {
		if err := h.prepare(s.stage, p); err != nil {
			return nil, err
		}
	}
	if err := h.publish(ctx, s.stage, p, EventInstall); err != nil {
		return nil, err
	}
	return &p.Installed, nil
}

// planEarly decides without the lock and makes ready what that asks for. done says
// that there is nothing to do under the lock. What fails here, or is found to be at
// fault, may be another command's change in progress: a tree that is removed while
// it is being linked. It counts only if it is found under the lock, too, and the
// plan is nil.
func (h *Home) planEarly(ctx context.Context, s *staged, rec state.Install, o InstallOptions) (early *plan, done bool) {
	early, err := h.plan(ctx, rec, o.Default)
	switch {
	case err != nil:
		return nil, false
	case o.DryRun:
		return early, true
	case early.Unchanged:
		kept, err := h.archiveKept(ctx, rec, o)
		return early, err == nil && kept
	case h.prepare(s.stage, early) != nil:
		return nil, false
	}
	return early, false
}

// linksFit reports whether the default that was made ready early is what the store
// holds now. One that was linked from the store's tree may be linked from a tree that
// another command has replaced since, because it was altered.
func (h *Home) linksFit(s *stage, p *plan) bool {
	return !p.inStore || !p.Default || sameInodes(h.storePath(p.Package), s.join("default"))
}

func installedOf(p *plan) *Installed {
	if p == nil {
		return nil
	}
	return &p.Installed
}

// prepare makes everything that the plan needs stand ready and durable in the
// stage: tree (unless the store's own is intact), default and intent.
func (h *Home) prepare(s *stage, p *plan) error {
	tree := s.join("tree")
	if p.inStore {
		tree = h.storePath(p.Package)
	} else if err := sealDirectories(tree); err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	if err := removeTree(s.join("default")); err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	if p.Default {
		if err := step("link"); err != nil {
			return fmt.Errorf("staging: %w", err)
		}
		if err := linkTree(tree, s.join("default")); err != nil {
			return fmt.Errorf("staging: %w", err)
		}
		if err := sealDirectories(s.join("default")); err != nil {
			return fmt.Errorf("staging: %w", err)
		}
	}
	in := intent{Action: actPublish, Record: p.Install, Tree: !p.inStore, Archive: exists(s.join("archive")), Default: p.Default}
	if err := s.writeIntent(in); err != nil {
		return fmt.Errorf("staging: %w", err)
	}
	if err := step("sync"); err != nil {
		return fmt.Errorf("staging: sync: %w", err)
	}
	if err := syncTree(s.path); err != nil {
		return fmt.Errorf("staging: sync: %w", err)
	}
	return nil
}

// publish performs the visible steps of a prepared plan. The commit of the record
// decides: on an error before it everything visible is undone.
func (h *Home) publish(ctx context.Context, s *stage, p *plan, event string) error {
	err := h.publishSteps(ctx, s, p, event)
	if err == nil {
		return nil
	}
	in, ok := s.readIntent()
	if !ok || h.settlePublish(context.WithoutCancel(ctx), s, in) != nil {
		s.keep = true // the next command tries again
	}
	return h.cannotWrite("store", err)
}

func (h *Home) publishSteps(ctx context.Context, s *stage, p *plan, event string) error {
	if !p.inStore {
		if err := h.putIntoStore(s, p.Package); err != nil {
			return err
		}
	}
	if exists(s.join("archive")) {
		missing, err := h.missingArchive(p.Install)
		if err != nil {
			return err
		}
		if missing {
			if err := step("archive"); err != nil {
				return err
			}
			if err := os.Rename(s.join("archive"), h.archivePath(p.Archive)); err != nil {
				return err
			}
		}
	}
	if err := step("sync store"); err != nil {
		return err
	}
	if err := syncDirs(h.join(storeDir), h.join(archivesDir)); err != nil {
		return err
	}
	// Readers wait for this transaction: none sees the new tree below plugins/
	// beside the old record.
	return h.update(context.WithoutCancel(ctx), func(tx *state.Tx) error {
		if err := h.recordInstall(tx, p.Install, p.Default, event); err != nil {
			return err
		}
		if p.Default {
			if err := step("swap"); err != nil {
				return err
			}
			if err := swapIn(s.join("default"), h.pluginPath(p.ID)); err != nil {
				return err
			}
			if err := step("sync plugins"); err != nil {
				return err
			}
			if err := syncDirs(h.join(pluginsDir)); err != nil {
				return err
			}
		}
		return step("commit")
	})
}

// putIntoStore moves the stage's tree into the store. A tree that is there already
// is an altered one, and is moved aside.
func (h *Home) putIntoStore(s *stage, pkg digest.Digest) error {
	place := h.storePath(pkg)
	if exists(place) {
		if err := step("store aside"); err != nil {
			return err
		}
		if err := moveTree(place, s.join("altered")); err != nil {
			return err
		}
	}
	if err := step("store"); err != nil {
		return err
	}
	return moveTree(s.join("tree"), place)
}

// swapIn puts the staged tree next at dir in one step. What stood at dir is at next
// afterwards.
func swapIn(next, dir string) error {
	if exists(dir) {
		return exchangeTrees(next, dir)
	}
	return moveTree(next, dir)
}

func (h *Home) recordInstall(tx *state.Tx, rec state.Install, makeDefault bool, event string) error {
	if err := tx.PutInstall(rec); err != nil {
		return err
	}
	if makeDefault {
		d := state.Default{Dir: rec.ID, ID: rec.ID, Package: rec.Package, Since: h.now().UTC()}
		if err := tx.SetDefault(d); err != nil {
			return err
		}
	}
	var detail map[string]string
	if event == EventInstall {
		detail = map[string]string{"source": rec.Source}
	}
	return tx.AppendEvent(h.event(event, rec.ID, rec.Version, rec.Package, detail))
}

// archiveKept reports whether an installed package needs nothing of the archive
// that was just read. Of several packings of the same files the first one stands; one
// that was asked for by its digest is kept beside it, because a lock names it.
func (h *Home) archiveKept(ctx context.Context, rec state.Install, o InstallOptions) (bool, error) {
	if rec.Archive == "" {
		return true, nil
	}
	old, _, err := h.recordsFor(ctx, rec)
	if err != nil || old == nil {
		return false, err
	}
	missing, err := h.missingArchive(rec)
	switch {
	case old.Archive == "" || packedHere(*old):
		return false, err // the one that was given counts more than one of our own
	case old.Archive != rec.Archive:
		return !missing || o.Archive == "", err
	}
	return !missing, err
}

// keepArchive adds the archive to the store when an unchanged package was first
// installed from a directory, or when its archive was lost.
func (h *Home) keepArchive(ctx context.Context, s *staged, rec state.Install, o InstallOptions) error {
	if kept, err := h.archiveKept(ctx, rec, o); err != nil || kept {
		return err
	}
	if err := h.addArchive(s.stage, rec.Archive); err != nil {
		return err
	}
	old, _, err := h.recordsFor(ctx, rec)
	if err != nil || old == nil || old.Archive != "" && !packedHere(*old) {
		return err
	}
	old.Archive = rec.Archive
	if filepath.IsAbs(rec.Source) {
		old.Source = rec.Source
	}
	return h.update(ctx, func(tx *state.Tx) error { return tx.PutInstall(*old) })
}

// addArchive moves the stage's archive into the store.
func (h *Home) addArchive(s *stage, sum digest.Digest) error {
	if err := step("sync"); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := syncTree(s.path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := step("archive"); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := os.Rename(s.join("archive"), h.archivePath(sum)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncDirs(h.join(archivesDir))
}
