package commands

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type revocationsUpdateData struct {
	Issuer      string        `json:"issuer" doc:"Whose list it is."`
	Version     int64         `json:"version" doc:"The list's version."`
	Was         int64         `json:"was" doc:"The version before; 0 where there was none."`
	Entries     int           `json:"entries" doc:"How many entries it has."`
	IssuedAt    time.Time     `json:"issuedAt" doc:"When it was issued."`
	ExpiresAt   time.Time     `json:"expiresAt" doc:"When it expires."`
	Unchanged   bool          `json:"unchanged" doc:"Whether this list was adopted before."`
	Signers     []signerData  `json:"signers" doc:"Who signed it."`
	Root        digest.Digest `json:"root" doc:"The digest of the root that says who may."`
	RootVersion int64         `json:"rootVersion" doc:"The root's version."`
	RootAdopted bool          `json:"rootAdopted" doc:"Whether the root was adopted now."`
	Outcome     string        `json:"outcome" doc:"fresh, or why what the list does not name is not taken for unrevoked." enum:"fresh|expired|too_old"`
	Stopped     int           `json:"stopped" doc:"The number of running calls that were told to stop."`
}

func revocationsUpdateCommand(in *invocation) *cli.Command {
	var trust string
	return &cli.Command{
		ArgsUsage: "SOURCE",
		Description: "Adopts a revocation list from a file or a directory of this machine: list.json and list.json.sigstore.jsonl, with root.json and " +
			"root.json.sigstore.jsonl beside them. The first time the root is accepted by its digest, which you have from the issuer by a way that you " +
			"trust; afterwards only a root that the one before signed is. A list that is older than the one in force, signed by too few, or another " +
			"one with the same version is refused, and the one in force stays. Running calls that the list blocks are told to stop.",
		UsageText: "switchyard revocations update ./lists --trust-root sha256:…\nswitchyard revocations update ./lists",
		Flags: flags{
			&cli.StringFlag{Name: "trust-root", Destination: &trust, Usage: "accept the first root of an issuer, which has this `DIGEST`"},
		},
		Action: func(c *cli.Context) error {
			source, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			if strings.Contains(source, "://") {
				return in.usage("%s is an address, and this version opens no connection: download list.json, root.json and the .sigstore.jsonl file of each into one "+
					"directory and give that", source)
			}
			var root digest.Digest
			if trust != "" {
				if root, err = digest.Parse(trust); err != nil {
					return in.usage("--trust-root: %v", err)
				}
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			u, err := h.UpdateLists(in.context(), source, root)
			if err != nil {
				return err
			}
			data := newRevocationsUpdateData(u)
			if !u.Verdict.Silence() {
				in.warn("the list was adopted, but it is not fresh: %s", u.Verdict.Message)
			}
			in.report(data, func(p *page) {
				verb := "Adopted"
				if data.Unchanged {
					verb = "Already in force:"
				}
				p.line("%s list %d of %s", render.Safe(verb), data.Version, p.style.Mark(render.Strong, data.Issuer))
				p.field("entries", "%d", data.Entries)
				p.field("expires", "%s", p.moment(data.ExpiresAt))
				for _, s := range data.Signers {
					p.field("signed by", "%s", s)
				}
				if data.RootAdopted {
					p.field("new root", "%d, %s", data.RootVersion, data.Root)
				}
				if data.Stopped > 0 {
					p.line("  told %s to stop", count(data.Stopped, "running call"))
				}
				p.next(in.next("revocations", "affected"))
			})
			return nil
		},
	}
}

func newRevocationsUpdateData(u *pkgmgr.ListUpdate) revocationsUpdateData {
	l := u.List
	return revocationsUpdateData{Issuer: l.Issuer, Version: int64(l.Version), Was: int64(u.Was), Entries: l.Entries, IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt,
		Unchanged: u.Unchanged, Signers: newSigners(u.Signers), Root: u.RootDigest, RootVersion: int64(u.Root.Version), RootAdopted: u.RootAdopted,
		Outcome: string(u.Verdict.Outcome), Stopped: u.Stopped}
}
