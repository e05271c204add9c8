package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// PackResult is what Pack wrote.
type PackResult struct {
	Path     string
	Archive  digest.Digest
	Contents *Contents
	SBOM     *SBOMCheck // of the one that the directory holds; nil without one
}

// PackOptions configure Pack.
type PackOptions struct {
	Out      string     // the archive; "": named after the package, in the working directory
	Platform string     // to name the archive for; "": the executable's own
	SBOM     *time.Time // the time that an SBOM bears which becomes part of the package; nil: none is added
}

// Pack writes a directory as a deterministic archive, once every rule that an
// install applies is met. An archive that would become part of the directory it is
// made from, and so of the next package, is refused.
func (h *Home) Pack(ctx context.Context, dir string, o PackOptions) (*PackResult, error) {
	out, platform := o.Out, o.Platform
	s, err := h.readSource(ctx, dir, "")
	if err != nil {
		return nil, err
	}
	defer s.discard()
	if s.archive != "" {
		return nil, &Malformed{Where: dir, File: ".", Err: errNotDirectory}
	}
	c, err := s.contents()
	if err != nil {
		return nil, err
	}
	sbom, err := s.sbom(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := sbom.refused(dir); err != nil {
		return nil, err
	}
	if o.SBOM != nil {
		if c, err = s.addSBOM(ctx, c, *o.SBOM); err != nil {
			return nil, err
		}
	}
	if out == "" {
		if out, err = archiveName(c.Manifest.ID, c.Manifest.Version, c.Manifest.Executable, c.Head.Platform, platform); err != nil {
			return nil, err
		}
	}
	format, err := archive.FormatOf(out)
	if err != nil {
		return nil, err
	}
	if err := keepsOut(dir, out); err != nil {
		return nil, err
	}
	tree, err := os.OpenRoot(s.join("tree"))
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	defer tree.Close()
	// The temporary file's ending is the archive's, so that whatever ignores
	// archives ignores it, too.
	tmp, err := os.CreateTemp(filepath.Dir(out), ".switchyard-*-"+filepath.Base(out))
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	defer os.Remove(tmp.Name())
	tmp.Close()
	sum, packed, err := packTo(ctx, tree, tmp.Name(), format, c.Manifest.program())
	if err != nil {
		return nil, err
	}
	if packed != c.Package {
		return nil, &Integrity{What: "package digest", Expected: c.Package, Found: packed, Where: dir,
			Causes: []string{"its files are being changed at this moment"}}
	}
	if err := os.Chmod(tmp.Name(), 0o644); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	if err := os.Rename(tmp.Name(), out); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return &PackResult{Path: out, Archive: sum, Contents: c, SBOM: sbom}, syncDirs(filepath.Dir(out))
}

// InsidePackage says that an archive would be written into the directory that it is
// made from, where the next look at the directory would count it.
type InsidePackage struct{ Dir, Path string }

func (e *InsidePackage) Error() string {
	return fmt.Sprintf("the archive %s would become part of the package in %s: write it elsewhere, or list it in %s", e.Path, e.Dir, archive.IgnoreFile)
}

// keepsOut refuses the place out for an archive of dir if it lies in dir and is not
// ignored there.
func keepsOut(dir, out string) error {
	abs := func(p string) (string, error) {
		p, err := filepath.Abs(p)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(p)
	}
	root, err := abs(dir)
	if err != nil {
		return err
	}
	parent, err := abs(filepath.Dir(out))
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	rel, err := filepath.Rel(root, filepath.Join(parent, filepath.Base(out)))
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return nil
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	defer opened.Close()
	ignored, err := archive.Ignores(opened, filepath.ToSlash(rel), archive.Options{})
	if err == nil && !ignored {
		err = &InsidePackage{Dir: dir, Path: out}
	}
	return err
}

// PackName returns the name of the archive that Pack makes of dir, and whether Pack
// would refuse to write it into the working directory, which lies in dir.
func PackName(dir string) (name string, inside bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false, err
	}
	defer root.Close()
	m, _, err := readManifest(root, dir)
	if err != nil {
		return "", false, err
	}
	head, err := m.head(root)
	if err != nil {
		return "", false, err
	}
	if name, err = archiveName(m.ID, m.Version, m.Executable, head.Platform, ""); err != nil {
		return "", false, err
	}
	return name, errors.As(keepsOut(dir, name), new(*InsidePackage)), nil
}

// archiveName is <id>-<version>[-os-arch].tar.zst. own is the executable's
// platform; a script's archive names none unless asked to.
func archiveName(id, version, executable, own, asked string) (string, error) {
	if asked == "" {
		asked = own
	}
	name := id + "-" + version
	if asked != "" && asked != lockfile.Any {
		if err := lockfile.CheckPlatform(asked); err != nil {
			return "", err
		}
		if own != "" && own != lockfile.Any && asked != own {
			return "", &WrongPlatform{Where: executable, Want: asked, Found: own}
		}
		name += "-" + strings.ReplaceAll(asked, "/", "-")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r > 0x7e || r <= ' ' || strings.ContainsRune(`/\:*?"<>|`, r) }) {
		return "", &Unnamable{Version: version}
	}
	return name + ".tar.zst", nil
}

// Unnamable says that a version cannot be part of a file name, so that the archive
// must be named by the user.
type Unnamable struct{ Version string }

func (e *Unnamable) Error() string {
	return fmt.Sprintf("version \"%s\" cannot be part of a file name", e.Version)
}

// packTo writes dir as an archive to the file out, and returns the digests of the
// archive and of what it holds.
func packTo(ctx context.Context, dir *os.Root, out string, format archive.Format, executable string) (sum, packed digest.Digest, err error) {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", "", fmt.Errorf("pack: %w", err)
	}
	defer f.Close()
	h := newHashWriter(f)
	tree, err := archive.Pack(ctx, dir, h, format, archive.Options{Executable: path.Clean(executable)})
	if err != nil {
		return "", "", err
	}
	if packed, err = tree.Package(); err != nil {
		return "", "", err
	}
	if err := f.Sync(); err != nil {
		return "", "", fmt.Errorf("pack: %w", err)
	}
	return h.digest(), packed, f.Close()
}
