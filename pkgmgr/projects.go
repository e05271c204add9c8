package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// ResolveProject returns the exact directory that dir names, symlinks resolved.
func ResolveProject(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("project directory: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &NotFound{Kind: "project", Name: dir}
	}
	if err != nil {
		return "", fmt.Errorf("project directory: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("project directory: %w", err)
	}
	if !info.IsDir() {
		return "", &NotFound{Kind: "project", Name: dir} // a file is no project
	}
	return real, nil
}

// checkProject refuses to trust a directory of another user with an error that matches
// textfile.ErrForeign, and notes where others can write: trust is about a path, and
// they decide what is found there. Root can change everything as it is.
func (h *Home) checkProject(root string) error {
	info, err := os.Stat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody's
	}
	if err != nil {
		return fmt.Errorf("project directory: %w", err)
	}
	if err := textfile.CheckOwner(root, info); err != nil {
		return fmt.Errorf("project directory: %w", err)
	}
	if writableByOthers(info) {
		h.on.note("others can write to %s (mode %04o): what is found in the trusted directory is for them to decide too",
			root, info.Mode().Perm())
	}
	return nil
}

// TrustProject trusts exactly the directory root, not its children. It reports
// whether it was trusted before. A directory of another user is textfile.ErrForeign.
func (h *Home) TrustProject(ctx context.Context, root string) (p state.ProjectTrust, already bool, err error) {
	if err := h.checkProject(root); err != nil {
		return p, false, err
	}
	err = h.update(ctx, func(tx *state.Tx) error {
		old, err := optional(tx.ProjectTrust(root))
		if err != nil {
			return err
		}
		if old != nil {
			p, already = *old, true
			return nil
		}
		p = state.ProjectTrust{Root: root, ID: newUUID(h.now()), At: h.now().UTC()}
		if err := tx.PutProjectTrust(p); err != nil {
			return err
		}
		e := h.event(EventProjectTrust, "", "", "", nil)
		e.Project = root
		return tx.AppendEvent(e)
	})
	return p, already, err
}

// UntrustProject takes the trust in root back, with every approval that the
// project's lock gave. *NotFound when it was not trusted.
func (h *Home) UntrustProject(ctx context.Context, root string) error {
	return h.update(ctx, func(tx *state.Tx) error {
		old, err := optional(tx.ProjectTrust(root))
		if err != nil {
			return err
		}
		approvals, err := tx.ProjectApprovals(root)
		if err != nil {
			return err
		}
		if old == nil && len(approvals) == 0 {
			return &NotFound{Kind: "project", Name: root}
		}
		if err := tx.RemoveProjectTrust(root); err != nil {
			return err
		}
		for _, a := range approvals {
			if err := tx.RemoveProjectApproval(root, a.Package); err != nil {
				return err
			}
		}
		e := h.event(EventProjectUntrust, "", "", "", nil)
		e.Project = root
		return tx.AppendEvent(e)
	})
}

// Projects returns the trusted project roots, sorted.
func (h *Home) Projects(ctx context.Context) ([]state.ProjectTrust, error) {
	var list []state.ProjectTrust
	err := h.state.View(ctx, func(tx *state.Tx) (err error) {
		list, err = tx.ProjectTrusts()
		return err
	})
	return list, err
}
