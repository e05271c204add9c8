package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type envData struct {
	DataDir  string       `json:"dataDir" doc:"The data directory in force, absolute."`
	Settings []envSetting `json:"settings" doc:"The environment variables that the program reads."`
	OS       string       `json:"os" doc:"The operating system, as plugins and locks name it."`
	Arch     string       `json:"arch" doc:"The architecture, as plugins and locks name it."`
}

type envSetting struct {
	Name  string `json:"name" doc:"The variable's name."`
	Value string `json:"value" doc:"Its value, empty where it is not set."`
	Set   bool   `json:"set" doc:"Whether it is set."`
	About string `json:"about" doc:"What it decides."`
}

func envCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Description: "Prints the data directory in force and every environment variable that this program reads.",
		UsageText:   "switchyard env\nswitchyard env --json",
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			dir, err := in.dataDir()
			if err != nil {
				return err
			}
			v := thisVersion()
			data := envData{DataDir: dir, OS: v.OS, Arch: v.Arch}
			for _, s := range [][2]string{
				{pkgmgr.EnvDataDir, "the data directory, unless --data-dir says otherwise; empty is as if it were not set"},
				{"XDG_DATA_HOME", "where the data directory is on Linux by default"},
				{"HOME", "the same, where XDG_DATA_HOME is not set"},
				{"NO_COLOR", "no colour if it is not empty"},
				{"TERM", "no colour if it is \"dumb\""},
				{"PATH", "handed to plugins, without relative and unsafe directories"},
				{"TMPDIR", "handed to plugins"},
				{"LANG", "handed to plugins"},
			} {
				value, set := in.env.LookupEnv(s[0])
				data.Settings = append(data.Settings, envSetting{s[0], value, set, s[1]})
			}
			in.show(data, func(p *page) {
				p.line("data directory: %s", data.DataDir)
				p.line("platform: %s/%s", data.OS, data.Arch)
				for _, s := range data.Settings {
					if s.Set {
						p.line("%s=%s", s.Name, s.Value)
					}
				}
			})
			return nil
		},
	}
}
