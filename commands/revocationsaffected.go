package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type affectedData struct {
	ID        string        `json:"id" doc:"The plugin's id."`
	Version   string        `json:"version" doc:"The package's version."`
	Package   digest.Digest `json:"package" doc:"The package's digest."`
	Installed bool          `json:"installed" doc:"Whether it is on this machine."`
	Locked    string        `json:"locked" doc:"The platform under which the project's lock names it, empty where it does not."`
	Calls     int           `json:"calls" doc:"The number of calls of it that the history holds."`
	LastCall  time.Time     `json:"lastCall,omitzero" doc:"When it was called last."`
	Entries   []listedData  `json:"entries" doc:"The entries that name it, those that block first."`
}

type revocationsAffectedData struct {
	Packages []affectedData `json:"packages" doc:"The packages that signed lists name, sorted by id and version."`
}

func revocationsAffectedCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Description: "Lists what signed revocation lists name among the packages that are installed, that the project's lock names, and that were called " +
			"on this machine in the past, also where they are gone: what to replace, and where to look for damage.",
		UsageText: "switchyard revocations affected\nswitchyard revocations affected --json",
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			h, lock, err := in.site()
			if err != nil {
				return err
			}
			list, err := h.Affected(in.context(), lock)
			if err != nil {
				return err
			}
			var data revocationsAffectedData
			for _, a := range list {
				data.Packages = append(data.Packages, newAffectedData(a))
			}
			in.show(data, func(p *page) { p.affected(data) })
			return nil
		},
	}
}

func newAffectedData(a pkgmgr.Affected) affectedData {
	d := affectedData{ID: a.ID, Version: a.Version, Package: a.Package, Installed: a.Installed, Locked: a.Locked, Calls: a.Calls, LastCall: a.LastCall}
	for _, one := range a.Listed {
		d.Entries = append(d.Entries, newListedData(one))
	}
	return d
}

func (p *page) affected(d revocationsAffectedData) {
	if len(d.Packages) == 0 {
		p.line("No package that is installed, locked or was called is named by a revocation list.")
	}
	for i, a := range d.Packages {
		if i > 0 {
			p.line("")
		}
		p.line("%s %s", p.style.Mark(render.Strong, a.ID), a.Version)
		p.field("package", "%s", a.Package)
		if a.Installed {
			p.field("installed", "yes")
		}
		if a.Locked != "" {
			p.field("locked", "for %s", a.Locked)
		}
		if a.Calls > 0 {
			p.field("called", "%s, last at %s", count(a.Calls, "time"), p.moment(a.LastCall))
		}
		for _, e := range a.Entries {
			mark := render.Warn
			if e.Action == string(revlist.Block) && e.Dissent == "" {
				mark = render.Bad
			}
			p.line("  %s  %s: %s, list %d of %s", p.style.Mark(mark, e.Action), e.Subject, e.Reason, e.Version, e.Issuer)
			if e.Dissent != "" {
				p.field("not followed", "%s", e.Dissent)
			}
			if e.Text != "" {
				p.field("text", "%s", e.Text)
			}
			if e.Advisory != "" {
				p.field("advisory", "%s", e.Advisory)
			}
			if e.Replacement != "" {
				p.field("replacement", "%s", e.Replacement)
			}
		}
	}
}
