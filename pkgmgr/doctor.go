package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A Finding is one thing that Diagnose looked at.
type Finding struct {
	Check  string // "data directory", "database", "package <id>", …
	OK     bool
	Detail string
	// Repairable: Repair mends it.
	Repairable bool
}

// Diagnose looks at a data directory that Open may refuse, and changes nothing.
func Diagnose(ctx context.Context, path string) []Finding {
	var out []Finding
	add := func(check string, err error, good string, repairable bool) {
		f := Finding{Check: check, OK: err == nil, Detail: good}
		if err != nil {
			f.Detail, f.Repairable = err.Error(), repairable
		}
		out = append(out, f)
	}
	h := homeAt(path, Options{})
	add("data directory", h.check(), path, false)
	err := h.state.Check(ctx)
	lost := errors.Is(err, state.ErrMissing) || errors.Is(err, state.ErrCorrupt)
	add("database", err, h.state.Path(), lost)
	_, err = h.readDenials()
	add("local revocations", err, "readable", false)
	add("interrupted changes", h.interrupted(), "none", true)
	err = nil
	if dead := h.DeadCalls(); len(dead) > 0 {
		err = fmt.Errorf("calls whose supervisor died: %d", len(dead))
	}
	add("dead calls", err, "none", true)
	add("plugin directories", h.contested(), "every id is claimed once", false)
	if lost {
		return out
	}
	unnamed, err := h.unrecorded(ctx)
	if err == nil && len(unnamed) > 0 {
		err = fmt.Errorf("packages in the store that are not recorded: %d", len(unnamed))
	}
	add("store", err, "every package is recorded", true)
	missing, err := h.lostDefaults(ctx)
	if err != nil {
		add("default versions", err, "", false)
	}
	for _, in := range missing {
		add("default version of "+in.ID, lostDetail(in), "", true)
	}
	broken, err := h.brokenPlugins(ctx)
	if err != nil {
		add("plugins", err, "", false)
	}
	out = append(out, broken...)
	targets, err := h.verifyTargets(ctx, nil, nil)
	if err != nil {
		add("packages", err, "", false)
		return out
	}
	for _, t := range targets {
		if t.want == "" {
			continue
		}
		err := h.diagnosePackage(ctx, t)
		if errors.Is(err, errGone) {
			continue
		}
		if errors.As(err, new(*Unsealed)) {
			err = fmt.Errorf("%w%s", err, resealed)
		}
		add("package "+t.subject.ID+" "+t.subject.Version, err, "its files are the recorded ones", false)
	}
	return out
}

// diagnosePackage compares a package with its record, once more where it may have been
// installed or removed at that moment: errGone for the latter.
func (h *Home) diagnosePackage(ctx context.Context, t target) error {
	look := func() error {
		if _, _, err := h.compareDigests(ctx, t); err != nil {
			return err
		}
		return t.checkSealed()
	}
	if look() == nil {
		return nil
	}
	if err := h.refresh(ctx, &t); err != nil {
		return err
	}
	return look()
}

// interrupted says how many changes are waiting to be finished or undone. A change
// in progress is none of them.
func (h *Home) interrupted() error {
	if dead := h.deadStages(); len(dead) > 0 {
		return fmt.Errorf("%d in %s; the next command that changes something resolves them", len(dead), h.join(stagingDir))
	}
	return nil
}

// Repaired says what Repair mended.
type Repaired struct {
	DatabaseAside string // where the damaged database was moved; "" when it was missing or good
	Recorded      []Moved
	Restored      []Moved // default versions that were put back below plugins/
	LostCalls     int
}

// Repair starts a new database where the old one is missing or damaged, records
// what stands unrecorded in the store, puts lost default versions back from it, and
// resolves interrupted changes. With an
// old database every trust, grant and project is gone; denials and quarantine
// stand, because they are kept outside of it. A repair that was interrupted is
// simply made again.
func Repair(ctx context.Context, path string, o Options) (*Repaired, error) {
	h := homeAt(path, o)
	if err := h.check(); err != nil {
		return nil, err
	}
	unlock, err := h.lockRaw(ctx, lockWait)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := &Repaired{}
	if err := step("rebuild"); err != nil {
		return nil, err
	}
	if out.DatabaseAside, err = h.state.Rebuild(ctx); err != nil {
		return nil, err
	}
	if out.DatabaseAside != "" {
		err := h.update(ctx, func(tx *state.Tx) error {
			return tx.AppendEvent(h.event(EventRepair, "", "", "", map[string]string{"aside": filepath.Base(out.DatabaseAside)}))
		})
		if err != nil {
			return out, err
		}
	}
	if err := h.resolveDead(ctx); err != nil {
		return out, err
	}
	if out.Recorded, err = h.recordStore(ctx); err != nil {
		return out, err
	}
	if out.Restored, err = h.restoreDefaults(ctx); err != nil {
		return out, err
	}
	out.LostCalls, err = h.buryLost(ctx, o.Obituary)
	return out, err
}

// unrecorded returns the packages in the store that are intact and that no record
// names. Altered ones stay unrecorded, and gc removes them.
func (h *Home) unrecorded(ctx context.Context) ([]state.Install, error) {
	names, err := readNames(h.join(storeDir))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	slices.Sort(names)
	recorded := map[digest.Digest]bool{}
	err = h.state.View(ctx, func(tx *state.Tx) error {
		installs, err := tx.Installs()
		for _, in := range installs {
			recorded[in.Package] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []state.Install
	for _, name := range names {
		want, err := digest.ParseDirName(name)
		if err != nil || recorded[want] {
			continue
		}
		c, err := readTree(ctx, h.storePath(want))
		switch {
		case isFault(err), errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case c.Package == want:
			list = append(list, recordOf(c, "store", h.now().UTC()))
		}
	}
	return list, nil
}

// recordStore records what is unrecorded, in one transaction, and finds the default
// versions again.
func (h *Home) recordStore(ctx context.Context) ([]Moved, error) {
	installs, err := h.unrecorded(ctx)
	if err != nil || len(installs) == 0 {
		return nil, err
	}
	var out []Moved
	isDefault := make([]bool, len(installs))
	for i, rec := range installs {
		if isDefault[i], err = h.mirrors(ctx, rec.ID, rec.Package); err != nil {
			return nil, err
		}
		out = append(out, Moved{ID: rec.ID, Version: rec.Version, Package: rec.Package, Path: h.storePath(rec.Package)})
	}
	return out, h.update(ctx, func(tx *state.Tx) error {
		for i, rec := range installs {
			if err := h.recordInstall(tx, rec, isDefault[i], EventInstall); err != nil {
				return err
			}
		}
		if err := step("commit"); err != nil {
			return err
		}
		return tx.AppendEvent(h.event(EventRepair, "", "", "", nil))
	})
}

// buryLost abandons operations that are recorded as running while nobody
// supervises them and no marker is left to tell.
func (h *Home) buryLost(ctx context.Context, write Obituary) (int, error) {
	var running []state.Operation
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		running, err = tx.RunningOperations()
		return err
	})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, op := range running {
		if h.callAlive(callOf(op)) {
			continue
		}
		if err := h.Bury(ctx, callOf(op), write); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
