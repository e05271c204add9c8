package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type useData struct {
	ID        string        `json:"id" doc:"The plugin's id."`
	Version   string        `json:"version" doc:"The version that is the default now."`
	Previous  string        `json:"previous" doc:"The version that was the default before, empty where there was none."`
	Package   digest.Digest `json:"package" doc:"The package digest of the default version."`
	Status    string        `json:"status" doc:"Where that version stands."`
	Unchanged bool          `json:"unchanged" doc:"Whether it was the default before."`
}

func useCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME@VERSION",
		Description: "Makes an installed version the default of its id. Trust and grants belong to each version: one that was reviewed " +
			"before needs no second review.",
		UsageText: "switchyard use repo-facts@1.0.0",
		Action: func(c *cli.Context) error {
			ref, err := in.oneRef(c)
			if err != nil {
				return err
			}
			if ref.Version == "" && ref.Digest == "" {
				return &usageError{message: "name the version too: NAME@VERSION", hint: []string{"show", in.subject}}
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			u, err := h.Use(in.context(), ref)
			if err != nil {
				return err
			}
			in.report(useData{u.ID, u.Version, u.Previous, u.Package, string(u.Status), u.Unchanged}, func(p *page) {
				switch {
				case u.Unchanged:
					p.line("%s %s is the default already (%s).", u.ID, u.Version, string(u.Status))
				case u.Previous != "":
					p.line("%s %s is the default now instead of %s (%s).", u.ID, u.Version, u.Previous, string(u.Status))
				default:
					p.line("%s %s is the default now (%s).", u.ID, u.Version, string(u.Status))
				}
			})
			return nil
		},
	}
}
