package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// ReadLock returns the lock under which commands in dir work, or nil where no
// project above dir has one.
func ReadLock(dir string) (*Lock, error) {
	p, err := project.Find(dir)
	if errors.Is(err, project.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lockOf(p)
}

func lockOf(p *project.Project) (*Lock, error) {
	if !p.HasLock {
		return nil, nil
	}
	f, raw, err := lockfile.Read(p.LockPath())
	if err != nil {
		return nil, err
	}
	return &Lock{Path: p.LockPath(), Root: p.Root, Digest: lockfile.Digest(raw), File: f}, nil
}

// Pin writes the present version of every named package into the project's lock:
// its four digests, its source and the scopes that are granted to it now. A
// package that is not trusted cannot be pinned.
func (h *Home) Pin(ctx context.Context, p *project.Project, refs []Ref) ([]lockfile.Plugin, error) {
	entries := make([]lockfile.Plugin, 0, len(refs))
	for _, ref := range refs {
		e, err := h.pinEntry(ctx, p, ref)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	_, err := lockfile.Edit(p.LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
		for i, e := range entries {
			entries[i] = keepPlatforms(f, e)
			f = f.With(entries[i])
		}
		f, err := h.withFloors(f)
		if err != nil {
			return nil, err
		}
		return f, step("lock")
	})
	return entries, err
}

// keepPlatforms keeps what an existing entry of the same id and version says about other
// platforms: pinning one must not lose the rest.
func keepPlatforms(f *lockfile.File, e lockfile.Plugin) lockfile.Plugin {
	old, ok := f.Plugin(e.ID)
	if !ok || old.Version != e.Version {
		return e
	}
	if e.Source == "" {
		e.Source = old.Source
	}
	if digests, any := e.Platforms[lockfile.Any]; any {
		e.Platforms = map[string]lockfile.Platform{scriptKey(e.Source, HostPlatform()): digests}
	}
	if _, any := e.Platforms[lockfile.Any]; any {
		return e
	}
	for key, platform := range old.Platforms {
		if _, mine := e.Platforms[key]; !mine && key != lockfile.Any {
			e.Platforms[key] = platform
		}
	}
	return e
}

// pinEntry makes the lock entry of a package. One that is removed or replaced while
// its archive is being made is looked for again.
func (h *Home) pinEntry(ctx context.Context, p *project.Project, ref Ref) (lockfile.Plugin, error) {
	for try := 1; ; try++ {
		e, err := h.pinOnce(ctx, p, ref)
		if !errors.Is(err, fs.ErrNotExist) || try == rehashTries {
			return e, err
		}
	}
}

func (h *Home) pinOnce(ctx context.Context, p *project.Project, ref Ref) (lockfile.Plugin, error) {
	var none lockfile.Plugin
	sel, c, where, err := h.surveyed(ctx, ref, nil)
	if err != nil {
		return none, err
	}
	if err := h.checkDenied(sel.subject()); err != nil {
		return none, err
	}
	if s := sel.status(); s != StatusEnabled && s != StatusTrusted || sel.install == nil {
		return none, &NeedsDecision{ID: ref.ID, Version: sel.version(), Package: sel.recorded, Status: s}
	}
	if c.Package != sel.recorded {
		return none, h.changed(ctx, sel, c.Package, nil)
	}
	arch, err := h.ensureArchive(ctx, *sel.install, where)
	if err != nil {
		return none, err
	}
	source := pinSource(p, *sel.install)
	key := c.Head.Platform
	switch key {
	case "":
		key = HostPlatform()
	case lockfile.Any:
		key = scriptKey(source, HostPlatform())
	}
	grants := []string{}
	for _, s := range sel.grants() {
		grants = append(grants, string(s))
	}
	evidence, err := h.Evidence(arch)
	if err != nil {
		return none, err
	}
	signer, kinds := evidence.toLock()
	return lockfile.Plugin{
		ID: c.Manifest.ID, Version: c.Manifest.Version, Source: source, Grants: grants, Signer: signer,
		Platforms: map[string]lockfile.Platform{key: {Archive: arch, Package: c.Package, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint, Evidence: kinds}},
	}, nil
}

// pinSource writes the place a package was installed from relative to the project,
// or "" where that was no archive or cannot be written so. Where switchyard.toml
// names the source, its spelling is kept: it holds for every platform.
func pinSource(p *project.Project, in state.Install) string {
	if config, _, err := p.ReadConfig(); err == nil {
		if w, ok := config.Plugins[in.ID]; ok {
			return w.Source
		}
	}
	if in.Archive == "" || !filepath.IsAbs(in.Source) || packedHere(in) {
		return ""
	}
	source, err := p.RelativeSource(in.Source)
	if err != nil {
		return ""
	}
	return source
}

// ensureArchive returns the digest of the package's archive, packing it into the
// store when it was installed from a directory and none is kept.
func (h *Home) ensureArchive(ctx context.Context, in state.Install, where string) (digest.Digest, error) {
	if in.Archive != "" {
		return in.Archive, nil
	}
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	sum, err := h.packIntoStore(ctx, subjectOf(in), in.Executable, where)
	if err != nil {
		return "", err
	}
	return sum, h.update(ctx, func(tx *state.Tx) error {
		now, err := optional(tx.Install(in.Package))
		if err != nil {
			return err
		}
		if now == nil {
			return fs.ErrNotExist // uninstalled before the lock was taken
		}
		now.Archive = sum
		return tx.PutInstall(*now)
	})
}

// Unpin removes entries from the project's lock and returns the ids that it held.
func (h *Home) Unpin(p *project.Project, ids []string) error {
	_, err := lockfile.Edit(p.LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
		for _, id := range ids {
			if _, ok := f.Plugin(id); !ok {
				return nil, &NotFound{Kind: "locked plugin", Name: id}
			}
			f = f.Without(id)
		}
		return f, nil
	})
	return err
}

// A Located is an archive that a lock entry or a wanted plugin names.
type located struct {
	path  string
	store bool // it is the store's own copy
}

// locate finds the archive of a lock entry: the store's copy, else the source, with
// this machine's names for a package that is the same on every platform.
func (h *Home) locate(root string, e lockfile.Plugin, platform string, want digest.Digest) (located, error) {
	if want != "" {
		if _, err := os.Lstat(h.archivePath(want)); err == nil {
			return located{h.archivePath(want), true}, nil
		}
	}
	if e.Source == "" {
		return located{}, &NoSource{ID: e.ID, Version: e.Version, Archive: want}
	}
	if platform == lockfile.Any {
		platform = HostPlatform()
	}
	source, err := project.Expand(e.Source, e.Version, platform)
	if errors.Is(err, project.ErrOpen) {
		return located{}, &OpenSource{Config: (&project.Project{Root: root}).ConfigPath(), ID: e.ID, Source: e.Source}
	}
	if err != nil {
		return located{}, err
	}
	if strings.Contains(source, "://") {
		return located{}, &RemoteSource{Source: source}
	}
	path := (&project.Project{Root: root}).SourcePath(source)
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return located{}, &NotFound{Kind: "source", Name: path}
		}
		return located{}, err
	}
	return located{path, false}, nil
}

// OpenSource says that a source in switchyard.toml depends on a version that the file
// does not name, and in a way that leaves too much open to look for one.
type OpenSource struct{ Config, ID, Source string }

func (e *OpenSource) Error() string {
	return fmt.Sprintf("%s: %s: source \"%s\" has no version to fill in: write an exact version, or {version} in the last element of the path only", e.Config, e.ID, e.Source)
}

// NoSource says that a lock entry names no place its archive could come from.
type NoSource struct {
	ID, Version string
	Archive     digest.Digest
}

func (e *NoSource) Error() string {
	return fmt.Sprintf("%s %s: the lock names no source, and the store has no archive %s", e.ID, e.Version, e.Archive)
}

// RemoteSource says that a source is a URL, which this version does not fetch.
type RemoteSource struct{ Source string }

func (e *RemoteSource) Error() string {
	return fmt.Sprintf("source %s is remote; only directories and archives of this machine are read", e.Source)
}

// WrongPlatform says that a package is made for other platforms.
type WrongPlatform struct{ Where, Want, Found string }

func (e *WrongPlatform) Error() string {
	return fmt.Sprintf("%s is made for %s, not for %s", e.Where, e.Found, e.Want)
}

// platformsFor returns the platforms to lock: the project's, else this machine's, and
// those asked for.
func platformsFor(asked []string, c *project.Config) []string {
	list := []string{HostPlatform()}
	if c != nil && len(c.Platforms) > 0 {
		list = slices.Clone(c.Platforms)
	}
	list = append(list, asked...)
	slices.Sort(list)
	return slices.Compact(list)
}
