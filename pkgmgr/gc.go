package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// GCOptions configure GC.
type GCOptions struct {
	DryRun bool
	// Locks are lockfiles whose versions must stay, beside those of every project
	// that is known from earlier commands.
	Locks []*Lock
}

// GC removes what nothing refers to: versions in the store that are neither a
// default nor locked by a known project nor running, archives of packages that
// are gone, and stop requests of calls that have ended. It lists what it removes.
// Decisions about a package stay: they hold again when the same bytes come back.
// A known project whose lock cannot be read is an error, never "nothing locked".
func (h *Home) GC(ctx context.Context, o GCOptions) ([]Removed, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	refs, err := h.referenced(ctx, o.Locks)
	if err != nil {
		return nil, err
	}
	removed, err := h.unreferenced(refs)
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		if err := h.collect(ctx, removed); err != nil {
			return nil, err
		}
		h.removeStaleStops()
	}
	more, err := h.collectArchives(refs.archives, o.DryRun)
	return append(removed, more...), err
}

// references are the packages and archives that something refers to.
type references struct {
	packages, archives map[digest.Digest]bool
	installs           map[digest.Digest]state.Install
}

func (r *references) note(f *lockfile.File) {
	for _, p := range f.Plugins {
		for _, e := range p.Platforms {
			r.packages[e.Package], r.archives[e.Archive] = true, true
		}
	}
}

func (h *Home) referenced(ctx context.Context, locks []*Lock) (*references, error) {
	r := &references{packages: map[digest.Digest]bool{}, archives: map[digest.Digest]bool{}, installs: map[digest.Digest]state.Install{}}
	for _, l := range locks {
		if l != nil {
			r.note(l.File)
		}
	}
	var roots []string
	err := h.state.View(ctx, func(tx *state.Tx) error {
		defaults, err := tx.Defaults()
		if err != nil {
			return err
		}
		for _, d := range defaults {
			r.packages[d.Package] = true
		}
		installs, err := tx.Installs()
		if err != nil {
			return err
		}
		for _, in := range installs {
			r.installs[in.Package] = in
		}
		roots, err = knownRoots(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		f, _, err := lockfile.Read(filepath.Join(root, lockfile.FileName))
		switch {
		case err == nil:
			r.note(f)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	for pkg, in := range r.installs {
		if _, running := h.inUse(pkg); running {
			r.packages[pkg] = true
		}
		if r.packages[pkg] || exists(h.quarantinePath(pkg)) {
			r.archives[in.Archive] = true
		}
	}
	return r, nil
}

// unreferenced lists the store's packages that may go.
func (h *Home) unreferenced(refs *references) ([]Removed, error) {
	entries, err := os.ReadDir(h.join(storeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	var list []Removed
	for _, e := range entries {
		pkg, err := digest.ParseDirName(e.Name())
		if err != nil || refs.packages[pkg] {
			continue
		}
		in := refs.installs[pkg]
		list = append(list, Removed{ID: in.ID, Version: in.Version, Package: pkg, Path: h.storePath(pkg), Bytes: treeBytes(h.storePath(pkg))})
	}
	return list, nil
}

// collect forgets packages and then removes their trees. What a crash leaves
// between the two is a tree that nothing names, which the next GC removes.
func (h *Home) collect(ctx context.Context, going []Removed) error {
	if len(going) == 0 {
		return nil
	}
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	err = h.update(ctx, func(tx *state.Tx) error {
		for _, r := range going {
			if err := tx.RemoveInstall(r.Package); err != nil {
				return err
			}
		}
		return step("commit")
	})
	if err != nil {
		return h.cannotWrite("gc", err)
	}
	for _, r := range going {
		if err := step("collect"); err != nil {
			return fmt.Errorf("gc: %w", err)
		}
		if err := moveTree(r.Path, s.join(r.Package.DirName())); err != nil {
			return fmt.Errorf("gc: %w", err)
		}
	}
	return syncDirs(h.join(storeDir))
}

// knownRoots returns every project root that was trusted or whose lock gave an
// approval.
func knownRoots(tx *state.Tx) ([]string, error) {
	trusts, err := tx.ProjectTrusts()
	if err != nil {
		return nil, err
	}
	approvals, err := tx.ProjectApprovals("")
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, t := range trusts {
		roots = append(roots, t.Root)
	}
	for _, a := range approvals {
		roots = append(roots, a.Root)
	}
	slices.Sort(roots)
	return slices.Compact(roots), nil
}

func (h *Home) collectArchives(keep map[digest.Digest]bool, dryRun bool) ([]Removed, error) {
	entries, err := os.ReadDir(h.join(archivesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	var removed []Removed
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		d, err := digest.Parse(name)
		if err != nil || keep[d] {
			continue
		}
		r := Removed{Package: d, Path: h.join(archivesDir, e.Name())}
		if info, err := e.Info(); err == nil {
			r.Bytes = info.Size()
		}
		if !dryRun {
			if err := os.Remove(r.Path); err != nil {
				return removed, fmt.Errorf("store: %w", err)
			}
		}
		removed = append(removed, r)
	}
	return removed, nil
}

func treeBytes(path string) int64 {
	var n int64
	filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
