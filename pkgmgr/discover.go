package pkgmgr

import (
	"context"
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
//
// A listing beside an install shows the old state or the new one: records are
// read before directories, and where the two differ both are read again.
func (h *Home) List(ctx context.Context, lock *Lock, all bool) ([]Info, error) {
	l := &listing{home: h, lock: lock, all: all, watcher: h.watch()}
	defer l.watcher.close()
	if err := l.scan(ctx); err != nil {
		return nil, err
	}
	l.lists, l.listsErr = h.openLists()
	defer l.lists.close()
	list := l.packages()
	for i := range list {
		l.decide(&list[i])
	}
	quarantined, err := h.quarantined(l.records)
	if err != nil {
		return nil, err
	}
	list = append(list, quarantined...)
	if !slices.IsSortedFunc(list, compareInfos) { // mostly it is, and sorting large values is slow
		slices.SortFunc(list, compareInfos)
	}
	l.remember(ctx)
	return list, nil
}

func compareInfos(a, b Info) int {
	switch c := strings.Compare(a.ID, b.ID); {
	case c != 0:
		return c
	case a.Default != b.Default:
		if a.Default {
			return -1
		}
		return 1
	}
	if c := strings.Compare(a.Version, b.Version); c != 0 {
		return c
	}
	return strings.Compare(a.Path, b.Path)
}

// fill takes over what a record says of a directory; its texts end with the
// transaction, so that they are copied, or replaced by equal ones that stay.
func (i *Info) fill(s *state.Seen) {
	if i.ID != s.ID {
		i.ID = strings.Clone(s.ID)
	}
	i.Package = i.Recorded
	if i.Package != s.Package {
		i.Package = digest.Digest(strings.Clone(string(s.Package)))
	}
	text := strings.Clone(string(s.Fingerprint) + s.Name + s.Version)
	i.Fingerprint = digest.Digest(text[:len(s.Fingerprint)])
	i.Name = text[len(s.Fingerprint):][:len(s.Name)]
	i.Version = text[len(s.Fingerprint)+len(s.Name):]
	i.Requested = knownScopes(s.Scopes)
}

// knownScopes returns the scopes in constants of this program where it knows them.
func knownScopes(scopes []manifest.Scope) []manifest.Scope {
	if slices.Equal(scopes, manifest.Scopes) {
		return slices.Clip(manifest.Scopes)
	}
	list := make([]manifest.Scope, len(scopes))
	for i, s := range scopes {
		if k := slices.Index(manifest.Scopes, s); k >= 0 {
			list[i] = manifest.Scopes[k]
		} else {
			list[i] = manifest.Scope(strings.Clone(string(s)))
		}
	}
	return list
}

// packages returns what the looks showed, with the versions in the store that were
// asked for. Directories that claim one id are broken, all of them.
func (l *listing) packages() []Info {
	list := l.infos()
	byID := func(a, b Info) int { return strings.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(list, byID) {
		slices.SortStableFunc(list, byID)
	}
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j].ID == list[i].ID {
			j++
		}
		if j > i+1 {
			var names []string
			for _, c := range list[i:j] {
				names = append(names, c.Dir)
			}
			for k := i; k < j; k++ {
				list[k].Status, list[k].Err = StatusBroken, l.home.claimed(list[k].ID, names)
			}
		}
		i = j
	}
	return append(list, l.storeOnly(list)...)
}

// infos returns what was looked at, sorted by directory name, in the memory that it
// stands in: the looks are over.
func (l *listing) infos() []Info {
	list := l.found[:0]
	for i := range l.looks {
		list = append(list, *l.looks[i].info)
	}
	return list
}

// storeOnly returns the installed versions that are no default: all of them where
// asked, else those that the lock names.
func (l *listing) storeOnly(present []Info) []Info {
	if !l.all && l.lock == nil {
		return nil
	}
	here := make(map[digest.Digest]bool, 2*len(present))
	for _, i := range present {
		here[i.Package], here[i.Recorded] = true, true
	}
	var list []Info
	for pkg, in := range l.records.installs {
		if here[pkg] || !l.all && !l.locks(in.ID, pkg) || !exists(l.home.storePath(pkg)) {
			continue
		}
		info := Info{ID: in.ID, Name: in.Name, Version: in.Version, Path: l.home.storePath(pkg),
			Package: pkg, Recorded: pkg, Fingerprint: in.Fingerprint}
		if m, err := ParseManifest(in.ManifestJSON); err == nil {
			info.Requested = m.RequestedScopes
		}
		list = append(list, info)
	}
	return list
}

// locks reports whether the lock names the package for this machine.
func (l *listing) locks(id string, pkg digest.Digest) bool {
	if l.lock == nil {
		return false
	}
	entry, ok := l.lock.File.Plugin(id)
	if !ok {
		return false
	}
	p, _, ok := entry.For(HostPlatform())
	return ok && p.Package == pkg
}

// decide adds what people decided to what was read.
func (l *listing) decide(i *Info) {
	sel := &selection{recorded: i.Recorded, lock: l.lock, standing: l.records.standing(i.Recorded)}
	if l.locks(i.ID, i.Package) {
		entry, _ := l.lock.File.Plugin(i.ID)
		i.Locked, sel.locked = true, &entry
		if a, ok := l.records.approvals[i.Recorded]; ok {
			sel.approval = &a
		}
	}
	i.Health = sel.standing.Health
	if in, ok := l.records.installs[i.Recorded]; ok {
		i.InstalledAt, i.Source = in.InstalledAt, in.Source
	}
	if i.Err != nil {
		return
	}
	if i.Recorded != "" && i.Recorded != i.Package {
		i.Status = StatusChanged
	} else {
		i.Status, i.Granted = sel.status(), sel.grants()
		i.ByLock = i.Status == StatusEnabled && !sel.byPerson()
	}
	if d := l.denial(i); d != nil {
		i.Status, i.Denial, i.Granted, i.ByLock = StatusRevoked, d, nil, false
	}
}

// denial returns what denies a package that is not in quarantine itself.
func (l *listing) denial(i *Info) *Denial {
	if len(l.records.denials) > 0 {
		if d := coveredBy(l.records.denials, l.subject(i)); d != nil {
			return d
		}
	}
	if slices.Contains(l.records.quarantined, i.Package) {
		return &Denial{Digest: i.Package, Reason: inQuarantine}
	}
	return l.listedDenial(i)
}

// subject is what denials are compared with: what was recorded of the package, else
// what stands there.
func (l *listing) subject(i *Info) subject {
	if in, ok := l.records.installs[i.Package]; ok {
		return subjectOf(in)
	}
	stated := l.home.stated(i.Path)
	return subject{ID: i.ID, Version: i.Version, Package: i.Package, Fingerprint: i.Fingerprint,
		Manifest: stated.Manifest, Publisher: stated.Publisher}
}

// listedDenial returns what a signed list says against a package. Lists that cannot be
// read deny everything.
func (l *listing) listedDenial(i *Info) *Denial {
	if l.listsErr == nil && len(l.lists) == 0 {
		return nil
	}
	list, err := []Listed(nil), l.listsErr
	if err == nil {
		list, err = l.home.listedIn(l.lists, l.subject(i), nil)
	}
	switch {
	case err != nil:
		return &Denial{Digest: i.Package, Reason: "the revocation lists cannot be read: " + err.Error()}
	case len(list) > 0 && list[0].Blocks():
		d := list[0].denial()
		return &d
	}
	return nil
}
