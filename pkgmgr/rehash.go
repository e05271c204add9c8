package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// rehashTries bounds how often a decision is looked at again because installs get
// in between.
const rehashTries = 5

// Rehash reads the whole package again and compares it with what was trusted. It
// is the only maker of an Approval, and refuses while another check is missing.
func (d *Decision) Rehash(ctx context.Context) (*Approval, error) {
	if d.passed != allChecks {
		return nil, fmt.Errorf("internal error: rehash before every other check passed (%04b)", d.passed)
	}
	for try := 1; ; try++ {
		a, err := d.home.rehash(ctx, d)
		if err == nil {
			return a, nil
		}
		var mismatch *Integrity
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = d.home.place(ctx, d.sel) // says why it is gone, or where it is now
			if err == nil {
				err = &Superseded{ID: d.sel.ref.ID}
			}
		case errors.As(err, &mismatch):
			err = d.home.changed(ctx, d.sel, mismatch.Found, nil)
		case isFault(err):
			err = d.home.changed(ctx, d.sel, "", err)
		}
		var superseded *Superseded
		if !errors.As(err, &superseded) || try == rehashTries {
			return nil, err
		}
	}
}

// rehash is one attempt of Rehash. Errors: *Integrity, a fault of the package, or
// fs.ErrNotExist when the tree is not there any more.
func (h *Home) rehash(ctx context.Context, d *Decision) (_ *Approval, err error) {
	sel := d.sel
	mirrored, sealed := h.startMirrorCheck(sel), startSealCheck(sel.path)
	root, err := openTree(sel.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// The manifest as it was recorded: that the file still is the same is part of what
	// the digests show.
	m, raw, err := sel.recordedManifest(h)
	if err != nil {
		return nil, err
	}
	if err := h.runnable(&m, m.ID+" "+m.Version); err != nil {
		return nil, err
	}
	m.place(root)
	exe := m.Executable
	tree, kept, err := archive.HashDirOpen(ctx, root, exe)
	if err != nil {
		return nil, unreadable(sel.path, err)
	}
	f := kept[0]
	defer func() {
		if err != nil && f != nil {
			f.Close()
		}
	}()
	if tree.NoModes {
		tree.MarkExecutable(m.program())
	}
	found, err := tree.Package()
	if err != nil {
		return nil, err
	}
	if found != sel.recorded || !hashedAs(tree, manifest.FileName, raw) {
		return nil, &Integrity{What: "package digest", Expected: sel.recorded, Found: found, Where: sel.path}
	}
	if err := <-sealed; err != nil {
		return nil, unreadable(sel.path, err)
	}
	if err := checkOpened(root, f, &m, sel.path); err != nil {
		return nil, err
	}
	if !<-mirrored {
		if err := h.judgeMirror(ctx, sel); err != nil {
			return nil, err
		}
	}
	a := &Approval{
		Call: d.Call, Manifest: m, Package: found, Fingerprint: sel.fingerprint(),
		Grants: d.sel.grants(), Dir: sel.path, Path: filepath.Join(sel.path, filepath.FromSlash(exe)), Executable: f,
		ProjectRoot: d.root, decision: d,
	}
	if d.offer != nil {
		a.Grants = d.offer
	}
	if a.Grants == nil {
		a.Grants = []manifest.Scope{}
	}
	if sel.project != nil {
		a.ProjectID = sel.project.ID
	}
	return a, nil
}

// startMirrorCheck compares the store's tree with the default directory beside the
// hashing. The channel yields one value.
func (h *Home) startMirrorCheck(sel *selection) <-chan bool {
	result := make(chan bool, 1)
	if sel.dirName == "" || sel.path == h.pluginPath(sel.dirName) {
		result <- true
		return result
	}
	from, to := sel.path, h.pluginPath(sel.dirName)
	go func() { result <- sameInodes(from, to) }()
	return result
}

// startSealCheck looks for what others could write beside the hashing. The channel
// yields one value.
func startSealCheck(tree string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- checkSealed(tree) }()
	return result
}

// judgeMirror is asked where the default directory has other inodes than the
// store's intact tree, or where others could write to it. Other inodes are as they should be
// while they hold the same bytes, or when they belong to another version by now.
func (h *Home) judgeMirror(ctx context.Context, sel *selection) error {
	found, err := hashPath(ctx, h.pluginPath(sel.dirName))
	if err == nil && found == sel.recorded {
		if err = unreadable(h.pluginPath(sel.dirName), checkSealed(h.pluginPath(sel.dirName))); err == nil {
			return nil
		}
	}
	now, nerr := h.currentDefault(ctx, sel)
	switch {
	case nerr != nil:
		return nerr
	case now.Package != sel.recorded:
		sel.dirName = ""
		return nil
	case err != nil:
		return err
	}
	return &Integrity{What: "package digest", Expected: sel.recorded, Found: found, Where: h.pluginPath(sel.dirName)}
}

// checkOpened applies the rules of entry files to the file that was hashed.
func checkOpened(root *os.Root, f *os.File, m *Manifest, where string) error {
	if f == nil {
		return badEntry(where, m.Executable, "the manifest's %s is missing", m.entryWord())
	}
	info, err := f.Stat()
	if err != nil {
		return badEntry(where, m.Executable, "%w", err)
	}
	if err := m.checkFile(info, where); err != nil {
		return err
	}
	return checkParents(root, m, where)
}

func hashedAs(tree *archive.Tree, name string, content []byte) bool {
	f, ok := tree.File(name)
	return ok && f.SHA256 == digest.Of(content).Hex()
}

// isFile reports whether f is the file that info describes.
func isFile(f *os.File, info fs.FileInfo) bool {
	if f == nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(opened, info)
}
