package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// The names of the files that vouch for ARCHIVE: ARCHIVE.sigstore.json, and for a
// second signer ARCHIVE.<label>.sigstore.json; a provenance's label is "provenance".
const (
	bundleSuffix     = ".sigstore.json"
	provenanceSuffix = ".provenance" + bundleSuffix
	evidenceSuffix   = ".evidence.json"
	maxBundles       = 16 // beside one archive
)

// IsBundle reports whether a file of this name vouches for an archive beside it.
func IsBundle(name string) bool { return strings.HasSuffix(name, bundleSuffix) }

// IsEvidence reports whether a file of this name is what was kept of an archive's bundles.
func IsEvidence(name string) bool { return strings.HasSuffix(name, evidenceSuffix) }

// A Prover says what Sigstore bundles prove and what SPDX documents say; a session of
// the verify worker does.
type Prover interface {
	Bundle(context.Context, verify.BundleRequest) (*verify.Facts, error)
	SBOM(ctx context.Context, document []byte) (*verify.SBOMFacts, error)
	Close()
}

// Assurance is what evidence is judged by, and who proves it.
type Assurance struct {
	Policy      *policy.Policy
	Keys        []string // PEM: public keys that may have signed
	TrustedRoot []byte   // nil: the one that is shipped with the worker
	Start       func(context.Context) (Prover, error)
}

// A Bundle is a Sigstore bundle that lies beside an archive.
type Bundle struct {
	Kind     verify.Kind `json:"kind"`
	Name     string      `json:"name"` // of its file
	Document []byte      `json:"document"`
}

// A Proof is what came of one bundle: Facts, or why it proves nothing.
type Proof struct {
	Bundle
	Facts *verify.Facts `json:"facts,omitempty"`
	Err   error         `json:"-"` // a *verify.Refusal; nil with Facts
}

// Evidence is everything that vouches for one archive, as it was proved.
type Evidence struct {
	Archive     digest.Digest `json:"archive"`
	TrustedRoot []byte        `json:"trustedRoot,omitempty"` // absent: the one that was shipped
	Proofs      []Proof       `json:"proofs"`
}

// Facts returns what the bundles prove.
func (e *Evidence) Facts() []verify.Facts {
	var list []verify.Facts
	if e == nil {
		return nil
	}
	for _, p := range e.Proofs {
		if p.Facts != nil {
			list = append(list, *p.Facts)
		}
	}
	return list
}

// Kinds returns the kinds of evidence that prove something, sorted.
func (e *Evidence) Kinds() []verify.Kind {
	var kinds []verify.Kind
	for _, f := range e.Facts() {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// signers returns who signed the archive's bytes, each once.
func (e *Evidence) signers() []verify.Signer {
	return e.vouching(verify.Signature)
}

// vouching returns who made evidence of these kinds, each once.
func (e *Evidence) vouching(kinds ...verify.Kind) []verify.Signer {
	var list []verify.Signer
	for _, f := range e.Facts() {
		if slices.Contains(kinds, f.Kind) && !slices.Contains(list, f.Signer) {
			list = append(list, f.Signer)
		}
	}
	return list
}

// refused returns the bundles that prove nothing, for the policy.
func (e *Evidence) refused() []policy.Refused {
	var list []policy.Refused
	if e == nil {
		return nil
	}
	for _, p := range e.Proofs {
		var refusal *verify.Refusal
		if !errors.As(p.Err, &refusal) {
			continue
		}
		r := policy.Refused{Kind: p.Kind, Bundle: digest.Of(p.Document), Why: p.Name + ": " + refusal.Message}
		if refusal.Code == verify.CodeKeyUnknown {
			r.Reason = policy.UnknownKey
		}
		list = append(list, r)
	}
	return list
}

// unknownKey reports whether a signature says that it was made with a key that nobody
// named here.
func (e *Evidence) unknownKey() bool {
	return slices.ContainsFunc(e.refused(), func(r policy.Refused) bool { return r.Kind == verify.Signature && r.Reason == policy.UnknownKey })
}

// bundlesBeside reads what vouches for the archive at path.
func bundlesBeside(path string) ([]Bundle, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	base := filepath.Base(path)
	var list []Bundle
	for _, e := range entries {
		kind, ok := bundleKind(base, e.Name())
		if !ok {
			continue
		}
		if len(list) == maxBundles {
			return nil, &Malformed{Where: path, File: e.Name(), Err: fmt.Errorf("is one of more than %d bundles beside the archive", maxBundles)}
		}
		document, err := readBundle(filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, Bundle{Kind: kind, Name: e.Name(), Document: document})
	}
	return list, nil
}

// bundleKind says what the file name beside the archive base holds, if it is a bundle
// of that archive.
func bundleKind(base, name string) (verify.Kind, bool) {
	rest, ok := strings.CutPrefix(name, base)
	if !ok {
		return "", false
	}
	switch label, ok := strings.CutSuffix(rest, bundleSuffix); {
	case !ok:
		return "", false
	case label == "":
		return verify.Signature, true
	case rest == provenanceSuffix:
		return verify.Provenance, true
	case len(label) > 33 || label[0] != '.' || len(label) == 1 ||
		strings.ContainsFunc(label[1:], func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }):
		return "", false
	}
	return verify.Signature, true
}

func readBundle(path string) ([]byte, error) {
	document, err := readGiven(path, verify.MaxBundle)
	var given *givenFile
	switch {
	case errors.As(err, &given):
		return nil, given.malformed()
	case err != nil:
		return nil, fmt.Errorf("evidence: %w", err)
	}
	return document, nil
}

// errNoAssurance says that this Home was opened by a caller that proves nothing.
var errNoAssurance = errors.New("nobody checks signatures here")

func (h *Home) assurance() (*Assurance, error) {
	if h.assure == nil {
		return nil, errNoAssurance
	}
	return h.assure()
}

// proving is one worker for everything that a command proves, started with the first
// bundle. It may be used from several goroutines.
type proving struct {
	home *Home

	mu        sync.Mutex
	assurance *Assurance
	prover    Prover
	err       error
}

// worker starts the worker, once.
func (p *proving) worker(ctx context.Context) (Prover, *Assurance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prover == nil && p.err == nil {
		if p.assurance, p.err = p.home.assurance(); p.err == nil {
			p.prover, p.err = p.assurance.Start(ctx)
		}
	}
	return p.prover, p.assurance, p.err
}

func (p *proving) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prover != nil {
		p.prover.Close()
		p.prover = nil
	}
}

// bundles asks what bundles prove about the archive at path, under the user's trusted
// root. Where there are none, no worker is started and the result is nil.
func (p *proving) bundles(ctx context.Context, sum digest.Digest, path string, bundles []Bundle) (*Evidence, error) {
	if len(bundles) == 0 {
		return nil, nil
	}
	_, a, err := p.worker(ctx)
	if err != nil {
		return nil, err
	}
	return p.under(ctx, a.TrustedRoot, sum, path, bundles)
}

// again proves the kept evidence of an archive from the store alone, under the trusted
// root that was used then. It is nil where nothing is kept.
func (p *proving) again(ctx context.Context, archive digest.Digest) (*Evidence, error) {
	kept, err := p.home.Evidence(archive)
	if kept == nil || err != nil {
		return nil, err
	}
	bundles := make([]Bundle, len(kept.Proofs))
	for i, one := range kept.Proofs {
		bundles[i] = one.Bundle
	}
	return p.under(ctx, kept.TrustedRoot, archive, p.home.archivePath(archive), bundles)
}

func (p *proving) under(ctx context.Context, root []byte, sum digest.Digest, path string, bundles []Bundle) (*Evidence, error) {
	worker, a, err := p.worker(ctx)
	if err != nil {
		return nil, err
	}
	e := &Evidence{Archive: sum, TrustedRoot: root}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	for _, b := range bundles {
		facts, err := worker.Bundle(ctx, verify.BundleRequest{Kind: b.Kind, Artifact: sum, Path: path, Document: b.Document,
			TrustedRoot: root, Keys: a.Keys, Now: p.home.now()})
		var refusal *verify.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return nil, err
		}
		e.Proofs = append(e.Proofs, Proof{Bundle: b, Facts: facts, Err: err})
	}
	return e, nil
}

// judged is what the policy looks at.
type judged struct {
	operation   policy.Operation
	id, version string
	platform    string
	archive     digest.Digest
	evidence    *Evidence
	sbom        *SBOMCheck
	locked      *policy.Locked
	floors      []lockfile.Floor
}

// rules is the user's policy, or the default where nobody has one.
func (h *Home) rules() (*policy.Policy, error) {
	switch a, err := h.assurance(); {
	case errors.Is(err, errNoAssurance):
		return policy.Default(), nil
	case err != nil:
		return nil, err
	default:
		return a.Policy, nil
	}
}

// judge says how a package stands under the user's policy. A Home that was opened
// without one judges by the default, which lets unsigned packages go by review.
func (h *Home) judge(j judged) (policy.Report, error) {
	rules, err := h.rules()
	if err != nil {
		return policy.Report{}, err
	}
	lists, err := h.openLists()
	if err != nil {
		return policy.Report{}, err
	}
	defer lists.close()
	return policy.Evaluate(rules, policy.Input{
		Operation: j.operation, ID: j.id, Version: j.version, Platform: j.platform, Archive: j.archive,
		Facts: j.evidence.Facts(), Refused: j.evidence.refused(),
		SBOM: j.sbom.forPolicy(), Lock: j.locked, Lists: lists.states(j.floors, h.now()), Now: h.now(),
	}), nil
}

// vouched refuses to have a package trusted that the user's policy does not accept:
// what is kept of its archive is proved again, and its SBOM compared with its files. The
// floors of revocation lists are those of lock, which may be nil, for what it names.
func (h *Home) vouched(ctx context.Context, c *Contents, where string, archive digest.Digest, lock *Lock) error {
	if h.assure == nil {
		return nil
	}
	prove := &proving{home: h}
	defer prove.close()
	evidence, err := prove.again(ctx, archive)
	if err != nil {
		return err
	}
	sbom, err := prove.sbom(ctx, where, c.Files)
	if err != nil {
		return err
	}
	report, err := h.judge(judged{operation: policy.Trust, id: c.Manifest.ID, version: c.Manifest.Version, platform: c.Head.Platform,
		archive: archive, evidence: evidence, sbom: sbom, floors: lock.floors(c.Manifest.ID, archive)})
	if err != nil {
		return err
	}
	return report.Err()
}

// evidence is what the lock records of the evidence of an archive, nil where it does not
// name the archive, or there is no lock.
func (l *Lock) evidence(id string, archive digest.Digest) *policy.Locked {
	if l == nil {
		return nil
	}
	entry, _ := l.File.Plugin(id)
	for _, at := range entry.Platforms {
		if at.Archive == archive {
			return lockedEvidence(entry, at)
		}
	}
	return nil
}

// floors are the lock's floors of revocation lists, for an archive that it names.
func (l *Lock) floors(id string, archive digest.Digest) []lockfile.Floor {
	if l.evidence(id, archive) == nil {
		return nil
	}
	return l.File.Revocations
}

// lockedEvidence is what a lock entry records of the evidence of one platform.
func lockedEvidence(e lockfile.Plugin, at lockfile.Platform) *policy.Locked {
	l := &policy.Locked{}
	if e.Signer != nil {
		l.Signer = &verify.Signer{Key: e.Signer.Key, Identity: e.Signer.Identity, Issuer: e.Signer.Issuer}
	}
	for _, kind := range at.Evidence {
		l.Evidence = append(l.Evidence, verify.Kind(kind))
	}
	return l
}

// toLock is what a lock entry records of this evidence: who signed, and the kinds.
func (e *Evidence) toLock() (*lockfile.Signer, []string) {
	var signer *lockfile.Signer
	if signers := e.signers(); len(signers) > 0 {
		signer = &lockfile.Signer{Key: signers[0].Key, Identity: signers[0].Identity, Issuer: signers[0].Issuer}
	}
	var kinds []string
	for _, k := range e.Kinds() {
		kinds = append(kinds, string(k))
	}
	return signer, kinds
}

// evidencePath is where the evidence of an archive is kept: beside it.
func (h *Home) evidencePath(archive digest.Digest) string {
	return h.archivePath(archive) + evidenceSuffix
}

// keepEvidence stores what vouches for an archive, so that it can be proved again.
// Bundles that prove nothing are not kept.
func (h *Home) keepEvidence(e *Evidence) error {
	if len(e.Facts()) == 0 {
		return nil
	}
	kept := *e
	kept.Proofs = slices.DeleteFunc(slices.Clone(e.Proofs), func(p Proof) bool { return p.Facts == nil })
	kept.Proofs = append(kept.Proofs, h.keptBefore(&kept)...)
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if err := h.ensure(archivesDir); err != nil {
		return err
	}
	if err := textfile.Write(h.evidencePath(e.Archive), append(text, '\n')); err != nil {
		return h.cannotWrite("store", err)
	}
	return nil
}

// keptBefore is what was kept of the same archive under the same trusted root, and is
// not among e: a reinstall with another signature adds it. What cannot be read, or has
// no place any more, is not taken over.
func (h *Home) keptBefore(e *Evidence) []Proof {
	old, err := h.Evidence(e.Archive)
	if err != nil || old == nil || !bytes.Equal(old.TrustedRoot, e.TrustedRoot) {
		return nil
	}
	more := slices.DeleteFunc(old.Proofs, func(p Proof) bool {
		return slices.ContainsFunc(e.Proofs, func(q Proof) bool { return q.Kind == p.Kind && bytes.Equal(q.Document, p.Document) })
	})
	return more[:min(len(more), max(0, maxBundles-len(e.Proofs)))]
}

// maxEvidence bounds the file of keepEvidence, in bytes: its bundles in base64.
const maxEvidence = (maxBundles*verify.MaxBundle + verify.MaxTrustedRoot) * 2

// Evidence returns what was kept of an archive, nil where nothing was. Its facts are
// what was proved then; Verify proves them again.
func (h *Home) Evidence(archive digest.Digest) (*Evidence, error) {
	if archive == "" {
		return nil, nil
	}
	path := h.evidencePath(archive)
	raw, err := readOwn(path, maxEvidence)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	bad := func(err error) error {
		return &Malformed{Where: filepath.Dir(path), File: filepath.Base(path), Err: err}
	}
	var e Evidence
	if err := json.Unmarshal(raw, &e, json.RejectUnknownMembers(true)); err != nil {
		return nil, bad(err)
	}
	if e.Archive != archive {
		return nil, bad(fmt.Errorf("is about the archive %s", e.Archive))
	}
	return &e, nil
}
