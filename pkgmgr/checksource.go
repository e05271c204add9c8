package pkgmgr

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Checked is what Check found in a directory that is to become a package.
type Checked struct {
	*Review
	Warnings []string
}

// writesBytecode reports whether a "#!" line starts Python without -B, alone or among
// other short options.
func writesBytecode(kind string) bool {
	python := false
	for _, word := range strings.Fields(kind) {
		switch {
		case strings.HasPrefix(path.Base(word), "python"):
			python = true
		case python && strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "B"):
			return false
		}
	}
	return python
}

// Check reports what an install of a directory or archive would reject, before
// anyone installs it, and what would surprise its author.
func (h *Home) Check(ctx context.Context, source string) (*Checked, error) {
	r, paths, err := h.reviewSource(ctx, source)
	if err != nil {
		return nil, err
	}
	if err := r.SBOMCheck.refused(source); err != nil {
		return nil, err
	}
	out := &Checked{Review: r}
	for _, problem := range r.SBOMCheck.Problems() {
		out.Warnings = append(out.Warnings, "SBOM: "+problem)
	}
	if loose, err := othersMayWrite(source, paths); err != nil {
		return nil, err
	} else if len(loose) > 0 {
		named := strings.Join(loose[:min(len(loose), 3)], ", ")
		if more := len(loose) - 3; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		out.Warnings = append(out.Warnings, "writable by group or world: "+named+"; an install seals its copy, but "+
			"a package that is put below plugins/ like this does not run (chmod -R go-w)")
	}
	if r.Denial != nil {
		out.Warnings = append(out.Warnings, "revoked here ("+r.Denial.Subject()+"): "+r.Denial.Reason)
	}
	if r.Manifest.program() != "" && writesBytecode(r.ExecutableKind) && r.Files > 2 {
		out.Warnings = append(out.Warnings, "a Python program that imports files beside it writes __pycache__ into its "+
			"package and so changes it; start it with \"python3 -B\" or set sys.dont_write_bytecode before the import")
	}
	for _, s := range r.Manifest.Unoffered() {
		out.Warnings = append(out.Warnings, "this host does not offer the scope "+string(s)+": nobody can grant it")
	}
	if err := h.runnable(&r.Manifest, r.Manifest.ID+" "+r.Manifest.Version); err != nil {
		out.Warnings = append(out.Warnings, "it cannot be installed on this machine: "+err.Error())
	}
	if len(r.LicenceFiles) == 0 {
		out.Warnings = append(out.Warnings, "no licence file")
	}
	if r.ExecutableKind == "of an unknown kind" {
		out.Warnings = append(out.Warnings, "the executable "+r.Manifest.Executable+" is neither a program nor a script with \"#!\"")
	}
	return out, nil
}

// othersMayWrite returns which of the files of a directory, and of the directories
// down to them, group or world may write, sorted, each with its mode. An archive says
// nothing of that: none.
func othersMayWrite(source string, files []string) ([]string, error) {
	if info, err := os.Stat(source); err != nil || !info.IsDir() || !hasExecuteBits {
		return nil, err
	}
	var list []string
	seen := map[string]bool{}
	for _, f := range files {
		for p := f; !seen[p]; p = path.Dir(p) {
			seen[p] = true
			info, err := os.Lstat(filepath.Join(source, filepath.FromSlash(p)))
			if err != nil {
				return nil, err
			}
			if mode := info.Mode().Perm(); mode&0o022 != 0 {
				list = append(list, fmt.Sprintf("%s (%04o)", p, mode))
			}
		}
	}
	slices.Sort(list)
	return list, nil
}
