package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type gcData struct {
	DryRun  bool          `json:"dryRun" doc:"Whether nothing was removed."`
	Removed []removedData `json:"removed" doc:"What was removed, or would be."`
	Bytes   int64         `json:"bytes" doc:"The size of it together."`
}

func gcCommand(in *invocation) *cli.Command {
	var dryRun bool
	return &cli.Command{
		Description: "Removes from the store what nothing refers to: versions that are neither a default, nor locked by a project that is " +
			"known or that you stand in, nor running, and the archives of packages that are gone. Quarantine is never touched.",
		UsageText: "switchyard gc --dry-run\nswitchyard gc",
		Flags: flags{
			&cli.BoolFlag{Name: "dry-run", Destination: &dryRun, Usage: "say what would be removed and remove nothing"},
		},
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			h, lock, err := in.site()
			if err != nil {
				return err
			}
			o := pkgmgr.GCOptions{DryRun: dryRun}
			if lock != nil {
				o.Locks = []*pkgmgr.Lock{lock}
			}
			removed, err := h.GC(in.context(), o)
			if err != nil {
				return err
			}
			data := gcData{DryRun: dryRun, Removed: newRemovedData(removed)}
			for _, r := range removed {
				data.Bytes += r.Bytes
			}
			in.report(data, func(p *page) {
				verb := "Removed"
				if dryRun {
					verb = "Would remove"
				}
				for _, r := range data.Removed {
					name := "archive"
					if r.ID != "" {
						name = r.ID + " " + r.Version
					}
					p.line("%s %s %s (%s)", render.Safe(verb), name, r.Package, byteSize(r.Bytes))
				}
				if len(data.Removed) == 0 {
					p.line("Nothing to remove.")
					return
				}
				p.line("%s %d, %s.", render.Safe(verb), len(data.Removed), byteSize(data.Bytes))
			})
			return nil
		},
	}
}
