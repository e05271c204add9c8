package commands

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Set by the linker: -X github.com/switchyard-plugins/switchyard/commands.version=1.2.3
var (
	version string
	commit  string
)

type versionData struct {
	Version string `json:"version" doc:"The program's version, or \"devel\" for a build without one."`
	Commit  string `json:"commit" doc:"The commit it was built from, or an empty string where the build does not know."`
	Go      string `json:"go" doc:"The version of Go it was built with."`
	OS      string `json:"os" doc:"The operating system it was built for."`
	Arch    string `json:"arch" doc:"The architecture it was built for."`
}

func versionCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Description: "Prints the version of this program and what it was built with.",
		UsageText:   "switchyard version --json",
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			v := thisVersion()
			in.show(v, func(p *page) {
				p.line("switchyard %s", v.Version)
				if v.Commit != "" {
					p.field("commit", "%s", v.Commit)
				}
				p.field("built with", "%s for %s/%s", v.Go, v.OS, v.Arch)
			})
			return nil
		},
	}
}

// thisVersion takes what the linker set and fills the rest from what the Go
// tool recorded in the program.
func thisVersion() versionData {
	v := versionData{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if m := info.Main.Version; v.Version == "" && m != "" && m != "(devel)" {
			v.Version = m
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && v.Commit == "" {
				v.Commit = s.Value
			}
		}
	}
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

// hostVersion is what plugins are told.
func hostVersion() string {
	if version != "" {
		return version
	}
	return "devel"
}
