package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type ciData struct {
	Lock     string          `json:"lock" doc:"The lockfile that was followed."`
	Digest   digest.Digest   `json:"digest" doc:"Its digest, as --lock-digest takes it."`
	Packages []installedData `json:"packages" doc:"Every locked package, in the order of the lock."`
	Approved []approvedData  `json:"approved" doc:"What --trust-lock approved for this project."`
}

type approvedData struct {
	ID      string        `json:"id" doc:"The plugin's id."`
	Version string        `json:"version" doc:"The package's version."`
	Package digest.Digest `json:"package" doc:"Its package digest."`
	Granted []string      `json:"granted" doc:"The scopes that hold in this project."`
}

type ciOptions struct {
	trustLock  bool
	lockDigest string
}

func ciCommand(in *invocation) *cli.Command {
	var o ciOptions
	return &cli.Command{
		Description: "Installs exactly what switchyard.lock says for this platform and nothing else, without touching the default versions that other " +
			"projects use. Any difference between the lock, switchyard.toml and what is found is an error.\n\n" +
			"--trust-lock turns the lock's reviewed digests and grants into approvals for this project only. The project must be trusted, or " +
			"the lock's own digest given. It never overrides an untrust, a disable, a change or a revocation.",
		UsageText: "switchyard ci\nswitchyard ci --trust-lock --lock-digest sha256:…",
		Flags: flags{
			&cli.BoolFlag{Name: "trust-lock", Destination: &o.trustLock, Usage: "approve what the lock says, for this project"},
			&cli.StringFlag{Name: "lock-digest", Destination: &o.lockDigest, Usage: "trust the lock that has this `DIGEST`"},
		},
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			return in.ci(o)
		},
	}
}

func (in *invocation) ci(o ciOptions) error {
	var given digest.Digest
	if o.lockDigest != "" {
		var err error
		if given, err = digest.Parse(o.lockDigest); err != nil {
			return in.usage("--lock-digest: %v", err)
		}
		if !o.trustLock {
			return in.usage("--lock-digest goes with --trust-lock")
		}
	}
	host, _, err := in.host()
	if err != nil {
		return err
	}
	lock, err := in.lockHere()
	if err != nil {
		return err
	}
	p, err := in.projectHere(projectMustExist)
	if err != nil {
		return err
	}
	drifts, err := pkgmgr.CheckProject(p, lock)
	if err != nil {
		return err
	}
	if drifts != nil {
		return drifts
	}
	if o.trustLock {
		if err := host.Home.MayTrustLock(in.context(), lock, given); err != nil {
			return err
		}
	}
	data := ciData{Lock: lock.Path, Digest: lock.Digest}
	for _, e := range lock.File.Plugins {
		installed, err := host.Home.InstallLocked(in.context(), lock, e)
		if err != nil {
			return err
		}
		d := in.newInstalledData(installed)
		d.Next = in.next("review", e.ID)
		data.Packages = append(data.Packages, d)
	}
	if o.trustLock {
		for _, e := range lock.File.Plugins {
			a, err := host.ApproveLocked(in.context(), lock, e)
			if err != nil {
				return err
			}
			data.Approved = append(data.Approved, approvedData{a.ID, a.Version, a.Package, words(a.Granted)})
		}
	}
	in.report(data, func(p *page) { p.ci(data) })
	return nil
}

func (p *page) ci(d ciData) {
	p.line("%s  %s", d.Lock, d.Digest)
	for _, i := range d.Packages {
		p.line("  %s %s  %s", p.style.Mark(render.Strong, i.ID), i.Version, i.Outcome)
		p.field("", "%s", i.Package)
	}
	for _, a := range d.Approved {
		p.line("  %s %s  approved by the lock for this project", p.style.Mark(render.Strong, a.ID), a.Version)
		p.field("granted", "%s", orNone(a.Granted))
	}
}
