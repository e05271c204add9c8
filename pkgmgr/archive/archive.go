// Package archive turns package archives and directories into file trees and
// back: Extract and CopyDir unpack, Pack writes an archive, HashDir computes
// the digest of a tree that stands on disk.
//
// All four obey one set of rules. A name, a mode or a size that Extract would
// refuse is refused by Pack, CopyDir and HashDir with the same code, and the
// bounds are the one table Default. What is refused is a *Refusal that names
// the entry and the rule; docs/packages.md lists every rule.
//
// The package refuses links, special files, names that some operating system
// or file system would change or confuse, data that no entry lists, archives
// that two readers could read differently, and anything beyond its bounds. It
// does not know what a plugin is: it only recognises the file name plugin.json
// to tell a package wrapped in one directory from a flat one. It does not read
// an archive's own digest, set the modes of directories, sync, or remove what a
// failed extraction has written below the destination: that is its caller's.
package archive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// rootFile is the file whose place tells where a package's root is.
const rootFile = "plugin.json"

// Limits bounds what one archive or tree may cost. Sizes are in bytes. A zero
// field allows nothing; the zero Limits as a whole stands for Default.
type Limits struct {
	Archive    int64  // the archive file
	Unpacked   int64  // all file contents together
	Entries    int    // files and directories, listed or implied by a path
	PathBytes  int    // one path, relative to the package's root
	Depth      int    // components of one path
	Ratio      int64  // unpacked bytes for each byte of the archive file ...
	RatioFree  int64  // ... judged only beyond this many unpacked bytes
	ZstdWindow uint64 // the window that a zstd frame asks its reader to hold
	Header     int64  // one extended header of a tar
	Overhead   int64  // all extended headers and the padding of a tar together
	IgnoreFile int64  // the file .switchyardignore
}

// Default is the table of bounds that docs/packages.md shows.
var Default = Limits{
	Archive:    512 << 20,
	Unpacked:   1 << 30,
	Entries:    20_000,
	PathBytes:  240,
	Depth:      32,
	Ratio:      200,
	RatioFree:  10 << 20,
	ZstdWindow: 64 << 20,
	Header:     1 << 20,
	Overhead:   64 << 20,
	IgnoreFile: 64 << 10,
}

// ratio refuses what unpacks to too many times its size.
func (l Limits) ratio(unpacked, archive int64) *Refusal {
	if unpacked <= l.RatioFree || l.Ratio > 0 && (unpacked-1)/l.Ratio < archive {
		return nil
	}
	return refuse("", RuleRatio, "%d bytes unpack to more than %d times as many", archive, l.Ratio)
}

// Options tunes one run. The zero value applies Default and reports nothing.
type Options struct {
	Limits Limits

	// Progress, if not nil, hears how many bytes of the input have been taken
	// in, and of how many. Calls do not overlap; the last has done == total.
	Progress func(done, total int64)

	// Executable is the file that Pack and CopyDir mark executable when the
	// source's file system has no execute bits. Elsewhere the bit decides.
	Executable string
}

func (o Options) limits() Limits {
	if o.Limits == (Limits{}) {
		return Default
	}
	return o.Limits
}

func (o Options) progress(done, total int64) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// A Tree is what an archive or directory holds: its files sorted by path in
// byte order. Directories count only as far as files need them.
type Tree struct {
	Files    []digest.File
	Unpacked int64  // sum of the files' sizes
	NoModes  bool   // the source could not say which files are executable
	Stripped string // the single top directory that was removed, or ""
}

// Package returns the package digest.
func (t *Tree) Package() (digest.Digest, error) { return digest.Package(t.Files) }

// File returns the entry at path.
func (t *Tree) File(path string) (digest.File, bool) {
	if i, ok := t.find(path); ok {
		return t.Files[i], true
	}
	return digest.File{}, false
}

// MarkExecutable records that the file at path is executable, for a tree with
// NoModes once the manifest is known, and reports whether there is such a file.
// The file's mode on disk is the caller's to change.
func (t *Tree) MarkExecutable(path string) bool {
	i, ok := t.find(path)
	if ok {
		t.Files[i].Mode = digest.ModeExecutable
	}
	return ok
}

func (t *Tree) find(path string) (int, bool) {
	return slices.BinarySearchFunc(t.Files, path, func(f digest.File, p string) int {
		return strings.Compare(f.Path, p)
	})
}

// Dirs returns the directories that the files need, each before its contents.
// The root is not among them.
func (t *Tree) Dirs() []string {
	seen := map[string]bool{}
	var dirs []string
	for _, f := range t.Files {
		for i := range len(f.Path) {
			if f.Path[i] == '/' && !seen[f.Path[:i]] {
				seen[f.Path[:i]] = true
				dirs = append(dirs, f.Path[:i])
			}
		}
	}
	return dirs
}

// A Format is a kind of archive that Pack writes.
type Format string

const (
	TarZst Format = "tar.zst"
	TarGz  Format = "tar.gz"
	Zip    Format = "zip"
)

// FormatOf returns the format that a file name's ending asks for.
func FormatOf(name string) (Format, error) {
	for _, f := range []Format{TarZst, TarGz, Zip} {
		if strings.HasSuffix(name, "."+string(f)) {
			return f, nil
		}
	}
	return "", fmt.Errorf("\"%s\": %w", name, ErrFormatName)
}
