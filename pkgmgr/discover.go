package pkgmgr

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Info is what is known about one package without executing it.
type Info struct {
	ID, Name, Version string
	Dir               string // directory name below plugins/; "" for a version that is only in the store
	Path              string // absolute
	Default           bool   // it is what plugins/<id> holds
	Locked            bool   // it is what the lock names
	Status            Status
	Package           digest.Digest // as the files are now
	Fingerprint       digest.Digest
	Recorded          digest.Digest // as installed or last trusted; differs from Package when changed
	Requested         []manifest.Scope
	Granted           []manifest.Scope
	ByLock            bool // the grants come from the lock's approval
	Health            *state.Health
	Denial            *Denial // set when Status is StatusRevoked
	Err               error   // set when Status is StatusBroken
	InstalledAt       time.Time
	Source            string
}

// List returns every package of the data directory, sorted by id, default first,
// then by version. It executes nothing. A package that cannot be read is in the
// list with its error and hides no other; only a fault of the data directory
// itself is an error. all adds the versions that are only in the store.
func (h *Home) List(ctx context.Context, lock *Lock, all bool) ([]Info, error) {
	dirs, err := h.pluginDirs()
	if err != nil {
		return nil, err
	}
	denials, err := h.readDenials()
	if err != nil {
		return nil, err
	}
	r, err := h.readRecords(ctx, lock, all)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(dirs))
	var fresh []state.Seen
	claimed := map[string][]string{}
	for _, name := range dirs {
		info, seen := h.look(ctx, name, r)
		if seen != nil {
			fresh = append(fresh, *seen)
		}
		claimed[info.ID] = append(claimed[info.ID], name)
		list = append(list, info)
	}
	for i := range list {
		if names := claimed[list[i].ID]; len(names) > 1 {
			list[i].Status, list[i].Err = StatusBroken, h.claimed(list[i].ID, names)
		}
	}
	list = append(list, h.storeOnly(r, list)...)
	for i := range list {
		h.applyDecisions(&list[i], r, lock, denials)
	}
	list = append(list, h.quarantined(r)...)
	slices.SortFunc(list, func(a, b Info) int {
		if c := strings.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		if a.Default != b.Default {
			if a.Default {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Version+a.Dir, b.Version+b.Dir)
	})
	return list, h.remember(ctx, fresh, list)
}

// records is one consistent read of everything that List needs.
type records struct {
	defaults  map[string]state.Default
	standings map[digest.Digest]state.Standing
	seen      map[string]state.Seen
	installs  map[digest.Digest]state.Install // only with all, and of quarantined packages
	approvals map[digest.Digest]state.ProjectApproval
	all       bool
}

func (h *Home) readRecords(ctx context.Context, lock *Lock, all bool) (*records, error) {
	r := &records{defaults: map[string]state.Default{}, seen: map[string]state.Seen{},
		installs: map[digest.Digest]state.Install{}, approvals: map[digest.Digest]state.ProjectApproval{}, all: all}
	return r, h.state.View(ctx, func(tx *state.Tx) (err error) {
		defaults, err := tx.Defaults()
		if err != nil {
			return err
		}
		for _, d := range defaults {
			r.defaults[d.Dir] = d
		}
		if r.standings, err = tx.Standings(); err != nil {
			return err
		}
		seen, err := tx.AllSeen()
		if err != nil {
			return err
		}
		for _, s := range seen {
			r.seen[s.Dir] = s
		}
		if lock != nil {
			approvals, err := tx.ProjectApprovals(lock.Root)
			if err != nil {
				return err
			}
			for _, a := range approvals {
				r.approvals[a.Package] = a
			}
		}
		if !all && lock == nil && !h.hasQuarantine() {
			return nil
		}
		installs, err := tx.Installs()
		for _, in := range installs {
			r.installs[in.Package] = in
		}
		return err
	})
}

// look reads one directory below plugins/: from what was seen before while every
// file's device, inode, size, mode and times are the same, else by hashing it.
func (h *Home) look(ctx context.Context, name string, r *records) (Info, *state.Seen) {
	info := Info{ID: name, Dir: name, Path: h.pluginPath(name), Default: true}
	if def, ok := r.defaults[name]; ok {
		info.Recorded = def.Package
	}
	if old, ok := r.seen[name]; ok && unchanged(info.Path, old.Stats) {
		info.fill(old)
		return info, nil
	}
	before, statErr := statTree(info.Path)
	c, err := readTree(ctx, info.Path)
	if err != nil {
		info.Status, info.Err = StatusBroken, err
		return info, nil
	}
	seen := &state.Seen{Dir: name, Package: c.Package, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
		Name: c.Manifest.Name, Version: c.Manifest.Version, Protocol: c.Manifest.ProtocolVersion,
		Scopes: c.Manifest.RequestedScopes, Stats: before}
	info.fill(*seen)
	if statErr != nil || !unchanged(info.Path, before) || !settled(before, h.now()) {
		return info, nil // written to while it was read, or too recently to tell
	}
	return info, seen
}

func (i *Info) fill(s state.Seen) {
	i.ID, i.Name, i.Version = s.ID, s.Name, s.Version
	i.Package, i.Fingerprint, i.Requested = s.Package, s.Fingerprint, s.Scopes
}

// storeOnly returns the installed versions that are no default: all of them where
// asked, else those that the lock names.
func (h *Home) storeOnly(r *records, present []Info) []Info {
	var list []Info
	for pkg, in := range r.installs {
		if slices.ContainsFunc(present, func(i Info) bool { return i.Package == pkg || i.Recorded == pkg }) {
			continue
		}
		if _, err := os.Lstat(h.storePath(pkg)); err != nil {
			continue
		}
		info := Info{ID: in.ID, Name: in.Name, Version: in.Version, Path: h.storePath(pkg),
			Package: pkg, Recorded: pkg, Fingerprint: in.Fingerprint, InstalledAt: in.InstalledAt, Source: in.Source}
		if m, err := ParseManifest(in.ManifestJSON); err == nil {
			info.Requested = m.RequestedScopes
		}
		list = append(list, info)
	}
	return list
}

// applyDecisions adds what people decided to what was read.
func (h *Home) applyDecisions(i *Info, r *records, lock *Lock, denials []Denial) {
	sel := &selection{recorded: i.Recorded, lock: lock}
	if lock != nil {
		if entry, ok := lock.File.Plugin(i.ID); ok {
			if p, _, ok := entry.For(HostPlatform()); ok && p.Package == i.Package {
				i.Locked, sel.locked = true, &entry
			}
		}
		if a, ok := r.approvals[i.Recorded]; ok && i.Locked {
			sel.approval = &a
		}
	}
	sel.standing = r.standings[i.Recorded]
	i.Health = sel.standing.Health
	if i.Err != nil {
		return
	}
	if i.Recorded != "" && i.Recorded != i.Package {
		i.Status = StatusChanged
	} else {
		i.Status, i.Granted = sel.status(), sel.grants()
		i.ByLock = sel.standing.Trust == nil && i.Status == StatusEnabled
	}
	s := subject{ID: i.ID, Version: i.Version, Package: i.Package, Fingerprint: i.Fingerprint}
	if in, ok := r.installs[i.Package]; ok {
		s = subjectOf(in)
	}
	for _, d := range denials {
		if d.covers(s) {
			i.Status, i.Denial, i.Granted = StatusRevoked, &d, nil
			return
		}
	}
}

// remember stores what was hashed and what was found changed. A read-only data
// directory remembers nothing and still lists.
func (h *Home) remember(ctx context.Context, fresh []state.Seen, list []Info) error {
	for _, i := range list {
		if i.Recorded == "" || i.Recorded == i.Package || i.Dir == "" {
			continue
		}
		sel := &selection{ref: Ref{ID: i.ID}, dirName: i.Dir, path: i.Path, recorded: i.Recorded}
		sel.standing.Trust = &state.Trust{Version: i.Version}
		var decided *NeedsDecision
		var moved *Superseded
		if err := h.changed(ctx, sel, i.Package); err != nil && !errors.As(err, &decided) && !errors.As(err, &moved) {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	err := h.state.Update(ctx, func(tx *state.Tx) error {
		for _, s := range fresh {
			if err := tx.PutSeen(s); err != nil {
				return err
			}
		}
		return nil
	})
	if isReadOnly(err) {
		return nil
	}
	return err
}

func (h *Home) hasQuarantine() bool {
	entries, err := os.ReadDir(h.join(quarantineDir))
	return err == nil && len(entries) > 0
}

// quarantined lists what was revoked and moved away.
func (h *Home) quarantined(r *records) []Info {
	entries, err := os.ReadDir(h.join(quarantineDir))
	if err != nil {
		return nil
	}
	var list []Info
	for _, e := range entries {
		d, err := digest.ParseDirName(e.Name())
		if err != nil {
			continue
		}
		info := Info{ID: "", Path: h.quarantinePath(d), Package: d, Recorded: d, Status: StatusRevoked}
		if note, err := readQuarantineNote(h.quarantinePath(d)); err == nil {
			info.Denial = &note.Denial
		} else {
			info.Denial = &Denial{Digest: d, Reason: "the package is in quarantine"}
		}
		root, err := os.OpenRoot(filepath.Join(info.Path))
		if err == nil {
			if m, _, err := readManifest(root, info.Path); err == nil {
				info.ID, info.Name, info.Version, info.Requested = m.ID, m.Name, m.Version, m.RequestedScopes
			}
			root.Close()
		}
		if in, ok := r.installs[d]; ok {
			info.ID, info.Name, info.Version, info.Fingerprint = in.ID, in.Name, in.Version, in.Fingerprint
		}
		if info.ID == "" {
			info.ID = e.Name()
		}
		list = append(list, info)
	}
	return list
}
