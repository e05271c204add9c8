package commands

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// The blocks of refused packages: what is wrong, where, by which rule, why that may
// be. Which of them an error gets is for exit.go to say.

// refused is the block of a package that is not taken.
func refused(causes []string, facts ...[2]string) *block {
	facts = slices.DeleteFunc(facts, func(f [2]string) bool { return f[1] == "" })
	return &block{title: "PACKAGE REFUSED", facts: facts, causes: causes}
}

func unsafeBlock(r *archive.Refusal) *block {
	return refused(ruleCauses(r.Rule), [2]string{"what", r.Detail}, [2]string{"where", r.Archive}, [2]string{"entry", r.Entry},
		[2]string{"rule", string(r.Rule)})
}

func (in *invocation) malformedBlock(m *pkgmgr.Malformed, d malformedDetails) *block {
	what := m.Err.Error()
	if len(d.Problems) > 0 {
		what = "the manifest breaks " + count(len(d.Problems), "rule")
	}
	facts := [][2]string{{"what", what}, {"where", m.Where}}
	if m.File != "." {
		facts = append(facts, [2]string{"file", m.File})
	}
	facts = append(facts, [2]string{"rule", d.Rule})
	for _, p := range d.Problems {
		facts = append(facts, [2]string{"member", p.Member + ": " + p.Message})
	}
	b := refused(d.Causes, facts...)
	if in.isRecord(m.Where) || pkgmgr.IsEvidence(m.File) {
		b.title = "RECORD REFUSED"
	}
	return b
}

func (in *invocation) newMalformedDetails(m *pkgmgr.Malformed) malformedDetails {
	d := malformedDetails{Where: m.Where, File: m.File, Rule: "executable", Problems: []problemData{}, Causes: in.malformedCauses(m)}
	var (
		invalid *manifest.Invalid
		session *sessionmanifest.Invalid
		syntax  *ijson.Error
	)
	switch {
	case errors.As(m.Err, &invalid):
		d.Rule = "manifest"
		for _, p := range invalid.Problems {
			d.Problems = append(d.Problems, problemData{p.Path, p.Message})
		}
	case errors.As(m.Err, &session):
		d.Rule = "manifest"
		for _, p := range session.Problems {
			d.Problems = append(d.Problems, problemData{p.Pointer, p.Message})
		}
	case pkgmgr.IsBundle(m.File), pkgmgr.IsEvidence(m.File):
		d.Rule = "evidence"
	case errors.As(m.Err, &syntax):
		d.Rule = syntax.Code
	case m.File == manifest.FileName:
		d.Rule = "manifest"
	case m.File == ".":
		d.Rule = "source"
	case in.isRecord(m.Where):
		d.Rule = "record"
	}
	return d
}

func claimedBlock(c *pkgmgr.Claimed, causes []string) *block {
	facts := [][2]string{{"what", "plugin id " + c.ID + " belongs to one directory"}}
	for _, dir := range c.Dirs {
		facts = append(facts, [2]string{"where", dir})
	}
	return refused(causes, facts...)
}

func unexpectedBlock(w *pkgmgr.WrongPackage, causes []string) *block {
	return refused(causes, [2]string{"what", "another plugin or version"}, [2]string{"expected", strings.TrimSpace(w.WantID + " " + w.WantVersion)},
		[2]string{"found", w.ID + " " + w.Version}, [2]string{"where", w.Where})
}

func platformBlock(w *pkgmgr.WrongPlatform, causes []string) *block {
	return refused(causes, [2]string{"what", "the executable's platform"}, [2]string{"expected", w.Want}, [2]string{"found", w.Found},
		[2]string{"where", w.Where})
}

var (
	claimedCauses = []string{
		"a directory below plugins/ was copied or put there by hand",
		"a directory was renamed; one of them has to be moved away",
	}
	unexpectedCauses = []string{
		"the source was rebuilt or replaced after it was named",
		"the source's path lacks the placeholder {version}, and holds one version only",
		"switchyard.toml or the lock names the wrong file",
	}
	hostVersionCauses = []string{
		"this program is older than the package: update it",
		"an older version of the plugin may run under this one",
	}
	platformCauses = []string{
		"the package was built on another system than it is made for",
		"the source's path lacks the placeholders {os} and {arch}, and holds one platform only",
	}
)

// malformedCauses tells a manifest, an executable, the package itself and the records
// of the data directory apart.
func (in *invocation) malformedCauses(m *pkgmgr.Malformed) []string {
	if in.isRecord(m.Where) {
		return []string{"the file was edited by hand", "the disk is damaged, or a newer version of this program wrote the file"}
	}
	switch {
	case pkgmgr.IsBundle(m.File):
		return []string{
			"something else lies beside the archive under the name of a bundle",
			"the bundle was changed or cut off: get it anew from whoever published the archive",
		}
	case pkgmgr.IsEvidence(m.File):
		return []string{
			"what was kept of the package's signatures was changed after it was written: the archive and its bundles, installed again, mend it",
			"the disk is failing",
		}
	}
	switch m.File {
	case manifest.FileName:
		return []string{
			"the manifest was written by hand or for another version of its schema",
			"the directory or archive is no plugin package, or holds it one level deeper",
		}
	case ".":
		return []string{"the path names something else than was meant"}
	}
	return []string{
		"the plugin was not built before it was packed or installed",
		"the manifest names another file than the build writes",
	}
}

// ruleCauses are the likely reasons why an archive or tree breaks a rule, the likely
// accident before the attack.
func ruleCauses(rule archive.Rule) []string {
	const (
		damaged  = "the download is incomplete, or the file was damaged"
		byHand   = "the archive was put together by hand or by another program than switchyard pack"
		crafted  = "somebody made it so that two programs read different things from it"
		escaping = "somebody made it to write or read outside of its own directory"
		foreign  = "the names come from a system that allows them, and others do not"
		hiding   = "somebody made it to show another name than it has"
		flood    = "somebody made it to fill the disk or to keep the machine busy"
		surplus  = "files that do not belong to the package were packed; .switchyardignore leaves them out"
	)
	switch rule {
	case archive.RuleFormat:
		return []string{"the file is no archive, such as the error page of a server", "its format is none of tar, tar.gz, tar.zst and zip"}
	case archive.RuleCorrupt, archive.RuleTruncated:
		return []string{damaged}
	case archive.RuleTrailing, archive.RuleUnlisted, archive.RuleDisagree, archive.RuleDuplicate, archive.RuleUnderFile:
		return []string{damaged, byHand, crafted}
	case archive.RuleUnsupported, archive.RuleEncrypted, archive.RuleGlobal, archive.RuleHeaderSize, archive.RuleSparse, archive.RuleWindow:
		return []string{byHand + ", with options that are not read here"}
	case archive.RuleEmpty:
		return []string{"the wrong directory was packed, or everything in it is ignored"}
	case archive.RuleAbsolute, archive.RuleParent, archive.RuleForm:
		return []string{byHand, escaping}
	case archive.RuleLink:
		return []string{"the directory it was made from has links; copies of the files belong in their place", escaping}
	case archive.RuleSpecial, archive.RuleMode:
		return []string{"files of a running system were packed", escaping}
	case archive.RuleBackslash, archive.RuleReserved, archive.RuleCollision, archive.RuleEncoding:
		return []string{foreign, crafted}
	case archive.RuleControl, archive.RuleInvisible:
		return []string{foreign, hiding}
	case archive.RuleArchiveSize, archive.RuleUnpackedSize, archive.RuleEntries, archive.RuleRatio, archive.RuleOverhead:
		return []string{surplus, flood}
	case archive.RulePathLength, archive.RuleDepth:
		return []string{surplus, byHand}
	case archive.RuleIgnoreFile:
		return []string{"a line of the ignore file has a mistake"}
	case archive.RuleChanged:
		return []string{"its files are being changed at this moment, by a build or an editor"}
	}
	return []string{byHand}
}

// refusedHint is the command that goes on from a refused package, which stands at
// where, or in file below it: its build where the executable is missing, a look at
// the source, a new install of what is installed already.
func (in *invocation) refusedHint(where, file string) string {
	if build := in.buildHint(where, file); build != "" {
		return build
	}
	source := in.givenSource(where)
	switch {
	case pkgmgr.IsBundle(file):
		if info, err := os.Stat(where); err == nil && !info.IsDir() {
			where = filepath.Dir(where)
		}
		return render.Command("ls", "-l", where)
	case in.isRecord(where), in.inDataDir(where) && in.subject == "":
		return in.next("doctor")
	case in.inDataDir(where) || source == "":
		if source := in.recordedSource(); source != "" {
			return in.next("install", source)
		}
		if in.subject == "" {
			return in.next("list")
		}
		return in.next("show", in.subject)
	case in.commandName() == "check":
		if info, err := os.Stat(source); err == nil && info.IsDir() {
			return in.again()
		}
		return in.next("help", "pack")
	}
	return in.next("check", source)
}

// givenSource is a source as it was typed, by what an error calls it: its path or the
// last part of it. What was not typed is found by its path, or is "".
func (in *invocation) givenSource(where string) string {
	for _, a := range in.env.Args {
		if a == where || where != "" && filepath.Base(a) == where && isPath(a) {
			return a
		}
	}
	if _, err := os.Lstat(where); err == nil {
		return where
	}
	return ""
}

// inDataDir reports whether a path lies in the data directory.
func (in *invocation) inDataDir(path string) bool { return in.below(path) != "" }

// isRecord reports whether a path lies in the data directory where no packages are.
func (in *invocation) isRecord(path string) bool {
	first, _, _ := strings.Cut(in.below(path), string(filepath.Separator))
	return first != "" && !slices.Contains([]string{"plugins", "store", "quarantine"}, first)
}

// below is a path relative to the data directory, "" for one that is not in it.
func (in *invocation) below(path string) string {
	dir, err := in.dataDir()
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return ""
	}
	return rel
}

// claimedHint is the command that shows who claims an id.
func (in *invocation) claimedHint(id string) string {
	if in.commandName() == "show" {
		return in.next("list")
	}
	return in.next("show", id)
}

// platformHint is the command with the platform that the executable is made for.
func (in *invocation) platformHint(w *pkgmgr.WrongPlatform) string {
	if in.commandName() != "pack" || w.Found == "" || w.Found == lockfile.Any {
		if source := in.givenSource(w.Where); source != "" {
			return in.next("review", source)
		}
		return in.next(helpOn(in.commandName())...)
	}
	words := []string{in.env.Program}
	for i := 0; i < len(in.env.Args); i++ {
		switch a := in.env.Args[i]; {
		case a == "--platform":
			i++
			words = append(words, a, w.Found)
		case strings.HasPrefix(a, "--platform="):
			words = append(words, "--platform="+w.Found)
		default:
			words = append(words, a)
		}
	}
	return render.Command(words...)
}
