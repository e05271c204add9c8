package commands

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type listData struct {
	Packages []packageData `json:"packages" doc:"Sorted by id, the default version first."`
}

func listCommand(in *invocation) *cli.Command {
	var all bool
	return &cli.Command{
		Description: "Lists installed plugins with where each stands. A broken package is listed with its error and hides no other. " +
			"Nothing of a package is executed.",
		UsageText: "switchyard list\nswitchyard list --all --json",
		Flags: flags{
			&cli.BoolFlag{Name: "all", Destination: &all, Usage: "list the versions that are not the default, too"},
		},
		Action: func(c *cli.Context) error {
			if _, err := in.arguments(c, 0, 0); err != nil {
				return err
			}
			infos, err := in.packages(all)
			if err != nil {
				return err
			}
			data := listData{}
			if in.globals.json {
				for _, i := range infos {
					data.Packages = append(data.Packages, newPackageData(i))
				}
			}
			in.show(data, func(p *page) {
				if len(infos) == 0 {
					in.note("No plugins are installed.")
					return
				}
				p.packages(infos)
			})
			return nil
		},
	}
}

// packages lists what is installed, under the lock of the working directory's
// project where there is one. Signals keep their default action: a listing may be
// killed at any point, and catching them costs a tenth of its time.
func (in *invocation) packages(all bool) ([]pkgmgr.Info, error) {
	h, lock, err := in.site()
	if err != nil {
		return nil, err
	}
	return h.List(context.Background(), lock, all)
}

func (p *page) packages(list []pkgmgr.Info) {
	rows := make([][]string, 0, len(list))
	named := make(map[[2]string]int, len(list))
	for _, i := range list {
		named[[2]string{i.ID, i.Version}]++
	}
	for _, i := range list {
		d := newPackageData(i)
		note := d.remark()
		if named[[2]string{i.ID, i.Version}] > 1 {
			note = strings.TrimSuffix(d.shortDigest()+", "+note, ", ")
		}
		rows = append(rows, []string{d.ID, d.Version, d.Status, strings.Join(d.GrantedScopes, " "), note})
	}
	p.table(render.Table{
		Columns: []render.Column{{Title: "NAME", Fixed: true}, {Title: "VERSION"}, {Title: "STATUS", Fixed: true}, {Title: "GRANTED"}, {Title: "NOTE"}},
		Rows:    rows,
		Paint: func(row, column int) render.Mark {
			if column == 2 {
				return statusMark(rows[row][2])
			}
			return render.Plain
		},
	})
}

// shortDigest tells packages of one id and version apart: the beginning of the package
// digest, as it is, else as it was recorded, or else the path.
func (d packageData) shortDigest() string {
	const enough = len(digest.Prefix) + 12
	for _, g := range []digest.Digest{d.Package, d.Recorded} {
		if len(g) > enough {
			return string(g[:enough])
		}
	}
	return d.Path
}

// remark is the one thing worth knowing about a package beside its status.
func (d packageData) remark() string {
	var parts []string
	switch {
	case d.Error != "":
		parts = append(parts, d.Error)
	case d.Revocation != nil:
		parts = append(parts, d.Revocation.Reason)
	}
	if d.Locked {
		parts = append(parts, "locked")
	}
	if d.GrantedByLock {
		parts = append(parts, "granted by the lock")
	}
	if !d.Default && d.Revocation == nil {
		parts = append(parts, "not the default")
	}
	if d.Health != nil && d.Health.Status != "healthy" {
		parts = append(parts, d.Health.Status)
	}
	return strings.Join(parts, ", ")
}

func statusMark(status string) render.Mark {
	switch pkgmgr.Status(status) {
	case pkgmgr.StatusEnabled:
		return render.Good
	case pkgmgr.StatusBroken, pkgmgr.StatusRevoked, pkgmgr.StatusChanged:
		return render.Bad
	}
	return render.Warn
}
