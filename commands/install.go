package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type installData struct {
	DryRun   bool            `json:"dryRun" doc:"Whether nothing was changed."`
	Packages []installedData `json:"packages" doc:"In the order of the arguments."`
}

type installedData struct {
	ID          string        `json:"id" doc:"The plugin's id."`
	Version     string        `json:"version" doc:"The package's version."`
	Name        string        `json:"name" doc:"The name that the plugin gives itself."`
	Source      string        `json:"source" doc:"Where it came from."`
	Outcome     string        `json:"outcome" doc:"What happened." enum:"installed|unchanged|repaired"`
	Default     bool          `json:"default" doc:"Whether it is the default version of its id now."`
	Previous    string        `json:"previous" doc:"The version that was the default before, empty where there was none."`
	Archive     digest.Digest `json:"archive" doc:"The archive's digest, empty for a directory."`
	Package     digest.Digest `json:"package" doc:"The package digest."`
	Manifest    digest.Digest `json:"manifest" doc:"The manifest digest."`
	Fingerprint digest.Digest `json:"fingerprint" doc:"The digest of manifest and executable."`
	Files       int           `json:"files" doc:"The number of files."`
	Bytes       int64         `json:"bytes" doc:"Their size together."`
	SameVersion digest.Digest `json:"sameVersion" doc:"Another installed package with this id and version, else empty."`
	Next        string        `json:"next" doc:"The next command to type."`
}

func (in *invocation) newInstalledData(i *pkgmgr.Installed) installedData {
	d := installedData{
		ID: i.ID, Version: i.Version, Name: i.Name, Source: i.Source, Outcome: "installed", Default: i.Default, Previous: i.Previous,
		Archive: i.Archive, Package: i.Package, Manifest: i.Manifest, Fingerprint: i.Fingerprint, Files: i.Files, Bytes: i.Bytes,
		SameVersion: i.SameVersion,
	}
	switch {
	case i.Repaired:
		d.Outcome = "repaired"
	case i.Unchanged:
		d.Outcome = "unchanged"
	}
	d.Next = in.afterInstall(i)
	return d
}

// afterInstall is the command that follows from where the package stands.
func (in *invocation) afterInstall(i *pkgmgr.Installed) string {
	lock := in.lockOrNone()
	name := in.nameOf(lock, i.ID, i.Version, i.Package)
	if name == "" { // a dry run
		if name = i.ID; !i.Default {
			name += "@" + i.Version
		}
		return in.next("review", name)
	}
	ref, err := pkgmgr.ParseRef(name)
	if err != nil {
		return in.next("review", name)
	}
	g := in.grantsOf(ref, lock)
	switch {
	case g == nil || !g.Trusted:
		return in.next("review", name)
	case !g.Enabled:
		m, err := pkgmgr.ParseManifest(i.ManifestJSON)
		if err != nil {
			return in.next("review", name)
		}
		return in.enableCommandLine(name, m.RequestedScopes)
	}
	return in.afterEnabled(lock, i.ID, name, g)
}

// afterEnabled is the command that follows when a package is enabled: where a lock
// does not name it, the lock comes first.
func (in *invocation) afterEnabled(lock *pkgmgr.Lock, id, name string, g *pkgmgr.Grants) string {
	if lock == nil || g.Lock != "" {
		return in.next("run", name, "health")
	}
	if p, err := in.projectHere(projectMustExist); err == nil {
		if config, _, err := p.ReadConfig(); err == nil && config.Plugins[id].Accepts(g.Version) && config.Plugins[id].Source != "" {
			return in.next("lock")
		}
	}
	return in.pinHint(id, g)
}

type installOptions struct {
	sha256         string
	save           bool
	dryRun         bool
	allowDowngrade bool
}

func installCommand(in *invocation) *cli.Command {
	var o installOptions
	return &cli.Command{
		ArgsUsage: "[SOURCE...]",
		Description: "Installs packages from directories or archives (.tar, .tar.gz, .tar.zst, .zip); without a source, what switchyard.toml " +
			"and switchyard.lock of this project say. Nothing of a package is executed, and a new package is untrusted until you " +
			"review it. The same package again is \"unchanged\". A new version becomes the default one.",
		UsageText: "switchyard install dist/repo-facts-1.0.0.tar.zst\n" +
			"switchyard install ./my-plugin --dry-run\n" +
			"switchyard install repo-facts.zip --sha256 9f86d081884c7d65…",
		Flags: flags{
			&cli.StringFlag{Name: "sha256", Destination: &o.sha256, Usage: "refuse an archive that has not this `DIGEST`"},
			&cli.BoolFlag{Name: "save", Destination: &o.save, Usage: "write the plugin into switchyard.toml and, once reviewed, the lock"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dryRun, Usage: "say what would be done and change nothing"},
			&cli.BoolFlag{Name: "allow-downgrade", Destination: &o.allowDowngrade, Usage: "let a lower version become the default"},
		},
		Action: func(c *cli.Context) error {
			sources, err := in.arguments(c, 0, -1)
			if err != nil {
				return err
			}
			return in.install(sources, o)
		},
	}
}

func (in *invocation) install(sources []string, o installOptions) error {
	options := pkgmgr.InstallOptions{DryRun: o.dryRun}
	if o.allowDowngrade {
		options.Default = pkgmgr.DefaultReplace
	}
	if o.sha256 != "" {
		if len(sources) != 1 {
			return in.usage("--sha256 goes with exactly one source")
		}
		var err error
		if options.Archive, err = digest.Parse(o.sha256); err != nil {
			return in.usage("--sha256: %v", err)
		}
	}
	for _, s := range sources {
		if isURL(s) {
			return in.usage("%s: sources on other machines are not supported; download the archive and install it with --sha256", s)
		}
	}
	if len(sources) == 0 {
		h, err := in.home()
		if err != nil {
			return err
		}
		return in.installProject(h, o)
	}
	h, lock, err := in.site()
	if err != nil {
		return err
	}
	options.Lock = lock
	data := installData{DryRun: o.dryRun}
	var done []*pkgmgr.Installed
	for _, source := range sources {
		installed, err := h.Install(in.context(), source, options)
		if err != nil {
			if len(done) > 0 {
				in.report(data, func(p *page) { p.installed(data) }) // what was done stays done
			}
			return err
		}
		done = append(done, installed)
		data.Packages = append(data.Packages, in.newInstalledData(installed))
	}
	if o.save && !o.dryRun {
		if err := in.save(h, done); err != nil {
			return err
		}
	}
	in.report(data, func(p *page) { p.installed(data) })
	return nil
}

func isURL(source string) bool {
	for i := range len(source) {
		switch c := source[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 1 && len(source) > i+2 && source[i:i+3] == "://"
		}
	}
	return false
}

func (p *page) installed(data installData) {
	for i, d := range data.Packages {
		if i > 0 {
			p.line("")
		}
		verb := map[string]string{"installed": "Installed", "unchanged": "Unchanged:", "repaired": "Repaired"}[d.Outcome]
		if data.DryRun && d.Outcome != "unchanged" {
			verb = "Would install"
		}
		note := ""
		switch {
		case d.Previous != "" && d.Previous != d.Version && d.Default:
			note = ", the default version now instead of " + d.Previous
		case d.Default && d.Outcome == "installed":
			note = ", the default version"
		}
		p.line("%s %s %s%s", render.Safe(verb), p.style.Mark(render.Strong, d.ID), d.Version, note)
		p.field("package", "%s", d.Package)
		p.field("fingerprint", "%s", d.Fingerprint.Hex())
		if d.Archive != "" {
			p.field("archive", "%s", d.Archive)
		}
		p.field("files", "%d, %s", d.Files, byteSize(d.Bytes))
		if d.SameVersion != "" {
			p.field("beware", "another package calls itself %s %s: %s", d.ID, d.Version, d.SameVersion)
		}
	}
	if n := len(data.Packages); n > 0 && !data.DryRun {
		p.next(data.Packages[n-1].Next)
	}
}
