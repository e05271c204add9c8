package commands

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

type enableData struct {
	ID        string        `json:"id" doc:"The plugin's id."`
	Version   string        `json:"version" doc:"The package's version."`
	Package   digest.Digest `json:"package" doc:"The package digest that the grants belong to."`
	Granted   []string      `json:"granted" doc:"The scopes that hold now."`
	Withheld  []string      `json:"withheld" doc:"Scopes that the plugin asks for and that are not granted."`
	Withdrawn []string      `json:"withdrawn" doc:"Scopes that were granted before and are not any more."`
	ByLock    []string      `json:"withheldByLock" doc:"Scopes that are granted on this machine and that the project's lock withholds."`
	Health    *healthData   `json:"health" doc:"What the plugin answered."`
	Next      string        `json:"next" doc:"The next command to type."`
}

// newEnableData compares what holds now with what was granted before; before is nil
// where nothing was.
func (in *invocation) newEnableData(e *pkgmgr.Enabled, lock *pkgmgr.Lock, before *pkgmgr.Grants) enableData {
	name := in.subjectOr(e.ID)
	d := enableData{ID: e.ID, Version: e.Version, Package: e.Package, Granted: words(e.Granted), Withheld: words(e.Withheld),
		Health: newHealthData(&e.Health), Next: in.next("run", name, "health")}
	if before != nil && before.Package == e.Package {
		for _, s := range before.Recorded {
			if !slices.Contains(e.Granted, s) {
				d.Withdrawn = append(d.Withdrawn, string(s))
			}
		}
	}
	ref, err := pkgmgr.ParseRef(name)
	if err != nil {
		return d
	}
	now := in.grantsOf(ref, lock)
	if now == nil || now.Package != e.Package {
		return d
	}
	d.Next = in.afterEnabled(lock, e.ID, name, now)
	if now.Lock != "" {
		for _, s := range e.Granted {
			if !slices.Contains(now.Ceiling, s) {
				d.ByLock = append(d.ByLock, string(s))
			}
		}
	}
	if len(d.ByLock) > 0 {
		in.warn("%s withholds %s", now.Lock, strings.Join(d.ByLock, " "))
		d.Next = in.pinHint(e.ID, now)
	}
	return d
}

func enableCommand(in *invocation) *cli.Command {
	var settings string
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION] --scope SCOPE...",
		Description: "Grants a trusted plugin exactly the scopes that are named, after it started, identified itself as the package that was " +
			"reviewed and said that it is well. Earlier grants are replaced. There is no way to grant everything at once. A package of the session protocol that " +
			"requires no scope may be enabled without any.",
		UsageText: "switchyard enable repo-facts --scope project.metadata.read\n" +
			"switchyard enable repo-facts --scope project.metadata.read \\\n    --scope project.operate",
		Flags: flags{
			&cli.StringSliceFlag{Name: "scope", Usage: "grant `SCOPE`; may be given several times"},
			settingsFlag(&settings),
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
			// A session package may ask for nothing; what it cannot do without is refused below.
			if _, session, err := in.sessionManifest(ref); err != nil {
				return err
			} else if len(offer) == 0 && !session {
				return &usageError{message: "--scope is missing: review lists what the plugin asks for", hint: []string{"review", in.subject}}
			}
			host, lock, err := in.host()
			if err != nil {
				return err
			}
			if host.Settings, err = in.settings(settings); err != nil {
				return err
			}
			before := in.grantsOf(ref, lock)
			e, err := host.Enable(in.context(), ref, lock, offer)
			if err != nil {
				return err
			}
			data := in.newEnableData(e, lock, before)
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
	for _, s := range d.Withdrawn {
		p.field("withdrawn", "%s", s)
	}
	p.field("health", "%s", p.style.Mark(healthMark(d.Health.Status), d.Health.Status))
	p.next(d.Next)
}
