package pkgmgr

import (
	"context"
	"path/filepath"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// DefaultRule says what an install does to the id's default version.
type DefaultRule int

const (
	// DefaultUpgrade makes the version the default, unless it is lower than the
	// present one, which is an error.
	DefaultUpgrade DefaultRule = iota
	// DefaultReplace makes the version the default whatever is there.
	DefaultReplace
	// DefaultKeep makes the version the default only where the id has none.
	DefaultKeep
	// DefaultRaise makes the version the default, unless it is lower than the present
	// one, which stays then.
	DefaultRaise
)

// InstallOptions configure Install. The zero value is an ordinary install.
type InstallOptions struct {
	Archive digest.Digest // the archive's digest must be this one; "" for any
	Expect  *Expectation  // what a lock says the package must be; nil for anything
	Lock    *Lock         // whose floors of revocation lists hold for an archive that it names; may be nil
	Default DefaultRule
	DryRun  bool   // decide and report, change nothing
	Source  string // recorded instead of the path, where the path is not what people gave
}

// Expectation is what a lock entry, or switchyard.toml, says about a package.
// Empty members expect nothing.
type Expectation struct {
	ID, Version                    string
	Package, Manifest, Fingerprint digest.Digest
	Accepts                        func(version string) bool // instead of Version
	Range                          string                    // what Accepts stands for, for messages
	Lock                           string                    // the lock that Grants stand in
	Grants                         []string                  // the package must request each of them
	Evidence                       *policy.Locked            // what a lock recorded of who vouches for it; nil without a lock
	Floors                         []lockfile.Floor          // of revocation lists, from the lock
}

// Installed reports what Install did.
type Installed struct {
	state.Install
	Unchanged bool   // this package was installed and is intact
	Repaired  bool   // it was installed, but its files had been altered
	Default   bool   // it is now the id's default version
	Previous  string // the version that was the default before, or ""
	// SameVersion is the digest of another package with this id and version.
	SameVersion digest.Digest
	// Report is how the package stands under the policy.
	Report policy.Report
}

// Install brings one package from a directory or an archive into the store:
// staging, archive digest, bounded extraction, manifest, executable rules,
// fingerprint and package digest, revocation, one sync, rename into the store,
// swap of the default version, record. Killed at any point it leaves the old
// state or the new one; the next Open cleans up.
func (h *Home) Install(ctx context.Context, source string, o InstallOptions) (*Installed, error) {
	if err := h.ensure(); err != nil {
		return nil, err
	}
	// The database exists before the first package does: its absence beside
	// packages means that it was lost.
	if err := h.state.Ensure(ctx); err != nil {
		return nil, err
	}
	if err := h.ensure(storeDir, archivesDir, pluginsDir, stagingDir); err != nil {
		return nil, err
	}
	s, err := h.stageSource(ctx, source, o.Archive)
	if err != nil {
		return nil, err
	}
	defer s.discard()
	c, err := s.contents()
	if err != nil {
		return nil, err
	}
	if err := o.Expect.check(c, source); err != nil {
		return nil, err
	}
	if err := h.runnable(&c.Manifest, source); err != nil {
		return nil, err
	}
	rec := h.newRecord(c, s, o)
	if err := h.checkDenied(subjectOf(rec)); err != nil {
		return nil, err
	}
	evidence, err := s.evidence()
	if err == nil && evidence == nil && h.assure != nil {
		evidence, err = s.prove.again(ctx, rec.Archive) // a reinstall from the store's archive
	}
	if err != nil {
		return nil, err
	}
	sbom, err := s.sbom(ctx, c)
	if err != nil {
		return nil, err
	}
	report, err := h.accepted(rec, evidence, sbom, o)
	if err != nil {
		return nil, err
	}
	sbom.tell(h.on, label(rec.ID, rec.Version))
	h.on.stage("installing " + rec.ID + " " + rec.Version)
	done, err := h.commit(ctx, s, rec, o)
	if err == nil {
		done.Report = report
		if !o.DryRun {
			err = h.keepEvidence(evidence)
		}
	}
	return done, err
}

// accepted judges a package that is to be installed. The error is a *policy.Refusal
// for one that the policy does not accept, a *Revoked for one whose signer is revoked.
func (h *Home) accepted(rec state.Install, evidence *Evidence, sbom *SBOMCheck, o InstallOptions) (policy.Report, error) {
	j := judged{operation: policy.Install, id: rec.ID, version: rec.Version, platform: rec.Platform, archive: rec.Archive, evidence: evidence, sbom: sbom,
		floors: o.Lock.floors(rec.ID, rec.Archive)}
	if expect := o.Expect; expect != nil && expect.Evidence != nil {
		j.operation, j.locked, j.floors = policy.CI, expect.Evidence, expect.Floors
	}
	if signers := evidence.vouching(verify.Signature, verify.Provenance); len(signers) > 0 {
		if err := h.checkListed(subjectOf(rec), signers); err != nil {
			return policy.Report{}, err
		}
	}
	report, err := h.judge(j)
	if err == nil {
		err = report.Err()
	}
	return report, err
}

func (h *Home) newRecord(c *Contents, s *staged, o InstallOptions) state.Install {
	source := o.Source
	if source == "" {
		source = s.source
		if abs, err := filepath.Abs(source); err == nil {
			source = abs
		}
	}
	rec := recordOf(c, source, h.now().UTC())
	rec.Archive = s.archive
	return rec
}

// recordOf is what is recorded of a package that was read.
func recordOf(c *Contents, source string, at time.Time) state.Install {
	return state.Install{
		Package: c.Package, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint,
		ID: c.Manifest.ID, Version: c.Manifest.Version, Name: c.Manifest.Name,
		Source: source, InstalledAt: at, Files: len(c.Files), Bytes: c.Bytes,
		Executable: c.Manifest.program(), Platform: c.Head.Platform, ManifestJSON: c.ManifestBytes,
	}
}

// check compares a package with what a lock says about it. A nil expectation
// accepts everything.
func (e *Expectation) check(c *Contents, where string) error {
	if e == nil {
		return nil
	}
	causes := []string{
		"the lock was written for another build of this version",
		"the package was changed after it was reviewed",
	}
	var differ []Difference
	for _, d := range []Difference{
		{"package digest", e.Package, c.Package},
		{"manifest digest", e.Manifest, c.ManifestDigest},
		{"fingerprint", e.Fingerprint, c.Fingerprint},
	} {
		if d.Expected != "" && d.Expected != d.Found {
			differ = append(differ, d)
		}
	}
	if len(differ) > 0 {
		first := differ[0]
		return &Integrity{What: first.What, Expected: first.Expected, Found: first.Found, Where: where, Causes: causes, Also: differ[1:]}
	}
	accepted := e.Version == "" || e.Version == c.Manifest.Version
	wanted := e.Version
	if e.Accepts != nil {
		accepted, wanted = e.Accepts(c.Manifest.Version), e.Range
	}
	if e.ID != "" && e.ID != c.Manifest.ID || !accepted {
		return &WrongPackage{Where: where, WantID: e.ID, WantVersion: wanted,
			ID: c.Manifest.ID, Version: c.Manifest.Version}
	}
	for _, s := range e.Grants {
		if !c.Manifest.Requests(manifest.Scope(s)) {
			return grantsTooMuch(e.Lock, c.Manifest, s)
		}
	}
	return nil
}
