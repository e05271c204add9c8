package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// recover resolves what killed commands left in staging/. Where nothing was left
// it costs one directory read. What cannot be resolved now (a read-only directory,
// a full disk, a lost database) does not keep anybody from reading: whoever wants
// to change something resolves it first, and gets the error then.
func (h *Home) recover(ctx context.Context) {
	if len(h.deadStages()) == 0 {
		return
	}
	unlock, err := h.lockRaw(ctx, recoverWait)
	if err == nil {
		defer unlock()
		err = h.resolveDead(ctx)
	}
	var busy *Busy
	if err != nil && !errors.As(err, &busy) { // whoever is busy has resolved it already
		h.on.note("an interrupted change is not resolved yet: %v", err)
	}
}

// recoverWait bounds how long a command that may only want to read waits for one that
// changes something.
const recoverWait = 2 * time.Second

// deadStages returns the names of stages that nobody works on.
func (h *Home) deadStages() []string {
	entries, err := os.ReadDir(h.join(stagingDir))
	if err != nil {
		return nil // nothing was ever staged, or it cannot be read: later steps say so
	}
	var dead []string
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		path := h.join(stagingDir, name)
		switch {
		case isLock && !held(path+".lock"):
			dead = append(dead, name)
		case !isLock && !exists(path+".lock"):
			dead = append(dead, name)
		}
	}
	return dead
}

// resolveDead finishes or undoes what every dead stage was for. The caller holds
// the mutation lock.
func (h *Home) resolveDead(ctx context.Context) error {
	var later []*stage
	defer func() {
		for _, s := range later {
			s.keep = true
			s.discard()
		}
	}()
	for _, name := range h.deadStages() {
		s, err := h.takeOver(name)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		// A publish can be a step of another change, and is settled before it.
		if in, begun := s.readIntent(); begun && in.Action != actPublish {
			later = append(later, s)
			continue
		}
		if err := h.resolve(ctx, s); err != nil {
			return err
		}
	}
	for len(later) > 0 {
		s := later[0]
		later = later[1:]
		if err := h.resolve(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// resolve settles one dead stage and removes it, or keeps it for the next time.
func (h *Home) resolve(ctx context.Context, s *stage) error {
	defer s.discard()
	in, begun := s.readIntent()
	if !begun {
		return nil // nothing was visible yet
	}
	if err := h.settle(ctx, s, in); err != nil {
		s.keep = true
		return fmt.Errorf("an interrupted change (%s) cannot be resolved: %w", s.path, err)
	}
	return nil
}

// takeOver locks a stage that nobody works on; nil where somebody does after all.
func (h *Home) takeOver(name string) (*stage, error) {
	path := h.join(stagingDir, name)
	lock, ok, err := lockExisting(path + ".lock")
	if err == nil && !ok && !exists(path+".lock") && exists(path) {
		// A directory without its lock: its removal was interrupted.
		lock, err = createLocked(path+".lock", nil)
		ok = err == nil
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, h.cannotWrite("staging", err)
	}
	if !ok {
		return nil, nil
	}
	return &stage{home: h, path: path, lock: lock}, nil
}

// settle brings an interrupted change to its end or to its beginning. It may be
// interrupted itself, and is then done again.
func (h *Home) settle(ctx context.Context, s *stage, in intent) error {
	switch in.Action {
	case actPublish:
		return h.settlePublish(ctx, s, in)
	case actRemove:
		return h.settleRemove(ctx, s, in)
	case actQuarantine:
		return h.settleQuarantine(ctx, in)
	case actRelease:
		return h.settleRelease(ctx, in)
	}
	return &Malformed{Where: s.path, File: intentFile, Err: fmt.Errorf("the action \"%s\" is unknown to this program", in.Action)}
}

// settlePublish finishes a publish whose record was committed, and undoes any
// other. It only renames: it works on a full disk, too.
func (h *Home) settlePublish(ctx context.Context, s *stage, in intent) error {
	installed, isDefault := false, false
	err := h.state.View(ctx, func(tx *state.Tx) error {
		rec, err := optional(tx.Install(in.Record.Package))
		if err != nil {
			return err
		}
		def, err := optional(tx.Default(in.Record.ID))
		installed = rec != nil
		isDefault = def != nil && def.Package == in.Record.Package
		return err
	})
	if err != nil {
		return err
	}
	if installed && (isDefault || !in.Default) {
		return h.finishPublish(s, in)
	}
	return h.undoPublish(ctx, s, in, installed)
}

// finishPublish does what is left of the steps on disk. The records were there
// before where a package was repaired, else everything was done before them.
func (h *Home) finishPublish(s *stage, in intent) error {
	place := h.storePath(in.Record.Package)
	if err := mendExchange(s.join("default"), h.pluginPath(in.Record.ID)); err != nil {
		return err
	}
	if in.Tree && !exists(place) {
		if err := moveTree(s.join("tree"), place); err != nil {
			return err
		}
	}
	if in.Default && sameInodes(place, s.join("default")) {
		if err := swapIn(s.join("default"), h.pluginPath(in.Record.ID)); err != nil {
			return err
		}
	}
	return h.syncPlaces()
}

// undoPublish takes back every visible step, in reverse order.
func (h *Home) undoPublish(ctx context.Context, s *stage, in intent, installed bool) error {
	place, dir := h.storePath(in.Record.Package), h.pluginPath(in.Record.ID)
	if err := mendExchange(s.join("default"), dir); err != nil {
		return err
	}
	if in.Default && exists(dir) {
		swapped, err := h.mirrors(ctx, in.Record.ID, in.Record.Package)
		if err != nil {
			return err
		}
		switch {
		case !swapped:
		case exists(s.join("default")):
			err = exchangeTrees(s.join("default"), dir)
		default:
			err = moveTree(dir, s.join("default"))
		}
		if err != nil {
			return err
		}
	}
	if in.Archive && !exists(s.join("archive")) && exists(h.archivePath(in.Record.Archive)) {
		if err := os.Rename(h.archivePath(in.Record.Archive), s.join("archive")); err != nil {
			return err
		}
	}
	if in.Tree && !installed && exists(place) && !exists(s.join("tree")) {
		if err := moveTree(place, s.join("tree")); err != nil {
			return err
		}
	}
	if err := putBack(s.join("altered"), place); err != nil {
		return err
	}
	return h.syncPlaces()
}

// syncPlaces makes moves between the places of packages durable.
func (h *Home) syncPlaces() error {
	var places []string
	for _, name := range []string{storeDir, archivesDir, pluginsDir, quarantineDir} {
		if p := h.join(name); isDirectory(p) {
			places = append(places, p)
		}
	}
	return syncDirs(places...)
}
