package commands

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type lockData struct {
	Lock       string       `json:"lock" doc:"The lockfile."`
	Written    bool         `json:"written" doc:"Whether it was written."`
	Changes    []lockChange `json:"changes" doc:"What changed in it."`
	Reformed   bool         `json:"reformed" doc:"Whether only its spelling changed."`
	Unreviewed []string     `json:"unreviewed" doc:"Entries for other machines, which nobody can have reviewed here, as \"id platform\"."`
}

func lockCommand(in *invocation) *cli.Command {
	var check, merge bool
	return &cli.Command{
		ArgsUsage: "[BASE OURS THEIRS]",
		Description: "Brings switchyard.lock up to what switchyard.toml asks for, on every platform it names. What is locked and unchanged is not " +
			"read again, and platforms that are locked stay. A package for this machine must have been reviewed first.\n\n" +
			"--merge resolves the conflict markers that version control left in the lock. With three files it is git's merge driver:\n\n" +
			"git config merge.switchyard.driver 'switchyard lock --merge %O %A %B'",
		UsageText: "switchyard lock\nswitchyard lock --check\nswitchyard lock --platform linux/amd64 --platform darwin/arm64\nswitchyard lock --merge",
		Flags: flags{
			&cli.BoolFlag{Name: "check", Destination: &check, Usage: "write nothing; fail if the lock is out of date"},
			&cli.BoolFlag{Name: "merge", Destination: &merge, Usage: "resolve a merge conflict in the lock"},
			&cli.StringSliceFlag{Name: "platform", Usage: "lock `OS/ARCH` too; may be given several times"},
		},
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 0, 3)
			if err != nil {
				return err
			}
			platforms := c.StringSlice("platform")
			switch {
			case merge && (check || len(platforms) > 0):
				return in.usage("--merge goes with no other flag of lock")
			case merge && len(args) == 3:
				return in.mergeFiles(args[0], args[1], args[2])
			case merge && len(args) == 0:
				return in.mergeHere()
			case len(args) > 0:
				return in.usage("files go with --merge, which takes BASE, OURS and THEIRS")
			}
			return in.relock(check, platforms)
		},
	}
}

func (in *invocation) relock(check bool, platforms []string) error {
	for _, p := range platforms {
		if err := lockfile.CheckPlatform(p); err != nil {
			return in.usage("--platform: %v", err)
		}
	}
	h, err := in.home()
	if err != nil {
		return err
	}
	p, err := in.projectHere(projectMustExist)
	if err != nil {
		return err
	}
	mode := pkgmgr.LockWrite
	if check {
		mode = pkgmgr.LockCheck
	}
	r, err := h.Relock(in.context(), p, platforms, mode)
	if err != nil {
		return err
	}
	for _, u := range r.Unreviewed {
		in.warn("%s was locked from its archive; nobody has reviewed it on this machine", u)
	}
	in.reportLock(lockData{r.Path, r.Written, newLockChanges(r.Changes), r.Reform, r.Unreviewed})
	return nil
}

func (in *invocation) reportLock(data lockData) {
	in.report(data, func(p *page) {
		switch {
		case !data.Written:
			p.line("%s is up to date.", data.Lock)
		case data.Reformed:
			p.line("Wrote %s: the same meaning in its canonical form.", data.Lock)
		default:
			p.line("Wrote %s", data.Lock)
			for _, c := range data.Changes {
				p.line("  %s", c.Text)
			}
		}
	})
}

// A mergeConflict says that two sides of a lock cannot be joined.
type mergeConflict struct {
	path      string
	conflicts []lockfile.Conflict
}

func (e *mergeConflict) Error() string {
	return e.path + ": both sides changed the same plugin; decide which side holds and pin it again"
}

// mergeHere takes the markers out of the project's lock.
func (in *invocation) mergeHere() error {
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
	text, conflicts, err := lockfile.MergeConflicted(p.LockPath(), raw)
	if err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return &mergeConflict{p.LockPath(), conflicts}
	}
	if err := textfile.Write(p.LockPath(), text); err != nil {
		return err
	}
	in.reportLock(lockData{Lock: p.LockPath(), Written: true, Reformed: true})
	return nil
}

// mergeFiles is git's merge driver: the result goes to ours, with markers where
// the sides cannot be joined.
func (in *invocation) mergeFiles(base, ours, theirs string) error {
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
	// git made this file and reads it again: it stands in no project.
	if err := os.WriteFile(ours, text, 0o666); err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return &mergeConflict{ours, conflicts}
	}
	in.reportLock(lockData{Lock: ours, Written: true, Reformed: true})
	return nil
}
