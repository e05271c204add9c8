package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

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
	if o.remembered {
		names = append(names, sourceFile)
	}
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

// writeSynced writes a new file durably.
func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
