package commands

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type packData struct {
	Path    string        `json:"path" doc:"The archive that was written."`
	ID      string        `json:"id" doc:"The plugin's id."`
	Version string        `json:"version" doc:"The package's version."`
	Archive digest.Digest `json:"archive" doc:"The archive's digest."`
	Package digest.Digest `json:"package" doc:"The package digest, the same for every archive format."`
	Files   int           `json:"files" doc:"The number of files in it."`
	Bytes   int64         `json:"bytes" doc:"Their size together, unpacked."`
}

func packCommand(in *invocation) *cli.Command {
	var (
		o    pkgmgr.PackOptions
		sbom bool
	)
	return &cli.Command{
		ArgsUsage: "DIR",
		Description: "Writes a directory as an archive, after every check that install makes. The same files give the same bytes on any " +
			"machine: no times, owners or names of this one are in it, and no data directory is needed. Version control and what .switchyardignore lists stay out.\n\n" +
			"The archive is called <id>-<version>[-os-arch].tar.zst unless -o says otherwise; its ending chooses between .tar.zst, .tar.gz and .zip. " +
			"There is no plain .tar, which install reads: an archive that is handed around is worth compressing. It cannot be written into DIR, where it would become part of the next package, unless .switchyardignore lists it.",
		UsageText: "switchyard pack my-plugin\nswitchyard pack . -o ../repo-facts.zip\nswitchyard pack build --platform linux/arm64\nswitchyard pack my-plugin --sbom",
		Flags: flags{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.Out, Usage: "write the archive to `FILE`"},
			&cli.StringFlag{Name: "platform", Destination: &o.Platform, Usage: "name the archive for `OS/ARCH`"},
			&cli.BoolFlag{Name: "sbom", Destination: &sbom, Usage: "put an SBOM into the package, as sbom prints it: sbom.spdx.json"},
		},
		Action: func(c *cli.Context) error {
			source, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			if o.Platform != "" {
				if err := lockfile.CheckPlatform(o.Platform); err != nil {
					return in.usage("--platform: %v", err)
				}
			}
			if sbom {
				created, err := in.sourceDate()
				if err != nil {
					return err
				}
				o.SBOM = &created
			}
			var r *pkgmgr.PackResult
			err = in.scratch(in.nobodysAssurance, func(h *pkgmgr.Home) error {
				r, err = h.Pack(in.context(), source, o)
				return err
			})
			if err != nil {
				return err
			}
			for _, problem := range r.SBOM.Problems() {
				in.warn("SBOM: %s", problem)
			}
			k := r.Contents
			data := packData{r.Path, k.Manifest.ID, k.Manifest.Version, r.Archive, k.Package, len(k.Files), k.Bytes}
			in.report(data, func(p *page) {
				p.line("Packed %s %s into %s", p.style.Mark(render.Strong, data.ID), data.Version, data.Path)
				p.field("archive", "%s", data.Archive)
				p.field("package", "%s", data.Package)
				p.field("files", "%d, %s", data.Files, byteSize(data.Bytes))
				p.next(in.next("install", dotted(data.Path)))
			})
			return nil
		},
	}
}

// dotted makes a relative path look like one.
func dotted(path string) string {
	if strings.ContainsRune(path, '/') {
		return path
	}
	return "./" + path
}
