package commands

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

type sbomData struct {
	ID       string         `json:"id" doc:"The plugin's id."`
	Version  string         `json:"version" doc:"The package's version."`
	Document jsontext.Value `json:"document" doc:"The SPDX 2.3 document."`
}

func sbomCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "DIR|ARCHIVE",
		Description: "Prints an SPDX 2.3 document of a package: its files with their digests, its name, version and purl, and the licences whose " +
			"texts are in it. The document is dated SOURCE_DATE_EPOCH, else 1970-01-01, so that the same package gives the same bytes. " +
			"`switchyard pack --sbom` puts it into the package.",
		UsageText: "switchyard sbom my-plugin > my-plugin.spdx.json\nswitchyard sbom repo-facts-1.0.0.tar.zst",
		Action: func(c *cli.Context) error {
			source, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			created, err := in.sourceDate()
			if err != nil {
				return err
			}
			var document []byte
			var contents *pkgmgr.Contents
			err = in.scratch(nil, func(h *pkgmgr.Home) error {
				document, contents, err = h.SBOM(in.context(), source, created)
				return err
			})
			if err != nil {
				return err
			}
			data := sbomData{contents.Manifest.ID, contents.Manifest.Version, jsontext.Value(document)}
			in.show(data, func(p *page) { p.out.Write(document) })
			return nil
		},
	}
}

// lastSourceDate is the last second of the year 9999, in seconds since 1970.
const lastSourceDate = 253402300799

// sourceDate is the time that everything bears which is made reproducibly.
func (in *invocation) sourceDate() (time.Time, error) {
	const name = "SOURCE_DATE_EPOCH"
	text := in.getenv(name)
	if text == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > lastSourceDate {
		return time.Time{}, in.usage("%s: %q is no number of seconds since 1970", name, text)
	}
	return time.Unix(seconds, 0), nil
}

// A component is what an SBOM says of one part of a package.
type component struct {
	Name      string `json:"name" doc:"The component's name."`
	Version   string `json:"version" doc:"Its version, empty where none is stated."`
	Declared  string `json:"declared" doc:"The licence that its authors declare, empty where none is stated."`
	Concluded string `json:"concluded" doc:"The licence that the SBOM's author concludes, empty where none is stated."`
}

// licence is the one that was found out, else the one that is declared.
func (c component) licence() string {
	for _, l := range []string{c.Concluded, c.Declared} {
		if l != "" && l != "NOASSERTION" && l != "NONE" {
			return l
		}
	}
	return "no licence stated"
}

// sbom shows what a review found out from the SBOM.
func (p *page) sbom(d reviewData) {
	if d.SBOM == "" {
		p.field("SBOM", "none in the package")
		return
	}
	p.field("SBOM", "%s, %s", d.SBOM, p.style.Mark(sbomMark(d.SBOMVerdict), d.SBOMVerdict))
	for _, problem := range d.SBOMProblems {
		p.field("", "%s", problem)
	}
	const most = 20
	for i, c := range d.Components {
		if i == most {
			p.field("", "and %s (--json lists all)", count(len(d.Components)-most, "more component"))
			break
		}
		p.field("component", "%s: %s", strings.TrimSpace(c.Name+" "+c.Version), c.licence())
	}
}

func sbomMark(verdict string) render.Mark {
	switch pkgmgr.Verdict(verdict) {
	case pkgmgr.Verified:
		return render.Good
	case pkgmgr.Failed:
		return render.Bad
	}
	return render.Warn
}
