package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type lockData struct {
	Lock       string       `json:"lock" doc:"The lockfile."`
	Written    bool         `json:"written" doc:"Whether it was written."`
	Changes    []lockChange `json:"changes" doc:"What changed in it."`
	Next       string       `json:"next" doc:"The next command to type, empty where there is none."`
	Merged     bool         `json:"merged" doc:"Whether a merge was asked for."`
	Reformed   bool         `json:"reformed" doc:"Whether only its spelling changed."`
	Unreviewed []string     `json:"unreviewed" doc:"Entries for other machines, which nobody can have reviewed here, as \"id platform\"."`
}

func lockCommand(in *invocation) *cli.Command {
	var check, merge bool
	var take string
	return &cli.Command{
		ArgsUsage: "[BASE OURS THEIRS [PATH]]",
		Description: "Brings switchyard.lock up to what switchyard.toml asks for, on every platform it names. What is locked and unchanged is not " +
			"read again, and platforms that are locked stay. A package for this machine must have been reviewed first.\n\n" +
			"--merge resolves a merge conflict in the lock plugin by plugin, from git's index where the conflict is recorded there, else from the markers " +
			"in the file. Where both sides changed one plugin, --take says which side holds: ours is the branch that you are on, theirs the one that is " +
			"merged (in a rebase ours is the branch that you rebase onto, theirs your own commit). With files it is git's merge driver:\n\n" +
			"git config merge.switchyard.driver 'switchyard lock --merge %O %A %B %P'",
		UsageText: "switchyard lock\nswitchyard lock --check\nswitchyard lock --platform linux/amd64 --platform darwin/arm64\nswitchyard lock --merge\nswitchyard lock --merge --take theirs",
		Flags: flags{
			&cli.BoolFlag{Name: "check", Destination: &check, Usage: "write nothing; fail if the lock is out of date"},
			&cli.BoolFlag{Name: "merge", Destination: &merge, Usage: "resolve a merge conflict in the lock"},
			&cli.StringFlag{Name: "take", Destination: &take, Usage: "with --merge: the `SIDE` that holds in a conflict, ours or theirs"},
			&cli.StringSliceFlag{Name: "platform", Usage: "lock `OS/ARCH` too; may be given several times"},
		},
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 0, 4)
			if err != nil {
				return err
			}
			platforms := c.StringSlice("platform")
			switch {
			case merge && (check || len(platforms) > 0):
				return in.usage("--merge goes with no other flag of lock")
			case take != "" && (!merge || len(args) > 0):
				return in.usage("--take goes with --merge and without files")
			case merge && len(args) >= 3:
				return in.mergeFiles(args[0], args[1], args[2], append(args[3:], args[1])[0])
			case merge && len(args) == 0:
				return in.mergeHere(take)
			case len(args) > 0:
				return in.usage("files go with --merge, which takes BASE, OURS, THEIRS and the PATH that messages name")
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
	next := ""
	if r.Written {
		next = in.next("ci")
	}
	in.reportLock(lockData{Lock: r.Path, Next: next, Written: r.Written, Changes: newLockChanges(r.Changes), Reformed: r.Reform, Unreviewed: r.Unreviewed})
	return nil
}

func (in *invocation) reportLock(data lockData) {
	in.report(data, func(p *page) {
		switch {
		case data.Merged && !data.Written:
			p.line("%s holds no conflict: nothing to merge.", data.Lock)
		case data.Merged:
			p.line("Merged %s", data.Lock)
			for _, c := range data.Changes {
				p.line("  %s", c.Text)
			}
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
		if data.Next != "" {
			p.next(data.Next)
		}
	})
}
