package main

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// versionControl says what stands at the project's root. It reads the files of
// a git directory itself and starts no program.
func versionControl(root *os.Root) []plugin.Fact {
	if facts := git(root); facts != nil {
		return facts
	}
	for _, v := range []struct{ name, dir string }{{"mercurial", ".hg"}, {"jujutsu", ".jj"}, {"subversion", ".svn"}} {
		if info, err := root.Lstat(v.dir); err == nil && info.IsDir() {
			return []plugin.Fact{{ID: "vcs.kind", Label: "Version control", Value: v.name, Source: v.dir}}
		}
	}
	return []plugin.Fact{{ID: "vcs.kind", Label: "Version control", Value: "none", Source: ".", Warning: "looked at the project's root only"}}
}

func git(root *os.Root) []plugin.Fact {
	info, err := root.Lstat(".git")
	if err != nil {
		return nil
	}
	kind := plugin.Fact{ID: "vcs.kind", Label: "Version control", Value: "git", Source: ".git"}
	if !info.IsDir() {
		kind.Warning = "the git directory is elsewhere (a linked work tree or a submodule) and was not looked at"
		return []plugin.Fact{kind}
	}
	head, err := readSmall(root, ".git/HEAD", 4<<10)
	if err != nil {
		kind.Warning = "its HEAD cannot be read"
		return []plugin.Fact{kind}
	}
	facts := []plugin.Fact{kind}
	ref, symbolic := strings.CutPrefix(strings.TrimSpace(head), "ref:")
	if !symbolic {
		if id := strings.TrimSpace(head); isObjectID(id) {
			return append(facts, plugin.Fact{ID: "vcs.head", Label: "Commit", Value: id, Source: ".git/HEAD", Warning: "detached: on no branch"})
		}
		facts[0].Warning = "its HEAD is not understood"
		return facts
	}
	ref = strings.TrimSpace(ref)
	if !isRef(ref) || ref == "refs/heads/.invalid" {
		facts[0].Warning = "its references are stored in a form that is not understood"
		return facts
	}
	facts = append(facts, plugin.Fact{ID: "vcs.branch", Label: "Branch", Value: strings.TrimPrefix(ref, "refs/heads/"), Source: ".git/HEAD"})
	id, source := resolveRef(root, ref)
	if id == "" {
		facts[len(facts)-1].Warning = "no commit yet"
		return facts
	}
	return append(facts, plugin.Fact{ID: "vcs.head", Label: "Commit", Value: id, Source: source})
}

// resolveRef returns the commit that a branch points at, and where that is
// written, or "".
func resolveRef(root *os.Root, ref string) (id, source string) {
	if text, err := readSmall(root, ".git/"+ref, 4<<10); err == nil {
		if id := strings.TrimSpace(text); isObjectID(id) {
			return id, ".git/" + ref
		}
		return "", ""
	}
	const packed = ".git/packed-refs"
	h, err := openRegular(root, packed)
	if err != nil {
		return "", ""
	}
	defer h.Close()
	lines := bufio.NewScanner(io.LimitReader(h, 16<<20))
	for lines.Scan() {
		if id, name, ok := strings.Cut(lines.Text(), " "); ok && name == ref && isObjectID(id) {
			return id, packed
		}
	}
	return "", ""
}

// isRef reports whether ref is a branch that may be used as a path below .git.
func isRef(ref string) bool {
	return strings.HasPrefix(ref, "refs/heads/") && fs.ValidPath(ref) && !strings.ContainsAny(ref, "\\\x00\n")
}

// isObjectID reports whether s is a SHA-1 or SHA-256 object name.
func isObjectID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// readSmall reads a file that must not have more than max bytes.
func readSmall(root *os.Root, name string, max int64) (string, error) {
	h, err := openRegular(root, name)
	if err != nil {
		return "", err
	}
	defer h.Close()
	text, err := io.ReadAll(io.LimitReader(h, max+1))
	if err == nil && int64(len(text)) > max {
		err = errors.New("too large")
	}
	return string(text), err
}

func openRegular(root *os.Root, name string) (*os.File, error) {
	h, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := h.Stat(); err != nil || !info.Mode().IsRegular() {
		h.Close()
		return nil, errors.Join(err, errors.New("not a regular file"))
	}
	return h, nil
}
