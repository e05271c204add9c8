package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
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
	add("data directory", checkDataDir(path), path, false)
	h := &Home{path: path, state: state.At(path)}
	err := h.state.View(ctx, func(tx *state.Tx) error {
		_, err := tx.Defaults()
		return err
	})
	lost := errors.Is(err, state.ErrMissing) || errors.Is(err, state.ErrCorrupt)
	add("database", err, h.state.Path(), lost)
	_, err = h.readDenials()
	add("local revocations", err, "readable", false)
	add("interrupted installs", h.leftStages(), "none", true)
	dead := h.DeadCalls()
	err = nil
	if len(dead) > 0 {
		err = fmt.Errorf("%d calls whose supervisor died", len(dead))
	}
	add("dead calls", err, "none", true)
	if lost {
		return out
	}
	targets, err := h.verifyTargets(ctx, nil, nil)
	if err != nil {
		add("packages", err, "", false)
		return out
	}
	for _, t := range targets {
		if t.want == "" {
			continue
		}
		add("package "+t.subject.ID+" "+t.subject.Version, h.compareDigests(ctx, t), "its files are the recorded ones", false)
	}
	return out
}

func (h *Home) leftStages() error {
	entries, err := os.ReadDir(h.join(stagingDir))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%d entries in %s: an install is running, or was interrupted and the next command cleans up", len(entries), h.join(stagingDir))
}

// Repaired says what Repair mended.
type Repaired struct {
	DatabaseAside string // where the damaged database was moved; "" when it was missing or good
	Recorded      []Moved
	LostCalls     int
}

// Repair starts a new database where the old one is missing or damaged, and records
// what stands in the store again. Every trust, grant and project is gone; denials
// and quarantine stand, because they are kept outside the database.
func Repair(ctx context.Context, path string, o Options) (*Repaired, error) {
	if err := checkDataDir(path); err != nil {
		return nil, err
	}
	h := &Home{path: path, state: state.At(path), now: o.Now, on: o.Progress}
	if h.now == nil {
		h.now = time.Now
	}
	out := &Repaired{}
	err := h.state.View(ctx, func(*state.Tx) error { return nil })
	if errors.Is(err, state.ErrMissing) || errors.Is(err, state.ErrCorrupt) {
		if out.DatabaseAside, err = h.state.Rebuild(ctx); err != nil {
			return nil, err
		}
		if out.Recorded, err = h.recordStore(ctx); err != nil {
			return out, err
		}
	} else if err != nil {
		return nil, err
	}
	if err := h.recover(); err != nil {
		return out, err
	}
	out.LostCalls, err = h.buryLost(ctx)
	return out, err
}

// recordStore reads every tree in store and plugins again.
func (h *Home) recordStore(ctx context.Context) ([]Moved, error) {
	entries, err := os.ReadDir(h.join(storeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	var out []Moved
	for _, e := range entries {
		want, err := digest.ParseDirName(e.Name())
		if err != nil {
			continue
		}
		c, err := readTree(ctx, h.storePath(want))
		var malformed *Malformed
		var refused *archive.Refusal
		switch {
		case errors.As(err, &malformed), errors.As(err, &refused):
			continue
		case err != nil:
			return out, err
		case c.Package != want:
			continue // altered: it stays unrecorded, and gc removes it
		}
		rec := state.Install{Package: want, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
			Version: c.Manifest.Version, Name: c.Manifest.Name, Source: "store", Platform: c.Head.Platform,
			InstalledAt: h.now().UTC(), Files: len(c.Files), Bytes: c.Bytes, Executable: c.Manifest.Executable,
			ManifestJSON: c.ManifestBytes}
		isDefault := sameInodes(h.storePath(want), h.pluginPath(rec.ID))
		if err := h.recordInstall(ctx, rec, isDefault); err != nil {
			return out, err
		}
		out = append(out, Moved{ID: rec.ID, Version: rec.Version, Package: want, Path: h.storePath(want)})
	}
	return out, h.state.Update(ctx, func(tx *state.Tx) error {
		return tx.AppendEvent(h.event(EventRepair, "", "", "", nil))
	})
}

// buryLost abandons operations that are recorded as running while nobody
// supervises them and no marker is left to tell.
func (h *Home) buryLost(ctx context.Context) (int, error) {
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
		if h.callAlive(op.ID) {
			continue
		}
		if err := h.Bury(ctx, op.ID); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
