package commands

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type movedData struct {
	ID      string        `json:"id" doc:"The plugin's id."`
	Version string        `json:"version" doc:"The package's version."`
	Package digest.Digest `json:"package" doc:"Its package digest."`
	Path    string        `json:"path" doc:"Where it is now."`
}

func newMovedData(list []pkgmgr.Moved) []movedData {
	var out []movedData
	for _, m := range list {
		out = append(out, movedData(m))
	}
	return out
}

type revokeData struct {
	Revocation  denialData  `json:"revocation" doc:"What is denied from now on."`
	Already     bool        `json:"already" doc:"Whether it was denied before."`
	Quarantined []movedData `json:"quarantined" doc:"Packages that went into quarantine."`
	Stopped     int         `json:"stopped" doc:"The number of running calls that were told to stop."`
	Undo        string      `json:"undo" doc:"The command that lifts the revocation."`
}

func revokeCommand(in *invocation) *cli.Command {
	var reason string
	return &cli.Command{
		ArgsUsage: "ID[@RANGE]|DIGEST --reason TEXT",
		Description: "Denies a package on this machine, whatever trust, pins and locks say: at install, trust, enable, lock, ci and every " +
			"call. Running operations are stopped and the package goes to quarantine, from which unrevoke brings it back.\n\n" +
			"A digest may be that of an archive, a package, a manifest, or a fingerprint. Without a range every version of an id is denied.",
		UsageText: "switchyard revoke repo-facts@'<1.2.0' --reason 'reads too much'\n" +
			"switchyard revoke sha256:… --reason 'leaked signing key'",
		Flags: flags{
			&cli.StringFlag{Name: "reason", Destination: &reason, Usage: "why, in words; shown at every refusal (`TEXT`)"},
		},
		Action: func(c *cli.Context) error {
			subject, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			denial, err := pkgmgr.ParseDenial(subject, reason)
			if err != nil {
				return in.usage("%v", err)
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			before, _ := in.packages(everyVersion) // for a warning alone
			r, err := h.Revoke(in.context(), denial)
			if err != nil {
				return err
			}
			data := revokeData{newDenialData(r.Denial), r.Already, newMovedData(r.Quarantined), r.Stopped, in.next("unrevoke", r.Denial.Subject())}
			if !r.Already && len(r.Quarantined) == 0 {
				in.warnUncovered(denial, before)
			}
			in.report(data, func(p *page) {
				verb := "Revoked"
				if r.Already {
					verb = "Already revoked:"
				}
				p.line("%s %s: %s", render.Safe(verb), data.Revocation.Subject, data.Revocation.Reason)
				for _, m := range data.Quarantined {
					p.line("  %s %s is in quarantine: %s", m.ID, m.Version, m.Path)
				}
				if r.Stopped > 0 {
					p.line("  told %s to stop", count(r.Stopped, "running call"))
				}
				p.line("")
				p.line("%s %s", p.style.Mark(render.Faint, "Undo:"), render.Safe(data.Undo))
			})
			return nil
		},
	}
}

// warnUncovered tells that a denial hits nothing of what is here, and what was perhaps
// meant. What was in quarantine before is covered, too.
func (in *invocation) warnUncovered(d pkgmgr.Denial, installed []pkgmgr.Info) {
	var ids, versions []string
	for _, i := range installed {
		ids = append(ids, i.ID)
		switch {
		case d.Digest != "" && (d.Digest == i.Package || d.Digest == i.Recorded || d.Digest == i.Fingerprint):
			return
		case d.PluginID != i.ID:
		case inRange(d.Range, i.Version):
			return
		default:
			versions = append(versions, i.Version)
		}
	}
	best := nearest(d.PluginID, ids)
	switch {
	case len(versions) > 0:
		in.warn("no version of %s that is installed is in the range %s: %s", d.PluginID, d.Range, strings.Join(versions, ", "))
	case d.PluginID != "" && best != "":
		in.warn("nothing that is installed is covered; did you mean %s?", best)
	default:
		in.warn("nothing that is installed is covered")
	}
}

// inRange reports whether a denial's range, "" for every version, covers a version.
func inRange(text, version string) bool {
	r, err := versionrange.Parse(text)
	return text == "" || err != nil || r.Covers(version)
}
