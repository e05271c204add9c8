package pkgmgr

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// exists reports whether something stands at path, whatever it is.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isDirectory reports whether path itself, and not what a link there names, is a
// directory.
func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// openTree opens the directory of a package. A link in its place is refused: what
// it names can be changed without the link changing.
func openTree(path string) (*os.Root, error) {
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, &Malformed{Where: path, File: ".", Err: errNotDirectory}
		}
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, unreadable(path, err)
		}
		opened, err := root.Stat(".")
		if err == nil && os.SameFile(info, opened) {
			return root, nil
		}
		root.Close()
		if err != nil {
			return nil, unreadable(path, err)
		}
		// It was exchanged between the two looks; the next one decides.
	}
}

var errNotDirectory = errors.New("is not a directory")

// unreadable makes a package's fault of a file that may not be read: such a
// package cannot be hashed, reviewed or run.
func unreadable(where string, err error) error {
	var at *fs.PathError
	if errors.Is(err, fs.ErrPermission) && errors.As(err, &at) {
		return &Malformed{Where: where, File: at.Path, Err: at.Err}
	}
	return err
}

// readTree reads an installed tree whole.
func readTree(ctx context.Context, path string) (*Contents, error) {
	root, err := openTree(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tree, err := archive.HashDir(ctx, root)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return readContents(root, tree, path)
}

// hashPath returns the package digest of the tree at path, as it is now.
func hashPath(ctx context.Context, path string) (digest.Digest, error) {
	found, _, err := hashFiles(ctx, path, archive.HashDir)
	return found, err
}

// hashFiles is hashPath by one of archive's ways, and returns what was hashed.
func hashFiles(ctx context.Context, path string, hash func(context.Context, *os.Root) (*archive.Tree, error)) (digest.Digest, []digest.File, error) {
	root, err := openTree(path)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	tree, err := hash(ctx, root)
	if err != nil {
		return "", nil, unreadable(path, err)
	}
	if tree.NoModes { // the manifest says which file is executable
		m, _, err := readManifest(root, path)
		if err != nil {
			return "", nil, err
		}
		tree.MarkExecutable(m.program())
	}
	found, err := tree.Package()
	return found, tree.Files, err
}

// isFault reports whether err says that a package breaks a rule, rather than that
// it could not be read to the end.
func isFault(err error) bool {
	var refused *archive.Refusal
	var malformed *Malformed
	return errors.As(err, &refused) || errors.As(err, &malformed)
}

// holds reports whether the tree at path has the digest d and keeps the rules that
// a digest does not cover: who may write to the executable. A tree that is missing
// or breaks a rule does not.
func holds(ctx context.Context, path string, d digest.Digest) (bool, error) {
	found, err := hashPath(ctx, path)
	if err == nil && found == d {
		err = checkModes(path)
	}
	if errors.Is(err, fs.ErrNotExist) || isFault(err) {
		return false, nil
	}
	return err == nil && found == d, err
}

// checkModes applies the rules of executables to a tree.
func checkModes(path string) error {
	root, err := openTree(path)
	if err != nil {
		return err
	}
	defer root.Close()
	m, _, err := readManifest(root, path)
	if err != nil {
		return err
	}
	_, err = checkEntry(root, &m, path)
	return err
}

// storeIntact reports whether store/<digest> exists and still has that digest.
func (h *Home) storeIntact(ctx context.Context, d digest.Digest) (bool, error) {
	return holds(ctx, h.storePath(d), d)
}

// mirrors reports whether plugins/<dirName> holds exactly the files of the store's
// tree d: the same inodes, or on a file system without hard links the same bytes.
func (h *Home) mirrors(ctx context.Context, dirName string, d digest.Digest) (bool, error) {
	if sameInodes(h.storePath(d), h.pluginPath(dirName)) {
		return true, nil
	}
	return holds(ctx, h.pluginPath(dirName), d)
}

// sameInodes reports whether b has exactly the files and directories of a, each
// file being the same inode, and no directory that others can write. It reads no
// file.
func sameInodes(a, b string) bool {
	n := 0
	err := filepath.WalkDir(a, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n++
		mine, err := os.Lstat(p)
		if err != nil {
			return err
		}
		other, err := os.Lstat(b + p[len(a):])
		if err != nil {
			return err
		}
		if mine.IsDir() != other.IsDir() || !mine.IsDir() && !os.SameFile(mine, other) ||
			other.IsDir() && hasExecuteBits && other.Mode().Perm()&0o022 != 0 {
			return fs.ErrInvalid
		}
		return nil
	})
	if err != nil || n == 0 {
		return false
	}
	m := 0
	err = filepath.WalkDir(b, func(_ string, _ fs.DirEntry, err error) error { m++; return err })
	return err == nil && n == m
}

// linked reports whether b has exactly the files of a, which are listed, each being
// the same inode, and whether nobody else can write to anything of both. It reads no
// file.
func linked(files []digest.File, a, b string) (same, sealed bool) {
	n, open := 0, false
	err := filepath.WalkDir(b, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		theirs, err := os.Lstat(p)
		if err != nil {
			return err
		}
		mine, err := os.Lstat(a + p[len(b):])
		if err != nil {
			return err
		}
		if mine.IsDir() != theirs.IsDir() || !mine.IsDir() && !os.SameFile(mine, theirs) {
			return fs.ErrInvalid
		}
		if !mine.IsDir() {
			n++
		}
		open = open || (mine.Mode().Perm()|theirs.Mode().Perm())&0o022 != 0
		return nil
	})
	return err == nil && n == len(files), !open || !hasExecuteBits
}

// moveTree renames a sealed tree into another parent directory: its top must be
// writable while it moves. What is no directory is renamed as it is.
func moveTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return os.Rename(from, to)
	}
	if err := os.Chmod(from, 0o755); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return os.Chmod(to, 0o555)
}

// putBack moves a tree from a stage to where it came from, unless it never left.
func putBack(staged, place string) error {
	if !exists(staged) || exists(place) {
		return nil
	}
	return moveTree(staged, place)
}

// mendExchange completes an exchange that was made of several renames and was
// interrupted between them, see exchangeTrees.
func mendExchange(next, dir string) error {
	aside := next + asideSuffix
	switch {
	case !exists(aside):
		return nil
	case exists(dir):
		return os.Rename(aside, next)
	}
	return os.Rename(aside, dir)
}

// asideSuffix names what an exchange of several renames moves out of the way.
const asideSuffix = ".previous"

// removeTree removes a tree of read-only directories.
func removeTree(path string) error {
	filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// sealDirectories makes every directory below root read-only, root excluded:
// a directory must be writable while it is renamed into another parent.
func sealDirectories(root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || p == root {
			return err
		}
		return os.Chmod(p, 0o555)
	})
}

// sealFiles makes every file below root read-only, and executable for all where its
// owner may execute it.
func sealFiles(root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o444)
		if info.Mode()&0o100 != 0 {
			mode = 0o555
		}
		return os.Chmod(p, mode)
	})
}

// linkTree makes dst a hard-linked copy of the tree src, with directories of its
// own; on a file system without hard links, or for a file that has as many links
// as it can have, a copy.
func linkTree(src, dst string) error {
	return filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := dst + strings.TrimPrefix(p, src)
		if d.IsDir() {
			return os.Mkdir(target, 0o755)
		}
		if !d.Type().IsRegular() {
			return &Malformed{Where: src, File: p, Err: errors.New("is neither a file nor a directory")}
		}
		err = os.Link(p, target)
		if noLinks(err) {
			err = copyFile(p, target)
		}
		return err
	})
}

func noLinks(err error) bool {
	for _, errno := range [...]syscall.Errno{syscall.EPERM, syscall.EMLINK, syscall.EXDEV, syscall.ENOSYS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, errors.ErrUnsupported)
}

func copyFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}
