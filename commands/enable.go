package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

type enableData struct {
	ID       string        `json:"id" doc:"The plugin's id."`
	Version  string        `json:"version" doc:"The package's version."`
	Package  digest.Digest `json:"package" doc:"The package digest that the grants belong to."`
	Granted  []string      `json:"granted" doc:"The scopes that hold now."`
	Withheld []string      `json:"withheld" doc:"Scopes that the plugin asks for and that are not granted."`
	Health   *healthData   `json:"health" doc:"What the plugin answered."`
	Next     string        `json:"next" doc:"The next command to type."`
}

func (in *invocation) newEnableData(e *pkgmgr.Enabled) enableData {
	return enableData{e.ID, e.Version, e.Package, words(e.Granted), words(e.Withheld), newHealthData(&e.Health), in.next("run", in.subjectOr(e.ID), "health")}
}

func enableCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION] --scope SCOPE...",
		Description: "Grants a trusted plugin exactly the scopes that are named, after it started, identified itself as the package that was " +
			"reviewed and said that it is well. Earlier grants are replaced. There is no way to grant everything at once.",
		UsageText: "switchyard enable repo-facts --scope project.metadata.read\n" +
			"switchyard enable repo-facts --scope project.metadata.read \\\n    --scope project.operate",
		Flags: flags{
			&cli.StringSliceFlag{Name: "scope", Usage: "grant `SCOPE`; may be given several times"},
		},
		Action: func(c *cli.Context) error {
			ref, err := in.oneRef(c)
			if err != nil {
				return err
			}
			var offer []manifest.Scope
			for _, s := range c.StringSlice("scope") {
				offer = append(offer, manifest.Scope(s))
			}
			if len(offer) == 0 {
				return &usageError{message: "--scope is missing: review lists what the plugin asks for", hint: []string{"review", in.subject}}
			}
			host, lock, err := in.host()
			if err != nil {
				return err
			}
			e, err := host.Enable(in.context(), ref, lock, offer)
			if err != nil {
				return err
			}
			data := in.newEnableData(e)
			in.report(data, func(p *page) { p.enabled(data) })
			return nil
		},
	}
}

func (p *page) enabled(d enableData) {
	p.line("%s %s %s", p.style.Mark(render.Good, "Enabled"), d.ID, d.Version)
	for _, s := range d.Granted {
		p.field("granted", "%s", s)
	}
	for _, s := range d.Withheld {
		p.field("withheld", "%s", s)
	}
	p.field("health", "%s", p.style.Mark(healthMark(d.Health.Status), d.Health.Status))
	p.next(d.Next)
}
