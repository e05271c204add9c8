package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// A listing is one run of List.
type listing struct {
	home    *Home
	lock    *Lock
	all     bool
	watcher *watcher
	records *records
	looks   []look // by directory name
	found   []Info // what the looks point at, in their order

	lists    openLists // the signed revocation lists
	listsErr error     // why they cannot be asked: then everything is denied
}

// A look is what one directory below plugins/ showed, and the record beside it.
type look struct {
	info  *Info
	def   state.Default    // zero where nothing is recorded
	known bool             // it was recognized, beside its record
	read  bool             // it was read whole
	gone  bool             // it is not there any more, or no directory
	facts []state.FileStat // what the system said before and after it was read; nil if not the same
	seen  *state.Seen      // to be remembered
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
		if err := l.readRecords(ctx); err != nil {
			return err
		}
		// Whoever puts a tree in place that is seen from here on commits its record
		// with it: reading the records once more waits for that.
		if before != nil && !before.differ(l.records, odd) || try == scanTries {
			return l.judge(ctx, odd)
		}
		if odd = l.readRest(ctx); len(odd) == 0 {
			return nil
		}
	}
}

// lookAround finds the directories below plugins/ and recognizes those that are as
// they were seen before. It is called inside the transaction that reads the records,
// during which no install exchanges a tree: what is recognized fits its record, or
// was changed.
func (l *listing) lookAround(tx *state.Tx) error {
	names, err := readNames(l.watcher.path)
	if err != nil {
		return fmt.Errorf("plugins: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name[0] == '.' })
	slices.Sort(names)
	before := l.looks
	l.looks = make([]look, len(names))
	l.found = make([]Info, len(names))
	for i, name := range names {
		k := &l.looks[i]
		k.def, k.info = l.records.defaultOf(name), &l.found[i]
		l.found[i] = Info{ID: name, Dir: name, Path: l.watcher.path + string(os.PathSeparator) + name, Default: true, Recorded: k.def.Package}
	}
	err = tx.EachSeen(func(s *state.Seen) error {
		if k := findLook(l.looks, s.Dir); k != nil && l.watcher.unchanged(s.Dir, s.Stats) {
			k.known = true
			k.info.fill(s)
		}
		return nil
	})
	for i := range l.looks {
		k := &l.looks[i]
		if b := findLook(before, k.info.Dir); !k.known && b != nil && l.watcher.unchanged(k.info.Dir, b.facts) {
			def := k.def
			*k.info = *b.info
			k.info.Recorded = def.Package
			b.def, b.info = def, k.info
			*k = *b
		}
	}
	return err
}

func findLook(looks []look, dir string) *look {
	i, ok := slices.BinarySearchFunc(looks, dir, func(k look, name string) int { return strings.Compare(k.info.Dir, name) })
	if !ok {
		return nil
	}
	return &looks[i]
}

// readRest reads every directory that was not recognized, and returns the names of
// those that do not fit their record, and of recorded ones that are not there.
func (l *listing) readRest(ctx context.Context) (odd []string) {
	for i := range l.looks {
		if k := &l.looks[i]; !k.known && !k.read {
			l.read(ctx, k)
		}
	}
	l.looks = slices.DeleteFunc(l.looks, func(k look) bool { return k.gone })
	recorded := 0
	for i := range l.looks {
		k := &l.looks[i]
		if k.odd() {
			odd = append(odd, k.info.Dir)
		}
		if k.def.Package != "" {
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

// odd reports whether the directory is not what its record says. One that has no
// record was put there by hand, if it was seen beside the records; else an install
// may have got in between.
func (k *look) odd() bool {
	if k.known && k.def.Package == "" {
		return false
	}
	return k.info.Err != nil || k.def.Package != k.info.Package
}

// read reads one directory whole.
func (l *listing) read(ctx context.Context, k *look) {
	k.read = true
	if info, err := os.Lstat(k.info.Path); errors.Is(err, fs.ErrNotExist) ||
		err == nil && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
		k.gone = true
		return
	}
	now := l.home.now()
	before := l.watcher.facts(k.info.Dir)
	c, err := readTree(ctx, k.info.Path)
	if l.watcher.unchanged(k.info.Dir, before) {
		k.facts = before
	}
	if err != nil {
		k.gone = errors.Is(err, fs.ErrNotExist) && !exists(k.info.Path)
		k.info.Status, k.info.Err = StatusBroken, err
		return
	}
	seen := &state.Seen{Dir: k.info.Dir, Package: c.Package, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
		Name: c.Manifest.Name, Version: c.Manifest.Version, Protocol: c.Manifest.ProtocolVersion,
		Scopes: c.Manifest.RequestedScopes, Stats: before}
	k.info.fill(seen)
	if k.facts != nil && settled(before, now) {
		k.seen = seen // else it was written to while it was read, or too recently to tell
	}
}

// listWait bounds how long a listing waits for an install to judge a change.
const listWait = 5 * time.Second

// judge decides about directories that do not fit their record although nothing
// changed between two looks: recorded packages are looked at once more while no
// install can run. A change that is recorded already needs no second judgement.
func (l *listing) judge(ctx context.Context, odd []string) error {
	l.readRest(ctx)
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
	l.looks = nil // nothing that was seen without the lock counts
	if err := l.readRecords(ctx); err != nil {
		return err
	}
	l.readRest(ctx)
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

// remember stores what was hashed, so that the next listing need not hash it. A
// listing does not fail because that cannot be stored.
func (l *listing) remember(ctx context.Context) {
	var fresh []*state.Seen
	for i := range l.looks {
		if s := l.looks[i].seen; s != nil {
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return
	}
	_ = l.home.update(ctx, func(tx *state.Tx) error {
		for _, s := range fresh {
			if err := tx.PutSeen(*s); err != nil {
				return err
			}
		}
		return nil
	})
}
