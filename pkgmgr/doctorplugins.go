package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// brokenPlugins returns a finding for each name below plugins/ that no record speaks of
// and that is no readable package. Hidden names and plain files are nobody's business.
// What is recorded is compared with its record elsewhere.
func (h *Home) brokenPlugins(ctx context.Context) ([]Finding, error) {
	entries, err := os.ReadDir(h.join(pluginsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	recorded := map[string]bool{}
	err = h.state.View(ctx, func(tx *state.Tx) error {
		return tx.EachDefault(func(dir, _ string) error {
			recorded[dir] = true
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var list []Finding
	for _, e := range entries {
		name := e.Name()
		if name[0] == '.' || e.Type().IsRegular() || recorded[name] {
			continue
		}
		_, err := readTree(ctx, h.pluginPath(name))
		switch {
		case isFault(err):
			list = append(list, Finding{Check: "package " + name, Detail: err.Error()})
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return list, nil
}

// lostDefaults returns the packages that are recorded as default versions and stand in
// the store, while nothing stands below plugins/.
func (h *Home) lostDefaults(ctx context.Context) ([]state.Install, error) {
	var list []state.Install
	err := h.state.View(ctx, func(tx *state.Tx) error {
		defaults, err := tx.Defaults()
		if err != nil {
			return err
		}
		for _, d := range defaults {
			if d.Dir != d.ID || exists(h.pluginPath(d.Dir)) || !exists(h.storePath(d.Package)) {
				continue
			}
			in, err := optional(tx.Install(d.Package))
			if err != nil {
				return err
			}
			if in != nil {
				list = append(list, *in)
			}
		}
		return nil
	})
	return slices.DeleteFunc(list, func(in state.Install) bool { return h.checkDenied(subjectOf(in)) != nil }), err
}

func lostDetail(in state.Install) error {
	return fmt.Errorf("plugins/%s is gone; its default version %s stands in the store", in.ID, in.Version)
}

// restoreDefaults puts lost default versions back from the store. One that was altered
// there, or whose place somebody else claims, stays away. The caller holds the mutation
// lock.
func (h *Home) restoreDefaults(ctx context.Context) ([]Moved, error) {
	lost, err := h.lostDefaults(ctx)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	if err := h.ensure(pluginsDir); err != nil {
		return nil, err
	}
	var out []Moved
	for _, in := range lost {
		p, err := h.plan(ctx, in, DefaultKeep)
		var (
			claimed *Claimed
			foreign *ForeignDirectory
		)
		switch {
		case errors.As(err, &claimed), errors.As(err, &foreign):
			continue
		case err != nil:
			return out, err
		case !p.inStore:
			continue
		}
		if err := h.makeDefault(ctx, p, EventRepair); err != nil {
			return out, err
		}
		out = append(out, Moved{ID: in.ID, Version: in.Version, Package: in.Package, Path: h.pluginPath(in.ID)})
		h.on.note("%s %s is back in plugins/%s", in.ID, in.Version, in.ID)
	}
	return out, nil
}
