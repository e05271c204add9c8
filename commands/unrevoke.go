package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type unrevokeData struct {
	Revocation  denialData   `json:"revocation" doc:"What is not denied any more."`
	Restored    []movedData  `json:"restored" doc:"Packages that came back from quarantine, untrusted."`
	StillDenied []denialData `json:"stillDenied" doc:"Other revocations that keep packages in quarantine."`
}

func unrevokeCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "ID[@RANGE]|DIGEST",
		Description: "Lifts a revocation, named exactly as it was made, and brings back from quarantine what no other revocation covers. What " +
			"comes back is untrusted.",
		UsageText: "switchyard unrevoke repo-facts\nswitchyard unrevoke repo-facts@'<1.2.0'",
		Action: func(c *cli.Context) error {
			h, subject, err := in.homeAndArgument(c)
			if err != nil {
				return err
			}
			r, err := h.Unrevoke(in.context(), subject)
			if err != nil {
				return err
			}
			data := unrevokeData{Revocation: newDenialData(r.Denial), Restored: newMovedData(r.Quarantined), StillDenied: newDenials(r.StillDenied)}
			in.report(data, func(p *page) {
				p.line("%s is not revoked any more.", data.Revocation.Subject)
				for _, m := range data.Restored {
					p.line("  %s %s is back, untrusted", m.ID, m.Version)
				}
				for _, d := range data.StillDenied {
					p.line("  still denied by %s: %s", d.Subject, d.Reason)
				}
				if len(data.Restored) > 0 {
					p.next(in.next("review", data.Restored[0].ID))
				}
			})
			return nil
		},
	}
}

func newDenials(list []pkgmgr.Denial) []denialData {
	var out []denialData
	for _, d := range list {
		out = append(out, newDenialData(d))
	}
	return out
}
