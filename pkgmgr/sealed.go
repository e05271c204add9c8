package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Unsealed says that others could write to a file or directory of an installed
// package, so that it need not be tomorrow what it is now. It stands in a *Malformed,
// which names the place.
type Unsealed struct{ Mode fs.FileMode }

func (e *Unsealed) Error() string {
	return fmt.Sprintf("is writable by group or world (mode %04o)", e.Mode.Perm())
}

// resealed is how a person puts that right.
const resealed = "; installing the same package again seals it"

// checkSealed refuses an installed tree of which others could write a file or a
// directory: no digest covers who may write. Links and special files are for the
// rules of packages to refuse.
func checkSealed(tree string) error {
	if !hasExecuteBits {
		return nil
	}
	return filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o022 == 0 {
			return err
		}
		rel, err := filepath.Rel(tree, p)
		if err != nil {
			return err
		}
		return &Malformed{Where: tree, File: filepath.ToSlash(rel), Err: &Unsealed{info.Mode()}}
	})
}

// isSealed is checkSealed as a question. A tree that is missing is not sealed.
func isSealed(tree string) (bool, error) {
	err := unreadable(tree, checkSealed(tree))
	if errors.Is(err, fs.ErrNotExist) || isFault(err) {
		return false, nil
	}
	return err == nil, err
}

// storeSound reports whether the store's tree of a package has its digest and nobody
// else can write to it.
func (h *Home) storeSound(ctx context.Context, d digest.Digest) (bool, error) {
	intact, err := h.storeIntact(ctx, d)
	if err != nil || !intact {
		return false, err
	}
	return isSealed(h.storePath(d))
}

// mirrorSound reports whether plugins/<dirName> mirrors the store's tree of a package
// and nobody else can write to it.
func (h *Home) mirrorSound(ctx context.Context, dirName string, d digest.Digest) (bool, error) {
	same, err := h.mirrors(ctx, dirName, d)
	if err != nil || !same {
		return false, err
	}
	return isSealed(h.pluginPath(dirName))
}
