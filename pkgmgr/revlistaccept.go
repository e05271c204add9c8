package pkgmgr

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// proveOffer asks the worker who signed what is offered.
func (h *Home) proveOffer(ctx context.Context, o *listOffer) error {
	if len(o.listBundles) == 0 && !slices.ContainsFunc(o.roots, func(r *offeredRoot) bool { return len(r.bundles) > 0 }) {
		return nil
	}
	p := &proving{home: h}
	defer p.close()
	prove := func(path string, sum digest.Digest, bundles [][]byte) ([]verify.Signer, error) {
		signers, refusal, err := p.signersOf(ctx, path, sum, bundles, o.keys)
		if refusal != nil && o.why == nil {
			o.why = refusal
		}
		return signers, err
	}
	for i, r := range o.roots {
		bundles, err := splitBundles(RootFile+BundlesSuffix, r.bundles)
		if err != nil {
			return refusedFile(r.Issuer, CodeRootUnreadable, err)
		}
		path := filepath.Join(o.dir, RootFile)
		if i < len(o.roots)-1 { // an Ed25519 signature is over the bytes
			path = filepath.Join(o.dir, EarlierRootFile(r.Version))
			if err := writeSynced(path, r.raw); err != nil {
				return h.cannotWrite("staging", err)
			}
		}
		r.signers, err = prove(path, r.digest, bundles)
		if i < len(o.roots)-1 {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			return err
		}
	}
	var err error
	o.listSigners, err = prove(filepath.Join(o.dir, ListFile), o.list.Digest, o.listBundles)
	return err
}

// signersOf returns who signed the document at path, each once. keys may have signed
// beside the user's own. refusal is why the first bundle that does not count does not, nil
// where all do.
func (p *proving) signersOf(ctx context.Context, path string, sum digest.Digest, bundles [][]byte, keys []string) (signers []verify.Signer, refusal *verify.Refusal, err error) {
	for _, b := range bundles {
		worker, a, err := p.worker(ctx)
		if err != nil {
			return nil, nil, err
		}
		facts, err := worker.Bundle(ctx, verify.BundleRequest{Kind: verify.Signature, Artifact: sum, Path: path, Document: b,
			TrustedRoot: a.TrustedRoot, Keys: slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Keys, keys)))), Now: p.home.now()})
		var no *verify.Refusal
		switch {
		case errors.As(err, &no):
			refusal = cmp.Or(refusal, no)
		case err != nil:
			return nil, nil, err
		case !slices.Contains(signers, facts.Signer):
			signers = append(signers, facts.Signer)
		}
	}
	return signers, refusal, nil
}

// tooFew adds to a lack of signers why one of the signatures did not count.
func (o *listOffer) tooFew(err error) error {
	err = refusedList(o.list.Issuer, err)
	var refused *ListRefused
	if errors.As(err, &refused) {
		refused.Root = o.rootDigest
		if o.why != nil {
			refused.Reason += "; a signature does not count: " + o.why.Error()
		}
	}
	return err
}

// acceptRoots settles which root speaks for the issuer, one rotation after the other, and
// returns whether the issuer was known and what was seen of its lists.
func (h *Home) acceptRoots(o *listOffer, s listSource, out *ListUpdate) (known bool, seen revlist.State, err error) {
	issuer := o.list.Issuer
	root, sum, err := h.root(issuer)
	if err != nil {
		return false, seen, err
	}
	next := o.roots
	if root == nil {
		switch {
		case s.project:
			return false, seen, s.notFollowed(issuer, o.rootDigest)
		case len(next) == 0:
			return false, seen, &ListRefused{Issuer: issuer, Code: CodeRootMissing, Reason: "the issuer is not known here, and there is no " + RootFile + " beside the list"}
		case s.first == "" || s.first != next[0].digest:
			return false, seen, untrustedRoot(issuer, o.rootDigest)
		}
		if err := next[0].AcceptsItself(next[0].signers); err != nil {
			return false, seen, o.tooFew(err)
		}
		root, sum, next = next[0].Root, next[0].digest, next[1:]
		seen, out.RootAdopted = revlist.State{Issuer: issuer}, true
	} else {
		known = true
		if seen, err = h.seen(issuer); err != nil {
			return known, seen, err
		}
		out.Was = seen.Floor
		// Another update may have come so far meanwhile.
		if n := len(next); n > 0 && next[n-1].digest == sum {
			next = nil
		}
	}
	for _, r := range next {
		if err := revlist.Rotate(root, r.Root, r.signers); err != nil {
			return known, seen, o.tooFew(err)
		}
		root, sum = r.Root, r.digest
		seen, out.RootAdopted = seen.Rotated(), true
	}
	out.Root, out.RootDigest = root, sum
	if root.Issuer != issuer {
		return known, seen, &ListRefused{Issuer: issuer, Code: ListCode(revlist.RootWrongIssuer), Root: o.rootDigest, Reason: "the root beside it is of " + root.Issuer}
	}
	return known, seen, refusedList(issuer, root.Current(h.now()))
}

// acceptList demands enough signers and no step back.
func (h *Home) acceptList(o *listOffer, seen revlist.State, out *ListUpdate) error {
	if err := out.Root.AcceptsList(o.listSigners); err != nil {
		return o.tooFew(err)
	}
	out.Signers = slices.DeleteFunc(slices.Clone(o.listSigners), func(s verify.Signer) bool { return !slices.Contains(out.Root.ListSigners, s) })
	out.Verdict = revlist.Judge(seen, &o.list, h.now())
	if !out.Verdict.Adoptable() {
		return &ListRefused{Issuer: o.list.Issuer, Code: ListCode(out.Verdict.Code()), Reason: out.Verdict.Message, Root: o.rootDigest}
	}
	out.Unchanged = seen.Digest == o.list.Digest
	return nil
}
