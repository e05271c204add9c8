package commands

import (
	"errors"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
)

// installProject installs what switchyard.toml and switchyard.lock say.
func (in *invocation) installProject(h *pkgmgr.Home, o installOptions) error {
	if o.save || o.allowDowngrade {
		return in.usage("--save and --allow-downgrade go with sources")
	}
	p, err := in.projectHere(projectMustExist)
	if err != nil {
		return err
	}
	lock, err := in.lock()
	if err != nil {
		return err
	}
	installed, err := h.InstallProject(in.context(), p, lock, pkgmgr.InstallOptions{DryRun: o.dryRun})
	if err != nil {
		return err
	}
	data := installData{DryRun: o.dryRun}
	for _, i := range installed {
		data.Packages = append(data.Packages, in.newInstalledData(i))
	}
	in.report(data, func(page *page) {
		if len(data.Packages) == 0 {
			in.note("%s asks for no plugins.", p.ConfigPath())
		}
		page.installed(data)
	})
	return nil
}

// save writes what was installed into the project's switchyard.toml, and what was
// reviewed before into its lock.
func (in *invocation) save(h *pkgmgr.Home, installed []*pkgmgr.Installed) error {
	p, err := in.projectHere(projectBegin)
	if err != nil {
		return err
	}
	for _, i := range installed {
		if err := want(p, i); err != nil {
			return err
		}
		var undecided *pkgmgr.NeedsDecision
		_, err := h.Pin(in.context(), p, []pkgmgr.Ref{{ID: i.ID, Digest: i.Package}})
		if errors.As(err, &undecided) {
			in.note("Wrote %s %s into %s.", i.ID, i.Version, p.ConfigPath())
			in.warn("%s is in %s now; it gets into the lock when it is reviewed and pinned", i.ID, p.ConfigPath())
			continue
		}
		if err != nil {
			return err
		}
		in.note("Wrote %s %s into %s and %s.", i.ID, i.Version, p.ConfigPath(), p.LockPath())
	}
	return nil
}

// want writes one plugin into switchyard.toml. What the file says already and what
// still holds keeps its spelling: a source with placeholders, a version range.
func want(p *project.Project, i *pkgmgr.Installed) error {
	source, err := p.RelativeSource(i.Source)
	if err != nil {
		return err
	}
	return p.EditConfig(func(text []byte) ([]byte, error) {
		w := project.Wanted{Source: source, Version: i.Version}
		if len(text) > 0 {
			config, err := project.ParseConfig(p.ConfigPath(), text)
			if err != nil {
				return nil, err
			}
			if old, ok := config.Plugins[i.ID]; ok {
				w.Scopes = old.Scopes
				if old.Accepts(i.Version) {
					w.Version = old.Version
				}
				if expanded, err := project.Expand(old.Source, i.Version, pkgmgr.HostPlatform()); err == nil && expanded == source {
					w.Source = old.Source
				}
			}
		}
		return project.AddPlugin(p.ConfigPath(), text, i.ID, w)
	})
}
