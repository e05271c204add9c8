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
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Contents is what a package's own bytes say: manifest, digests and files. It is
// computed by reading, never by executing.
type Contents struct {
	Manifest       Manifest
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
	exe := m.Executable
	if program := m.program(); tree.NoModes && program != "" {
		tree.MarkExecutable(program)
		if err := root.Chmod(program, 0o555); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	f, err := openEntry(root, &m, where)
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
	if c.Head, err = m.head(root); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", where, exe, err)
	}
	if c.Head.Fault != nil {
		return nil, &Malformed{Where: where, File: exe, Err: c.Head.Fault}
	}
	if c.ManifestDigest, err = m.digestOf(raw); err != nil {
		return nil, &Malformed{Where: where, File: manifest.FileName, Err: err}
	}
	if err := checkSchemas(root, tree, &m, where); err != nil {
		return nil, err
	}
	if c.Package, err = tree.Package(); err != nil {
		return nil, err
	}
	return c, nil
}

// openEntry opens the manifest's entry file, which keeps the rules that checkEntry
// states.
func openEntry(root *os.Root, m *Manifest, where string) (*os.File, error) {
	exe := m.Executable
	info, err := checkEntry(root, m, where)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(exe)
	if err != nil {
		return nil, &Malformed{Where: where, File: exe, Err: err}
	}
	if !isFile(f, info) {
		f.Close()
		return nil, badEntry(where, exe, "the %s was replaced while it was being read", m.entryWord())
	}
	return f, nil
}

// checkEntry applies the daemon's rules: a regular file inside the package, no
// symlink in any part of its path, neither it nor a directory above it writable by
// group or world; a program has some execute bit.
func checkEntry(root *os.Root, m *Manifest, where string) (fs.FileInfo, error) {
	exe := m.Executable
	if err := checkParents(root, m, where); err != nil {
		return nil, err
	}
	info, err := root.Lstat(exe)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badEntry(where, exe, "the manifest's %s is missing", m.entryWord())
	case err != nil:
		return nil, badEntry(where, exe, "%w", err)
	}
	return info, m.checkFile(info, where)
}

func badEntry(where, exe, format string, args ...any) error {
	return &Malformed{Where: where, File: exe, Err: fmt.Errorf(format, args...)}
}

// checkParents applies the rules for directories to those of the entry file's path.
func checkParents(root *os.Root, m *Manifest, where string) error {
	exe := m.Executable
	for p := path.Dir(exe); ; p = path.Dir(p) {
		info, err := root.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return badEntry(where, exe, "the manifest's %s is missing", m.entryWord())
		case err != nil:
			return badEntry(where, exe, "%w", err)
		case !info.IsDir():
			return badEntry(where, exe, "%s is not a directory", p)
		case hasExecuteBits && info.Mode().Perm()&0o022 != 0:
			return badEntry(where, exe, "directory %s is writable by group or world (mode %04o)", p, info.Mode().Perm())
		}
		if p == "." {
			return nil
		}
	}
}

// checkFile applies the rules for the entry file itself.
func (m *Manifest) checkFile(info fs.FileInfo, where string) error {
	mode, exe, word := info.Mode(), m.Executable, m.entryWord()
	switch {
	case mode&fs.ModeSymlink != 0:
		return badEntry(where, exe, "the %s is a symbolic link", word)
	case !mode.IsRegular():
		return badEntry(where, exe, "the %s is not a regular file", word)
	case hasExecuteBits && mode.Perm()&0o111 == 0 && m.program() != "":
		return badEntry(where, exe, "the %s has no execute bit (chmod +x)", word)
	case hasExecuteBits && mode.Perm()&0o022 != 0:
		return badEntry(where, exe, "the %s is writable by group or world (mode %04o)", word, mode.Perm())
	case info.Size() > manifest.MaxExecutableBytes:
		return badEntry(where, exe, "the %s has %d bytes, at most %d", word, info.Size(), manifest.MaxExecutableBytes)
	}
	return nil
}
