package pkgmgr

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// claims returns the names of the directories below plugins/ whose manifest states
// id, sorted. A directory whose manifest cannot be read claims its own name.
func (h *Home) claims(id string) ([]string, error) {
	entries, err := h.pluginDirs()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, name := range entries {
		held, err := h.dirHolds(name)
		if err != nil {
			return nil, err
		}
		if held == id {
			dirs = append(dirs, name)
		}
	}
	return dirs, nil
}

// pluginDirs returns the names of the directories below plugins/, sorted. Hidden
// names and files are no packages.
func (h *Home) pluginDirs() ([]string, error) {
	entries, err := os.ReadDir(h.join(pluginsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Name()[0] != '.' && (e.IsDir() || e.Type()&fs.ModeSymlink != 0) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// dirHolds returns the id that the manifest in plugins/<name> states, the name
// itself where no manifest can be read, or "" where there is no such directory.
func (h *Home) dirHolds(name string) (string, error) {
	// Looked at before it is opened: opening a pipe would wait for its writer.
	info, err := os.Stat(h.pluginPath(name))
	if errors.Is(err, fs.ErrNotExist) && !exists(h.pluginPath(name)) {
		return "", nil
	}
	if err != nil || !info.IsDir() {
		return name, nil
	}
	root, err := os.OpenRoot(h.pluginPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return name, nil
	}
	defer root.Close()
	m, _, err := readManifest(root, h.pluginPath(name))
	if err != nil || manifest.CheckID(m.ID) != nil {
		return name, nil
	}
	return m.ID, nil
}

// onlyClaim refuses an id that more than one directory below plugins/ claims. It
// reads every manifest there: it stands before decisions; see uncontested for calls.
func (h *Home) onlyClaim(id string) error {
	dirs, err := h.claims(id)
	if err == nil && len(dirs) > 1 {
		err = h.claimed(id, dirs)
	}
	return err
}

// lookForStrangers notes which names below plugins/ are not recorded as holding
// another id, which normally none is. It is called inside the transaction that finds
// the package, during which no install puts a directory there whose record is to come.
func (h *Home) lookForStrangers(tx *state.Tx, sel *selection) error {
	names, err := readNames(h.join(pluginsDir))
	if err != nil {
		return fmt.Errorf("plugins: %w", err)
	}
	slices.Sort(names)
	at := 0
	note := func() {
		if name := names[at]; name != sel.ref.ID && name[0] != '.' { // else the id's own place
			sel.strange = append(sel.strange, name)
		}
		at++
	}
	err = tx.EachDefault(func(dir, id string) error {
		for at < len(names) && names[at] < dir {
			note()
		}
		if at < len(names) && names[at] == dir && id != sel.ref.ID {
			at++
		}
		return nil
	})
	for at < len(names) {
		note()
	}
	return err
}

// uncontested is onlyClaim for a call: it reads the manifests of strangers only, so
// that a call costs the same however many packages there are.
func (h *Home) uncontested(sel *selection) error {
	for _, name := range sel.strange {
		held, err := h.dirHolds(name)
		if err != nil {
			return err
		}
		if held == sel.ref.ID {
			return h.onlyClaim(sel.ref.ID)
		}
	}
	return nil
}

// contested returns one *Claimed for every id that more than one directory claims,
// joined, or nil.
func (h *Home) contested() error {
	names, err := h.pluginDirs()
	if err != nil {
		return err
	}
	holders := map[string][]string{}
	for _, name := range names {
		id, err := h.dirHolds(name)
		if err != nil {
			return err
		}
		if id != "" {
			holders[id] = append(holders[id], name)
		}
	}
	var all []error
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		if dirs := holders[id]; len(dirs) > 1 {
			all = append(all, h.claimed(id, dirs))
		}
	}
	return errors.Join(all...)
}

func (h *Home) claimed(id string, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	dirs := make([]string, len(names))
	for i, n := range names {
		dirs[i] = h.pluginPath(n)
	}
	return &Claimed{ID: id, Dirs: dirs}
}
