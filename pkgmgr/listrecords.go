package pkgmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// inQuarantine is the reason of a denial of which only the tree in quarantine is
// left.
const inQuarantine = "the package is in quarantine"

// records is one consistent read of everything that a listing needs.
type records struct {
	defaults    []state.Default                         // by directory name
	standings   []state.Standing                        // by package digest; of the default versions, or of all
	installs    map[digest.Digest]state.Install         // only where needed: see readRecords
	approvals   map[digest.Digest]state.ProjectApproval // of the lock's project
	denials     []Denial
	quarantined []digest.Digest
}

func (r *records) defaultOf(dir string) state.Default {
	i, ok := slices.BinarySearchFunc(r.defaults, dir, func(d state.Default, name string) int { return strings.Compare(d.Dir, name) })
	if !ok {
		return state.Default{}
	}
	return r.defaults[i]
}

func (r *records) standing(pkg digest.Digest) state.Standing {
	i, ok := slices.BinarySearchFunc(r.standings, pkg, func(s state.Standing, d digest.Digest) int { return strings.Compare(string(s.Package), string(d)) })
	if !ok {
		return state.Standing{Package: pkg}
	}
	return r.standings[i]
}

// readRecords reads the records, and looks around beside them. Installs are read only
// for a listing that shows more than the default versions, knows denials, or has
// packages in quarantine.
func (l *listing) readRecords(ctx context.Context) error {
	h, r := l.home, &records{}
	var err error
	if r.denials, err = h.readDenials(); err != nil {
		return err
	}
	if r.quarantined, err = h.quarantinedTrees(); err != nil {
		return err
	}
	l.records = r
	return h.state.View(ctx, func(tx *state.Tx) (err error) {
		if r.defaults, err = tx.Defaults(); err != nil {
			return err
		}
		r.standings = make([]state.Standing, 0, len(r.defaults))
		err = tx.EachStanding(func(s state.Standing) error {
			r.standings = append(r.standings, s)
			return nil
		})
		if err != nil {
			return err
		}
		if err := l.readMore(tx, r); err != nil {
			return err
		}
		return l.lookAround(tx)
	})
}

func (l *listing) readMore(tx *state.Tx, r *records) error {
	if l.lock != nil {
		approvals, err := tx.ProjectApprovals(l.lock.Root)
		if err != nil {
			return err
		}
		r.approvals = make(map[digest.Digest]state.ProjectApproval, len(approvals))
		for _, a := range approvals {
			r.approvals[a.Package] = a
		}
	}
	if !l.all && l.lock == nil && len(r.denials) == 0 && len(r.quarantined) == 0 {
		return nil
	}
	installs, err := tx.Installs()
	r.installs = make(map[digest.Digest]state.Install, len(installs))
	for _, in := range installs {
		r.installs[in.Package] = in
	}
	return err
}

// differ reports whether the record of one of the directories is another one in o,
// or anything about denials.
func (r *records) differ(o *records, dirs []string) bool {
	if !slices.Equal(r.denials, o.denials) || !slices.Equal(r.quarantined, o.quarantined) {
		return true
	}
	return slices.ContainsFunc(dirs, func(name string) bool { return r.defaultOf(name) != o.defaultOf(name) })
}

// quarantined lists what was revoked and moved away. Of a tree that cannot be read
// at least the digest is known.
func (h *Home) quarantined(r *records) ([]Info, error) {
	trees := r.quarantined
	if trees == nil {
		var err error
		if trees, err = h.quarantinedTrees(); err != nil {
			return nil, err
		}
	}
	var list []Info
	for _, d := range trees {
		info := Info{ID: d.DirName(), Path: h.quarantinePath(d), Package: d, Recorded: d, Status: StatusRevoked,
			Denial: &Denial{Digest: d, Reason: inQuarantine}}
		if note, err := readQuarantineNote(info.Path); err == nil {
			info.Denial = &note.Denial
			info.ID, info.Version, info.Fingerprint = note.Subject.ID, note.Subject.Version, note.Subject.Fingerprint
		}
		if root, err := openTree(info.Path); err == nil {
			if m, _, err := readManifest(root, info.Path); err == nil {
				info.ID, info.Name, info.Version, info.Requested = m.ID, m.Name, m.Version, m.RequestedScopes
			}
			root.Close()
		}
		if in, ok := r.installs[d]; ok {
			info.ID, info.Name, info.Version, info.Fingerprint = in.ID, in.Name, in.Version, in.Fingerprint
			info.InstalledAt, info.Source = in.InstalledAt, in.Source
		}
		list = append(list, info)
	}
	return list, nil
}

// quarantinedTrees returns the digests that the names in quarantine say, sorted.
func (h *Home) quarantinedTrees() ([]digest.Digest, error) {
	names, err := readNames(h.join(quarantineDir))
	if err != nil {
		return nil, fmt.Errorf("quarantine: %w", err)
	}
	var list []digest.Digest
	for _, name := range names {
		if d, err := digest.ParseDirName(name); err == nil {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	return list, nil
}
