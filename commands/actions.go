package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type actionsData struct {
	Plugin  string       `json:"plugin" doc:"The plugin's id."`
	Version string       `json:"version" doc:"The package's version."`
	Actions []actionData `json:"actions" doc:"What inspect offered; empty for a session package."`

	Operations []operationInfo `json:"operations" doc:"The operations of a session package; empty for the call protocol."`
}

type actionData struct {
	ID          string `json:"id" doc:"The action's name for run NAME operate."`
	Name        string `json:"name" doc:"Its name for people."`
	Description string `json:"description" doc:"What it does, in the plugin's words."`
	Risk        string `json:"risk" doc:"How risky it is, in the plugin's words."`
}

func actionsCommand(in *invocation) *cli.Command {
	var o runOptions
	return &cli.Command{
		ArgsUsage: "NAME",
		Description: "Asks a plugin which actions it offers on a project. It is an inspect call: the same checks come first, and the same grants are " +
			"needed.\n\nOf a session package it lists the operations that the manifest declares, and starts nothing.",
		UsageText: "switchyard actions repo-facts --project .",
		Flags: flags{
			&cli.StringFlag{Name: "project", Destination: &o.project, Usage: "ask about the project in `DIR` (default: the working directory)"},
			&cli.StringFlag{Name: "timeout", Destination: &o.timeout, Usage: "end the call after `DURATION` (default 15s)"},
		},
		Action: func(c *cli.Context) error {
			ref, err := in.oneRef(c)
			if err != nil {
				return err
			}
			if m, ok, err := in.sessionManifest(ref); ok || err != nil {
				if err == nil {
					data := actionsData{Plugin: m.ID, Version: m.Version, Operations: newOperations(m.Session)}
					in.show(data, func(p *page) { p.operations(data.Operations) })
				}
				return err
			}
			req, err := in.callRequest([]string{string(pkgmgr.MethodInspect)}, o)
			if err != nil {
				return err
			}
			host, err := in.hostOn(req)
			if err != nil {
				return err
			}
			req.Ref = ref
			r, err := host.Run(in.context(), *req)
			unrecorded, err := withAnswer(r, err)
			if err != nil {
				return err
			}
			data := actionsData{Plugin: r.ID, Version: r.Version}
			for _, a := range r.Inspect.Actions {
				data.Actions = append(data.Actions, actionData{a.ID, a.Name, a.Description, a.Risk})
			}
			in.show(data, func(p *page) {
				if len(data.Actions) == 0 {
					in.note("%s offers no actions here.", data.Plugin)
					return
				}
				t := render.Table{Columns: []render.Column{{Title: "ACTION", Fixed: true}, {Title: "RISK", Wrap: true}, {Title: "DESCRIPTION", Wrap: true}}}
				for _, a := range data.Actions {
					t.Rows = append(t.Rows, []string{a.ID, a.Risk, a.Description})
				}
				p.table(t)
			})
			if unrecorded != nil {
				return &unrecordedAnswer{unrecorded, data}
			}
			return nil
		},
	}
}

// sessionManifest returns the manifest of the package that ref selects, and whether it
// is a session package. Of one whose manifest cannot be found it says no: the call will
// say why.
func (in *invocation) sessionManifest(ref pkgmgr.Ref) (m pkgmgr.Manifest, ok bool, err error) {
	h, lock, err := in.site()
	if err != nil {
		return m, false, err
	}
	m, err = h.ManifestOf(in.context(), ref, lock)
	return m, err == nil && m.Session != nil, nil
}
