package pkgmgr

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	watcher *watcher
	records *records
	looks   []look // by directory name
}

// A look is what one directory below plugins/ showed, and the record beside it.
type look struct {
	info Info
	def  state.Default // zero where nothing is recorded
	seen *state.Seen   // to be remembered; nil when it was known
	gone bool          // there is no such directory any more
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
	old := l.looks
	looks := make([]look, len(dirs))
	l.home.inParallel(len(dirs), func(i int) {
		def := l.records.defaultOf(dirs[i])
		k := findLook(old, dirs[i])
		if k == nil || k.def != def || k.odd() {
			l.look(ctx, dirs[i], def, &looks[i])
		} else {
			looks[i] = *k
		}
	})
	l.looks = slices.DeleteFunc(looks, func(k look) bool { return k.gone })
	recorded := 0
	for i := range l.looks {
		if l.looks[i].odd() {
			odd = append(odd, l.looks[i].info.Dir)
		}
		if l.looks[i].def.Package != "" {
			recorded++
		}
	}
	if recorded == len(l.records.defaults) {
		return odd
	}
	for _, d := range l.records.defaults {
		if findLook(l.looks, d.Dir) == nil {
			odd = append(odd, d.Dir)
		}
	}
	return odd
}

func findLook(looks []look, dir string) *look {
	i, ok := slices.BinarySearchFunc(looks, dir, func(k look, name string) int { return strings.Compare(k.info.Dir, name) })
	if !ok {
		return nil
	}
	return &looks[i]
}

// inParallel does n things, many of them on every processor: each is mostly a few
// calls of the system.
func (h *Home) inParallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n/16)
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		work := func() {
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				do(i)
			}
		}
		if w < workers-1 {
			wg.Go(work)
		} else {
			work()
		}
	}
	wg.Wait()
}

// odd reports whether the directory is not what its record says.
func (k *look) odd() bool {
	return k.info.Err != nil || k.def.Package != k.info.Package
}

// look reads one directory below plugins/ into k: from what was seen before while
// every file's device, inode, size, mode and times are the same, else by hashing it.
func (l *listing) look(ctx context.Context, name string, def state.Default, k *look) {
	h, r := l.home, l.records
	k.def = def
	k.info = Info{ID: name, Dir: name, Path: h.pluginPath(name), Default: true, Recorded: def.Package}
	if old := r.seenIn(name); old != nil && l.watcher.unchanged(name, old.Stats) {
		k.info.fill(old)
		return
	}
	now := h.now()
	before := l.watcher.facts(name)
	c, err := readTree(ctx, k.info.Path)
	if err != nil {
		k.gone = errors.Is(err, fs.ErrNotExist) && !exists(k.info.Path)
		k.info.Status, k.info.Err = StatusBroken, err
		return
	}
	seen := &state.Seen{Dir: name, Package: c.Package, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
		Name: c.Manifest.Name, Version: c.Manifest.Version, Protocol: c.Manifest.ProtocolVersion,
		Scopes: c.Manifest.RequestedScopes, Stats: before}
	k.info.fill(seen)
	if l.watcher.unchanged(name, before) && settled(before, now) {
		k.seen = seen // else it was written to while it was read, or too recently to tell
	}
}

func (i *Info) fill(s *state.Seen) {
	i.ID, i.Name, i.Version = s.ID, s.Name, s.Version
	i.Package, i.Fingerprint, i.Requested = s.Package, s.Fingerprint, s.Scopes
}

// judge decides about directories that do not fit their record although nothing
// changed between two looks: recorded packages are looked at once more while no
// install can run. A change that is recorded already needs no second judgement.
func (l *listing) judge(ctx context.Context, odd []string) error {
	doubtful := false
	for _, name := range odd {
		if k := findLook(l.looks, name); k != nil && k.def.Package != "" {
			standing := l.records.standing(k.def.Package)
			doubtful = doubtful || standing.Blocked(state.BlockChanged) == nil
		}
	}
	if !doubtful {
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
	if l.records, err = h.readRecords(ctx, l); err != nil {
		return err
	}
	dirs, err := h.pluginDirs()
	if err != nil {
		return err
	}
	l.lookAt(ctx, dirs)
	for i := range l.looks {
		k := &l.looks[i]
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
	list := make([]Info, len(l.looks))
	for i := range l.looks {
		list[i] = l.looks[i].info
	}
	slices.SortStableFunc(list, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
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
	for i := range l.looks {
		if s := l.looks[i].seen; s != nil {
			fresh = append(fresh, *s)
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
