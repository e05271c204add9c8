package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
)

// A mergeConflict says that two sides of a lock cannot be joined.
type mergeConflict struct {
	path      string
	conflicts []lockfile.Conflict
}

func (e *mergeConflict) Error() string {
	return e.path + ": both sides changed the same plugin; say which side holds with --take ours or --take theirs: " +
		"ours is the branch that you are on, theirs the one that is merged (in a rebase ours is the branch that you rebase onto, theirs your own commit)"
}

// sidesOf tells one conflict in one line, side by side.
func sidesOf(c lockfile.Conflict) string {
	none := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	what := string(c.Kind)
	if c.Platform != "" {
		what = c.Platform + " " + what
	}
	switch c.Kind {
	case lockfile.Added:
		return fmt.Sprintf("%s: removed in ours, changed in theirs (version %s)", c.ID, c.Now)
	case lockfile.Removed:
		return fmt.Sprintf("%s: changed in ours (version %s), removed in theirs", c.ID, c.Was)
	case lockfile.PlatformAdded:
		return fmt.Sprintf("%s: platform %s: not in ours, in theirs", c.ID, c.Platform)
	case lockfile.PlatformMissing:
		return fmt.Sprintf("%s: platform %s: in ours, not in theirs", c.ID, c.Platform)
	}
	return fmt.Sprintf("%s: %s: ours %s, theirs %s", c.ID, what, none(c.Was), none(c.Now))
}

// mergeHere resolves a conflict in the project's lock.
func (in *invocation) mergeHere(side string) error {
	take, known := map[string]lockfile.Take{"": lockfile.TakeNone, "ours": lockfile.TakeOurs, "theirs": lockfile.TakeTheirs}[side]
	if !known {
		return in.usage("--take: \"%s\" is neither ours nor theirs", side)
	}
	p, err := in.projectHere(projectMustExist)
	if err != nil {
		return err
	}
	if !p.HasLock {
		return pkgmgr.ErrNoLock
	}
	raw, err := textfile.Read(p.LockPath(), lockfile.MaxBytes)
	if err != nil {
		return err
	}
	_, invalid := lockfile.Parse(p.LockPath(), raw)
	sides := in.indexSides(in.context(), p)
	switch marked := errors.Is(invalid, lockfile.ErrConflict); {
	case sides != nil && (marked || bytes.Equal(raw, sides.Ours)):
		// Without markers git was told not to merge the file, and left ours there.
	case marked:
		if sides, err = lockfile.SplitConflict(p.LockPath(), raw); err != nil {
			return err
		}
	case invalid != nil:
		return invalid
	default:
		in.reportLock(lockData{Lock: p.LockPath(), Merged: true})
		return nil
	}
	text, conflicts, err := sides.Merge(p.LockPath(), take)
	if err != nil {
		return err
	}
	if len(conflicts) > 0 && take == lockfile.TakeNone {
		return &mergeConflict{p.LockPath(), conflicts}
	}
	if err := textfile.Write(p.LockPath(), text); err != nil {
		return err
	}
	data := lockData{Lock: p.LockPath(), Written: true, Merged: true, Changes: newLockChanges(conflicts)}
	for i, c := range conflicts {
		data.Changes[i].Text = "took " + side + ": " + sidesOf(c)
	}
	in.reportLock(data)
	return nil
}

// indexSides returns the three sides of an unmerged lock from git's index, whole as
// they were committed, or nil where there is no git or the file is not unmerged.
func (in *invocation) indexSides(ctx context.Context, p *project.Project) *lockfile.Sides {
	git := in.git(p.Root)
	if git == nil {
		return nil
	}
	list, err := git(ctx, "ls-files", "--unmerged", "-z", "--", lockfile.FileName)
	if err != nil || len(list) == 0 {
		return nil
	}
	empty := (&lockfile.File{}).Format()
	sides := &lockfile.Sides{Ours: empty, Theirs: empty}
	for entry := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		facts, _, _ := strings.Cut(entry, "\t")
		words := strings.Fields(facts) // mode, object, stage
		if len(words) != 3 {
			return nil
		}
		text, err := git(ctx, "cat-file", "blob", words[1])
		if err != nil {
			return nil
		}
		switch words[2] {
		case "1":
			sides.Base = text
		case "2":
			sides.Ours = text
		case "3":
			sides.Theirs = text
		}
	}
	return sides
}

// mergeFiles is git's merge driver: the result goes to ours, with markers where
// the sides cannot be joined. git made these files under names of its own; path is
// the lock's.
func (in *invocation) mergeFiles(base, ours, theirs, path string) error {
	var texts [3][]byte
	for i, name := range []string{base, ours, theirs} {
		var err error
		if texts[i], err = readUpTo(name, lockfile.MaxBytes); err != nil {
			return err
		}
	}
	text, conflicts, err := lockfile.MergeText(texts[0], texts[1], texts[2])
	if err != nil {
		return err
	}
	if err := os.WriteFile(ours, text, 0o666); err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return &mergeConflict{path, conflicts}
	}
	// git speaks for itself.
	in.show(lockData{Lock: path, Written: true, Merged: true}, func(*page) {})
	return nil
}
