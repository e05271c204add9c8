package commands

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// integrityHint is the command that looks at what is there.
func (in *invocation) integrityHint(e *pkgmgr.Integrity) string {
	if in.commandName() == "verify" {
		if source := in.recordedSource(); source != "" {
			return in.next("install", source)
		}
	}
	if in.subject != "" {
		return in.next("review", in.subject)
	}
	if e.What == "archive digest" {
		return in.next("review", e.Where)
	}
	return in.next("verify")
}

// grantsOf returns what is recorded about the package that ref selects here, for
// hints: what cannot be read is nil.
func (in *invocation) grantsOf(ref pkgmgr.Ref, lock *pkgmgr.Lock) *pkgmgr.Grants {
	dir, err := in.dataDir()
	if err != nil {
		return nil
	}
	h, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now})
	if err != nil {
		return nil
	}
	g, err := h.GrantsOf(context.Background(), ref, lock)
	if err != nil {
		return nil
	}
	return g
}

// nameOf is how commands under lock reach a package: by the plain id where that
// selects it, else with the version, else with the digest. "" says that it is not
// installed.
func (in *invocation) nameOf(lock *pkgmgr.Lock, id, version string, pkg digest.Digest) string {
	if pkg == "" {
		return in.subjectOr(id)
	}
	for _, ref := range []pkgmgr.Ref{{ID: id}, {ID: id, Version: version}, {ID: id, Digest: pkg}} {
		if ref.Version == "" && ref.Digest == "" && strings.HasPrefix(in.subject, id+"@") {
			ref, _ = pkgmgr.ParseRef(in.subject)
		}
		if g := in.grantsOf(ref, lock); g != nil && g.Package == pkg {
			return ref.String()
		}
	}
	return ""
}

// lockOrNone is the lock in force, for hints.
func (in *invocation) lockOrNone() *pkgmgr.Lock {
	lock, err := in.lock()
	if err != nil {
		return nil
	}
	return lock
}

// decisionHint is the command that begins the decision about a package: to review
// it or, where a lock is to name what is not installed yet, to install it.
func (in *invocation) decisionHint(e *pkgmgr.NeedsDecision) string {
	if name := in.nameOf(in.lockOrNone(), e.ID, e.Version, e.Package); name != "" {
		return in.next("review", name)
	}
	if in.commandName() == "lock" {
		return in.next("install")
	}
	return in.next("review", in.subjectOr(e.ID))
}

// moreScopes is the command that grants a scope beside those that a person granted:
// enable replaces what was granted before, also what a lock withholds.
func (in *invocation) moreScopes(id string, scope manifest.Scope) string {
	scopes := []manifest.Scope{scope}
	if ref, err := pkgmgr.ParseRef(in.subjectOr(id)); err == nil {
		if g := in.grantsOf(ref, in.lockOrNone()); g != nil {
			scopes = slices.Concat(g.Recorded, scopes)
		}
	}
	return in.enableCommandLine(in.subjectOr(id), scopes)
}

// ceilingHint is the command that brings a scope nearer which a lock withholds: the
// lock takes over what is granted on this machine.
func (in *invocation) ceilingHint(e *pkgmgr.Denied) string {
	lock := in.lockOrNone()
	ref, err := pkgmgr.ParseRef(in.subjectOr(e.ID))
	if err != nil {
		return in.next("show", e.ID)
	}
	g := in.grantsOf(ref, lock)
	switch {
	case g == nil:
		return in.next("show", in.subjectOr(e.ID))
	case !g.Trusted:
		return in.next("review", in.subjectOr(e.ID))
	case slices.Contains(g.Recorded, e.Scope):
		return in.pinHint(e.ID, g)
	}
	return in.moreScopes(e.ID, e.Scope)
}

// pinHint is the command that writes a package into the lock. pin takes the default
// version, not the locked one.
func (in *invocation) pinHint(id string, g *pkgmgr.Grants) string {
	name := in.nameOf(nil, id, g.Version, g.Package)
	if name == "" {
		name = in.subjectOr(id)
	}
	return in.next("pin", name)
}

func (in *invocation) missingHint(e *pkgmgr.NotFound) string {
	switch e.Kind {
	case "plugin", "version":
		if len(e.Near) > 0 {
			return in.withName(e.Near[0])
		}
		return in.next("list")
	case "locked plugin":
		if lock := in.lockOrNone(); lock != nil {
			var ids []string
			for _, p := range lock.File.Plugins {
				ids = append(ids, p.ID)
			}
			if best := nearest(e.Name, ids); best != "" {
				return in.withName(best)
			}
		}
		return in.next("list")
	case "operation":
		if len(e.Near) > 0 && in.subject != "" { // of a package, not of the records
			return in.next("actions", in.subject)
		}
		return in.next("operations", "list")
	case "receipt":
		return in.next("receipts", "list")
	case "project":
		return in.next("project", "list")
	case "source", "file":
		return in.missingFileHint(e.Name)
	case "dissent":
		return in.next("revocations", "list")
	case "entry":
		return in.next(helpOn(in.commandName())...)
	case "revocation":
		if len(e.Near) > 0 {
			return in.next("unrevoke", e.Near[0])
		}
		return in.next("history")
	}
	return ""
}

// missingFileHint is the command line as it was typed, with the name of the file or
// directory beside it that was probably meant; else the command that shows what is there
// instead.
func (in *invocation) missingFileHint(path string) string {
	dir, base := filepath.Split(path)
	var beside []string
	for _, p := range children(filepath.Clean(dir)) {
		beside = append(beside, filepath.Base(p))
	}
	if best := nearest(base, beside); best != "" && distance(strings.ToLower(base), best) <= 2 {
		words := slices.Clone(in.env.Args)
		for i, a := range words {
			if a == path || a == "@"+path {
				words[i] = strings.TrimSuffix(a, base) + best
				return render.Command(append([]string{in.env.Program}, words...)...)
			}
		}
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			if strings.HasPrefix(dir, "-") {
				dir = "./" + dir
			}
			return render.Command("ls", dir)
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// withName returns the command line as it was typed, with another plugin's name.
func (in *invocation) withName(name string) string {
	words := slices.Clone(in.env.Args)
	at := slices.Index(words, in.subject)
	if in.subject == "" || at < 0 {
		return in.next("show", name)
	}
	words[at] = name
	return render.Command(append([]string{in.env.Program}, words...)...)
}

// revokedHint is the command that tells more about a revoked package.
func (in *invocation) revokedHint(e *pkgmgr.Revoked) string {
	if _, err := in.named(pkgmgr.Ref{ID: e.ID}); err == nil {
		return in.next("show", e.ID)
	}
	return in.next("history", e.ID)
}

// buildHint is the command that builds the executable which a package's source lacks,
// or "".
func (in *invocation) buildHint(where, file string) string {
	if where == "" || file == "" || file == manifest.FileName {
		return ""
	}
	_, missing := os.Lstat(filepath.Join(where, filepath.FromSlash(file)))
	makefile, _ := readUpTo(filepath.Join(where, "Makefile"), 64<<10)
	if errors.Is(missing, fs.ErrNotExist) && slices.ContainsFunc(strings.Split(string(makefile), "\n"), func(l string) bool { return strings.HasPrefix(l, "build:") }) {
		return render.Command("make", "-C", where, "build")
	}
	return ""
}

// recordedSource is where the plugin that the user named was installed from, if it
// is still there.
func (in *invocation) recordedSource() string {
	ref, err := pkgmgr.ParseRef(in.subject)
	if err != nil {
		return ""
	}
	infos, err := in.named(ref)
	if err != nil || infos[0].Source == "" {
		return ""
	}
	if _, err := os.Stat(infos[0].Source); err != nil {
		return ""
	}
	return infos[0].Source
}

// actionsHint is the command that lists the actions of the plugin, on the project
// that was named.
func (in *invocation) actionsHint(id string) string {
	words := []string{"actions", in.subjectOr(id)}
	for i, a := range in.env.Args {
		if a == "--project" && i+1 < len(in.env.Args) {
			words = append(words, a, in.env.Args[i+1])
		} else if strings.HasPrefix(a, "--project=") {
			words = append(words, a)
		}
	}
	return in.next(words...)
}

// takesProject reports whether the command calls a plugin on the working directory
// because no project was named.
func (in *invocation) takesProject() bool {
	return slices.Contains([]string{"run", "actions"}, in.commandName()) &&
		!slices.ContainsFunc(in.env.Args, func(a string) bool { return a == "--project" || strings.HasPrefix(a, "--project=") })
}

// meantRoot is the root of the project that dir lies in without being one itself, or
// "".
func (in *invocation) meantRoot(dir string) string {
	marked := func(dir string) bool {
		for _, name := range []string{lockfile.FileName, project.ConfigName, ".git"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
		return false
	}
	if marked(dir) {
		return ""
	}
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		if marked(parent) {
			return parent
		}
	}
	return ""
}

// again returns the command line as it was typed, with more flags.
func (in *invocation) again(more ...string) string {
	words := append([]string{in.env.Program}, in.env.Args...)
	if i := slices.Index(words, "--"); i >= 0 {
		return render.Command(slices.Concat(words[:i], more, words[i:])...)
	}
	return render.Command(append(words, more...)...)
}

// subjectOr returns the plugin as the user named it, else id.
func (in *invocation) subjectOr(id string) string {
	if in.subject != "" {
		return in.subject
	}
	return id
}

// unsafeDirHint is the command that makes the data directory, or what is on the way to
// it, safe to use; where its mode is not what is wrong, the one that shows where the
// choice of the directory comes from.
func (in *invocation) unsafeDirHint(path string) string {
	dir, err := in.dataDir()
	if err != nil {
		return in.next("env")
	}
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !owned(info) {
		return in.next("env")
	}
	switch mode := info.Mode().Perm(); {
	case path == dir && mode&0o077 != 0:
		return render.Command("chmod", "700", path)
	case path != dir && mode&0o022 != 0:
		return render.Command("chmod", "go-w", path)
	}
	return in.next("env")
}

// readOnlyHint is the command that gives the owner back the right to write where the
// modes withhold it; on a file system that is read-only, the one that shows where the
// choice of the directory comes from.
func (in *invocation) readOnlyHint() string {
	dir, err := in.dataDir()
	if err != nil {
		return in.next("env")
	}
	words := []string{"chmod", "u+w"}
	for _, path := range append([]string{dir}, children(dir)...) {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 && owned(info) && info.Mode().Perm()&0o200 == 0 {
			words = append(words, path)
		}
	}
	if len(words) == 2 {
		return in.next("env")
	}
	return render.Command(words...)
}

// children are the paths of what is in a directory, sorted; none if it cannot be read.
func children(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name()))
	}
	return out
}
