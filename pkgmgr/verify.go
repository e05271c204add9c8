package pkgmgr

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
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
)

// Verification is what Verify found out about one package.
type Verification struct {
	ID, Version string
	Where       string
	Package     digest.Digest
	Verdict     Verdict
	Digests     Verdict // of the files against what was recorded
	Signature   Verdict
	Revocation  Verdict // against the local denials
	Reason      string  // why a check was skipped
	Err         error   // why it failed
}

// Verify hashes the named packages, or every installed version when none is named,
// and compares them with what was recorded. It reads every byte, whatever was seen
// before, several packages at a time.
func (h *Home) Verify(ctx context.Context, refs []Ref, lock *Lock) ([]Verification, error) {
	targets, err := h.verifyTargets(ctx, refs, lock)
	if err != nil {
		return nil, err
	}
	out := make([]Verification, len(targets))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(targets)) {
		wg.Go(func() {
			for i := range next {
				out[i] = h.verifyOne(ctx, targets[i])
			}
		})
	}
	for i := range targets {
		next <- i
	}
	close(next)
	wg.Wait()
	return out, context.Cause(ctx)
}

// target is one package to verify: a recorded one, or a directory that was never
// recorded.
type target struct {
	ref     Ref
	path    string
	dir     string // below plugins/, of a default version
	mirror  string // its path
	want    digest.Digest
	subject subject
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
		t := target{ref: Ref{ID: in.ID, Digest: in.Package}, path: h.storePath(in.Package), want: in.Package, subject: subjectOf(in)}
		if dir, ok := defaults[in.Package]; ok && exists(h.pluginPath(dir)) {
			t.dir, t.mirror = dir, h.pluginPath(dir)
		}
		if !exists(t.path) {
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
	slices.SortStableFunc(list, func(a, b target) int {
		switch {
		case a.ref.String() < b.ref.String():
			return -1
		case a.ref.String() > b.ref.String():
			return 1
		}
		return 0
	})
	return list, nil
}

func (h *Home) targetOf(sel *selection) target {
	t := target{ref: sel.ref, path: sel.path, want: sel.recorded, subject: sel.subject()}
	if sel.dirName != "" && sel.path != h.pluginPath(sel.dirName) {
		t.dir, t.mirror = sel.dirName, h.pluginPath(sel.dirName)
	}
	return t
}

func (h *Home) verifyOne(ctx context.Context, t target) Verification {
	v := Verification{ID: t.ref.ID, Version: t.subject.Version, Where: t.path, Package: t.want,
		Digests: Verified, Signature: Unsigned, Revocation: Verified, Verdict: Unsigned}
	fail := func(check *Verdict, err error) Verification {
		*check, v.Verdict, v.Err = Failed, Failed, err
		return v
	}
	if t.want == "" {
		c, err := readTree(ctx, t.path)
		if err != nil {
			return fail(&v.Digests, err)
		}
		v.ID, v.Version, v.Package, t.subject = c.Manifest.ID, c.Manifest.Version, c.Package, c.subject()
		v.Digests, v.Verdict, v.Reason = Skipped, Skipped, "it was put there by hand and never reviewed: there is no recorded digest"
	} else if err := h.verifyDigests(ctx, t); errors.Is(err, errGone) {
		v.Digests, v.Verdict, v.Reason = Skipped, Skipped, err.Error()
		return v
	} else if err != nil {
		return fail(&v.Digests, err)
	}
	if err := h.checkDenied(t.subject); err != nil {
		return fail(&v.Revocation, err)
	}
	return v
}

// errGone says that a package was removed while it was being verified.
var errGone = errors.New("it was removed meanwhile")

// verifyDigests is compareDigests, once more where an install got in between, and
// records a change.
func (h *Home) verifyDigests(ctx context.Context, t target) error {
	for try := 1; ; try++ {
		differs := h.compareDigests(ctx, t)
		var mismatch *Integrity
		if !errors.As(differs, &mismatch) || try == rehashTries {
			return differs
		}
		sel := &selection{ref: Ref{ID: t.subject.ID, Version: t.subject.Version}, path: t.path, recorded: t.want, dirName: t.dir}
		var superseded *Superseded
		if err := h.changed(ctx, sel, mismatch.Found, nil); !errors.As(err, &superseded) {
			return differs // the verdict says so, whether it could be recorded or not
		}
		if err := h.refresh(ctx, &t); err != nil {
			return err
		}
	}
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
// is the same one.
func (h *Home) compareDigests(ctx context.Context, t target) error {
	where := t.path
	found, err := hashPath(ctx, t.path)
	if err == nil && found == t.want && t.mirror != "" && t.mirror != t.path && !sameInodes(t.path, t.mirror) {
		where = t.mirror
		found, err = hashPath(ctx, t.mirror)
	}
	if err == nil && found == t.want {
		return nil
	}
	causes := []string{"files were changed after the install", "the disk is failing"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		causes = []string{"the directory was removed by hand"}
	case err != nil && !isFault(err):
		return err
	}
	return errors.Join(&Integrity{What: "package digest", Expected: t.want, Found: found, Where: where, Causes: causes}, err)
}

// VerifyArchive checks an archive on its own: its digest where one is wanted, every
// rule of extraction and manifest, and the local denials.
func (h *Home) VerifyArchive(ctx context.Context, source string, want digest.Digest) (Verification, error) {
	v := Verification{Where: source, Digests: Verified, Signature: Unsigned, Revocation: Verified, Verdict: Unsigned}
	s, err := h.readSource(ctx, source, want)
	if err == nil {
		defer s.discard()
		var c *Contents
		if c, err = s.contents(); err == nil {
			v.ID, v.Version, v.Package = c.Manifest.ID, c.Manifest.Version, c.Package
			subject := c.subject()
			subject.Archive = s.archive
			if err := h.checkDenied(subject); err != nil {
				v.Revocation, v.Verdict, v.Err = Failed, Failed, err
			}
			return v, nil
		}
	}
	var integrity *Integrity
	if isFault(err) || errors.As(err, &integrity) {
		v.Digests, v.Verdict, v.Err = Failed, Failed, err
		return v, nil
	}
	return v, err
}
