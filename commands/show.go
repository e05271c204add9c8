package commands

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type showData struct {
	Packages []packageData `json:"packages" doc:"Every installed version of the plugin that the name covers, the one first that the project's lock names, else the default one."`
	Set      *settingsData `json:"set" doc:"What is set for a session plugin, private values masked, or null."`
	Grants   []partsData   `json:"grants" doc:"What the grants of each of them are made of, in the same order."`
}

// partsData are the two sides of a package's grants.
type partsData struct {
	Package digest.Digest `json:"package" doc:"The package digest that the grants belong to."`
	Local   []string      `json:"local" doc:"What a person granted on this machine."`
	Lock    []string      `json:"lock" doc:"The most that the project's lock lets hold."`
	Locked  bool          `json:"locked" doc:"Whether the project's lock names the package."`
}

// parts returns the two sides of a package's grants; of one that cannot be selected
// there are none.
func (in *invocation) parts(lock *pkgmgr.Lock, i pkgmgr.Info) partsData {
	d := partsData{Package: i.Recorded}
	if i.Recorded == "" {
		return d
	}
	if g := in.grantsOf(pkgmgr.Ref{ID: i.ID, Digest: i.Recorded}, lock); g != nil && g.Package == i.Recorded {
		d.Local, d.Lock, d.Locked = words(g.Recorded), words(g.Ceiling), g.Lock != ""
	}
	return d
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
			lock := in.lockOrNone()
			// What the lock names is what the other commands mean by the name.
			slices.SortStableFunc(infos, func(a, b pkgmgr.Info) int { return before(a.Locked, b.Locked) })
			for _, i := range infos {
				data.Packages = append(data.Packages, newPackageData(i))
				data.Grants = append(data.Grants, in.parts(lock, i))
			}
			data.Set = in.settingsIn(ref)
			in.show(data, func(p *page) {
				for i, d := range data.Packages {
					if i > 0 {
						p.line("")
					}
					p.describe(d, data.Grants[i])
				}
				if s := data.Set; s != nil {
					p.field("is set", "%s", s.set())
					for _, one := range s.Secrets {
						p.field("secret", "%s", one.text())
					}
				}
			})
			return nil
		},
	}
}

// before orders what is first before what is not.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// everyVersion asks for the versions that are not the default, too.
const everyVersion = true

// named returns the installed versions that a reference covers.
func (in *invocation) named(ref pkgmgr.Ref) ([]pkgmgr.Info, error) {
	infos, err := in.packages(everyVersion)
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

func (p *page) describe(d packageData, parts partsData) {
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
	if parts.Locked {
		p.field("granted here", "%s", orNone(parts.Local))
		p.field("lock grants", "%s", orNone(parts.Lock))
	}
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

// shortMoment is moment for tables: on a narrow terminal the time of today, or the
// day.
func (p *page) shortMoment(t, now time.Time) string {
	const roomy = 90
	t, now = t.UTC(), now.UTC()
	switch {
	case p.width == 0 || p.width >= roomy:
		return p.moment(t)
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05Z")
	}
	return t.Format(time.DateOnly)
}

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
