package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

func (h *Home) storePath(d digest.Digest) string      { return h.join(storeDir, d.DirName()) }
func (h *Home) archivePath(d digest.Digest) string    { return h.join(archivesDir, d.Hex()) }
func (h *Home) quarantinePath(d digest.Digest) string { return h.join(quarantineDir, d.DirName()) }
func (h *Home) pluginPath(dirName string) string      { return h.join(pluginsDir, dirName) }

// commit makes a staged package visible. The order is the crash contract: until
// the rename into the store nothing is visible; from the intent on, recover can
// tell the old state from the new one; the record comes last.
func (h *Home) commit(ctx context.Context, s *staged, rec state.Install, o InstallOptions) (*Installed, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := h.checkDenied(subjectOf(rec)); err != nil {
		return nil, err // revoked while this was being extracted
	}
	out, err := h.plan(ctx, rec, o)
	if err != nil || o.DryRun {
		return out, err
	}
	if out.Unchanged {
		return out, h.keepArchive(ctx, s, rec)
	}
	fresh, err := h.storeIntact(ctx, rec.Package)
	if err != nil {
		return nil, err
	}
	if err := sealDirectories(s.join("tree")); err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	if out.Default {
		if err := linkTree(s.join("tree"), s.join("default")); err != nil {
			return nil, fmt.Errorf("staging: %w", err)
		}
		if err := sealDirectories(s.join("default")); err != nil {
			return nil, fmt.Errorf("staging: %w", err)
		}
	}
	if err := s.writeIntent(intent{Record: rec, Default: out.Default}); err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	if err := syncTree(s.path); err != nil {
		return nil, fmt.Errorf("staging: sync: %w", err)
	}
	if err := h.publish(s, rec, out.Default, !fresh); err != nil {
		return nil, err
	}
	return out, nil
}

// plan decides, under the mutation lock, what an install of rec will do.
func (h *Home) plan(ctx context.Context, rec state.Install, o InstallOptions) (*Installed, error) {
	out := &Installed{Install: rec}
	claims, err := h.claims(rec.ID)
	if err != nil {
		return nil, err
	}
	if len(claims) > 1 || (len(claims) == 1 && claims[0] != rec.ID) {
		return nil, h.claimed(rec.ID, append(claims, rec.ID))
	}
	var current *state.Install
	var recorded bool
	err = h.state.View(ctx, func(tx *state.Tx) error {
		def, err := optional(tx.Default(rec.ID))
		if err != nil {
			return err
		}
		if def != nil {
			if current, err = optional(tx.Install(def.Package)); err != nil {
				return err
			}
		}
		old, err := optional(tx.Install(rec.Package))
		if old != nil {
			recorded = true
			out.InstalledAt = old.InstalledAt
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if current == nil && len(claims) == 1 {
		return nil, &ForeignDirectory{Path: h.pluginPath(rec.ID), ID: rec.ID}
	}
	if other, err := h.dirHolds(rec.ID); err != nil {
		return nil, err
	} else if other != "" && other != rec.ID {
		return nil, &ForeignDirectory{Path: h.pluginPath(rec.ID), ID: other}
	}
	if current != nil {
		out.Previous = current.Version
		if current.Package != rec.Package && current.Version == rec.Version {
			out.SameVersion = current.Package
		}
	}
	switch {
	case current == nil, o.Default == DefaultReplace, current.Package == rec.Package:
		out.Default = true
	case o.Default == DefaultUpgrade:
		if versionrange.Compare(rec.Version, current.Version) < 0 {
			return nil, &Downgrade{ID: rec.ID, Installed: current.Version, Offered: rec.Version}
		}
		out.Default = true
	}
	if recorded {
		intact, err := h.storeIntact(ctx, rec.Package)
		if err != nil {
			return nil, err
		}
		same := !out.Default || current != nil && current.Package == rec.Package && h.mirrors(ctx, rec.ID, rec.Package)
		out.Unchanged = intact && same
		out.Repaired = !intact || current != nil && current.Package == rec.Package && !same
	}
	return out, nil
}

// publish performs the visible steps. On an error everything visible is undone.
func (h *Home) publish(s *staged, rec state.Install, makeDefault, replaceStore bool) (err error) {
	var undo []func()
	defer func() {
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
		}
	}()
	storePath := h.storePath(rec.Package)
	if replaceStore {
		if _, serr := os.Lstat(storePath); serr == nil {
			if err := moveTree(storePath, s.join("altered")); err != nil {
				return fmt.Errorf("store: %w", err)
			}
			undo = append(undo, func() { moveTree(s.join("altered"), storePath) })
		}
		if err := moveTree(s.join("tree"), storePath); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		undo = append(undo, func() { moveTree(storePath, s.join("tree")) })
	}
	if rec.Archive != "" {
		if err := os.Rename(s.join("archive"), h.archivePath(rec.Archive)); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if makeDefault {
		swapBack, err := h.swapDefault(s.stage, rec.ID)
		if err != nil {
			return err
		}
		undo = append(undo, swapBack)
	}
	if err := syncDirs(h.join(storeDir), h.join(archivesDir), h.join(pluginsDir)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return h.recordInstall(context.Background(), rec, makeDefault)
}

// swapDefault exchanges plugins/<id> with staging/<name>/default in one step, so
// that every reader sees the old tree or the new one.
func (h *Home) swapDefault(s *stage, id string) (back func(), err error) {
	next, dir := s.join("default"), h.pluginPath(id)
	_, err = os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := moveTree(next, dir); err != nil {
			return nil, fmt.Errorf("default version of %s: %w", id, err)
		}
		return func() { moveTree(dir, next) }, nil
	case err != nil:
		return nil, fmt.Errorf("default version of %s: %w", id, err)
	}
	if err := exchangeTrees(next, dir); err != nil {
		return nil, fmt.Errorf("default version of %s: %w", id, err)
	}
	return func() { exchangeTrees(next, dir) }, nil
}

func (h *Home) recordInstall(ctx context.Context, rec state.Install, makeDefault bool) error {
	return h.state.Update(ctx, func(tx *state.Tx) error {
		if err := tx.PutInstall(rec); err != nil {
			return err
		}
		if makeDefault {
			d := state.Default{Dir: rec.ID, ID: rec.ID, Package: rec.Package, Since: h.now().UTC()}
			if err := tx.SetDefault(d); err != nil {
				return err
			}
		}
		return tx.AppendEvent(state.Event{At: h.now().UTC(), Kind: EventInstall, ID: rec.ID, Version: rec.Version,
			Package: rec.Package, Detail: map[string]string{"source": rec.Source}})
	})
}

// keepArchive adds the archive to the store when an unchanged package was first
// installed from a directory or from another packing of the same files.
func (h *Home) keepArchive(ctx context.Context, s *staged, rec state.Install) error {
	if rec.Archive == "" {
		return nil
	}
	if _, err := os.Lstat(h.archivePath(rec.Archive)); err == nil {
		return nil
	}
	if err := syncTree(s.path); err != nil {
		return fmt.Errorf("staging: sync: %w", err)
	}
	if err := os.Rename(s.join("archive"), h.archivePath(rec.Archive)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return h.state.Update(ctx, func(tx *state.Tx) error {
		old, err := tx.Install(rec.Package)
		if err != nil {
			return err
		}
		old.Archive = rec.Archive
		return tx.PutInstall(old)
	})
}

// storeIntact reports whether store/<digest> exists and still has that digest.
func (h *Home) storeIntact(ctx context.Context, d digest.Digest) (bool, error) {
	found, err := hashPath(ctx, h.storePath(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		var refused *archive.Refusal
		if errors.As(err, &refused) {
			return false, nil
		}
		return false, err
	}
	return found == d, nil
}

// hashPath returns the package digest of the tree at path, as it is now.
func hashPath(ctx context.Context, path string) (digest.Digest, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	tree, err := archive.HashDir(ctx, root)
	if err != nil {
		return "", err
	}
	return tree.Package()
}

// mirrors reports whether plugins/<dirName> holds exactly the files of the store's
// tree d: the same inodes, or on a file system without hard links the same bytes.
func (h *Home) mirrors(ctx context.Context, dirName string, d digest.Digest) bool {
	if sameInodes(h.storePath(d), h.pluginPath(dirName)) {
		return true
	}
	found, err := hashPath(ctx, h.pluginPath(dirName))
	return err == nil && found == d
}

// sameInodes reports whether b has exactly the files and directories of a, each
// file being the same inode. It reads no file.
func sameInodes(a, b string) bool {
	n := 0
	err := filepath.WalkDir(a, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n++
		mine, err := os.Lstat(p)
		if err != nil {
			return err
		}
		other, err := os.Lstat(b + p[len(a):])
		if err != nil {
			return err
		}
		if d.IsDir() != other.IsDir() || !d.IsDir() && !os.SameFile(mine, other) {
			return fs.ErrInvalid
		}
		return nil
	})
	if err != nil {
		return false
	}
	m := 0
	err = filepath.WalkDir(b, func(_ string, _ fs.DirEntry, err error) error { m++; return err })
	return err == nil && n == m
}

// moveTree renames a sealed tree into another parent directory: its top must be
// writable while it moves.
func moveTree(from, to string) error {
	if err := os.Chmod(from, 0o755); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return os.Chmod(to, 0o555)
}
