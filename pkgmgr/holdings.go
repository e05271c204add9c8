package pkgmgr

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A holding is one package and where it stands: in the store, below plugins/, or
// both. Its Package is "" for a directory below plugins/ that cannot be read.
type holding struct {
	Subject subject `json:"subject"`
	Dir     string  `json:"dir,omitzero"` // below plugins/, or ""
}

// holdings returns every package in store and plugins, one entry a digest (a second
// directory of the same digest is one more), by what the bytes below plugins/ are
// now and by what the records say of the store. A directory that cannot be read is
// a holding of the id that its name says. of restricts it to an id; "" is all.
func (h *Home) holdings(ctx context.Context, of string) ([]holding, error) {
	var installs []state.Install
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		installs, err = tx.Installs()
		return err
	})
	if err != nil {
		return nil, err
	}
	dirs, err := h.pluginDirs()
	if err != nil {
		return nil, err
	}
	var list []holding
	at := map[digest.Digest]int{}
	for _, in := range installs {
		if (of == "" || in.ID == of) && exists(h.storePath(in.Package)) {
			at[in.Package] = len(list)
			list = append(list, holding{Subject: subjectOf(in)})
		}
	}
	for _, name := range dirs {
		if of != "" && name != of {
			if id, err := h.dirHolds(name); err != nil {
				return nil, err
			} else if id != of {
				continue
			}
		}
		c, err := readTree(ctx, h.pluginPath(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case isFault(err):
			list = append(list, holding{Subject: subject{ID: name}, Dir: name})
			continue
		case err != nil:
			return nil, err
		}
		if i, known := at[c.Package]; known && list[i].Dir == "" {
			list[i].Dir = name
			continue
		}
		// Put there by hand, or changed since it was installed.
		s := c.subject()
		if i := slices.IndexFunc(installs, func(in state.Install) bool { return in.Package == c.Package }); i >= 0 {
			s = subjectOf(installs[i])
		}
		at[c.Package] = len(list)
		list = append(list, holding{Subject: s, Dir: name})
	}
	return list, nil
}
