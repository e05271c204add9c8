package commands

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type historyData struct {
	Events []eventData `json:"events" doc:"The newest first."`
}

type eventData struct {
	Seq       int64         `json:"seq" doc:"Rises by one with each event."`
	At        time.Time     `json:"at" doc:"When it happened."`
	Kind      string        `json:"kind" doc:"What happened."`
	Plugin    string        `json:"plugin" doc:"The plugin's id, empty where none is concerned."`
	Version   string        `json:"version" doc:"The package's version, else empty."`
	Package   digest.Digest `json:"package" doc:"The package digest, else empty."`
	Project   string        `json:"project" doc:"The project root, else empty."`
	Operation string        `json:"operation" doc:"The operation's id, else empty."`
	Detail    []detailData  `json:"detail" doc:"Further facts, sorted by name."`
}

type detailData struct {
	Name  string `json:"name" doc:"The fact's name."`
	Value string `json:"value" doc:"Its value."`
}

func historyCommand(in *invocation) *cli.Command {
	var limit int
	return &cli.Command{
		ArgsUsage:   "[NAME]",
		Description: "Shows what happened, the newest first: installs, reviews, grants, calls, revocations. The newest 10,000 events are kept.",
		UsageText:   "switchyard history\nswitchyard history repo-facts --limit 10",
		Flags:       flags{limitFlag(&limit, 30, "events")},
		Action: func(c *cli.Context) error {
			if err := in.limited(limit); err != nil {
				return err
			}
			h, id, err := in.homeAndID(c)
			if err != nil {
				return err
			}
			events, err := h.History(in.context(), id, limit)
			if err != nil {
				return err
			}
			data := historyData{}
			for _, e := range events {
				d := eventData{int64(e.Seq), e.At, e.Kind, e.ID, e.Version, e.Package, e.Project, e.Operation, nil}
				for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
					d.Detail = append(d.Detail, detailData{name, e.Detail[name]})
				}
				data.Events = append(data.Events, d)
			}
			in.show(data, func(p *page) {
				if len(data.Events) == 0 {
					in.note("Nothing is recorded.")
					return
				}
				t := render.Table{Columns: []render.Column{{Title: "WHEN", Fixed: true}, {Title: "WHAT", Fixed: true}, {Title: "PLUGIN", Wrap: true}, {Title: "DETAIL", Wrap: true}}}
				for _, e := range data.Events {
					t.Rows = append(t.Rows, []string{p.shortMoment(e.At, in.env.Now()), e.Kind, strings.TrimSpace(e.Plugin + " " + e.Version), e.text()})
				}
				p.table(t)
			})
			return nil
		},
	}
}

func (e eventData) text() string {
	var parts []string
	for _, d := range e.Detail {
		parts = append(parts, d.Name+"="+d.Value)
	}
	if e.Project != "" {
		parts = append(parts, "project="+e.Project)
	}
	return strings.Join(parts, " ")
}
