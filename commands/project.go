package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

type projectData struct {
	Root      string    `json:"root" doc:"The exact resolved directory."`
	ID        string    `json:"id" doc:"The id by which plugins know the project."`
	TrustedAt time.Time `json:"trustedAt" doc:"When it was trusted."`
}

func newProjectData(p state.ProjectTrust) projectData { return projectData{p.Root, p.ID, p.At} }

type projectTrustData struct {
	Project projectData `json:"project" doc:"The project."`
	Already bool        `json:"already" doc:"Whether it was trusted before."`
	Next    string      `json:"next" doc:"The next command to type."`
}

func projectTrustCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "DIR",
		Description: "Trusts a project root: plugins may be called on it. The exact directory is trusted, symbolic links resolved; neither " +
			"its children nor its parents are.",
		UsageText: "switchyard project trust .",
		Action: func(c *cli.Context) error {
			h, root, err := in.projectRoot(c)
			if err != nil {
				return err
			}
			p, already, err := h.TrustProject(in.context(), root)
			if err != nil {
				return err
			}
			if above := in.meantRoot(root); above != "" {
				in.warn("%s lies in the project %s; exactly this directory is trusted, not that one", root, above)
			}
			data := projectTrustData{newProjectData(p), already, in.next("list")}
			in.report(data, func(page *page) {
				verb := "Trusted"
				if already {
					verb = "Already trusted:"
				}
				page.line("%s %s", render.Safe(verb), p.Root)
				page.next(data.Next)
			})
			return nil
		},
	}
}

// projectRoot is the single argument DIR of a command, resolved.
func (in *invocation) projectRoot(c *cli.Context) (*pkgmgr.Home, string, error) {
	dir, err := in.oneArgument(c)
	if err != nil {
		return nil, "", err
	}
	root, err := pkgmgr.ResolveProject(dir)
	if err != nil {
		return nil, "", err
	}
	h, err := in.home()
	return h, root, err
}

type projectUntrustData struct {
	Root string `json:"root" doc:"The directory that is not trusted any more."`
}

func projectUntrustCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "DIR",
		Description: "Takes the trust in a project root back, with everything that its lockfile approved. A directory that is gone is named by the path that list shows.",
		UsageText:   "switchyard project untrust .",
		Action: func(c *cli.Context) error {
			h, dir, err := in.homeAndArgument(c)
			if err != nil {
				return err
			}
			root, err := pkgmgr.ResolveProject(dir)
			if err != nil {
				root = dir
			}
			if err := h.UntrustProject(in.context(), root); err != nil {
				return err
			}
			in.report(projectUntrustData{root}, func(p *page) { p.line("%s is not trusted any more.", root) })
			return nil
		},
	}
}

type projectListData struct {
	Projects []projectData `json:"projects" doc:"Sorted by root."`
}

func projectListCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Description: "Lists the trusted project roots.",
		UsageText:   "switchyard project list --json",
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			list, err := h.Projects(in.context())
			if err != nil {
				return err
			}
			data := projectListData{}
			for _, p := range list {
				data.Projects = append(data.Projects, newProjectData(p))
			}
			in.show(data, func(p *page) {
				if len(data.Projects) == 0 {
					in.note("No projects are trusted.")
					return
				}
				t := render.Table{Columns: []render.Column{{Title: "TRUSTED", Fixed: true}, {Title: "ROOT", Fixed: true}}}
				for _, d := range data.Projects {
					t.Rows = append(t.Rows, []string{p.shortMoment(d.TrustedAt, in.env.Now()), d.Root})
				}
				p.table(t)
			})
			return nil
		},
	}
}
