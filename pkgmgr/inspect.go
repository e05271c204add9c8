package pkgmgr

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Contents is what a package's own bytes say: manifest, digests and files. It is
// computed by reading, never by executing.
type Contents struct {
	Manifest       manifest.Manifest
	ManifestBytes  []byte
	ManifestDigest digest.Digest
	Fingerprint    digest.Digest
	Package        digest.Digest
	Files          []digest.File
	Bytes          int64
	Head           executableHead
}

// readContents applies the manifest and executable rules to a tree whose files
// were just hashed, and computes the digests. where is used in messages only.
func readContents(root *os.Root, tree *archive.Tree, where string) (*Contents, error) {
	m, raw, err := readManifest(root, where)
	if err != nil {
		return nil, err
	}
	if !hashedAs(tree, manifest.FileName, raw) {
		return nil, &Malformed{Where: where, File: manifest.FileName, Err: errors.New("was changed while the package was read")}
	}
	exe := path.Clean(m.Executable)
	if tree.NoModes {
		tree.MarkExecutable(exe)
		if err := root.Chmod(exe, 0o555); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	f, err := openExecutable(root, exe, where)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	h.Write(raw)
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", where, exe, err)
	}
	c := &Contents{
		Manifest: m, ManifestBytes: raw,
		Fingerprint: digest.FromBytes(h.Sum(nil)),
		Files:       tree.Files, Bytes: tree.Unpacked,
	}
	if c.Head, err = readHead(root, exe); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", where, exe, err)
	}
	if c.Head.Fault != nil {
		return nil, &Malformed{Where: where, File: exe, Err: c.Head.Fault}
	}
	if c.ManifestDigest, err = digest.Manifest(raw); err != nil {
		return nil, &Malformed{Where: where, File: manifest.FileName, Err: err}
	}
	if c.Package, err = tree.Package(); err != nil {
		return nil, err
	}
	return c, nil
}

// readManifest reads and validates plugin.json at the root of a package.
func readManifest(root *os.Root, where string) (manifest.Manifest, []byte, error) {
	var m manifest.Manifest
	bad := func(err error) error { return &Malformed{Where: where, File: manifest.FileName, Err: err} }
	info, err := root.Lstat(manifest.FileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil, bad(errors.New("is missing from the package's root"))
	case err != nil:
		return m, nil, bad(err)
	case !info.Mode().IsRegular():
		return m, nil, bad(errors.New("is not a regular file"))
	case info.Size() > manifest.MaxBytes:
		return m, nil, bad(fmt.Errorf("has %d bytes, at most %d", info.Size(), manifest.MaxBytes))
	}
	f, err := root.Open(manifest.FileName)
	if err != nil {
		return m, nil, bad(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, manifest.MaxBytes+1))
	if err != nil {
		return m, nil, bad(err)
	}
	if len(raw) > manifest.MaxBytes {
		return m, nil, bad(fmt.Errorf("has more than %d bytes", manifest.MaxBytes))
	}
	m, err = ParseManifest(raw)
	if err != nil {
		return m, nil, bad(err)
	}
	return m, raw, nil
}

// ParseManifest reads plugin.json strictly: I-JSON, exactly the schema's members,
// every rule of the call protocol. The error is *ijson.Error or *manifest.Invalid. The
// protocol allows an executable that is inside the package once it is cleaned; what is
// returned, and so reviewed, recorded and started, is the cleaned path.
func ParseManifest(raw []byte) (manifest.Manifest, error) {
	var m manifest.Manifest
	if err := ijson.Unmarshal(raw, &m); err != nil {
		return m, err
	}
	if err := m.Validate(); err != nil {
		return m, err
	}
	m.Executable = path.Clean(m.Executable)
	return m, nil
}

// openExecutable opens the manifest's executable, which keeps the rules that
// checkExecutable states.
func openExecutable(root *os.Root, exe, where string) (*os.File, error) {
	info, err := checkExecutable(root, exe, where)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(exe)
	if err != nil {
		return nil, &Malformed{Where: where, File: exe, Err: err}
	}
	if !isFile(f, info) {
		f.Close()
		return nil, &Malformed{Where: where, File: exe, Err: errors.New("the executable was replaced while it was being read")}
	}
	return f, nil
}

// checkExecutable applies the daemon's rules: a regular file inside the package, no
// symlink in any part of its path, some execute bit, neither it nor a directory
// above it writable by group or world.
func checkExecutable(root *os.Root, exe, where string) (fs.FileInfo, error) {
	if err := checkParents(root, exe, where); err != nil {
		return nil, err
	}
	info, err := root.Lstat(exe)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badExecutable(where, exe, "the manifest's executable is missing")
	case err != nil:
		return nil, badExecutable(where, exe, "%w", err)
	}
	return info, checkProgram(info, exe, where)
}

func badExecutable(where, exe, format string, args ...any) error {
	return &Malformed{Where: where, File: exe, Err: fmt.Errorf(format, args...)}
}

// checkParents applies the rules for directories to those of the executable's path.
func checkParents(root *os.Root, exe, where string) error {
	for p := path.Dir(exe); ; p = path.Dir(p) {
		info, err := root.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return badExecutable(where, exe, "the manifest's executable is missing")
		case err != nil:
			return badExecutable(where, exe, "%w", err)
		case !info.IsDir():
			return badExecutable(where, exe, "%s is not a directory", p)
		case hasExecuteBits && info.Mode().Perm()&0o022 != 0:
			return badExecutable(where, exe, "directory %s is writable by group or world (mode %04o)", p, info.Mode().Perm())
		}
		if p == "." {
			return nil
		}
	}
}

// checkProgram applies the rules for the executable itself.
func checkProgram(info fs.FileInfo, exe, where string) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return badExecutable(where, exe, "the executable is a symbolic link")
	case !mode.IsRegular():
		return badExecutable(where, exe, "the executable is not a regular file")
	case hasExecuteBits && mode.Perm()&0o111 == 0:
		return badExecutable(where, exe, "the executable has no execute bit (chmod +x)")
	case hasExecuteBits && mode.Perm()&0o022 != 0:
		return badExecutable(where, exe, "the executable is writable by group or world (mode %04o)", mode.Perm())
	case info.Size() > manifest.MaxExecutableBytes:
		return badExecutable(where, exe, "the executable has %d bytes, at most %d", info.Size(), manifest.MaxExecutableBytes)
	}
	return nil
}
