package commands

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/process"
)

type doctorData struct {
	Checks   []checkedData `json:"checks" doc:"What was looked at."`
	Kernel   []checkedData `json:"kernel" doc:"What this system can guarantee about the processes of plugins."`
	Repaired *repairedData `json:"repaired" doc:"What --repair mended, or null."`
}

type checkedData struct {
	Check      string `json:"check" doc:"What was looked at."`
	OK         bool   `json:"ok" doc:"Whether it is as it should be."`
	Detail     string `json:"detail" doc:"What was found."`
	Repairable bool   `json:"repairable" doc:"Whether --repair mends it."`
}

type repairedData struct {
	DatabaseAside string      `json:"databaseAside" doc:"Where a damaged database was moved, empty where there was none."`
	Recorded      []movedData `json:"recorded" doc:"Packages of the store that were recorded again, untrusted."`
	Restored      []movedData `json:"restored" doc:"Default versions that were put back below plugins/."`
	LostCalls     int         `json:"lostCalls" doc:"Operations that nobody supervised any more."`
}

func doctorCommand(in *invocation) *cli.Command {
	var repair bool
	return &cli.Command{
		Description: "Looks at the data directory, its database and every installed package, and says what this system can guarantee about the " +
			"processes of plugins. It changes nothing unless --repair is given.\n\n" +
			"--repair starts a new database where the old one is lost or damaged. All trust, grants and trusted projects are gone then; " +
			"revocations and quarantine stand.",
		UsageText: "switchyard doctor\nswitchyard doctor --repair",
		Flags: flags{
			&cli.BoolFlag{Name: "repair", Destination: &repair, Usage: "mend what can be mended"},
		},
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			return in.doctor(repair)
		},
	}
}

func (in *invocation) doctor(repair bool) error {
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	ctx := in.context()
	data := doctorData{}
	if repair {
		if data.Repaired, err = in.repair(ctx, dir); err != nil {
			return err
		}
	}
	bad := false
	for _, f := range pkgmgr.Diagnose(ctx, dir) {
		data.Checks = append(data.Checks, checkedData(f))
		bad = bad || !f.OK
	}
	for _, c := range process.Guarantees() {
		data.Kernel = append(data.Kernel, checkedData{Check: c.Name, OK: c.Holds, Detail: c.Detail})
	}
	in.show(data, func(p *page) { p.doctor(data) })
	if !bad {
		return nil
	}
	return &findings{exit: exitFailed, code: "doctor.findings", message: "not everything is as it should be", data: data, hint: in.doctorHint(dir, data.Checks)}
}

// doctorHint is the command for the first finding that one helps with: the data
// directory's own mode before anything in it, then what --repair mends.
func (in *invocation) doctorHint(dir string, checks []checkedData) string {
	if _, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now}); err != nil {
		f := failure{}
		if in.classifyState(err, &f) && f.hint != "" {
			return f.hint
		}
	}
	if slices.ContainsFunc(checks, func(c checkedData) bool { return !c.OK && c.Repairable }) {
		return in.next("doctor", "--repair")
	}
	for _, c := range checks {
		switch {
		case c.OK:
		case c.Check == "local revocations": // what the list held is told by the history
			return in.next("history")
		case c.Check == "plugin directories":
			return in.next("list")
		default: // packages: each one's digests, expected and found
			return in.next("verify")
		}
	}
	return ""
}

func (in *invocation) repair(ctx context.Context, dir string) (*repairedData, error) {
	r, err := pkgmgr.Repair(ctx, dir, pkgmgr.Options{Now: in.env.Now, Progress: in.progress(), Obituary: runtime.Obituary(dir, in.env.Now)})
	if err != nil {
		return nil, err
	}
	h, err := in.home()
	if err != nil {
		return nil, err
	}
	return &repairedData{r.DatabaseAside, newMovedData(r.Recorded), newMovedData(r.Restored), r.LostCalls}, in.sweep(h)
}

func (p *page) doctor(d doctorData) {
	if r := d.Repaired; r != nil {
		if r.DatabaseAside != "" {
			p.line("Moved the damaged database to %s", filepath.Base(r.DatabaseAside))
		}
		for _, m := range r.Recorded {
			p.line("Recorded %s %s again, untrusted", m.ID, m.Version)
		}
		if r.LostCalls > 0 {
			p.line("Marked %s as abandoned", count(r.LostCalls, "operation"))
		}
	}
	p.checks(d.Checks)
	p.line("")
	p.title("Processes of plugins on this system")
	p.checks(d.Kernel)
}

func (p *page) checks(list []checkedData) {
	for _, c := range list {
		word, mark := "ok", render.Good
		if !c.OK {
			word, mark = "no", render.Bad
		}
		p.hanging(p.style.Mark(mark, word)+"  ", 4, "%s: %s", c.Check, c.Detail)
	}
}
