package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type revocationsRemoveData struct {
	List      string     `json:"list" doc:"The file of the list."`
	Entry     listedData `json:"entry" doc:"The entry that was removed, with the list's version from now on."`
	Entries   int        `json:"entries" doc:"How many entries the list has now."`
	ExpiresAt time.Time  `json:"expiresAt" doc:"When the list expires."`
}

func revocationsRemoveCommand(in *invocation) *cli.Command {
	var (
		subject  listSubject
		validity time.Duration
	)
	return &cli.Command{
		ArgsUsage: "LIST",
		Description: "Takes an entry out of a revocation list, a file or the directory that holds it. The subject is given as for revocations add. The list " +
			"gets the next version and a new time of issue and expiry, and has to be signed again. Machines that adopt it deny the subject no more.",
		UsageText: "switchyard revocations remove lists --package sha256:…\nswitchyard revocations remove lists --version repo-facts@'<1.0.7'",
		Flags:     append(subject.flags("about"), validityFlag(&validity)),
		Action: func(c *cli.Context) error {
			argument, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			e, err := subject.entry(in)
			if err != nil {
				return err
			}
			path, list, err := in.reissue(argument, validity, func(l *revlist.List) (*revlist.List, error) {
				next, found := l.Without(e.Kind, e.Subject())
				if !found {
					return nil, &pkgmgr.NotFound{Kind: "entry", Name: pkgmgr.Listed{Entry: e}.Subject()}
				}
				i, _ := l.Find(e.Kind, e.Subject())
				e = l.Entries[i]
				return next, nil
			})
			if err != nil {
				return err
			}
			entry := newListedData(pkgmgr.Listed{Issuer: list.Issuer, Version: list.Version, Entry: e})
			in.report(revocationsRemoveData{path, entry, len(list.Entries), list.ExpiresAt}, func(p *page) {
				p.line("List %d of %s: no more about %s", list.Version, list.Issuer, entry.Subject)
				in.reissued(p, path, list)
			})
			return nil
		},
	}
}
