package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// A Verdict is the outcome of one check. There is no verdict that means nothing:
// no evidence is "unsigned", a check that was not made is "skipped".
type Verdict string

// Every verdict.
const (
	Verified Verdict = "verified"
	Unsigned Verdict = "unsigned" // digests are right, and nobody signed it
	Skipped  Verdict = "skipped"
	Failed   Verdict = "failed"
	Absent   Verdict = "absent" // of an SBOM only: there is none to check
)

// Verification is what Verify found out about one package.
type Verification struct {
	ID, Version string
	Where       string
	Package     digest.Digest
	Verdict     Verdict
	Digests     Verdict // of the files against what was recorded
	Signature   Verdict
	Revocation  Verdict         // against the local denials
	SBOM        Verdict         // of the package's SBOM against its files
	Reason      string          // why checks were skipped, all of them, and what the SBOM leaves open
	Err         error           // why it failed
	Signers     []verify.Signer // who signed, as proved now; whom the policy names or not
	Evidence    []verify.Kind   // the kinds of evidence that were proved
}

// Verify hashes the named packages, or every installed version when none is named,
// and compares them with what was recorded. It reads every byte, whatever was seen
// before, several packages at a time. Of an archive that lock names, which may be nil,
// there must be the evidence that it records.
func (h *Home) Verify(ctx context.Context, refs []Ref, lock *Lock) ([]Verification, error) {
	targets, err := h.verifyTargets(ctx, refs, lock)
	if err != nil {
		return nil, err
	}
	out := make([]Verification, len(targets))
	var wg sync.WaitGroup
	prove := &proving{home: h}
	defer prove.close()
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(targets)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(targets)); i = next.Add(1) - 1 {
				out[i] = h.verifyOne(ctx, targets[i], lock, prove)
			}
		})
	}
	wg.Wait()
	return out, context.Cause(ctx)
}

// target is one package to verify: a recorded one, or a directory that was never
// recorded.
type target struct {
	ref      Ref
	path     string
	dir      string // below plugins/, of a default version
	mirror   string // its path
	want     digest.Digest
	subject  subject
	platform string
}

func (h *Home) verifyTargets(ctx context.Context, refs []Ref, lock *Lock) ([]target, error) {
	var list []target
	for _, ref := range refs {
		sel, err := h.selectPackage(ctx, ref, lock, lockGuides, "")
		if err != nil {
			return nil, err
		}
		list = append(list, h.targetOf(sel))
	}
	if len(refs) > 0 {
		return list, nil
	}
	// Directories first: one that is seen is then recorded, if it was installed.
	dirs, err := h.pluginDirs()
	if err != nil {
		return nil, err
	}
	stored, err := h.storedTrees()
	if err != nil {
		return nil, err
	}
	var installs []state.Install
	defaults := map[digest.Digest]string{}
	recorded := map[string]bool{}
	err = h.state.View(ctx, func(tx *state.Tx) (err error) {
		all, err := tx.Defaults()
		if err != nil {
			return err
		}
		for _, d := range all {
			defaults[d.Package], recorded[d.Dir] = d.Dir, true
		}
		installs, err = tx.Installs()
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, in := range installs {
		t := target{ref: Ref{ID: in.ID, Digest: in.Package}, path: h.storePath(in.Package), want: in.Package, subject: subjectOf(in), platform: in.Platform}
		if dir, ok := defaults[in.Package]; ok && exists(h.pluginPath(dir)) {
			t.dir, t.mirror = dir, h.pluginPath(dir)
		}
		if !stored[in.Package] && !exists(t.path) {
			if t.mirror != "" {
				t.path = t.mirror
			} else if h.checkDenied(t.subject) != nil {
				continue // in quarantine
			}
		}
		list = append(list, t)
	}
	for _, name := range dirs {
		if !recorded[name] {
			list = append(list, target{ref: Ref{ID: name}, path: h.pluginPath(name)})
		}
	}
	return byName(list), nil
}

// byName sorts targets by what they are called. Their names are made once: a list of
// all packages is long.
func byName(list []target) []target {
	type named struct {
		name string
		at   int
	}
	order := make([]named, len(list))
	for i, t := range list {
		order[i] = named{t.ref.String(), i}
	}
	slices.SortStableFunc(order, func(a, b named) int { return strings.Compare(a.name, b.name) })
	out := make([]target, len(list))
	for i, n := range order {
		out[i] = list[n.at]
	}
	return out
}

// storedTrees returns the packages whose names stand in the store.
func (h *Home) storedTrees() (map[digest.Digest]bool, error) {
	names, err := readNames(h.join(storeDir))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	trees := make(map[digest.Digest]bool, len(names))
	for _, name := range names {
		if d, err := digest.ParseDirName(name); err == nil {
			trees[d] = true
		}
	}
	return trees, nil
}

func (h *Home) targetOf(sel *selection) target {
	t := target{ref: sel.ref, path: sel.path, want: sel.recorded, subject: sel.subject()}
	if sel.install != nil {
		t.platform = sel.install.Platform
	}
	if sel.dirName != "" && sel.path != h.pluginPath(sel.dirName) {
		t.dir, t.mirror = sel.dirName, h.pluginPath(sel.dirName)
	}
	return t
}

// unchecked is a Verification before the first check: what is not checked stays skipped.
func unchecked(where string) Verification {
	return Verification{Where: where, Digests: Skipped, Signature: Unsigned, Revocation: Skipped, SBOM: Skipped, Verdict: Skipped}
}

// fail records that a check failed. The first failure is the one that is told.
func (v *Verification) fail(check *Verdict, err error) {
	*check, v.Verdict = Failed, Failed
	if v.Err == nil {
		v.Err = err
	}
}

// skip records why a check was skipped.
func (v *Verification) skip(why string) {
	if v.Reason != "" {
		v.Reason += "; "
	}
	v.Reason += why
}

// judgeSBOM takes over what came of the SBOM of a package whose files are known. That a
// failed one fails the package is for the policy to say.
func (v *Verification) judgeSBOM(c *SBOMCheck, err error) {
	if err != nil {
		v.fail(&v.SBOM, err)
		return
	}
	v.SBOM = c.Verdict()
	for _, problem := range c.Problems() {
		if v.SBOM == Verified {
			problem = "SBOM: " + problem
		}
		v.skip(problem)
	}
}

// judgeDenials compares a package whose identity is known with the local denials and
// the signed lists, which may name who vouches for it.
func (v *Verification) judgeDenials(h *Home, s subject, e *Evidence) {
	v.Revocation = Verified
	if err := h.checkDenied(s, e.vouching(verify.Signature, verify.Provenance)...); err != nil {
		v.fail(&v.Revocation, err)
	}
}

func (h *Home) verifyOne(ctx context.Context, t target, lock *Lock, prove *proving) Verification {
	v := unchecked(t.path)
	v.ID, v.Version, v.Package = t.ref.ID, t.subject.Version, t.want
	var files []digest.File
	if t.want == "" {
		c, err := readTree(ctx, t.path)
		if errors.Is(err, fs.ErrNotExist) {
			v.skip(errGone.Error())
			return v
		}
		if err != nil {
			v.fail(&v.Digests, err) // nothing says what it is: no denial can be compared
			return v
		}
		v.ID, v.Version, v.Package, t.subject = c.Manifest.ID, c.Manifest.Version, c.Package, c.subject()
		files = c.Files
		v.skip("it was put there by hand and never reviewed: there is no recorded digest")
	} else if found, err := h.verifyDigests(ctx, t); errors.Is(err, errGone) {
		v.skip(err.Error())
		return v
	} else if err != nil {
		v.fail(&v.Digests, err)
	} else {
		v.Digests, v.Verdict = Verified, Unsigned
		files = found
	}
	var sbom *SBOMCheck
	if files != nil {
		var err error
		sbom, err = prove.sbom(ctx, t.path, files)
		v.judgeSBOM(sbom, err)
	}
	evidence, err := prove.again(ctx, t.subject.Archive)
	v.judgeDenials(h, t.subject, evidence)
	v.judgeEvidence(h, judged{operation: policy.Install, id: v.ID, version: v.Version, platform: t.platform,
		archive: t.subject.Archive, evidence: evidence, sbom: sbom, locked: lock.evidence(v.ID, t.subject.Archive),
		floors: lock.floors(v.ID, t.subject.Archive)}, err)
	return v
}

// judgeEvidence says of a package whose digests are known who vouches for it, by the
// user's policy. err is why that could not be found out.
func (v *Verification) judgeEvidence(h *Home, j judged, err error) {
	switch {
	case errors.Is(err, errNoAssurance):
		v.Signature = Skipped
		v.skip(err.Error())
		return
	case err != nil:
		v.fail(&v.Signature, err)
		return
	}
	v.Signers = j.evidence.signers()
	v.Evidence = j.evidence.Kinds()
	report, err := h.judge(j)
	switch {
	case err != nil:
		v.fail(&v.Signature, err)
		return
	case !report.Accepted():
		check := &v.Signature
		if !slices.ContainsFunc(report.Failed(), func(r policy.Result) bool { return r.Rule != "sbom" && r.Rule != "licence" }) {
			check = new(Verdict) // the signature is as good as ever, and the SBOM's verdict stands
		}
		v.fail(check, report.Err())
	}
	switch {
	case v.Signature == Failed:
	case len(report.Signers) > 0:
		v.Signature = Verified
		if v.Verdict == Unsigned {
			v.Verdict = Verified
		}
	case len(v.Signers) > 0:
		if v.Signature = Skipped; v.Verdict == Unsigned {
			v.Verdict = Skipped
		}
		v.skip("it is signed by somebody whom no policy names")
	case j.evidence.unknownKey():
		if v.Signature = Skipped; v.Verdict == Unsigned {
			v.Verdict = Skipped
		}
		v.skip("it is signed with a key that is not known here, so the signature was not checked")
	}
}

// errGone says that a package was removed while it was being verified.
var errGone = errors.New("it was removed meanwhile")

// verifyDigests is compareDigests and checkSealed, once more where an install got in
// between, and records a change.
func (h *Home) verifyDigests(ctx context.Context, t target) ([]digest.File, error) {
	for try := 1; ; try++ {
		files, sealed, differs := h.compareDigests(ctx, t)
		var found digest.Digest
		var fault error
		var mismatch *Integrity
		switch {
		case differs == nil && sealed:
			return files, nil
		case differs == nil:
			if differs = t.checkSealed(); differs == nil {
				return files, nil
			}
			found, fault = t.want, differs
		case errors.As(differs, &mismatch):
			found = mismatch.Found
		default:
			return nil, differs
		}
		if try == rehashTries {
			return nil, differs
		}
		sel := &selection{ref: Ref{ID: t.subject.ID, Version: t.subject.Version}, path: t.path, recorded: t.want, dirName: t.dir}
		var superseded *Superseded
		if err := h.changed(ctx, sel, found, fault); !errors.As(err, &superseded) {
			return nil, differs // the verdict says so, whether it could be recorded or not
		}
		if err := h.refresh(ctx, &t); err != nil {
			return nil, err
		}
	}
}

// checkSealed refuses a package that others could write, in the store or where it is
// the default version. What is being replaced at this moment is for the next look.
func (t target) checkSealed() error {
	for _, tree := range []string{t.path, t.mirror} {
		if tree == "" {
			continue
		}
		if err := unreadable(tree, checkSealed(tree)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// refresh reads again where a package stands.
func (h *Home) refresh(ctx context.Context, t *target) error {
	return h.state.View(ctx, func(tx *state.Tx) error {
		in, err := optional(tx.Install(t.want))
		if err != nil {
			return err
		}
		if in == nil || exists(h.quarantinePath(t.want)) {
			return errGone
		}
		if t.dir != "" {
			def, err := optional(tx.Default(t.dir))
			if err != nil {
				return err
			}
			if def == nil || def.Package != t.want {
				t.dir, t.mirror, t.path = "", "", h.storePath(t.want)
			}
		}
		return nil
	})
}

// compareDigests hashes the store's tree and makes sure that the default directory
// is the same one. It returns the store's files; sealed says that it saw, in passing,
// that nobody else can write to either.
func (h *Home) compareDigests(ctx context.Context, t target) (files []digest.File, sealed bool, _ error) {
	where := t.path
	found, files, err := hashFiles(ctx, t.path, archive.HashDirAlone)
	if err == nil && found == t.want && t.mirror != "" && t.mirror != t.path {
		var same bool
		if same, sealed = linked(files, t.path, t.mirror); !same {
			where, sealed = t.mirror, false
			found, err = hashPath(ctx, t.mirror)
		}
	}
	if err == nil && found == t.want {
		return files, sealed, nil
	}
	causes := []string{"files were changed after the install", "the disk is failing"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		causes = []string{"the directory was removed by hand"}
	case err != nil && !isFault(err):
		return nil, false, err
	}
	return nil, false, errors.Join(&Integrity{What: "package digest", Expected: t.want, Found: found, Where: where, Causes: causes}, err)
}

// VerifyArchive checks an archive on its own: its digest where one is wanted, every
// rule of extraction and manifest, what denies it, and what vouches for it, which is no
// less than a lock records.
func (h *Home) VerifyArchive(ctx context.Context, source string, want digest.Digest, asked Asked) (Verification, error) {
	v := unchecked(source)
	s, err := h.readSource(ctx, source, want)
	if err == nil {
		defer s.discard()
		var c *Contents
		if c, err = s.contents(); err == nil {
			v.ID, v.Version, v.Package = c.Manifest.ID, c.Manifest.Version, c.Package
			v.Digests, v.Verdict = Verified, Unsigned
			if err := asked.check(c, s.archive, source); err != nil {
				v.fail(&v.Digests, err)
				return v, nil
			}
			subject := c.subject()
			subject.Archive = s.archive
			sbom, err := s.sbom(ctx, c)
			v.judgeSBOM(sbom, err)
			evidence, err := s.evidence()
			v.judgeDenials(h, subject, evidence)
			v.judgeEvidence(h, judged{operation: policy.Install, id: v.ID, version: v.Version, platform: c.Head.Platform,
				archive: s.archive, evidence: evidence, sbom: sbom, locked: asked.Lock.evidence(v.ID, s.archive),
				floors: asked.Lock.floors(v.ID, s.archive)}, err)
			return v, nil
		}
	}
	var integrity *Integrity
	if isFault(err) || errors.As(err, &integrity) {
		v.fail(&v.Digests, err)
		return v, nil
	}
	return v, err
}
