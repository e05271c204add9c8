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
	"strconv"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// EarlierRootFile is the name under which a root stays beside the list after another
// one took its place. Machines that missed rotations adopt these roots one after the
// other.
func EarlierRootFile(version uint64) string { return fmt.Sprintf("root.%d.json", version) }

// KeyFile is the name of the public key with an id beside a list.
func KeyFile(id string) string { return digest.Digest(id).Hex()[:16] + ".pub" }

// A RootFault says why no root can follow the one in a directory.
type RootFault struct {
	Path   string
	Code   string // CodeRootSigners, or that of revlist.RootVersion or revlist.RootExpired
	Reason string
	Err    error // may be nil
}

func (e *RootFault) Error() string { return e.Path + " " + e.Reason }

func (e *RootFault) Unwrap() error { return e.Err }

// A Rotation is what RotateRoot did.
type Rotation struct {
	Old, New *revlist.Root
	Path     string        // of the new root, which nobody signed yet
	Kept     string        // where the root before stays
	Digest   digest.Digest // of the new root
	Replaced digest.Digest // a root of the same version that too few had signed; "" where there was none
}

// publishedRoot is a root as it lies in the directory of an issuer's lists.
type publishedRoot struct {
	*offeredRoot
	path string
}

// RotateRoot writes the root that follows the one in dir, the directory of an issuer's
// lists, with the public keys (PEM) that it names. The one before stays as
// EarlierRootFile, for machines that have not seen it. It must be signed by enough:
// what it cannot be proved to say is not carried on. If too few signed the root in dir
// but the one before it stands, that rotation was not finished, and this one takes its
// place.
//
// The list is not touched. Killed at any point it leaves what the same call completes.
func (h *Home) RotateRoot(ctx context.Context, dir string, change revlist.RootChange, keys []string) (*Rotation, error) {
	base, pending, err := h.rootInForce(ctx, dir)
	if err != nil {
		return nil, err
	}
	next, err := base.Next(change)
	if err != nil {
		return nil, err
	}
	if err := next.Current(h.now()); err != nil {
		return nil, &RootFault{base.path, ListCode(revlist.RootExpired), "is followed by none that is valid: " + err.Error(), err}
	}
	var text bytes.Buffer
	if err := revlist.WriteRoot(&text, next); err != nil {
		return nil, err
	}
	out := &Rotation{Old: base.Root, New: next, Path: filepath.Join(dir, RootFile), Kept: filepath.Join(dir, EarlierRootFile(base.Version)),
		Digest: digest.Of(text.Bytes())}
	if pending != nil {
		out.Replaced = pending.digest
	}
	// The root before stays whole before another takes its place: its signatures first,
	// for whoever reads the document believes that they are there.
	for _, write := range []struct {
		path string
		text []byte
	}{{out.Kept + BundlesSuffix, base.bundles}, {out.Kept, base.raw}} {
		if err := step("keep " + filepath.Base(write.path)); err != nil {
			return nil, err
		}
		if err := textfile.Write(write.path, write.text); err != nil {
			return nil, err
		}
	}
	for _, key := range keys {
		id, err := verify.KeyID(key)
		if err != nil {
			return nil, err
		}
		if err := step("key"); err != nil {
			return nil, err
		}
		if err := textfile.Write(filepath.Join(dir, KeyFile(id)), []byte(key)); err != nil {
			return nil, err
		}
	}
	if err := step("root"); err != nil {
		return nil, err
	}
	if err := textfile.Write(out.Path, text.Bytes()); err != nil {
		return nil, err
	}
	if err := step("signatures"); err != nil {
		return nil, err
	}
	if err := removeIfThere(out.Path + BundlesSuffix); err != nil {
		return nil, err
	}
	return out, dropKeys(dir, base.Root, next)
}

// rootInForce returns the root in dir that enough have signed. pending is the one that
// lies there in its place and that too few have signed; nil where there is none.
func (h *Home) rootInForce(ctx context.Context, dir string) (base, pending *publishedRoot, err error) {
	prove := &proving{home: h}
	defer prove.close()
	now, err := readPublishedRoot(dir, RootFile)
	if err != nil {
		return nil, nil, err
	}
	why, err := prove.standsIn(ctx, dir, now)
	if err != nil {
		return nil, nil, err
	}
	if why != nil {
		if now.Version == 1 || !exists(filepath.Join(dir, EarlierRootFile(now.Version-1))) {
			return nil, nil, unsignedRoot(now, why)
		}
		pending = now
		if now, err = readPublishedRoot(dir, EarlierRootFile(pending.Version-1)); err != nil {
			return nil, nil, err
		}
		if now.Version != pending.Version-1 {
			return nil, nil, &RootFault{now.path, ListCode(revlist.RootVersion), fmt.Sprintf("has the version %d", now.Version), nil}
		}
		if why, err = prove.standsIn(ctx, dir, now); err != nil {
			return nil, nil, err
		}
		if why != nil {
			return nil, nil, unsignedRoot(now, why)
		}
		return now, pending, nil
	}
	kept, err := readGiven(filepath.Join(dir, EarlierRootFile(now.Version)), revlist.MaxRootBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, refusedFile(now.Issuer, CodeRootUnreadable, err)
	case !bytes.Equal(kept, now.raw):
		return nil, nil, &RootFault{filepath.Join(dir, EarlierRootFile(now.Version)), ListCode(revlist.RootVersion), "is another root than " + now.path + ", with the same version", nil}
	}
	return now, nil, nil
}

func unsignedRoot(root *publishedRoot, why error) *RootFault {
	return &RootFault{root.path, CodeRootSigners, "is not signed by enough, so that no other can follow it: " + why.Error(), why}
}

// standsIn says why a root in dir does not stand: too few of the root signers before
// it, where it lies there, or of its own have signed it. why is nil where it stands.
func (p *proving) standsIn(ctx context.Context, dir string, root *publishedRoot) (why, err error) {
	bundles, err := splitBundles(root.path+BundlesSuffix, root.bundles)
	if err != nil {
		return nil, refusedFile(root.Issuer, CodeRootUnreadable, err)
	}
	keys, err := keysIn(dir)
	if err != nil {
		return nil, refusedFile(root.Issuer, CodeRootUnreadable, err)
	}
	path, err := filepath.Abs(root.path)
	if err != nil {
		return nil, err
	}
	signed, refusal, err := p.signersOf(ctx, path, root.digest, bundles, keys)
	if err != nil {
		return nil, err
	}
	why = root.AcceptsItself(signed)
	if root.Version > 1 {
		before, err := readPublishedRoot(dir, EarlierRootFile(root.Version-1))
		switch {
		case err == nil:
			why = revlist.Rotate(before.Root, root.Root, signed)
		case !errors.As(err, new(*NotFound)):
			return nil, err
		}
	}
	if why != nil && refusal != nil {
		why = fmt.Errorf("%w; a signature does not count: %w", why, refusal)
	}
	return why, nil
}

func readPublishedRoot(dir, name string) (*publishedRoot, error) {
	path := filepath.Join(dir, name)
	raw, err := readGiven(path, revlist.MaxRootBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFound{Kind: "source", Name: path}
	}
	if err != nil {
		return nil, refusedFile("", CodeRootUnreadable, err)
	}
	root, err := parseRoot(raw)
	if err != nil {
		return nil, err
	}
	bundles, err := readGiven(path+BundlesSuffix, maxBundlesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return &publishedRoot{&offeredRoot{Root: root, digest: digest.Of(raw), raw: raw, bundles: bundles}, path}, refusedFile(root.Issuer, CodeRootUnreadable, err)
}

// dropKeys removes the public keys of which nothing in dir needs a proof any more: those
// that neither of the last two roots names, nor an earlier one as a root signer.
func dropKeys(dir string, old, root *revlist.Root) error {
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	needed := slices.Concat(root.ListSigners, root.RootSigners, old.ListSigners)
	for _, name := range names {
		version, ok := earlierRoot(name)
		if !ok {
			continue
		}
		earlier, err := readPublishedRoot(dir, EarlierRootFile(version))
		if err != nil {
			return err
		}
		needed = append(needed, earlier.RootSigners...)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if !strings.HasSuffix(name, ".pub") {
			continue
		}
		text, err := readGiven(path, maxKeyBytes)
		if err != nil {
			return refusedFile(root.Issuer, CodeRootUnreadable, err)
		}
		id, err := verify.KeyID(string(text))
		if err != nil || KeyFile(id) != name || slices.Contains(needed, verify.Signer{Key: id}) {
			continue // whoever put it there knows why
		}
		if err := step("drop key"); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return syncDirs(dir)
}

// earlierRoot is the version in a name that EarlierRootFile gives.
func earlierRoot(name string) (version uint64, ok bool) {
	version, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, "root."), ".json"), 10, 64)
	return version, err == nil && EarlierRootFile(version) == name
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
