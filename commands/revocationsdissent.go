package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type dissentData struct {
	Digest    digest.Digest `json:"digest" doc:"The digest whose block is not followed."`
	Reason    string        `json:"reason" doc:"Why, in the words of whoever decided it."`
	ExpiresAt time.Time     `json:"expiresAt" doc:"From when on the block counts again."`
	Expired   bool          `json:"expired" doc:"Whether that time has come."`
}

type revocationsDissentData struct {
	Digest    digest.Digest `json:"digest" doc:"What it is about."`
	Reason    string        `json:"reason" doc:"Why, or empty when it was withdrawn."`
	ExpiresAt time.Time     `json:"expiresAt,omitzero" doc:"From when on the block counts again."`
	Withdrawn bool          `json:"withdrawn" doc:"Whether the lists are followed again."`
	Stopped   int           `json:"stopped" doc:"The number of running calls that were told to stop."`
}

func revocationsDissentCommand(in *invocation) *cli.Command {
	var (
		reason   string
		period   time.Duration
		withdraw bool
	)
	return &cli.Command{
		ArgsUsage: "DIGEST",
		Description: "Does not follow, on this machine and for a time, what signed lists block under one digest: the digest that is blocked or, where " +
			"a signer or a range of versions is blocked, the package's. Every use says so. What was revoked here is lifted by unrevoke.",
		UsageText: "switchyard revocations dissent sha256:… \\\n" +
			"    --reason 'the vulnerable path is not reachable here' --for 168h\n" +
			"switchyard revocations dissent sha256:… --withdraw",
		Flags: flags{
			&cli.StringFlag{Name: "reason", Destination: &reason, Usage: "why, in words; shown at every use (`TEXT`)"},
			&cli.DurationFlag{Name: "for", Destination: &period, Usage: "the block counts again after `TIME`, such as 168h"},
			&cli.BoolFlag{Name: "withdraw", Destination: &withdraw, Usage: "follow the lists again"},
		},
		Action: func(c *cli.Context) error {
			argument, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			about, err := digest.Parse(argument)
			switch {
			case err != nil:
				return in.usage("%v", err)
			case withdraw && (reason != "" || period != 0):
				return in.usage("--withdraw takes neither --reason nor --for")
			case !withdraw && reason == "":
				return in.usage("--reason says why the block is not followed")
			case !withdraw && period < time.Second:
				return in.usage("--for says how long it is not followed, as 168h")
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			data := revocationsDissentData{Digest: about, Reason: reason, Withdrawn: withdraw}
			if withdraw {
				data.Stopped, err = h.WithdrawDissent(in.context(), about)
			} else {
				data.ExpiresAt = in.env.Now().UTC().Add(period).Truncate(time.Second)
				err = h.Dissent(in.context(), revlist.Dissent{Digest: about, Reason: reason, ExpiresAt: data.ExpiresAt})
			}
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				if withdraw {
					p.line("Blocks of %s count again.", about)
					if data.Stopped > 0 {
						p.line("  told %s to stop", count(data.Stopped, "running call"))
					}
					return
				}
				p.line("Blocks of %s are not followed on this machine.", about)
				p.field("until", "%s", p.moment(data.ExpiresAt))
				p.field("reason", "%s", reason)
				p.next(in.next("revocations", "dissent", string(about), "--withdraw"))
			})
			return nil
		},
	}
}

func newDissents(d *revlist.Dissents, now time.Time) []dissentData {
	var out []dissentData
	for _, one := range d.Entries {
		_, valid := d.Of(one.Digest, now)
		out = append(out, dissentData{one.Digest, one.Reason, one.ExpiresAt, !valid})
	}
	return out
}
