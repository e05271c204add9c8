package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type followedData struct {
	Issuer       string        `json:"issuer" doc:"Whose list it is."`
	Outcome      string        `json:"outcome" doc:"How the list stands; only what a fresh one does not name is taken for unrevoked."`
	Message      string        `json:"message" doc:"Why it is not fresh, else empty."`
	Version      int64         `json:"version" doc:"The list's version, 0 where there is none."`
	Entries      int           `json:"entries" doc:"How many entries it has."`
	IssuedAt     time.Time     `json:"issuedAt,omitzero" doc:"When it was issued."`
	ExpiresAt    time.Time     `json:"expiresAt,omitzero" doc:"When it expires."`
	Digest       digest.Digest `json:"digest" doc:"The list's digest."`
	Source       string        `json:"source" doc:"Where it came from when you said so last, or empty."`
	Root         digest.Digest `json:"root" doc:"The digest of the root that says who may sign."`
	RootVersion  int64         `json:"rootVersion" doc:"The root's version."`
	RootExpires  time.Time     `json:"rootExpiresAt" doc:"When the root stops accepting lists."`
	ListSigners  []signerData  `json:"listSigners" doc:"Who may sign lists."`
	Threshold    int           `json:"threshold" doc:"How many of them must."`
	RootSigners  []signerData  `json:"rootSigners" doc:"Who may sign the next root."`
	RootRequired int           `json:"rootThreshold" doc:"How many of them must."`
}

type revocationsListData struct {
	Lists []followedData `json:"lists" doc:"The list of every issuer that is followed here, sorted by issuer."`
	Local []denialData   `json:"local" doc:"What was revoked on this machine."`

	Dissents []dissentData `json:"dissents" doc:"Blocks that are not followed on this machine, sorted by digest."`
}

func revocationsListCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Description: "Lists the signed revocation lists that are followed on this machine, how each stands and who may sign it, what was revoked here, and what is not followed here.",
		UsageText:   "switchyard revocations list\nswitchyard revocations list --json",
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			followed, err := h.FollowedLists()
			if err != nil {
				return err
			}
			local, err := h.Revocations()
			if err != nil {
				return err
			}
			dissents, err := h.Dissents()
			if err != nil {
				return err
			}
			data := revocationsListData{Local: newDenials(local), Dissents: newDissents(dissents, in.env.Now())}
			for _, f := range followed {
				data.Lists = append(data.Lists, newFollowedData(f))
			}
			in.show(data, func(p *page) { p.followed(data) })
			return nil
		},
	}
}

func newFollowedData(f pkgmgr.FollowedList) followedData {
	d := followedData{Issuer: f.Issuer, Source: f.Source, Outcome: string(f.Verdict.Outcome), Message: f.Verdict.Message, Root: f.RootDigest, RootVersion: int64(f.Root.Version),
		RootExpires: f.Root.ExpiresAt, ListSigners: newSigners(f.Root.ListSigners), Threshold: f.Root.ListThreshold,
		RootSigners: newSigners(f.Root.RootSigners), RootRequired: f.Root.RootThreshold}
	if l := f.List; l != nil {
		d.Version, d.Entries, d.IssuedAt, d.ExpiresAt, d.Digest = int64(l.Version), l.Entries, l.IssuedAt, l.ExpiresAt, l.Digest
	}
	return d
}

func (p *page) followed(d revocationsListData) {
	if len(d.Lists) == 0 {
		p.line("No signed revocation list is followed here.")
	}
	for i, l := range d.Lists {
		if i > 0 {
			p.line("")
		}
		mark := render.Good
		if l.Outcome != string(revlist.Fresh) {
			mark = render.Warn
		}
		p.line("%s  list %d  %s", p.style.Mark(render.Strong, l.Issuer), l.Version, p.style.Mark(mark, l.Outcome))
		if l.Message != "" {
			p.prose(2, l.Message)
		}
		p.field("entries", "%d", l.Entries)
		if l.Version > 0 {
			p.field("issued", "%s", p.moment(l.IssuedAt))
			p.field("expires", "%s", p.moment(l.ExpiresAt))
			p.field("digest", "%s", l.Digest)
		}
		if l.Source != "" {
			p.field("source", "%s", l.Source)
		}
		p.field("root", "%d, %s", l.RootVersion, l.Root)
		p.field("root expires", "%s", p.moment(l.RootExpires))
		for _, s := range l.ListSigners {
			p.field("signs lists", "%s", s)
		}
		for _, s := range l.RootSigners {
			p.field("signs roots", "%s", s)
		}
		p.field("thresholds", "%d of the lists', %d of the roots'", l.Threshold, l.RootRequired)
	}
	if len(d.Local) > 0 {
		p.line("")
		p.title("Revoked on this machine")
		for _, one := range d.Local {
			p.line("  %s: %s", one.Subject, one.Reason)
		}
	}
	if len(d.Dissents) > 0 {
		p.line("")
		p.title("Not followed on this machine")
		for _, one := range d.Dissents {
			until := "until"
			if one.Expired {
				until = "expired"
			}
			p.line("  %s, %s %s: %s", one.Digest, until, p.moment(one.ExpiresAt), one.Reason)
		}
	}
}
