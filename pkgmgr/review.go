package pkgmgr

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// Boundary is what every review says about the limits of scopes.
const Boundary = "A trusted plugin runs as you. It can read and change everything that you can, this tool's own " +
	"records and keys included. Scopes decide what Switchyard hands over and does on its behalf; they are not a " +
	"sandbox. Trusting it means trusting its code, not just approving scopes."

// A Review is everything that can be known about a package without executing it.
type Review struct {
	Manifest       Manifest
	ManifestDigest digest.Digest
	Package        digest.Digest
	Fingerprint    digest.Digest
	Archive        digest.Digest // "" when it is not known
	Where          string        // the tree or the archive that was read
	Source         string        // where it was installed from; "" for an archive
	InstalledAt    time.Time
	Status         Status // "" for an archive that is not installed
	Granted        []manifest.Scope
	Denial         *Denial
	Files          int
	Bytes          int64
	// FingerprintSuffices: the package is nothing but manifest and executable, so
	// that the fingerprint covers it whole.
	FingerprintSuffices bool
	ExecutableKind      string          // "program for linux/amd64", "script, started by /usr/bin/env python3", …
	Platform            string          // "os/arch", lockfile.Any for a script, "" when it cannot be told
	LicenceFiles        []string        // paths of files that look like licences
	SBOM                string          // path of an SBOM in the package, or ""
	SBOMCheck           *SBOMCheck      // what came of comparing it with the files; nil without one
	Unjudged            error           // why the policy was not asked; nil where it was
	Signature           string          // what is known about signatures
	Signers             []verify.Signer // who signed, whether the policy names them or not
	Policy              policy.Report   // how it stands for being trusted
	ScriptsAndPrograms  []string        // every other file with an execute bit
	Change              *Change         // nil when no version was trusted before
}

// A Change is the difference to the version that was trusted last.
type Change struct {
	From            digest.Digest // its package digest
	Version         string        // its version
	TrustedAt       time.Time
	Members         []MemberChange // manifest members that differ
	Files           []FileChange   // files that differ; nil with FilesUnknown
	FilesUnknown    bool           // the trusted version's files are no longer here
	FilesWhy        string         // why FilesUnknown, in words; else ""
	ScopesAdded     []manifest.Scope
	ScopesDropped   []manifest.Scope
	SameDigest      bool // nothing changed
	VersionLowered  bool
	ExecutableMoved bool
}

// MemberChange is one manifest member with its values before and now.
type MemberChange struct{ Member, Before, Now string }

// FileChange is one file that is "added", "removed" or "changed".
type FileChange struct{ Path, Kind string }

// Review reads an installed package.
func (h *Home) Review(ctx context.Context, ref Ref, lock *Lock) (*Review, error) {
	sel, c, where, err := h.surveyed(ctx, ref, lock)
	if err != nil {
		return nil, err
	}
	r := newReview(c, where)
	s := c.subject()
	if sel.install != nil {
		r.Source, r.InstalledAt, r.Archive = sel.install.Source, sel.install.InstalledAt, sel.install.Archive
		s.Archive = r.Archive
	}
	r.Status, r.Granted = sel.status(), sel.grants()
	if sel.recorded != "" && c.Package != sel.recorded {
		r.Status, r.Granted, r.Archive = StatusChanged, nil, ""
	}
	prove := &proving{home: h}
	defer prove.close()
	r.SBOMCheck = orUnchecked(prove.sbom(ctx, where, c.Files))
	evidence, err := prove.again(ctx, r.Archive)
	if err := h.reviewEvidence(r, evidence, err); err != nil {
		return nil, err
	}
	return r, h.completeReview(ctx, r, c, s, evidence)
}

// ReviewArchive reads an archive or a directory that need not be installed. It
// changes nothing but a stage that is removed again.
func (h *Home) ReviewArchive(ctx context.Context, source string) (*Review, error) {
	r, _, err := h.reviewSource(ctx, source)
	return r, err
}

// reviewSource also returns the paths that the files of a directory have in it.
func (h *Home) reviewSource(ctx context.Context, source string) (*Review, []string, error) {
	s, err := h.readSource(ctx, source, "")
	if err != nil {
		return nil, nil, err
	}
	defer s.discard()
	c, err := s.contents()
	if err != nil {
		return nil, nil, err
	}
	paths := make([]string, len(c.Files))
	for i, f := range c.Files {
		paths[i] = path.Join(s.tree.Stripped, f.Path)
	}
	r := newReview(c, source)
	r.Archive = s.archive
	r.SBOMCheck = orUnchecked(s.sbom(ctx, c))
	evidence, err := s.evidence()
	if err := h.reviewEvidence(r, evidence, err); err != nil {
		return nil, nil, err
	}
	subject := c.subject()
	subject.Archive = s.archive
	err = h.state.View(ctx, func(tx *state.Tx) error {
		in, err := optional(tx.Install(c.Package))
		if err != nil || in == nil {
			return err
		}
		r.Source, r.InstalledAt = in.Source, in.InstalledAt
		sel := &selection{recorded: c.Package}
		if err := sel.load(tx, ""); err != nil {
			return err
		}
		r.Status, r.Granted = sel.status(), sel.grants()
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return r, paths, h.completeReview(ctx, r, c, subject, evidence)
}

// reviewEvidence adds who vouches for a package. err is why that could not be found
// out, which a review tells: a person decides.
func (h *Home) reviewEvidence(r *Review, evidence *Evidence, err error) error {
	if err != nil {
		r.Signature, r.Unjudged = "could not be checked: "+err.Error(), err
		return nil
	}
	r.Signers = evidence.signers()
	r.Policy, err = h.judge(judged{operation: policy.Trust, id: r.Manifest.ID, version: r.Manifest.Version, platform: r.Platform,
		archive: r.Archive, evidence: evidence, sbom: r.SBOMCheck})
	if err != nil || evidence == nil {
		return err
	}
	for _, rule := range r.Policy.Results {
		if rule.Rule == "publisher" {
			if r.Signature = rule.Why; len(r.Signers) == 0 {
				r.Signature = rule.Found + ": " + rule.Why
			}
		}
	}
	return nil
}

func newReview(c *Contents, where string) *Review {
	r := &Review{Manifest: c.Manifest, ManifestDigest: c.ManifestDigest, Package: c.Package, Fingerprint: c.Fingerprint,
		Where: where, Files: len(c.Files), Bytes: c.Bytes, FingerprintSuffices: len(c.Files) == 2,
		Signature: "none: this package is reviewed by digest"}
	exe := c.Manifest.Executable
	for _, f := range c.Files {
		base := strings.ToLower(path.Base(f.Path))
		switch {
		case f.Path == sbomFile:
			r.SBOM = f.Path
		case strings.HasPrefix(base, "licen"), strings.HasPrefix(base, "copying"), base == "notice", base == "notice.txt":
			r.LicenceFiles = append(r.LicenceFiles, f.Path)
		}
		if f.Mode == digest.ModeExecutable && f.Path != exe {
			r.ScriptsAndPrograms = append(r.ScriptsAndPrograms, f.Path)
		}
	}
	switch head := c.Head; {
	case c.Manifest.EntryKind() == EntryPython:
		py := c.Manifest.Session.EntryPoints.Python
		r.ExecutableKind = "Python module " + py.Module + ", of which " + py.Callable + " is called; started by python3, " + py.Version + " or newer"
	case c.Manifest.EntryKind() == EntryDotNet:
		net := c.Manifest.Session.EntryPoints.DotNet
		r.ExecutableKind = ".NET assembly with the type " + net.Type + ", started by dotnet for " + net.TargetFramework
	case head.Interpreter != "":
		r.ExecutableKind = "script, started by " + head.Interpreter
	case head.Platform != "":
		r.ExecutableKind = "program for " + head.Platform
	default:
		r.ExecutableKind = "of an unknown kind"
	}
	r.Platform = c.Head.Platform
	return r
}

func (h *Home) completeReview(ctx context.Context, r *Review, c *Contents, s subject, e *Evidence) error {
	var revoked *Revoked
	if err := h.checkDenied(s, e.vouching(verify.Signature, verify.Provenance)...); errors.As(err, &revoked) {
		r.Status, r.Denial, r.Granted = StatusRevoked, &revoked.Denial, nil
	} else if err != nil {
		return err
	}
	last, err := h.lastTrusted(ctx, r.Manifest.ID)
	if err != nil || last == nil {
		return err
	}
	r.Change, err = h.compare(ctx, *last, c)
	return err
}

// lastTrusted returns the record of the version of id that was trusted last, also
// when its files were changed since.
func (h *Home) lastTrusted(ctx context.Context, id string) (last *trustedVersion, err error) {
	err = h.state.View(ctx, func(tx *state.Tx) error {
		standings, err := tx.Standings()
		if err != nil {
			return err
		}
		for pkg, s := range standings {
			if s.Trust == nil || s.Trust.ID != id || last != nil && !s.Trust.At.After(last.trust.At) {
				continue
			}
			in, err := optional(tx.Install(pkg))
			if err != nil {
				return err
			}
			last = &trustedVersion{trust: *s.Trust, install: in}
		}
		return nil
	})
	return last, err
}

type trustedVersion struct {
	trust   state.Trust
	install *state.Install // nil when it was uninstalled
}

// compare lists what differs between the version that was trusted last and c.
func (h *Home) compare(ctx context.Context, last trustedVersion, c *Contents) (*Change, error) {
	ch := &Change{From: last.trust.Package, Version: last.trust.Version, TrustedAt: last.trust.At,
		SameDigest: last.trust.Package == c.Package,
		// Only where both are SemVer can a version be lower.
		VersionLowered: versionrange.Compare(c.Manifest.Version, last.trust.Version) < 0}
	if ch.SameDigest {
		return ch, nil
	}
	if last.install == nil {
		ch.FilesUnknown, ch.FilesWhy = true, "it is no longer installed"
		return ch, nil
	}
	before, err := ParseManifest(last.install.ManifestJSON)
	if err != nil {
		return nil, err
	}
	now, err := ParseManifest(c.ManifestBytes) // as before: entry files are not looked for
	if err != nil {
		return nil, err
	}
	ch.Members = memberChanges(before, now)
	ch.ExecutableMoved = before.Executable != now.Executable
	ch.ScopesAdded = without(c.Manifest.RequestedScopes, before.RequestedScopes)
	ch.ScopesDropped = without(before.RequestedScopes, c.Manifest.RequestedScopes)
	files, why, err := h.filesOf(ctx, *last.install)
	if err != nil {
		return nil, err
	}
	if files == nil {
		ch.FilesUnknown, ch.FilesWhy = true, why
		return ch, nil
	}
	ch.Files = fileChanges(files, c.Files)
	return ch, nil
}

func without(a, b []manifest.Scope) []manifest.Scope {
	return slices.DeleteFunc(slices.Clone(a), func(s manifest.Scope) bool { return slices.Contains(b, s) })
}

func memberChanges(a, b Manifest) []MemberChange {
	join := func(n int, at func(int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = at(i)
		}
		return strings.Join(parts, " ")
	}
	quoted := func(args []string) string {
		return join(len(args), func(i int) string { return quoteArgument(args[i]) })
	}
	var list []MemberChange
	add := func(member, before, now string) {
		if before != now {
			list = append(list, MemberChange{member, before, now})
		}
	}
	if a.Session != nil && b.Session != nil {
		before, now := sessionMembers(a.Session), sessionMembers(b.Session)
		for i, m := range before {
			add(m.name, m.value, now[i].value)
		}
		return list
	}
	add("protocol", a.ProtocolVersion, b.ProtocolVersion)
	add("name", a.Name, b.Name)
	add("version", a.Version, b.Version)
	add("executable", a.Executable, b.Executable)
	add("arguments", quoted(a.Arguments), quoted(b.Arguments))
	add("capabilities",
		join(len(a.Capabilities), func(i int) string { return string(a.Capabilities[i]) }),
		join(len(b.Capabilities), func(i int) string { return string(b.Capabilities[i]) }))
	add("requestedScopes",
		join(len(a.RequestedScopes), func(i int) string { return string(a.RequestedScopes[i]) }),
		join(len(b.RequestedScopes), func(i int) string { return string(b.RequestedScopes[i]) }))
	return list
}

func quoteArgument(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\"'\\") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return s
}

// filesOf returns the files of an installed version from the store's tree, where
// that is intact, else from its archive; nil, and why in words, when neither is here
// any more, or when the archive is not what it was.
func (h *Home) filesOf(ctx context.Context, in state.Install) (files []digest.File, why string, err error) {
	if files := h.storedFiles(ctx, in.Package); files != nil {
		return files, "", nil
	}
	const altered = "its installed files were altered, and "
	if in.Archive == "" {
		return nil, altered + "no archive of it is kept: it was installed from a directory", nil
	}
	s, err := h.readSource(ctx, h.archivePath(in.Archive), in.Archive)
	switch {
	case errors.As(err, new(*NotFound)), errors.Is(err, fs.ErrNotExist):
		return nil, altered + "its archive is no longer in the store", nil
	case errors.As(err, new(*Integrity)), errors.As(err, new(*Malformed)):
		return nil, altered + "so was its archive in the store", nil
	case err != nil:
		return nil, "", err
	}
	defer s.discard()
	c, err := s.contents()
	if err != nil {
		return nil, "", err
	}
	return c.Files, "", nil
}

func (h *Home) storedFiles(ctx context.Context, pkg digest.Digest) []digest.File {
	root, err := openTree(h.storePath(pkg))
	if err != nil {
		return nil
	}
	defer root.Close()
	tree, err := archive.HashDir(ctx, root)
	if err != nil {
		return nil
	}
	if d, err := tree.Package(); err != nil || d != pkg {
		return nil
	}
	return tree.Files
}

func fileChanges(before, now []digest.File) []FileChange {
	old := make(map[string]digest.File, len(before))
	for _, f := range before {
		old[f.Path] = f
	}
	list := []FileChange{}
	for _, f := range now {
		o, had := old[f.Path]
		switch {
		case !had:
			list = append(list, FileChange{f.Path, "added"})
		case o != f:
			list = append(list, FileChange{f.Path, "changed"})
		}
		delete(old, f.Path)
	}
	for p := range old {
		list = append(list, FileChange{p, "removed"})
	}
	slices.SortFunc(list, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return list
}
