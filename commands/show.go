package commands

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type showData struct {
	Packages []packageData `json:"packages" doc:"Every installed version of the plugin that the name covers, the default one first."`
}

func showCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "NAME[@VERSION]",
		Description: "Shows everything that is known about a plugin's installed versions: where each stands, what it may do, how its last call went.",
		UsageText:   "switchyard show repo-facts\nswitchyard show repo-facts@1.0.0 --json",
		Action: func(c *cli.Context) error {
			ref, err := in.oneRef(c)
			if err != nil {
				return err
			}
			infos, err := in.named(ref)
			if err != nil {
				return err
			}
			data := showData{}
			for _, i := range infos {
				data.Packages = append(data.Packages, newPackageData(i))
			}
			in.show(data, func(p *page) {
				for i, d := range data.Packages {
					if i > 0 {
						p.line("")
					}
					p.describe(d)
				}
			})
			return nil
		},
	}
}

// named returns the installed versions that a reference covers.
func (in *invocation) named(ref pkgmgr.Ref) ([]pkgmgr.Info, error) {
	infos, err := in.packages(true)
	if err != nil {
		return nil, err
	}
	var found []pkgmgr.Info
	missing := &pkgmgr.NotFound{Kind: "plugin", Name: ref.String()}
	var ids []string
	for _, i := range infos {
		ids = append(ids, i.ID)
		if i.ID == ref.ID && (ref.Version == "" || i.Version == ref.Version) && (ref.Digest == "" || i.Package == ref.Digest) {
			found = append(found, i)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	if best := nearest(ref.ID, ids); best != "" {
		missing.Near = []string{best}
	}
	return nil, missing
}

func (p *page) describe(d packageData) {
	p.line("%s %s  %s", p.style.Mark(render.Strong, d.ID), d.Version, p.style.Mark(statusMark(d.Status), d.Status))
	if d.Name != "" {
		p.field("name", "%s", d.Name)
	}
	if d.Error != "" {
		p.field("error", "%s", d.Error)
	}
	if d.Revocation != nil {
		p.field("revoked", "%s: %s", d.Revocation.Subject, d.Revocation.Reason)
	}
	p.field("default", "%s", yesNo(d.Default))
	if d.Locked {
		p.field("locked", "yes")
	}
	if d.Package != "" {
		p.field("package", "%s", d.Package)
	}
	if d.Recorded != "" && d.Recorded != d.Package {
		p.field("reviewed", "%s", d.Recorded)
	}
	if d.Fingerprint != "" {
		p.field("fingerprint", "%s", d.Fingerprint.Hex())
	}
	p.field("asks for", "%s", orNone(d.RequestedScopes))
	granted := orNone(d.GrantedScopes)
	if d.GrantedByLock {
		granted += " (by the lock)"
	}
	p.field("granted", "%s", granted)
	if h := d.Health; h != nil {
		p.field("last call", "%s %s", p.style.Mark(healthMark(h.Status), h.Status), render.Safe(p.moment(h.At)))
		if h.Message != "" {
			p.field("", "%s", h.Message)
		}
	}
	p.field("path", "%s", d.Path)
	if d.Source != "" {
		p.field("source", "%s", d.Source)
	}
	if !d.InstalledAt.IsZero() {
		p.field("installed", "%s", render.Safe(p.moment(d.InstalledAt)))
	}
}

func healthMark(status string) render.Mark {
	switch status {
	case "healthy":
		return render.Good
	case "degraded":
		return render.Warn
	}
	return render.Bad
}

// moment spells a time for people: in UTC, to the second.
func (p *page) moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
