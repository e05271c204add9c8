package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// LockMode says whether Relock writes.
type LockMode int

const (
	// LockWrite writes the lock when its meaning or its form changes.
	LockWrite LockMode = iota
	// LockCheck writes nothing: a lock that would change is a *Stale error.
	LockCheck
)

// LockReport says what Relock found or wrote.
type LockReport struct {
	Path    string
	Changes []lockfile.Change
	Reform  bool // the meaning is the same, the bytes were not canonical
	Written bool
	// Unreviewed are platforms whose digests were read from the archive and that
	// nobody can have reviewed on this machine, as "id platform".
	Unreviewed []string
}

// Stale says that the lock is not what `lock` would write.
type Stale struct {
	Lock    string
	Changes []lockfile.Change
}

func (e *Stale) Error() string {
	if len(e.Changes) == 0 {
		return e.Lock + " is not in canonical form"
	}
	return fmt.Sprintf("%s is out of date: %d differences", e.Lock, len(e.Changes))
}

// Relock brings the lock up to what switchyard.toml asks for, for every wanted
// platform. A locked version that is still asked for stays, whatever else is there.
// Archives that the lock names and that are unchanged are not read again, but what bundles
// beside them prove by now is added; platforms that are locked already stay. A package that is new for this
// machine's platform must have been reviewed and trusted here.
func (h *Home) Relock(ctx context.Context, p *project.Project, platforms []string, mode LockMode) (*LockReport, error) {
	for {
		out, err := h.relockOnce(ctx, p, platforms, mode)
		if !errors.Is(err, errLockMoved) || ctx.Err() != nil {
			return out, err
		}
	}
}

// errLockMoved says that somebody else wrote the lock meanwhile.
var errLockMoved = errors.New("the lock was changed meanwhile")

func (h *Home) relockOnce(ctx context.Context, p *project.Project, platforms []string, mode LockMode) (*LockReport, error) {
	config, _, err := p.ReadConfig()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, key := range platforms {
		if err := lockfile.CheckPlatform(key); err != nil {
			return nil, err
		}
	}
	old, raw, err := lockfile.Read(p.LockPath())
	if errors.Is(err, fs.ErrNotExist) {
		old, err = &lockfile.File{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &relock{home: h, prove: &proving{home: h}, project: p, config: config, old: old, platforms: platformsFor(platforms, config)}
	defer r.prove.close()
	out := &LockReport{Path: p.LockPath()}
	next := &lockfile.File{Revocations: old.Revocations}
	for _, id := range r.ids() {
		entry, err := r.entry(ctx, id)
		if err != nil {
			return nil, err
		}
		next = next.With(entry)
	}
	if mode != LockCheck { // a newer list makes no lock out of date
		if next, err = h.withFloors(next); err != nil {
			return nil, err
		}
	}
	out.Unreviewed = r.unreviewed
	out.Changes = lockfile.Diff(old, next)
	out.Reform = len(out.Changes) == 0 && raw != nil && lockfile.Digest(raw) != lockfile.Digest(next.Format())
	if len(out.Changes) == 0 && !out.Reform {
		return out, nil
	}
	if mode == LockCheck {
		return out, &Stale{Lock: out.Path, Changes: out.Changes}
	}
	if err := step("lock"); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if out.Reform {
		err = lockfile.Write(p.LockPath(), next)
	} else {
		_, err = lockfile.Edit(p.LockPath(), func(now *lockfile.File) (*lockfile.File, error) {
			if !lockfile.Equal(now, old) {
				return nil, errLockMoved
			}
			return next, nil
		})
	}
	if err != nil {
		return nil, err
	}
	out.Written = true
	return out, nil
}

type relock struct {
	home       *Home
	prove      *proving // of archives that are locked already
	project    *project.Project
	config     *project.Config // nil without switchyard.toml
	old        *lockfile.File
	platforms  []string
	unreviewed []string
}

func (r *relock) ids() []string {
	if r.config != nil {
		return r.config.IDs()
	}
	var ids []string
	for _, p := range r.old.Plugins {
		ids = append(ids, p.ID)
	}
	return ids
}

// entry makes the lock entry of one id.
func (r *relock) entry(ctx context.Context, id string) (lockfile.Plugin, error) {
	old, had := r.old.Plugin(id)
	e := lockfile.Plugin{ID: id, Source: old.Source, Grants: old.Grants, Platforms: map[string]lockfile.Platform{}}
	wanted := project.Wanted{Source: old.Source}
	if r.config != nil {
		wanted = r.config.Plugins[id]
		e.Source = wanted.Source
	}
	keep := had && wanted.Accepts(old.Version) && lockfile.CleanSource(wanted.Source) == old.Source
	if keep {
		e.Version, e.Signer = old.Version, old.Signer
	} else {
		var err error
		if e.Version, err = resolveVersion(r.project, id, wanted, r.resolvedFor()); err != nil {
			return e, err
		}
	}
	if !keep {
		old.Platforms = nil
	}
	version := ""
	for _, key := range r.keys(e.Source, old) {
		if _, done := e.Platforms[lockfile.Any]; done {
			break
		}
		before := old.Platforms[key]
		if !project.HasPlatform(e.Source) {
			before, _, _ = old.For(key)
		}
		found, err := r.platform(ctx, e, wanted, key, before)
		if err != nil {
			return e, err
		}
		if version != "" && found.version != version {
			return e, &WrongPackage{Where: found.where, WantID: id, WantVersion: version, ID: id, Version: found.version}
		}
		version = found.version
		if found.key == lockfile.Any {
			clear(e.Platforms) // the source is one file, so what else is there is out of date
		}
		e.Platforms[found.key] = found.digests
		switch {
		case found.signer == nil:
		case e.Signer == nil:
			e.Signer = found.signer
		case *e.Signer != *found.signer:
			return e, &SignersDiffer{ID: id, Where: found.where, Locked: e.Signer.String(), Found: found.signer.String()}
		}
		if err := r.grants(ctx, &e, wanted, found); err != nil {
			return e, err
		}
	}
	e.Version = version
	return e, nil
}

// keys returns the platforms of an entry: those to lock and those that are locked
// already, this machine's first, because what is granted here decides the ceiling of
// an entry that has none. Where every platform has a file of its own, none of them
// stands for all: an entry that says so is read again as this machine's.
func (r *relock) keys(source string, old lockfile.Plugin) []string {
	keys := append(slices.Clone(r.platforms), slices.Collect(maps.Keys(old.Platforms))...)
	if project.HasPlatform(source) {
		for i, key := range keys {
			if key == lockfile.Any {
				keys[i] = HostPlatform()
			}
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		switch here := HostPlatform(); {
		case a == b:
			return 0
		case a == here:
			return -1
		case b == here:
			return 1
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(keys)
}

// resolvedFor returns the platform whose archives decide what a range of versions
// means: this machine's, where it is locked at all.
func (r *relock) resolvedFor() string {
	if slices.Contains(r.platforms, HostPlatform()) {
		return HostPlatform()
	}
	return r.platforms[0]
}

// lockedPlatform is what one archive says.
type lockedPlatform struct {
	key, version, where string
	digests             lockfile.Platform
	signer              *lockfile.Signer // nil for an unsigned one, and for one that was not read again
	scopes              []manifest.Scope // requested; nil when the archive was not read again
}

// platform makes the entry of one platform, reading its archive only if it is not
// the one that is locked. A locked platform whose archive is not here stays.
func (r *relock) platform(ctx context.Context, e lockfile.Plugin, wanted project.Wanted, key string, before lockfile.Platform) (lockedPlatform, error) {
	h := r.home
	kept := func() (lockedPlatform, error) {
		s := subject{ID: e.ID, Version: e.Version, Package: before.Package, Archive: before.Archive,
			Manifest: before.Manifest, Fingerprint: before.Fingerprint}
		return lockedPlatform{key: keyOf(r.old, e.ID, key), version: e.Version, where: r.project.LockPath(), digests: before}, h.checkDenied(s)
	}
	at, err := h.locate(r.project.Root, e, key, "")
	if before.Archive != "" && (errors.As(err, new(*NotFound)) || errors.As(err, new(*NoSource))) {
		return kept()
	}
	if err != nil {
		return lockedPlatform{}, err
	}
	sum, err := hashFile(at.path)
	if err != nil {
		return lockedPlatform{}, err
	}
	if sum == before.Archive {
		found, err := kept()
		if err == nil {
			err = r.offered(ctx, &found, e, at.path)
		}
		return found, err
	}
	s, err := h.readSource(ctx, at.path, sum)
	if err != nil {
		return lockedPlatform{}, err
	}
	defer s.discard()
	c, err := s.contents()
	if err != nil {
		return lockedPlatform{}, err
	}
	evidence, err := s.evidence()
	if err == nil && evidence == nil {
		evidence, err = h.Evidence(sum)
	}
	if err != nil {
		return lockedPlatform{}, err
	}
	found := lockedPlatform{key: key, version: c.Manifest.Version, where: at.path, scopes: c.Manifest.RequestedScopes,
		digests: lockfile.Platform{Archive: sum, Package: c.Package, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint}}
	found.signer, found.digests.Evidence = evidence.toLock()
	switch head := c.Head.Platform; {
	case head == lockfile.Any:
		found.key = scriptKey(e.Source, key)
	case head != "" && head != key && key != lockfile.Any:
		return found, &WrongPlatform{Where: at.path, Want: key, Found: head}
	case key == lockfile.Any:
		found.key = HostPlatform()
		if head != "" && head != found.key {
			return found, &WrongPlatform{Where: at.path, Want: found.key, Found: head}
		}
	}
	want, accepted := wanted.Version, wanted.Accepts(c.Manifest.Version)
	if project.HasVersion(e.Source) { // else another machine would look for another file
		want, accepted = e.Version, c.Manifest.Version == e.Version
	}
	if c.Manifest.ID != e.ID || !accepted {
		return found, &WrongPackage{Where: at.path, WantID: e.ID, WantVersion: want,
			ID: c.Manifest.ID, Version: c.Manifest.Version}
	}
	return found, r.reviewed(ctx, c, found, evidence)
}

// offered adds to an archive that is locked what bundles beside it prove now, so that one
// that was signed since is locked as that. The lock never records less than before.
func (r *relock) offered(ctx context.Context, found *lockedPlatform, e lockfile.Plugin, path string) error {
	if r.home.assure == nil {
		return nil
	}
	bundles, err := bundlesBeside(path)
	if err != nil {
		return err
	}
	evidence, err := r.prove.bundles(ctx, found.digests.Archive, path, bundles)
	if err != nil || evidence == nil {
		return err
	}
	s := subject{ID: e.ID, Version: e.Version, Package: found.digests.Package, Archive: found.digests.Archive,
		Manifest: found.digests.Manifest, Fingerprint: found.digests.Fingerprint}
	if err := r.home.checkDenied(s, evidence.vouching(verify.Signature, verify.Provenance)...); err != nil {
		return err
	}
	signer, kinds := evidence.toLock()
	for _, one := range evidence.signers() {
		if e.Signer != nil && (lockfile.Signer{Key: one.Key, Identity: one.Identity, Issuer: one.Issuer}) == *e.Signer {
			signer = nil // the one that is locked still signs
		}
	}
	found.signer, found.where = signer, path
	found.digests.Evidence = slices.Compact(slices.Sorted(slices.Values(slices.Concat(found.digests.Evidence, kinds))))
	return nil
}

// scriptKey is the key of a package whose executable is a script, read from source
// for a platform: Any where the source is the same file for all of them. A script may
// run anywhere, but a file that is one platform's says nothing of the others'.
func scriptKey(source, platform string) string {
	if project.HasPlatform(source) {
		return platform
	}
	return lockfile.Any
}

// reviewed refuses a package for this machine that nobody trusted here, and notes
// one for another machine.
func (r *relock) reviewed(ctx context.Context, c *Contents, found lockedPlatform, e *Evidence) error {
	s := c.subject()
	s.Archive = found.digests.Archive
	if err := r.home.checkDenied(s, e.vouching(verify.Signature, verify.Provenance)...); err != nil {
		return err
	}
	sel := &selection{recorded: c.Package}
	if err := r.home.state.View(ctx, func(tx *state.Tx) error { return sel.load(tx, "") }); err != nil {
		return err
	}
	switch st := sel.status(); {
	case st == StatusTrusted || st == StatusEnabled:
	case found.key != lockfile.Any && found.key != HostPlatform():
		r.unreviewed = append(r.unreviewed, c.Manifest.ID+" "+found.key)
	default:
		return &NeedsDecision{ID: c.Manifest.ID, Version: c.Manifest.Version, Package: c.Package, Status: st,
			Detail: "a lock records reviewed packages only"}
	}
	return nil
}

// grants decides the ceiling of an entry: what switchyard.toml asks for, else what
// was locked, else what is granted on this machine.
func (r *relock) grants(ctx context.Context, e *lockfile.Plugin, wanted project.Wanted, found lockedPlatform) error {
	switch {
	case wanted.Scopes != nil:
		e.Grants = slices.Clone(wanted.Scopes)
	case e.Grants == nil:
		sel := &selection{recorded: found.digests.Package}
		if err := r.home.state.View(ctx, func(tx *state.Tx) error { return sel.load(tx, "") }); err != nil {
			return err
		}
		for _, s := range sel.grants() {
			e.Grants = append(e.Grants, string(s))
		}
	}
	requested, known, err := r.requested(ctx, found)
	if err != nil || !known {
		return err
	}
	for _, s := range e.Grants {
		if !slices.Contains(requested, manifest.Scope(s)) {
			file := r.project.LockPath()
			if wanted.Scopes != nil {
				file = r.project.ConfigPath()
			}
			return grantsTooMuch(file, Manifest{Manifest: manifest.Manifest{ID: e.ID, RequestedScopes: requested}}, s)
		}
	}
	return nil
}

// requested returns what a package's manifest requests. An archive that is the
// locked one was not read again: then only an installed package is known.
func (r *relock) requested(ctx context.Context, found lockedPlatform) (scopes []manifest.Scope, known bool, err error) {
	if found.scopes != nil {
		return found.scopes, true, nil
	}
	err = r.home.state.View(ctx, func(tx *state.Tx) error {
		in, err := optional(tx.Install(found.digests.Package))
		if err != nil || in == nil {
			return err
		}
		if m, err := ParseManifest(in.ManifestJSON); err == nil {
			scopes, known = m.RequestedScopes, true
		}
		return nil
	})
	return scopes, known, err
}

// NotArchive says that a source is a directory, which has no archive digest that a
// lock could name.
type NotArchive struct{ Path string }

func (e *NotArchive) Error() string {
	return e.Path + " is no archive; a lock names the digests of archives (pack it first)"
}

// keyOf returns the key under which the old lock has a platform.
func keyOf(f *lockfile.File, id, platform string) string {
	p, _ := f.Plugin(id)
	if _, key, ok := p.For(platform); ok {
		return key
	}
	return platform
}

// hashFile returns the digest of an archive.
func hashFile(path string) (digest.Digest, error) {
	f, info, err := openGiven(path)
	if errors.As(err, new(*givenFile)) {
		return "", &NotArchive{Path: path}
	}
	if err != nil {
		return "", fmt.Errorf("source: %w", err)
	}
	defer f.Close()
	if info.Size() > archive.Default.Archive {
		return "", &archive.Refusal{Archive: path, Rule: archive.RuleArchiveSize,
			Detail: fmt.Sprintf("%d bytes, at most %d", info.Size(), archive.Default.Archive)}
	}
	w := newHashWriter(io.Discard)
	n, err := io.Copy(w, io.LimitReader(f, archive.Default.Archive+1))
	if err != nil {
		return "", fmt.Errorf("source: %w", err)
	}
	if n > archive.Default.Archive {
		return "", growsBeyond(path)
	}
	return w.digest(), nil
}
