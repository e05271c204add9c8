package commands

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// untrust and disable take decisions back and print the same.
type withdrawData struct {
	ID      string        `json:"id" doc:"The plugin's id."`
	Version string        `json:"version" doc:"The package's version."`
	Package digest.Digest `json:"package" doc:"Its package digest, empty where nothing was recorded."`
	Was     string        `json:"was" doc:"Where it stood before."`
	Status  string        `json:"status" doc:"Where it stands now."`
}

func untrustCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION]",
		Description: "Forgets the review of a package and revokes every grant. No lockfile overrides this; only a new trust does. " +
			"The package stays installed.",
		UsageText: "switchyard untrust repo-facts",
		Action: func(c *cli.Context) error {
			return in.withdraw(c, (*pkgmgr.Home).Untrust, "%s %s was %s and is not trusted any more.")
		},
	}
}

func disableCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION]",
		Description: "Revokes every grant of a package and keeps its review, so that enable is enough to use it again. No lockfile " +
			"overrides this.",
		UsageText: "switchyard disable repo-facts",
		Action: func(c *cli.Context) error {
			return in.withdraw(c, (*pkgmgr.Home).Disable, "%s %s was %s and is disabled.")
		},
	}
}

type withdrawal func(*pkgmgr.Home, context.Context, pkgmgr.Ref, *pkgmgr.Lock) (*pkgmgr.Untrusted, error)

func (in *invocation) withdraw(c *cli.Context, withdraw withdrawal, sentence string) error {
	ref, err := in.oneRef(c)
	if err != nil {
		return err
	}
	h, lock, err := in.site()
	if err != nil {
		return err
	}
	u, err := withdraw(h, in.context(), ref, lock)
	if err != nil {
		return err
	}
	in.report(withdrawData{u.ID, u.Version, u.Package, string(u.Was), string(u.Status)}, func(p *page) {
		if u.Was == u.Status {
			p.line("%s %s is %s already.", u.ID, u.Version, string(u.Was))
			return
		}
		p.line(sentence, u.ID, u.Version, string(u.Was))
	})
	return nil
}
