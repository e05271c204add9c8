package commands

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type pinData struct {
	Lock   string       `json:"lock" doc:"The lockfile that was written."`
	Pinned []lockedData `json:"pinned" doc:"The entries as they are now."`
	Next   string       `json:"next" doc:"The next command to type."`
}

func pinCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION]...",
		Description: "Writes installed, reviewed plugins into this project's switchyard.lock: version, digests, where they came from, and the scopes " +
			"that are granted now as the most that may be granted under the lock. Other platforms of the same version stay.",
		UsageText: "switchyard pin repo-facts",
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 1, -1)
			if err != nil {
				return err
			}
			var refs []pkgmgr.Ref
			for _, a := range args {
				ref, err := in.ref(a)
				if err != nil {
					return err
				}
				refs = append(refs, ref)
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			p, err := in.projectHere(projectBegin)
			if err != nil {
				return err
			}
			entries, err := h.Pin(in.context(), p, refs)
			if err != nil {
				return err
			}
			data := pinData{Lock: p.LockPath(), Next: in.next("lock", "--check")}
			for _, e := range entries {
				data.Pinned = append(data.Pinned, newLockedData(e))
				if next := in.sourceless(e); next != "" {
					data.Next = next
				}
			}
			in.report(data, func(p *page) {
				for _, d := range data.Pinned {
					p.line("Pinned %s %s in %s", p.style.Mark(render.Strong, d.ID), d.Version, data.Lock)
					p.field("at most", "%s", orNone(d.Grants))
					for _, platform := range d.Platforms {
						p.field(platform.Platform, "%s", platform.Package)
					}
				}
				p.next(data.Next)
			})
			return nil
		},
	}
}

// sourceless warns of an entry that no other machine can install, and returns the
// command that begins to mend it, or "".
func (in *invocation) sourceless(e lockfile.Plugin) string {
	if e.Source != "" {
		return ""
	}
	in.warn("%s: the lock names no source, so that ci finds it on this machine only: it was not installed from an archive that a path relative to the "+
		"lock reaches. Pack it, install the archive and pin it again", e.ID)
	infos, err := in.named(pkgmgr.Ref{ID: e.ID, Version: e.Version})
	if err != nil || infos[0].Source == "" {
		return ""
	}
	source := infos[0].Source
	info, err := os.Stat(source)
	switch {
	case err != nil:
		return ""
	case !info.IsDir():
		return in.next("install", source, "--save")
	}
	return in.next("pack", source, "-o", e.ID+"-"+e.Version+".tar.zst")
}
