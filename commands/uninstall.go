package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type removedData struct {
	ID      string        `json:"id" doc:"The plugin's id, empty for an archive."`
	Version string        `json:"version" doc:"The version, empty for an archive."`
	Package digest.Digest `json:"package" doc:"The package digest, or the archive's."`
	Path    string        `json:"path" doc:"What was removed."`
	Bytes   int64         `json:"bytes" doc:"Its size where it was measured, else 0."`
}

type uninstallData struct {
	Removed []removedData `json:"removed" doc:"Every version that was removed."`
}

func uninstallCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION]",
		Description: "Removes a plugin: every version, or the one that is named. Trust and grants of what is removed are forgotten. The " +
			"archives it came from stay until gc; records of what it did stay.",
		UsageText: "switchyard uninstall repo-facts\nswitchyard uninstall repo-facts@1.0.0",
		Action: func(c *cli.Context) error {
			h, ref, err := in.homeAndRef(c)
			if err != nil {
				return err
			}
			removed, err := h.Uninstall(in.context(), ref)
			if err != nil {
				return err
			}
			data := uninstallData{newRemovedData(removed)}
			in.report(data, func(p *page) {
				for _, r := range data.Removed {
					p.line("Removed %s %s", r.ID, r.Version)
				}
			})
			return nil
		},
	}
}

func newRemovedData(list []pkgmgr.Removed) []removedData {
	var out []removedData
	for _, r := range list {
		out = append(out, removedData(r))
	}
	return out
}
