package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type revocationsAddData struct {
	List      string     `json:"list" doc:"The file of the list."`
	Entry     listedData `json:"entry" doc:"The entry, with the list's version from now on."`
	Replaced  bool       `json:"replaced" doc:"Whether the list had an entry about the same subject, which this one replaces."`
	Entries   int        `json:"entries" doc:"How many entries the list has now."`
	ExpiresAt time.Time  `json:"expiresAt" doc:"When the list expires."`
}

func revocationsAddCommand(in *invocation) *cli.Command {
	var (
		subject                                     listSubject
		reason, action, text, advisory, replacement string
		validity                                    time.Duration
	)
	return &cli.Command{
		ArgsUsage: "LIST",
		Description: "Adds an entry to a revocation list, a file or the directory that holds it. Exactly one subject is given. The list gets the next " +
			"version and a new time of issue and expiry, and has to be signed again: signatures of the version before are removed.\n\n" +
			"A digest denies exactly one thing; --publisher narrows --manifest to one publisher's plugin; ID@RANGE denies the versions of an id that the " +
			"range covers, whoever published them; a signer denies everything that it signed.",
		UsageText: "switchyard revocations add lists --package sha256:… --reason malicious\n" +
			"switchyard revocations add lists --version repo-facts@'<1.0.7' \\\n" +
			"    --reason vulnerable --replacement repo-facts@1.0.7\n" +
			"switchyard revocations add lists --reason withdrawn \\\n" +
			"    --publisher org.example/org.example.words --manifest sha256:…",
		Flags: append(subject.flags("deny"),
			&cli.StringFlag{Name: "reason", Destination: &reason, Usage: "`REASON`: compromised, malicious, superseded, vulnerable or withdrawn"},
			&cli.StringFlag{Name: "action", Value: string(revlist.Block), Destination: &action, Usage: "`ACTION`: block refuses, warn says so each time"},
			&cli.StringFlag{Name: "text", Destination: &text, Usage: "one line for people (`TEXT`)"},
			&cli.StringFlag{Name: "advisory", Destination: &advisory, Usage: "https `URL` to read more"},
			&cli.StringFlag{Name: "replacement", Destination: &replacement, Usage: "what to use instead: `ID@VERSION` or a digest"},
			validityFlag(&validity)),
		Action: func(c *cli.Context) error {
			argument, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			if reason == "" {
				return in.usage("--reason says why: compromised, malicious, superseded, vulnerable or withdrawn")
			}
			e, err := subject.entry(in)
			if err != nil {
				return err
			}
			e.Reason, e.Action, e.Text, e.Advisory, e.Replacement = revlist.Reason(reason), revlist.Action(action), text, advisory, replacement
			replaced := false
			path, list, err := in.reissue(argument, validity, func(l *revlist.List) (*revlist.List, error) {
				_, replaced = l.Find(e.Kind, e.Subject())
				return l.With(e, versionRanges)
			})
			if err != nil {
				return err
			}
			entry := newListedData(pkgmgr.Listed{Issuer: list.Issuer, Version: list.Version, Entry: e})
			data := revocationsAddData{path, entry, replaced, len(list.Entries), list.ExpiresAt}
			in.report(data, func(p *page) {
				p.line("List %d of %s: %s %s", list.Version, list.Issuer, entry.Action, entry.Subject)
				in.reissued(p, path, list)
			})
			return nil
		},
	}
}
