package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type revocationsRenewData struct {
	List      string    `json:"list" doc:"The file of the list."`
	Issuer    string    `json:"issuer" doc:"Whose list it is."`
	Version   int64     `json:"version" doc:"Its version from now on."`
	Entries   int       `json:"entries" doc:"How many entries it has, which are those of the version before."`
	ExpiresAt time.Time `json:"expiresAt" doc:"When it expires."`
}

func revocationsRenewCommand(in *invocation) *cli.Command {
	var validity time.Duration
	return &cli.Command{
		ArgsUsage: "LIST",
		Description: "Issues a revocation list again, a file or the directory that holds it, before it expires: the same entries, the next version, a new " +
			"time of issue and expiry. It has to be signed again: signatures of the version before are removed.",
		UsageText: "switchyard revocations renew lists\nswitchyard revocations renew lists --validity 72h",
		Flags:     flags{validityFlag(&validity)},
		Action: func(c *cli.Context) error {
			argument, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			path, list, err := in.reissue(argument, validity, func(l *revlist.List) (*revlist.List, error) { return l, nil })
			if err != nil {
				return err
			}
			in.report(revocationsRenewData{path, list.Issuer, int64(list.Version), len(list.Entries), list.ExpiresAt}, func(p *page) {
				p.line("List %d of %s: as before, issued again", list.Version, list.Issuer)
				in.reissued(p, path, list)
			})
			return nil
		},
	}
}
