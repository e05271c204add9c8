package commands

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type checkData struct {
	ID          string        `json:"id" doc:"The plugin's id."`
	Version     string        `json:"version" doc:"The package's version."`
	Package     digest.Digest `json:"package" doc:"The package digest that an install would find."`
	Fingerprint digest.Digest `json:"fingerprint" doc:"The digest of manifest and executable."`
	Executable  string        `json:"executable" doc:"What the executable is."`
	Files       int           `json:"files" doc:"The number of files that belong to the package."`
	Bytes       int64         `json:"bytes" doc:"Their size together."`
	Next        string        `json:"next" doc:"The next command to type."`
	Written     []string      `json:"written" doc:"The members of plugin.json into which digests were written, as JSON Pointers."`
}

func checkCommand(in *invocation) *cli.Command {
	var write bool
	return &cli.Command{
		ArgsUsage: "DIR|ARCHIVE",
		Description: "Says what install would reject, before anyone installs it, and what would surprise you later. Nothing is installed or " +
			"executed.\n\n" +
			"--write-digests first writes the digests that a session package's manifest states: those of its schemas, and its own.",
		UsageText: "switchyard check .\nswitchyard check . --write-digests\nswitchyard check dist/repo-facts-1.0.0.tar.zst",
		Flags: flags{
			&cli.BoolFlag{Name: "write-digests", Destination: &write, Usage: "write the digests of its schemas and its own into plugin.json"},
		},
		Action: func(c *cli.Context) error {
			h, source, err := in.homeAndArgument(c)
			if err != nil {
				return err
			}
			written := []string{}
			if write {
				if written, err = pkgmgr.WriteDigests(source); err != nil {
					return err
				}
			}
			r, err := h.Check(in.context(), source)
			if err != nil {
				return err
			}
			for _, w := range r.Warnings {
				in.warn("%s", w)
			}
			data := checkData{r.Manifest.ID, r.Manifest.Version, r.Package, r.Fingerprint, r.ExecutableKind, r.Files, r.Bytes, in.afterCheck(source), written}
			in.report(data, func(p *page) {
				p.line("%s %s can be installed.", p.style.Mark(render.Strong, data.ID), data.Version)
				for _, at := range data.Written {
					p.field("wrote", "%s", at)
				}
				p.field("package", "%s", data.Package)
				p.field("fingerprint", "%s", data.Fingerprint.Hex())
				p.field("executable", "%s, %s", r.Manifest.Executable, data.Executable)
				p.field("files", "%d, %s", data.Files, byteSize(data.Bytes))
				p.next(data.Next)
			})
			return nil
		},
	}
}

// afterCheck is install for an archive, and for a directory the pack command that
// does not write into it.
func (in *invocation) afterCheck(source string) string {
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		return in.next("install", dotted(source))
	}
	if name, inside, err := pkgmgr.PackName(source); err == nil && inside {
		return in.next("pack", source, "-o", filepath.Join(source, "..", name))
	}
	return in.next("pack", source)
}
