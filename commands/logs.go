package commands

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type logsData struct {
	Plugin string    `json:"plugin" doc:"The plugin's id."`
	Lines  []logLine `json:"lines" doc:"The oldest first."`
}

type logLine struct {
	Seq       int64         `json:"seq" doc:"Rises by one with each line of the plugin."`
	At        time.Time     `json:"at" doc:"When the line was read."`
	Package   digest.Digest `json:"package" doc:"The package that wrote it."`
	Call      string        `json:"call" doc:"The id of the call."`
	Line      string        `json:"line" doc:"What it wrote, with secrets redacted."`
	Truncated bool          `json:"truncated" doc:"Whether the line was longer."`
}

// followEvery is how often logs -f looks for new lines.
const followEvery = 250 * time.Millisecond

func logsCommand(in *invocation) *cli.Command {
	var (
		follow bool
		limit  int
	)
	return &cli.Command{
		ArgsUsage: "NAME",
		Description: "Shows what a plugin wrote to its standard error: its newest 1,000 lines are kept, each cut at 2,048 bytes and with " +
			"secrets redacted.",
		UsageText: "switchyard logs repo-facts\nswitchyard logs repo-facts -f",
		Flags: flags{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Destination: &follow, Usage: "go on with new lines until interrupted"},
			limitFlag(&limit, 100, "lines"),
		},
		Action: func(c *cli.Context) error {
			ref, err := in.oneRef(c)
			if err != nil {
				return err
			}
			if err := in.limited(limit); err != nil {
				return err
			}
			if follow && in.globals.json {
				return in.usage("--follow never ends and --json prints one document: use one of them")
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			lines, err := h.Logs(in.context(), ref.ID, 0, limit)
			if err != nil {
				return err
			}
			if len(lines) == 0 && !follow {
				// A plugin that is not there is worth an error, a silent one is not.
				if _, err := in.named(pkgmgr.Ref{ID: ref.ID}); err != nil {
					return err
				}
			}
			data := logsData{Plugin: ref.ID}
			for _, l := range lines {
				data.Lines = append(data.Lines, logLine{int64(l.Seq), l.At, l.Package, l.Call, l.Line, l.Truncated})
			}
			in.show(data, func(p *page) { p.logs(lines) })
			if !follow {
				return nil
			}
			return in.follow(h, ref.ID, lines)
		},
	}
}

func (p *page) logs(lines []state.LogEntry) {
	for _, l := range lines {
		more := ""
		if l.Truncated {
			more = " …"
		}
		p.line("%s %s%s", p.style.Mark(render.Faint, p.moment(l.At)), l.Line, render.Safe(more))
	}
}

// follow prints new lines until it is interrupted.
func (in *invocation) follow(h *pkgmgr.Home, id string, lines []state.LogEntry) error {
	ctx := in.context()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var last uint64
	for {
		if len(lines) > 0 {
			last = lines[len(lines)-1].Seq
		}
		if err := in.flushText(); err != nil {
			return &outputError{err}
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-tick.C:
		}
		var err error
		if lines, err = h.Logs(ctx, id, last, 0); err != nil {
			return err
		}
		in.page().logs(lines)
	}
}
