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

// Used reports what Use did.
type Used struct {
	ID, Version, Previous string
	Package               digest.Digest
	Status                Status
	Unchanged             bool
}

// Use makes an installed version the default of its id. Trust and grants belong
// to the version: one that was reviewed before needs no second review.
func (h *Home) Use(ctx context.Context, ref Ref) (*Used, error) {
	sel, err := h.selectPackage(ctx, ref, nil, lockGuides, "")
	if err != nil {
		return nil, err
	}
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if sel.install == nil || sel.path != h.storePath(sel.recorded) {
		return nil, &ForeignDirectory{Path: sel.path, ID: ref.ID}
	}
	if err := h.checkDenied(sel.subject()); err != nil {
		return nil, err
	}
	if intact, err := h.storeIntact(ctx, sel.recorded); err != nil {
		return nil, err
	} else if !intact {
		return nil, h.storeDamaged(ctx, sel)
	}
	out := &Used{ID: sel.install.ID, Version: sel.install.Version, Package: sel.recorded, Status: sel.status()}
	plan, err := h.plan(ctx, *sel.install, InstallOptions{Default: DefaultReplace})
	if err != nil {
		return nil, err
	}
	out.Previous, out.Unchanged = plan.Previous, plan.Unchanged
	if plan.Unchanged {
		return out, nil
	}
	if err := h.linkDefault(sel.recorded, out.ID); err != nil {
		return nil, err
	}
	return out, h.state.Update(ctx, func(tx *state.Tx) error {
		d := state.Default{Dir: out.ID, ID: out.ID, Package: sel.recorded, Since: h.now().UTC()}
		if err := tx.SetDefault(d); err != nil {
			return err
		}
		return tx.AppendEvent(h.event(EventUse, out.ID, out.Version, out.Package, nil))
	})
}

func (h *Home) storeDamaged(ctx context.Context, sel *selection) error {
	found, err := hashPath(ctx, sel.path)
	if err != nil {
		return err
	}
	return &Integrity{What: "package digest", Expected: sel.recorded, Found: found, Where: sel.path,
		Causes: []string{"files in the store were changed after the install"}}
}

// Removed is one package that Uninstall or GC removed.
type Removed struct {
	ID, Version string
	Package     digest.Digest
	Path        string
	Bytes       int64
}

// Uninstall removes a package: every version where ref names none, else that one.
// Trust and grants of what is removed are forgotten; archives stay until GC.
func (h *Home) Uninstall(ctx context.Context, ref Ref) ([]Removed, error) {
	if _, err := h.selectPackage(ctx, ref, nil, lockGuides, ""); err != nil {
		return nil, err
	}
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	holdings, err := h.holdings(ctx)
	if err != nil {
		return nil, err
	}
	broken, err := h.brokenDir(ctx, ref)
	if err != nil {
		return nil, err
	}
	var removed []Removed
	for _, p := range append(holdings, broken...) {
		named := ref.Version == "" && ref.Digest == "" || p.Version == ref.Version || p.Package == ref.Digest && ref.Digest != ""
		if p.ID != ref.ID || !named {
			continue
		}
		if id, ok := h.inUse(p.Package); ok {
			return removed, &Busy{What: p.ID + " " + p.Version, Operation: id}
		}
		r := Removed{ID: p.ID, Version: p.Version, Package: p.Package, Path: h.storePath(p.Package)}
		if err := h.forgetPackage(ctx, p); err != nil {
			return removed, err
		}
		if p.dir != "" {
			if err := h.dropTree(h.pluginPath(p.dir)); err != nil {
				return removed, err
			}
		}
		if p.Package != "" {
			if err := h.dropTree(h.storePath(p.Package)); err != nil {
				return removed, err
			}
		}
		removed = append(removed, r)
	}
	return removed, nil
}

// brokenDir returns plugins/<id> as a holding without a digest when its package
// cannot be read: it can still be removed.
func (h *Home) brokenDir(ctx context.Context, ref Ref) ([]holding, error) {
	if ref.Version != "" || ref.Digest != "" {
		return nil, nil
	}
	path := h.pluginPath(ref.ID)
	if _, err := os.Lstat(path); err != nil {
		return nil, nil
	}
	if _, err := readTree(ctx, path); err == nil {
		return nil, nil
	}
	return []holding{{subject: subject{ID: ref.ID}, dir: ref.ID}}, nil
}

func (h *Home) forgetPackage(ctx context.Context, p holding) error {
	return h.state.Update(ctx, func(tx *state.Tx) error {
		if p.dir != "" {
			if err := tx.RemoveDefault(p.dir); err != nil {
				return err
			}
			if err := tx.RemoveSeen(p.dir); err != nil {
				return err
			}
		}
		if p.Package != "" {
			for _, forget := range []func(digest.Digest) error{tx.RemoveInstall, tx.RemoveTrust, tx.RemoveEnablement} {
				if err := forget(p.Package); err != nil {
					return err
				}
			}
		}
		return tx.AppendEvent(h.event(EventUninstall, p.ID, p.Version, p.Package, nil))
	})
}

// inUse returns the id of a running call of the package.
func (h *Home) inUse(pkg digest.Digest) (string, bool) {
	if pkg == "" {
		return "", false
	}
	for _, id := range h.callIDs() {
		if m, err := h.readMarker(id); err == nil && m.Package == pkg && h.callAlive(id) {
			return id, true
		}
	}
	return "", false
}

// GCOptions configure GC.
type GCOptions struct {
	DryRun bool
	// Locks are lockfiles whose versions must stay, beside those of every project
	// that is known from earlier commands.
	Locks []*Lock
}

// GC removes what nothing refers to: versions in the store that are neither a
// default nor locked by a known project nor running, archives of packages that
// are gone, and old leftovers. It lists what it removes.
func (h *Home) GC(ctx context.Context, o GCOptions) ([]Removed, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	keep, archives, err := h.referenced(ctx, o.Locks)
	if err != nil {
		return nil, err
	}
	var removed []Removed
	entries, err := os.ReadDir(h.join(storeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	for _, e := range entries {
		pkg, err := digest.ParseDirName(e.Name())
		if err != nil || keep[pkg] {
			continue
		}
		if _, running := h.inUse(pkg); running {
			continue
		}
		r, err := h.collect(ctx, pkg, o.DryRun)
		if err != nil {
			return removed, err
		}
		removed = append(removed, r)
	}
	more, err := h.collectArchives(archives, o.DryRun)
	return append(removed, more...), err
}

// referenced returns the packages and archives that something refers to.
func (h *Home) referenced(ctx context.Context, locks []*Lock) (map[digest.Digest]bool, map[digest.Digest]bool, error) {
	packages, archives := map[digest.Digest]bool{}, map[digest.Digest]bool{}
	note := func(f *lockfile.File) {
		for _, p := range f.Plugins {
			for _, e := range p.Platforms {
				packages[e.Package], archives[e.Archive] = true, true
			}
		}
	}
	for _, l := range locks {
		if l != nil {
			note(l.File)
		}
	}
	err := h.state.View(ctx, func(tx *state.Tx) error {
		defaults, err := tx.Defaults()
		if err != nil {
			return err
		}
		for _, d := range defaults {
			packages[d.Package] = true
			if in, err := optional(tx.Install(d.Package)); err != nil {
				return err
			} else if in != nil {
				archives[in.Archive] = true
			}
		}
		roots, err := knownRoots(tx)
		if err != nil {
			return err
		}
		for _, root := range roots {
			f, _, err := lockfile.Read(filepath.Join(root, lockfile.FileName))
			if err == nil {
				note(f)
			}
		}
		return nil
	})
	return packages, archives, err
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

func (h *Home) collect(ctx context.Context, pkg digest.Digest, dryRun bool) (Removed, error) {
	r := Removed{Package: pkg, Path: h.storePath(pkg), Bytes: treeBytes(h.storePath(pkg))}
	err := h.state.View(ctx, func(tx *state.Tx) error {
		in, err := optional(tx.Install(pkg))
		if in != nil {
			r.ID, r.Version = in.ID, in.Version
		}
		return err
	})
	if err != nil || dryRun {
		return r, err
	}
	err = h.state.Update(ctx, func(tx *state.Tx) error { return tx.RemoveInstall(pkg) })
	if err != nil {
		return r, err
	}
	return r, h.dropTree(r.Path)
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
