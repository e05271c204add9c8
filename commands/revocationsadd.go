package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
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
		archive, pkg, manifest, version, signer, signerIssuer string
		e                                                     revlist.Entry
		reason, action                                        string
		validity                                              time.Duration
	)
	return &cli.Command{
		ArgsUsage: "LIST",
		Description: "Adds an entry to a revocation list, a file or the directory that holds it. Exactly one subject is given. The list gets the next " +
			"version and a new time of issue and expiry, and has to be signed again: signatures of the version before are removed.\n\n" +
			"A digest denies exactly one thing; ID@RANGE denies the versions of an id that the range covers, whoever published them; a signer denies " +
			"everything that it signed.",
		UsageText: "switchyard revocations add lists --package sha256:… --reason malicious\n" +
			"switchyard revocations add lists --version repo-facts@'<1.0.7' \\\n" +
			"    --reason vulnerable --replacement repo-facts@1.0.7",
		Flags: flags{
			&cli.StringFlag{Name: "archive", Destination: &archive, Usage: "deny the archive with this `DIGEST`"},
			&cli.StringFlag{Name: "package", Destination: &pkg, Usage: "deny the package with this `DIGEST`"},
			&cli.StringFlag{Name: "manifest", Destination: &manifest, Usage: "deny every package with the manifest of this `DIGEST`"},
			&cli.StringFlag{Name: "version", Destination: &version, Usage: "deny versions of a plugin: `ID@RANGE`"},
			&cli.StringFlag{Name: "signer", Destination: &signer, Usage: "deny what `SIGNER` signed: a public key's file or id, or IDENTITY,issuer=URL"},
			&cli.StringFlag{Name: "signer-issuer", Destination: &signerIssuer, Usage: "`URL` of who vouches for --signer, which is an identity then"},
			&cli.StringFlag{Name: "reason", Destination: &reason, Usage: "`REASON`: compromised, malicious, superseded, vulnerable or withdrawn"},
			&cli.StringFlag{Name: "action", Value: string(revlist.Block), Destination: &action, Usage: "`ACTION`: block refuses, warn says so each time"},
			&cli.StringFlag{Name: "text", Destination: &e.Text, Usage: "one line for people (`TEXT`)"},
			&cli.StringFlag{Name: "advisory", Destination: &e.Advisory, Usage: "https `URL` to read more"},
			&cli.StringFlag{Name: "replacement", Destination: &e.Replacement, Usage: "what to use instead: `ID@VERSION` or a digest"},
			&cli.DurationFlag{Name: "validity", Value: listValidity, Destination: &validity, Usage: "a newer list will be there after `TIME` at the latest"},
		},
		Action: func(c *cli.Context) error {
			argument, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			if reason == "" {
				return in.usage("--reason says why: compromised, malicious, superseded, vulnerable or withdrawn")
			}
			e.Reason, e.Action = revlist.Reason(reason), revlist.Action(action)
			given := 0
			for _, one := range []struct {
				value string
				set   func(string) error
			}{
				{archive, in.digestSubject(&e, revlist.Archive, "archive")},
				{pkg, in.digestSubject(&e, revlist.Package, "package")},
				{manifest, in.digestSubject(&e, revlist.Manifest, "manifest")},
				{version, func(text string) error {
					d, err := pkgmgr.ParseDenial(text, "-")
					if err != nil || d.PluginID == "" || d.Range == "" {
						return in.usage("--version: %q is no ID@RANGE; every version is ID@'*'", text)
					}
					e.Kind, e.PluginID, e.Range = revlist.Version, d.PluginID, d.Range
					return nil
				}},
				{signer, func(text string) (err error) {
					if signerIssuer != "" {
						text += identityIssuer + signerIssuer
					}
					e.Kind = revlist.Signer
					e.Signer, _, err = in.signer("signer", text)
					return err
				}},
			} {
				if one.value == "" {
					continue
				}
				given++
				if err := one.set(one.value); err != nil {
					return err
				}
			}
			if given != 1 || signerIssuer != "" && signer == "" {
				return in.usage("an entry has one subject: --archive, --package, --manifest, --version or --signer")
			}
			path := listPath(argument)
			list, err := readList(path)
			if err != nil {
				return err
			}
			_, replaced := list.Find(e.Kind, e.Subject())
			if list, err = list.With(e, versionRanges); err != nil {
				return err
			}
			if list, err = list.Bump(in.env.Now(), validity); err != nil {
				return err
			}
			if err := writeList(path, list); err != nil {
				return err
			}
			entry := newListedData(pkgmgr.Listed{Issuer: list.Issuer, Version: list.Version, Entry: e})
			data := revocationsAddData{path, entry, replaced, len(list.Entries), list.ExpiresAt}
			in.report(data, func(p *page) {
				p.line("List %d of %s: %s %s", list.Version, list.Issuer, entry.Action, entry.Subject)
				p.field("entries", "%d", data.Entries)
				p.field("expires", "%s", p.moment(data.ExpiresAt))
				p.next(in.next("revocations", "sign", path, "--key", "FILE"))
			})
			return nil
		},
	}
}

// digestSubject makes a digest the subject of an entry.
func (in *invocation) digestSubject(e *revlist.Entry, kind revlist.Kind, flag string) func(string) error {
	return func(text string) error {
		d, err := digest.Parse(text)
		if err != nil {
			return in.usage("--%s: %v", flag, err)
		}
		e.Kind, e.Digest = kind, d
		return nil
	}
}
