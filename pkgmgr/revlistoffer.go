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

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// The bounds of what comes with a list.
const (
	maxDocumentBundles = 2 * revlist.MaxSigners
	maxBundlesBytes    = 64 << 20 // of one list, and of all roots together
	maxRootsBytes      = 16 << 20 // of all roots together
	maxRotations       = 256      // that one update catches up with
)

// A listPlace is where an issuer's files are published. What is not there is
// fs.ErrNotExist, what is not read as it is a *givenFile.
type listPlace interface {
	read(ctx context.Context, name string, limit int64) ([]byte, error)
	// copyList copies the list, one byte beyond limit at most, or says that it is larger.
	copyList(ctx context.Context, to io.Writer, limit int64) error
	listName() string
	// keys returns public keys, those with these ids at least where they are there.
	keys(ctx context.Context, ids []string) ([]string, error)
	// far reports whether copyList is to be spared.
	far() bool
}

// An offeredRoot is a root with those who signed it.
type offeredRoot struct {
	*revlist.Root
	digest  digest.Digest
	raw     []byte
	bundles []byte
	signers []verify.Signer
}

// A listOffer is what a source offers, copied to where nobody changes it.
type listOffer struct {
	dir         string // holds the files under their names, and the index
	list        revlist.Header
	listBundles [][]byte
	// roots are those to be adopted, one after the other: of an issuer that is not known
	// the first one first. There is none where the root is known already, or none came.
	roots       []*offeredRoot
	rootDigest  digest.Digest // of the newest root that came, "" where none did
	keys        []string
	listSigners []verify.Signer
	why         error // the first refusal of a bundle
	remembered  bool  // dir holds where the list comes from
}

// takeOffer copies what a source offers into the stage and reads it strictly.
func (h *Home) takeOffer(ctx context.Context, stage *stage, s listSource, place listPlace) (*listOffer, error) {
	o := &listOffer{dir: stage.join("lists")}
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		return nil, h.cannotWrite("staging", err)
	}
	issuer, known, err := h.takeRoots(ctx, o, s, place)
	if err != nil {
		return nil, err
	}
	raw, err := h.takeBundles(ctx, o, place)
	if err != nil {
		return nil, err
	}
	copied, err := h.takeList(ctx, o, issuer, raw, place)
	if err != nil {
		return nil, err
	}
	defer copied.Close()
	h.on.stage("reading the revocation list")
	if o.list, err = indexList(o.dir, copied); err != nil {
		return nil, refusedList(issuer, err)
	}
	if reservedIssuer(o.list.Issuer) {
		return nil, &ListRefused{Issuer: o.list.Issuer, Code: CodeIssuerReserved, Reason: "no issuer can have the name of a file that this program keeps beside the lists"}
	}
	if err := s.expects(o.list.Issuer); err != nil {
		return nil, err
	}
	if len(o.listBundles) > 0 || len(o.roots) > 0 {
		o.keys, err = place.keys(ctx, signingKeys(known, o.roots))
	}
	return o, refusedFile(o.list.Issuer, CodeListUnreadable, err)
}

// takeRoots takes the roots that are to be adopted, and returns the issuer that they
// name, "" where no root came, and the root that is known of it, nil where none is.
func (h *Home) takeRoots(ctx context.Context, o *listOffer, s listSource, place listPlace) (issuer string, known *revlist.Root, err error) {
	last, err := readOfferedRoot(ctx, place, RootFile)
	if errors.Is(err, fs.ErrNotExist) {
		if s.issuer != "" {
			known, _, err = h.root(s.issuer)
			return s.issuer, known, err
		}
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	issuer, o.rootDigest = last.Issuer, last.digest
	if err := s.expects(issuer); err != nil {
		return issuer, nil, err
	}
	if reservedIssuer(issuer) {
		return issuer, nil, nil // the list is refused
	}
	known, sum, err := h.root(issuer)
	switch {
	case err != nil:
		return issuer, nil, err
	case known != nil && sum == last.digest:
		return issuer, known, nil
	case known == nil && s.project:
		return issuer, nil, s.notFollowed(issuer, last.digest)
	case known == nil && s.first == "":
		return issuer, nil, untrustedRoot(issuer, last.digest)
	}
	if o.roots, err = chainOfRoots(ctx, place, known, last, s.first); err != nil {
		return issuer, nil, err
	}
	room := int64(maxBundlesBytes)
	for _, r := range o.roots {
		name := RootFile
		if r != last {
			name = EarlierRootFile(r.Version)
		}
		if r.bundles, err = place.read(ctx, name+BundlesSuffix, max(room, 1)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return issuer, nil, refusedFile(issuer, CodeRootUnreadable, err)
		}
		room -= int64(len(r.bundles))
	}
	if err := writeSynced(filepath.Join(o.dir, RootFile), last.raw); err != nil {
		return issuer, nil, h.cannotWrite("staging", err)
	}
	if err := writeSynced(filepath.Join(o.dir, RootFile+BundlesSuffix), last.bundles); err != nil {
		return issuer, nil, h.cannotWrite("staging", err)
	}
	return issuer, known, nil
}

func readOfferedRoot(ctx context.Context, place listPlace, name string) (*offeredRoot, error) {
	raw, err := place.read(ctx, name, revlist.MaxRootBytes)
	if err != nil {
		return nil, refusedFile("", CodeRootUnreadable, err)
	}
	root, err := parseRoot(raw)
	if err != nil {
		return nil, refusedList("", err)
	}
	return &offeredRoot{Root: root, digest: digest.Of(raw), raw: raw}, nil
}

// chainOfRoots returns the roots that lead to the last one: from the one after the known
// one, or where none is known from the one with the digest first. Whether they follow each
// other is for acceptRoots to say.
func chainOfRoots(ctx context.Context, place listPlace, known *revlist.Root, last *offeredRoot, first digest.Digest) ([]*offeredRoot, error) {
	list := []*offeredRoot{last}
	if known == nil && first == last.digest || known != nil && last.Version <= known.Version+1 {
		return list, nil
	}
	if known != nil && last.Version-known.Version > maxRotations {
		return nil, &ListRefused{Issuer: last.Issuer, Code: ListCode(revlist.RootVersion), Root: last.digest,
			Reason: fmt.Sprintf("version %d of the root does not follow version %d, and at most %d rotations are made up for", last.Version, known.Version, maxRotations)}
	}
	room := int64(maxRootsBytes)
	for version := last.Version - 1; version > 0 && len(list) <= maxRotations && (known == nil || version > known.Version); version-- {
		r, err := readOfferedRoot(ctx, place, EarlierRootFile(version))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if room -= int64(len(r.raw)); room < 0 {
			return nil, refusedFile(last.Issuer, CodeRootUnreadable, tooLarge("what its roots are in together", maxRootsBytes))
		}
		list = append(list, r)
		if known == nil && r.digest == first {
			slices.Reverse(list)
			return list, nil
		}
	}
	if known == nil {
		return nil, untrustedRoot(last.Issuer, last.digest)
	}
	slices.Reverse(list)
	if next := list[0]; next.Version != known.Version+1 {
		return nil, &ListRefused{Issuer: last.Issuer, Code: ListCode(revlist.RootVersion), Root: last.digest,
			Reason: fmt.Sprintf("version %d of the root does not follow version %d, and there is no %s beside it", next.Version, known.Version, EarlierRootFile(next.Version-1))}
	}
	return list, nil
}

func untrustedRoot(issuer string, sum digest.Digest) error {
	return &ListRefused{Issuer: issuer, Code: CodeRootUntrusted, Root: sum, Reason: fmt.Sprintf("its root %s was not accepted on this machine", sum)}
}

// takeBundles takes the bundles that sign the list, one a line, and returns the file.
// Where there is none, it is empty.
func (h *Home) takeBundles(ctx context.Context, o *listOffer, place listPlace) ([]byte, error) {
	name := place.listName() + BundlesSuffix
	raw, err := place.read(ctx, name, maxBundlesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = nil, nil
	}
	if err != nil {
		return nil, refusedFile("", CodeListUnreadable, err)
	}
	if o.listBundles, err = splitBundles(name, raw); err != nil {
		return nil, refusedFile("", CodeListUnreadable, err)
	}
	if err := writeSynced(filepath.Join(o.dir, ListFile+BundlesSuffix), raw); err != nil {
		return nil, h.cannotWrite("staging", err)
	}
	return raw, nil
}

// splitBundles returns the bundles of a file that holds one a line.
func splitBundles(name string, raw []byte) ([][]byte, error) {
	var list [][]byte
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case len(list) == maxDocumentBundles:
			return nil, &givenFile{path: name, reason: fmt.Sprintf("holds more than %d bundles", maxDocumentBundles)}
		case len(line) > verify.MaxBundle:
			return nil, &givenFile{path: name, reason: fmt.Sprintf("holds a bundle of more than %d bytes", verify.MaxBundle)}
		}
		list = append(list, line)
	}
	return list, nil
}

// takeList copies the list. Where the bundles are those that sign the list which was
// adopted last, no other list could be accepted with them: that one is then taken from the
// data directory, as if it had come from afar, and is judged anew.
func (h *Home) takeList(ctx context.Context, o *listOffer, issuer string, bundles []byte, place listPlace) (*os.File, error) {
	out, err := os.OpenFile(filepath.Join(o.dir, ListFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, h.cannotWrite("staging", err)
	}
	if len(bundles) == 0 || !place.far() || !h.keptListFor(out, issuer, bundles) {
		err = out.Truncate(0)
		if err == nil {
			_, err = out.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = place.copyList(ctx, out, revlist.MaxBytes)
		}
	}
	if err == nil {
		err = out.Sync()
	}
	if err != nil {
		out.Close()
		return nil, refusedFile(issuer, CodeListUnreadable, err)
	}
	return out, nil
}

// keptListFor copies the list that was adopted last, and reports whether it is whole and
// signed by just these bundles.
func (h *Home) keptListFor(to io.Writer, issuer string, bundles []byte) bool {
	if issuer == "" || reservedIssuer(issuer) {
		return false
	}
	seen, err := h.seen(issuer)
	if err != nil || seen.Digest == "" {
		return false
	}
	kept, err := readOwn(h.issuerPath(issuer, ListFile+BundlesSuffix), maxBundlesBytes)
	if err != nil || !bytes.Equal(kept, bundles) {
		return false
	}
	f, _, err := openGiven(h.issuerPath(issuer, ListFile))
	if err != nil {
		return false
	}
	defer f.Close()
	w := newHashWriter(to)
	if _, err := io.Copy(w, io.LimitReader(f, revlist.MaxBytes+1)); err != nil {
		return false
	}
	return seen.Digest == w.digest()
}

// signingKeys returns the ids of the keys that may have signed the roots that are offered
// and a list under the last of them.
func signingKeys(known *revlist.Root, roots []*offeredRoot) []string {
	var ids []string
	add := func(r *revlist.Root) {
		for _, s := range slices.Concat(r.ListSigners, r.RootSigners) {
			if s.Key != "" && !slices.Contains(ids, s.Key) {
				ids = append(ids, s.Key)
			}
		}
	}
	if known != nil {
		add(known)
	}
	for _, r := range roots {
		add(r.Root)
	}
	return ids
}
