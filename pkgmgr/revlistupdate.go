package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// The codes of ListRefused beside those of package revlist.
const (
	CodeListSigners   = "list.signers"   // too few of those who may sign a list signed it
	CodeRootSigners   = "root.signers"   // too few of those who must sign a root signed it
	CodeRootUntrusted = "root.untrusted" // a first root, and nobody said that it is the right one
	CodeRootMissing   = "root.missing"   // the list's issuer is not known here, and no root came with it

	CodeIssuerReserved = "list.issuer_reserved" // the issuer's name is that of a file in revocations/
)

// The bounds of the bundles beside a document, and of the keys in its directory.
const (
	maxDocumentBundles = 2 * revlist.MaxSigners
	maxBundlesBytes    = 64 << 20
)

// EventLists is the history's kind of an adopted list.
const EventLists = "revocations.update"

// A ListRefused says why a revocation list or its root is not adopted. What was
// adopted before stays in force.
type ListRefused struct {
	Issuer string // "" where that is not known
	Code   string
	Fault  revlist.Code // of an unreadable document: which rule it breaks; else ""
	Reason string
	Root   digest.Digest // of the root that came with the list, "" where none did
	Err    error         // what package revlist or the verify worker said; may be nil
}

func (e *ListRefused) Error() string {
	if e.Issuer == "" {
		return "revocation list refused: " + e.Reason
	}
	return fmt.Sprintf("revocation list of %s refused: %s", e.Issuer, e.Reason)
}

func (e *ListRefused) Unwrap() error { return e.Err }

// ListCode is the code of a refusal for a code of package revlist. Documents that
// break a rule of their format have one code; which rule it is, is the fault.
func ListCode(fault revlist.Code) (code string) {
	switch fault {
	case revlist.WrongIssuer.Code():
		code = "list.wrong_issuer"
	case revlist.Rollback.Code():
		code = "list.rollback"
	case revlist.Equivocation.Code():
		code = "list.equivocation"
	case revlist.Future.Code():
		code = "list.future"
	case revlist.RootExpired:
		code = "root.expired"
	case revlist.RootWrongIssuer:
		code = "root.wrong_issuer"
	case revlist.RootVersion:
		code = "root.version"
	default:
		code = "list.unreadable"
		if strings.HasPrefix(string(fault), "root.") {
			code = "root.unreadable"
		}
	}
	return code
}

// refusedList gives what package revlist found wrong its code.
func refusedList(issuer string, err error) error {
	var (
		fault *revlist.Error
		root  *revlist.RootError
		few   *revlist.TooFewError
	)
	switch {
	case errors.As(err, &fault):
		return &ListRefused{Issuer: issuer, Code: ListCode(fault.Code), Fault: fault.Code, Reason: fault.Error(), Err: err}
	case errors.As(err, &root):
		return &ListRefused{Issuer: issuer, Code: ListCode(root.Code), Reason: root.Error(), Err: err}
	case errors.As(err, &few) && few.Role == "list":
		return &ListRefused{Issuer: issuer, Code: CodeListSigners, Reason: few.Error(), Err: err}
	case errors.As(err, &few):
		return &ListRefused{Issuer: issuer, Code: CodeRootSigners, Reason: few.Error(), Err: err}
	}
	return err
}

// A ListUpdate says what UpdateLists did.
type ListUpdate struct {
	List        revlist.Header
	Verdict     revlist.Verdict // expired lists are adopted, too: they deny more than older ones
	Was         uint64          // the version before; 0: there was none
	Unchanged   bool            // this list was adopted before
	Root        *revlist.Root
	RootDigest  digest.Digest
	RootAdopted bool // the first one, or the next one
	Signers     []verify.Signer
	Stopped     int // running calls that were told to stop
}

// A listOffer is what a source offers, copied to where nobody changes it.
type listOffer struct {
	dir                    string // holds the files under their names, and the index
	list                   revlist.Header
	listBundles            [][]byte
	root                   *revlist.Root // nil: no root came with the list
	rootDigest             digest.Digest
	rootBundles            [][]byte
	keys                   []string
	listSigners, rootSigns []verify.Signer
	why                    error // the first refusal of a bundle
}

// UpdateLists adopts the list at source, a file or a directory that holds ListFile,
// with the root beside it where there is one. Everything is verified before anything
// changes: the root against its digest first (the first time) or the root before (a
// rotation), then who signed the list, then that it is no step back. Killed at any
// point it leaves the old list or the new one.
func (h *Home) UpdateLists(ctx context.Context, source string, first digest.Digest) (*ListUpdate, error) {
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	stage, err := h.newStage()
	if err != nil {
		return nil, err
	}
	defer stage.discard()
	o, err := h.takeOffer(stage, source)
	if err != nil {
		return nil, err
	}
	if err := h.proveOffer(ctx, o); err != nil {
		return nil, err
	}
	out := &ListUpdate{List: o.list, Signers: o.listSigners}
	known, before, err := h.acceptRoot(o, first, out)
	if err != nil {
		return nil, err
	}
	if err := h.acceptList(o, before, out); err != nil {
		return nil, err
	}
	next, err := encodeSeen(before.Adopted(o.list))
	if err != nil {
		return nil, err
	}
	if err := writeSynced(filepath.Join(o.dir, seenFile), next); err != nil {
		return nil, h.cannotWrite("revocation lists", err)
	}
	if err := h.swapLists(o, known, before, out.RootAdopted); err != nil {
		return nil, h.cannotWrite("revocation lists", err)
	}
	if out.Stopped, err = h.stopListed(); err != nil || out.Unchanged && !out.RootAdopted {
		return out, err
	}
	return out, h.update(ctx, func(tx *state.Tx) error {
		return tx.AppendEvent(h.event(EventLists, "", "", "", map[string]string{"issuer": o.list.Issuer,
			"version": fmt.Sprint(o.list.Version), "list": string(o.list.Digest), "root": string(out.RootDigest)}))
	})
}

// takeOffer copies what source holds into the stage and reads it strictly.
func (h *Home) takeOffer(stage *stage, source string) (*listOffer, error) {
	info, err := os.Stat(source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFound{Kind: "source", Name: source}
	}
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	list, dir := source, filepath.Dir(source)
	if info.IsDir() {
		list, dir = filepath.Join(source, ListFile), source
	}
	o := &listOffer{dir: stage.join("lists")}
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		return nil, h.cannotWrite("staging", err)
	}
	copied, err := copyList(list, filepath.Join(o.dir, ListFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFound{Kind: "source", Name: list}
	}
	if err != nil {
		return nil, err
	}
	defer copied.Close()
	h.on.stage("reading the revocation list")
	if o.list, err = indexList(o.dir, copied); err != nil {
		return nil, refusedList("", err)
	}
	if reservedIssuer(o.list.Issuer) {
		return nil, &ListRefused{Issuer: o.list.Issuer, Code: CodeIssuerReserved, Reason: "no issuer can have the name of a file that this program keeps beside the lists"}
	}
	if o.listBundles, err = takeBundles(list, filepath.Join(o.dir, ListFile)); err != nil {
		return nil, err
	}
	raw, err := readUpTo(filepath.Join(dir, RootFile), revlist.MaxRootBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("revocation root: %w", err)
	default:
		if o.root, err = parseRoot(raw); err != nil {
			return nil, refusedList(o.list.Issuer, err)
		}
		o.rootDigest = digest.Of(raw)
		if err := writeSynced(filepath.Join(o.dir, RootFile), raw); err != nil {
			return nil, h.cannotWrite("staging", err)
		}
		if o.rootBundles, err = takeBundles(filepath.Join(dir, RootFile), filepath.Join(o.dir, RootFile)); err != nil {
			return nil, err
		}
	}
	o.keys, err = keysIn(dir)
	return o, err
}

// copyList copies at most one byte more than a list may have.
func copyList(from, to string) (*os.File, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("revocation list: %s is not a regular file", from)
	}
	in, err := os.Open(from)
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	_, err = io.Copy(out, io.LimitReader(in, revlist.MaxBytes+1))
	if err == nil {
		err = out.Sync()
	}
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("staging: %w", err)
	}
	return out, nil
}

// takeBundles reads the bundles beside a document, one a line, and copies them. Where
// there is no such file, there are none.
func takeBundles(document, to string) ([][]byte, error) {
	path := document + BundlesSuffix
	raw, err := readUpTo(path, maxBundlesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bundles: %w", err)
	}
	bad := func(format string, args ...any) error {
		return &Malformed{Where: filepath.Dir(path), File: filepath.Base(path), Err: fmt.Errorf(format, args...)}
	}
	if len(raw) > maxBundlesBytes {
		return nil, bad("has more than %d bytes", maxBundlesBytes)
	}
	var list [][]byte
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(list) == maxDocumentBundles:
			return nil, bad("holds more than %d bundles", maxDocumentBundles)
		case len(line) > verify.MaxBundle:
			return nil, bad("holds a bundle of more than %d bytes", verify.MaxBundle)
		}
		list = append(list, line)
	}
	return list, writeSynced(to+BundlesSuffix, raw)
}

// keysIn reads the public keys in a directory. They prove who signed; who may is what
// the root says, by the digests of keys.
func keysIn(dir string) ([]string, error) {
	names, err := readNames(dir)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".pub") })
	slices.Sort(names)
	if len(names) > 2*revlist.MaxSigners {
		return nil, fmt.Errorf("keys: %s holds %d keys, at most %d are read", dir, len(names), 2*revlist.MaxSigners)
	}
	var keys []string
	for _, name := range names {
		text, err := readUpTo(filepath.Join(dir, name), maxKeyBytes)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		if len(text) > maxKeyBytes {
			return nil, fmt.Errorf("keys: %s has more than %d bytes", name, maxKeyBytes)
		}
		keys = append(keys, string(text))
	}
	return keys, nil
}

// proveOffer asks the worker who signed what is offered.
func (h *Home) proveOffer(ctx context.Context, o *listOffer) error {
	if len(o.listBundles)+len(o.rootBundles) == 0 {
		return nil
	}
	p := &proving{home: h}
	defer p.close()
	worker, a, err := p.worker(ctx)
	if err != nil {
		return err
	}
	keys := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a.Keys), o.keys...))))
	prove := func(file string, sum digest.Digest, bundles [][]byte) (signers []verify.Signer, err error) {
		for _, b := range bundles {
			facts, err := worker.Bundle(ctx, verify.BundleRequest{Kind: verify.Signature, Artifact: sum, Path: filepath.Join(o.dir, file),
				Document: b, TrustedRoot: a.TrustedRoot, Keys: keys, Now: h.now()})
			var refusal *verify.Refusal
			switch {
			case errors.As(err, &refusal):
				if o.why == nil {
					o.why = refusal
				}
			case err != nil:
				return nil, err
			case !slices.Contains(signers, facts.Signer):
				signers = append(signers, facts.Signer)
			}
		}
		return signers, nil
	}
	if o.rootSigns, err = prove(RootFile, o.rootDigest, o.rootBundles); err != nil {
		return err
	}
	o.listSigners, err = prove(ListFile, o.list.Digest, o.listBundles)
	return err
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

// acceptRoot settles which root speaks for the issuer, and returns whether the issuer
// was known and what was seen of its lists.
func (h *Home) acceptRoot(o *listOffer, first digest.Digest, out *ListUpdate) (known bool, seen revlist.State, err error) {
	issuer := o.list.Issuer
	root, sum, err := h.root(issuer)
	if err != nil {
		return false, seen, err
	}
	if root == nil {
		switch {
		case o.root == nil:
			return false, seen, &ListRefused{Issuer: issuer, Code: CodeRootMissing, Reason: "the issuer is not known here, and there is no " + RootFile + " beside the list"}
		case first == "" || first != o.rootDigest:
			return false, seen, &ListRefused{Issuer: issuer, Code: CodeRootUntrusted, Root: o.rootDigest,
				Reason: fmt.Sprintf("its root %s was not accepted on this machine", o.rootDigest)}
		}
		if err := o.root.AcceptsItself(o.rootSigns); err != nil {
			return false, seen, o.tooFew(err)
		}
		out.Root, out.RootDigest, out.RootAdopted = o.root, o.rootDigest, true
		return false, revlist.State{Issuer: issuer}, o.current(issuer, o.root, h)
	}
	if seen, err = h.seen(issuer); err != nil {
		return true, seen, err
	}
	out.Was, out.Root, out.RootDigest = seen.Floor, root, sum
	if o.root != nil && o.rootDigest != sum {
		if err := revlist.Rotate(root, o.root, o.rootSigns); err != nil {
			return true, seen, o.tooFew(err)
		}
		out.Root, out.RootDigest, out.RootAdopted = o.root, o.rootDigest, true
		seen = seen.Rotated()
	}
	return true, seen, o.current(issuer, out.Root, h)
}

func (o *listOffer) current(issuer string, root *revlist.Root, h *Home) error {
	if root.Issuer != issuer {
		return &ListRefused{Issuer: issuer, Code: ListCode(revlist.RootWrongIssuer), Root: o.rootDigest, Reason: "the root beside it is of " + root.Issuer}
	}
	return refusedList(issuer, root.Current(h.now()))
}

// acceptList demands enough signers and no step back.
func (h *Home) acceptList(o *listOffer, seen revlist.State, out *ListUpdate) error {
	if err := out.Root.AcceptsList(o.listSigners); err != nil {
		return o.tooFew(err)
	}
	out.Verdict = revlist.Judge(seen, &o.list, h.now())
	if !out.Verdict.Adoptable() {
		return &ListRefused{Issuer: o.list.Issuer, Code: ListCode(out.Verdict.Code()), Reason: out.Verdict.Message, Root: o.rootDigest}
	}
	out.Unchanged = seen.Digest == o.list.Digest
	return nil
}

// swapLists puts the files in their place. An issuer that was not known appears whole,
// by one rename. Of one that was, the index comes first: it is what denies, and it is
// newer than what is noted of the issuer, which comes last. A rotation first notes that
// versions begin anew.
func (h *Home) swapLists(o *listOffer, known bool, seen revlist.State, rotated bool) error {
	if err := h.ensure(revokedDir); err != nil {
		return err
	}
	issuer := o.list.Issuer
	if !known {
		if err := syncDirs(o.dir); err != nil {
			return err
		}
		if err := step("issuer"); err != nil {
			return err
		}
		// What lies there without its root is followed no further.
		if err := os.RemoveAll(h.issuerPath(issuer)); err != nil {
			return err
		}
		if err := os.Rename(o.dir, h.issuerPath(issuer)); err != nil {
			return err
		}
		return syncDirs(h.join(revokedDir))
	}
	if err := h.dropRebuilds(issuer); err != nil {
		return err
	}
	var names []string
	if rotated {
		raw, err := encodeSeen(seen)
		if err != nil {
			return err
		}
		if err := step("rotation"); err != nil {
			return err
		}
		if err := replaceFile(h.issuerPath(issuer, seenFile), raw); err != nil {
			return err
		}
		names = append(names, RootFile, RootFile+BundlesSuffix)
	}
	names = append(names, revlist.IndexName, ListFile, ListFile+BundlesSuffix, seenFile)
	for _, name := range names {
		if err := step("list " + name); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(o.dir, name), h.issuerPath(issuer, name)); err != nil {
			return err
		}
		if err := syncDirs(h.issuerPath(issuer)); err != nil {
			return err
		}
	}
	return nil
}

// dropRebuilds removes what killed commands left of an index that they built again.
func (h *Home) dropRebuilds(issuer string) error {
	names, err := readNames(h.issuerPath(issuer))
	for _, name := range names {
		if err == nil && strings.HasPrefix(name, rebuildPrefix) {
			err = os.RemoveAll(h.issuerPath(issuer, name))
		}
	}
	return err
}

// stopListed asks every running call that a list blocks by now to stop.
func (h *Home) stopListed() (n int, err error) {
	lists, err := h.openLists()
	if err != nil {
		return 0, err
	}
	defer lists.close()
	for _, id := range h.callIDs() {
		m, err := h.readMarker(id)
		if err != nil {
			continue // it has ended
		}
		list, err := h.listedIn(lists, m.subject(), nil)
		if err != nil {
			return n, err
		}
		if len(list) == 0 || !list[0].Blocks() {
			continue
		}
		stopped, err := h.requestStop(id, StopRevoked)
		if err != nil {
			return n, err
		}
		if stopped {
			n++
		}
	}
	return n, nil
}

// writeSynced writes a new file durably.
func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
