package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/google/renameio/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// RevokeReport says what a revocation did, or what undoing it did.
type RevokeReport struct {
	Denial      Denial
	Already     bool
	Quarantined []Moved // packages moved away, or back
	Stopped     int     // running calls that were told to stop
	StillDenied []Denial
}

// Moved is one package that went into quarantine or came back.
type Moved struct {
	ID, Version string
	Package     digest.Digest
	Path        string // where it is now
}

// quarantineNote lies beside a tree in quarantine: quarantine/<digest>.json.
type quarantineNote struct {
	Denial  Denial `json:"denial"`
	ID      string `json:"id"`
	Version string `json:"version"`
	Dir     string `json:"dir"` // the directory below plugins/ that held it; "" for a version in the store only
}

// Revoke denies whatever the denial covers, now and later: the denial is durable
// before anything moves, running calls are told to stop, and every covered
// package goes to quarantine and loses trust and grants.
func (h *Home) Revoke(ctx context.Context, d Denial) (*RevokeReport, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d.At = h.now().UTC()
	denials, err := h.readDenials()
	if err != nil {
		return nil, err
	}
	out := &RevokeReport{Denial: d}
	if i := slices.IndexFunc(denials, func(o Denial) bool { return o.Subject() == d.Subject() }); i >= 0 {
		out.Already, out.Denial = true, denials[i]
		d = denials[i]
	} else {
		if err := h.writeDenials(append(denials, d)); err != nil {
			return nil, err
		}
	}
	if out.Stopped, err = h.stopCovered(d); err != nil {
		return out, err
	}
	if out.Quarantined, err = h.quarantineCovered(ctx, d); err != nil {
		return out, err
	}
	if out.Already && len(out.Quarantined) == 0 {
		return out, nil
	}
	return out, h.state.Update(ctx, func(tx *state.Tx) error {
		for _, m := range out.Quarantined {
			if err := tx.RemoveTrust(m.Package); err != nil {
				return err
			}
			if err := tx.RemoveEnablement(m.Package); err != nil {
				return err
			}
		}
		return tx.AppendEvent(h.event(EventRevoke, d.PluginID, "", d.Digest,
			map[string]string{"subject": d.Subject(), "reason": d.Reason}))
	})
}

// place of one package on disk
type holding struct {
	subject
	dir string // below plugins/, or ""
}

// quarantineCovered moves every covered package away.
func (h *Home) quarantineCovered(ctx context.Context, d Denial) ([]Moved, error) {
	if err := h.ensure(quarantineDir, stagingDir); err != nil {
		return nil, err
	}
	holdings, err := h.holdings(ctx)
	if err != nil {
		return nil, err
	}
	var moved []Moved
	for _, p := range holdings {
		if !d.covers(p.subject) {
			continue
		}
		if err := h.quarantine(p, d); err != nil {
			return moved, err
		}
		moved = append(moved, Moved{ID: p.ID, Version: p.Version, Package: p.Package, Path: h.quarantinePath(p.Package)})
	}
	return moved, nil
}

// holdings returns every package in store and plugins, one entry a digest.
func (h *Home) holdings(ctx context.Context) ([]holding, error) {
	var list []holding
	var installs []state.Install
	defaults := map[string]digest.Digest{}
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		if installs, err = tx.Installs(); err != nil {
			return err
		}
		all, err := tx.Defaults()
		for _, d := range all {
			defaults[d.Dir] = d.Package
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	dirs, err := h.pluginDirs()
	if err != nil {
		return nil, err
	}
	held := map[digest.Digest]string{}
	for _, name := range dirs {
		c, err := readTree(ctx, h.pluginPath(name))
		if err != nil {
			continue // broken: it cannot run, and has no identity that could be denied
		}
		held[c.Package] = name
		if defaults[name] != c.Package || !slices.ContainsFunc(installs, func(in state.Install) bool { return in.Package == c.Package }) {
			list = append(list, holding{subject: c.subject(), dir: name})
		}
	}
	for _, in := range installs {
		_, serr := os.Lstat(h.storePath(in.Package))
		if serr != nil && held[in.Package] == "" {
			continue
		}
		list = append(list, holding{subject: subjectOf(in), dir: held[in.Package]})
	}
	return list, nil
}

// quarantine moves one package: first the store's tree (or, where there is none,
// the directory below plugins/ itself), then the default directory goes.
func (h *Home) quarantine(p holding, d Denial) error {
	target := h.quarantinePath(p.Package)
	note, err := json.Marshal(quarantineNote{Denial: d, ID: p.ID, Version: p.Version, Dir: p.dir})
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	if err := renameio.WriteFile(target+".json", note, 0o600); err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	source := h.storePath(p.Package)
	if _, err := os.Lstat(source); err != nil {
		source = h.pluginPath(p.dir)
	}
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		if err := moveTree(source, target); err != nil {
			return fmt.Errorf("quarantine: %w", err)
		}
	}
	if p.dir != "" {
		if err := h.dropTree(h.pluginPath(p.dir)); err != nil {
			return fmt.Errorf("quarantine: %w", err)
		}
	}
	return syncDirs(h.join(quarantineDir), h.join(pluginsDir), h.join(storeDir))
}

// dropTree takes a tree out of sight in one step and then removes it. A tree that
// is not there is no error.
func (h *Home) dropTree(path string) error {
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	if err := moveTree(path, s.join("dropped")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func readQuarantineNote(path string) (quarantineNote, error) {
	var note quarantineNote
	raw, err := os.ReadFile(path + ".json")
	if err != nil {
		return note, err
	}
	return note, ijson.Unmarshal(raw, &note)
}

// Revocations returns the local denials, sorted by subject.
func (h *Home) Revocations() ([]Denial, error) { return h.readDenials() }

// Unrevoke lifts the denial with this subject and brings back every package in
// quarantine that no other denial covers. It comes back untrusted.
func (h *Home) Unrevoke(ctx context.Context, subjectText string) (*RevokeReport, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if d, err := digest.Parse(subjectText); err == nil {
		subjectText = string(d)
	}
	denials, err := h.readDenials()
	if err != nil {
		return nil, err
	}
	out := &RevokeReport{}
	rest := slices.DeleteFunc(slices.Clone(denials), func(d Denial) bool {
		if d.Subject() == subjectText {
			out.Denial = d
			return true
		}
		return false
	})
	lost, err := h.quarantineOnly(subjectText)
	if err != nil {
		return nil, err
	}
	if len(rest) == len(denials) && !lost {
		e := &NotFound{Kind: "revocation", Name: subjectText}
		for _, d := range denials {
			e.Near = append(e.Near, d.Subject())
		}
		return nil, e
	}
	if lost {
		out.Denial = Denial{Digest: digest.Digest(subjectText), Reason: "the package was in quarantine"}
	}
	if err := h.ensure(storeDir, pluginsDir, stagingDir); err != nil {
		return nil, err
	}
	if err := h.release(ctx, rest, out); err != nil {
		return out, err
	}
	if len(rest) != len(denials) {
		if err := h.writeDenials(rest); err != nil {
			return out, err
		}
	}
	return out, h.state.Update(ctx, func(tx *state.Tx) error {
		return tx.AppendEvent(h.event(EventUnrevoke, out.Denial.PluginID, "", out.Denial.Digest,
			map[string]string{"subject": subjectText}))
	})
}

// quarantineOnly reports whether text is the package digest of a tree in
// quarantine: such a denial stands even when the list was lost.
func (h *Home) quarantineOnly(text string) (bool, error) {
	if !digest.IsCanonical(text) {
		return false, nil
	}
	_, err := os.Lstat(h.quarantinePath(digest.Digest(text)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// release brings back what the lifted denial covered and no remaining one does.
func (h *Home) release(ctx context.Context, rest []Denial, out *RevokeReport) error {
	entries, err := os.ReadDir(h.join(quarantineDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("quarantine: %w", err)
	}
	for _, e := range entries {
		pkg, err := digest.ParseDirName(e.Name())
		if err != nil {
			continue
		}
		s, note, err := h.quarantinedSubject(ctx, pkg)
		if err != nil {
			return err
		}
		if !out.Denial.covers(s) {
			continue
		}
		if i := slices.IndexFunc(rest, func(d Denial) bool { return d.covers(s) }); i >= 0 {
			out.StillDenied = append(out.StillDenied, rest[i])
			continue
		}
		m, err := h.bringBack(ctx, pkg, s, note)
		if err != nil {
			return err
		}
		out.Quarantined = append(out.Quarantined, m)
	}
	return nil
}

// quarantinedSubject identifies a tree in quarantine by its record, else by its bytes.
func (h *Home) quarantinedSubject(ctx context.Context, pkg digest.Digest) (subject, quarantineNote, error) {
	note, _ := readQuarantineNote(h.quarantinePath(pkg))
	var in *state.Install
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		in, err = optional(tx.Install(pkg))
		return err
	})
	if err != nil {
		return subject{}, note, err
	}
	if in != nil {
		return subjectOf(*in), note, nil
	}
	s := subject{ID: note.ID, Version: note.Version, Package: pkg}
	if c, err := readTree(ctx, h.quarantinePath(pkg)); err == nil {
		s = c.subject()
		s.Package = pkg
	}
	return s, note, nil
}

// bringBack moves one package out of quarantine: into the store, and to its
// directory below plugins/ where that is free. It stays untrusted.
func (h *Home) bringBack(ctx context.Context, pkg digest.Digest, s subject, note quarantineNote) (Moved, error) {
	m := Moved{ID: s.ID, Version: s.Version, Package: pkg, Path: h.storePath(pkg)}
	c, err := readTree(ctx, h.quarantinePath(pkg))
	if err != nil {
		return m, err
	}
	if c.Package != pkg {
		return m, &Integrity{What: "package digest", Expected: pkg, Found: c.Package, Where: h.quarantinePath(pkg),
			Causes: []string{"the files were changed while they were in quarantine"}}
	}
	if err := moveTree(h.quarantinePath(pkg), m.Path); err != nil {
		return m, fmt.Errorf("quarantine: %w", err)
	}
	if err := os.Remove(h.quarantinePath(pkg) + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("quarantine: %w", err)
	}
	rec := state.Install{Package: pkg, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint, ID: c.Manifest.ID,
		Version: c.Manifest.Version, Name: c.Manifest.Name, Source: "quarantine", InstalledAt: h.now().UTC(),
		Files: len(c.Files), Bytes: c.Bytes, Executable: c.Manifest.Executable, ManifestJSON: c.ManifestBytes}
	err = h.state.View(ctx, func(tx *state.Tx) error {
		old, err := optional(tx.Install(pkg))
		if old != nil {
			rec = *old
		}
		return err
	})
	if err != nil {
		return m, err
	}
	claims, err := h.claims(rec.ID)
	if err != nil {
		return m, err
	}
	makeDefault := len(claims) == 0
	if makeDefault {
		if _, err := os.Lstat(h.pluginPath(rec.ID)); err == nil {
			makeDefault = false
		}
	}
	if makeDefault {
		if err := h.linkDefault(pkg, rec.ID); err != nil {
			return m, err
		}
	}
	return m, h.recordInstall(ctx, rec, makeDefault)
}

// linkDefault makes plugins/<id> a hard-linked tree of a version in the store.
func (h *Home) linkDefault(pkg digest.Digest, id string) error {
	s, err := h.newStage()
	if err != nil {
		return err
	}
	defer s.discard()
	if err := linkTree(h.storePath(pkg), s.join("default")); err != nil {
		return fmt.Errorf("default version of %s: %w", id, err)
	}
	if err := sealDirectories(s.join("default")); err != nil {
		return fmt.Errorf("default version of %s: %w", id, err)
	}
	if _, err := h.swapDefault(s, id); err != nil {
		return err
	}
	return syncDirs(h.join(pluginsDir))
}
