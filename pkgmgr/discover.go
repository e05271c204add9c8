package pkgmgr

import (
	"context"
	"errors"
	"io/fs"
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
	l := &listing{home: h, lock: lock, all: all}
	if err := l.scan(ctx); err != nil {
		return nil, err
	}
	list := l.packages()
	for i := range list {
		l.decide(&list[i])
	}
	quarantined, err := h.quarantined(l.records)
	if err != nil {
		return nil, err
	}
	list = append(list, quarantined...)
	slices.SortFunc(list, compareInfos)
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

// A listing is one run of List.
type listing struct {
	home    *Home
	lock    *Lock
	all     bool
	records *records
	looks   []look
}

// A look is what one directory below plugins/ showed, and the record beside it.
type look struct {
	info Info
	def  state.Default // zero where nothing is recorded
	seen *state.Seen   // to be remembered; nil when it was known
}

// scanTries bounds how often records and directories are read because installs get
// in between.
const scanTries = 10

// scan reads records and directories until they fit together. What does not fit
// while no install can run is a change of the files, and is recorded.
func (l *listing) scan(ctx context.Context) error {
	var odd []string
	for try := 1; ; try++ {
		before := l.records
		now, err := l.home.readRecords(ctx, l)
		if err != nil {
			return err
		}
		l.records = now
		if before != nil && !before.differ(now, odd) || try == scanTries {
			return l.judge(ctx, odd)
		}
		// Whoever puts a tree in place that is seen from here on commits its record
		// with it: reading the records again waits for that.
		dirs, err := l.home.pluginDirs()
		if err != nil {
			return err
		}
		if odd = l.lookAt(ctx, dirs); len(odd) == 0 {
			return nil
		}
	}
}

// lookAt looks at every directory that was not looked at under its present record,
// and returns the names of those that do not fit their record, and of recorded ones
// that are not there.
func (l *listing) lookAt(ctx context.Context, dirs []string) (odd []string) {
	known := make(map[string]look, len(l.looks))
	for _, k := range l.looks {
		known[k.info.Dir] = k
	}
	looks := make([]look, 0, len(dirs))
	for _, name := range dirs {
		def := l.records.defaults[name]
		k, ok := known[name]
		if !ok || k.def != def || k.odd() {
			if k, ok = l.home.look(ctx, name, def, l.records); !ok {
				continue // gone since the names were read
			}
		}
		looks = append(looks, k)
		if k.odd() {
			odd = append(odd, name)
		}
	}
	l.looks = looks
	return append(odd, l.missing()...)
}

// missing returns the recorded directories that were not there to be looked at.
func (l *listing) missing() []string {
	left := len(l.records.defaults)
	for _, k := range l.looks {
		if k.def.Package != "" {
			left--
		}
	}
	if left == 0 {
		return nil
	}
	there := make(map[string]bool, len(l.looks))
	for _, k := range l.looks {
		there[k.info.Dir] = true
	}
	var names []string
	for name := range l.records.defaults {
		if !there[name] {
			names = append(names, name)
		}
	}
	return names
}

// odd reports whether the directory is not what its record says.
func (k look) odd() bool {
	return k.info.Err != nil || k.def.Package != k.info.Package
}

// look reads one directory below plugins/: from what was seen before while every
// file's device, inode, size, mode and times are the same, else by hashing it. ok
// is false where there is no such directory any more.
func (h *Home) look(ctx context.Context, name string, def state.Default, r *records) (k look, ok bool) {
	info := Info{ID: name, Dir: name, Path: h.pluginPath(name), Default: true, Recorded: def.Package}
	if i, known := slices.BinarySearchFunc(r.seen, name, func(s state.Seen, n string) int { return strings.Compare(s.Dir, n) }); known {
		if old := &r.seen[i]; unchanged(info.Path, old.Stats) {
			info.fill(old)
			return look{info: info, def: def}, true
		}
	}
	now := h.now()
	before, statErr := statTree(info.Path)
	c, err := readTree(ctx, info.Path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !exists(info.Path) {
			return k, false
		}
		info.Status, info.Err = StatusBroken, err
		return look{info: info, def: def}, true
	}
	seen := &state.Seen{Dir: name, Package: c.Package, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
		Name: c.Manifest.Name, Version: c.Manifest.Version, Protocol: c.Manifest.ProtocolVersion,
		Scopes: c.Manifest.RequestedScopes, Stats: before}
	info.fill(seen)
	if statErr != nil || !unchanged(info.Path, before) || !settled(before, now) {
		seen = nil // written to while it was read, or too recently to tell
	}
	return look{info, def, seen}, true
}

func (i *Info) fill(s *state.Seen) {
	i.ID, i.Name, i.Version = s.ID, s.Name, s.Version
	i.Package, i.Fingerprint, i.Requested = s.Package, s.Fingerprint, s.Scopes
}

// judge decides about directories that do not fit their record although nothing
// changed between two looks: recorded packages are looked at once more while no
// install can run. A change that is recorded already needs no second judgement.
func (l *listing) judge(ctx context.Context, odd []string) error {
	var doubtful []string
	for _, k := range l.looks {
		if slices.Contains(odd, k.info.Dir) && k.def.Package != "" && l.records.standings[k.def.Package].Blocked(state.BlockChanged) == nil {
			doubtful = append(doubtful, k.info.Dir)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	h := l.home
	unlock, err := h.lockRaw(ctx, listWait)
	if err != nil {
		return context.Cause(ctx) // shown as it was seen; the next listing judges
	}
	defer unlock()
	if err := h.resolveDead(ctx); err != nil {
		h.on.note("an interrupted change is not resolved yet: %v", err)
	}
	dirs, err := h.pluginDirs()
	if err != nil {
		return err
	}
	if l.records, err = h.readRecords(ctx, l); err != nil {
		return err
	}
	l.lookAt(ctx, dirs)
	for _, k := range l.looks {
		if !k.odd() || k.def.Package == "" {
			continue
		}
		if err := h.markChanged(ctx, k.def.Package, k.info.ID, k.info.Version, k.info.Package); err != nil {
			h.on.note("%s: the change could not be recorded: %v", k.info.ID, err)
		}
	}
	return nil
}

// listWait bounds how long a listing waits for an install to judge a change.
const listWait = 5 * time.Second

// packages returns what the looks showed, with the versions in the store that were
// asked for. Directories that claim one id are broken, all of them.
func (l *listing) packages() []Info {
	list := make([]Info, len(l.looks), len(l.looks)+len(l.records.installs))
	first := make(map[string]int, len(l.looks))
	claimed := map[string][]string{}
	for i, k := range l.looks {
		list[i] = k.info
		if j, twice := first[k.info.ID]; twice {
			if claimed[k.info.ID] == nil {
				claimed[k.info.ID] = []string{list[j].Dir}
			}
			claimed[k.info.ID] = append(claimed[k.info.ID], k.info.Dir)
		} else {
			first[k.info.ID] = i
		}
	}
	for i := range list {
		if names := claimed[list[i].ID]; names != nil {
			list[i].Status, list[i].Err = StatusBroken, l.home.claimed(list[i].ID, names)
		}
	}
	return append(list, l.storeOnly(list)...)
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
	sel := &selection{recorded: i.Recorded, lock: l.lock, standing: l.records.standings[i.Recorded]}
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
		s := subject{ID: i.ID, Version: i.Version, Package: i.Package, Fingerprint: i.Fingerprint}
		if in, ok := l.records.installs[i.Package]; ok {
			s = subjectOf(in)
		} else {
			s.Manifest = l.home.stated(i.Path).Manifest
		}
		if d := coveredBy(l.records.denials, s); d != nil {
			return d
		}
	}
	if slices.Contains(l.records.quarantined, i.Package) {
		return &Denial{Digest: i.Package, Reason: inQuarantine}
	}
	return nil
}

// remember stores what was hashed, so that the next listing need not hash it. A
// listing does not fail because that cannot be stored.
func (l *listing) remember(ctx context.Context) {
	var fresh []state.Seen
	for _, k := range l.looks {
		if k.seen != nil {
			fresh = append(fresh, *k.seen)
		}
	}
	if len(fresh) == 0 {
		return
	}
	_ = l.home.update(ctx, func(tx *state.Tx) error {
		for _, s := range fresh {
			if err := tx.PutSeen(s); err != nil {
				return err
			}
		}
		return nil
	})
}
