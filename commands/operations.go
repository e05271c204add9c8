package commands

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// operationData is one operate call as it is recorded.
type operationData struct {
	ID             string        `json:"id" doc:"The operation's id."`
	Plugin         string        `json:"plugin" doc:"The plugin's id."`
	Version        string        `json:"version" doc:"The package's version."`
	Package        digest.Digest `json:"package" doc:"The package digest."`
	Project        string        `json:"project" doc:"The project root, empty where there was none."`
	Action         string        `json:"action" doc:"The action."`
	InputDigest    digest.Digest `json:"inputDigest" doc:"The digest of the canonical input."`
	IdempotencyKey string        `json:"idempotencyKey" doc:"The key that was given, else empty."`
	Dev            bool          `json:"dev" doc:"Whether it ran in the author's loop."`
	State          string        `json:"state" doc:"Where it stands." enum:"running|succeeded|partially_succeeded|failed|cancelled|abandoned"`
	EffectState    string        `json:"effectState" doc:"What it did outside: none, committed, partial, rolled_back, unknown, or empty while it runs."`
	StartedAt      time.Time     `json:"startedAt" doc:"When it was recorded, before its request was sent."`
	FinishedAt     time.Time     `json:"finishedAt,omitzero" doc:"When it ended."`
	Cancel         *cancelData   `json:"cancel" doc:"The request to cancel it, or null."`
	Code           string        `json:"code" doc:"The fault's code, empty where there was none."`
	Message        string        `json:"message" doc:"The plugin's summary or the fault's message."`
	ResultBytes    int           `json:"resultBytes" doc:"The size of its result."`
}

type cancelData struct {
	At time.Time `json:"at" doc:"When it was asked for."`
	By string    `json:"by" doc:"Who asked."`
}

func newOperationData(o state.Operation) operationData {
	d := operationData{
		ID: o.ID, Plugin: o.PluginID, Version: o.Version, Package: o.Package, Project: o.ProjectRoot, Action: o.Action,
		InputDigest: o.InputDigest, IdempotencyKey: o.IdempotencyKey, Dev: o.Dev, State: string(o.State), EffectState: string(o.EffectState),
		StartedAt: o.StartedAt, FinishedAt: o.FinishedAt, Code: o.Code, Message: o.Message, ResultBytes: o.ResultBytes,
	}
	if c := o.Cancel; c != nil {
		d.Cancel = &cancelData{c.At, c.By}
	}
	return d
}

type operationsListData struct {
	Operations []operationData `json:"operations" doc:"The newest first."`
}

func operationsListCommand(in *invocation) *cli.Command {
	var limit int
	return &cli.Command{
		ArgsUsage:   "[NAME]",
		Description: "Lists the newest operations of a plugin, or of all of them: what was asked, and how each ended.",
		UsageText:   "switchyard operations list\nswitchyard operations list repo-facts --limit 5 --json",
		Flags:       flags{limitFlag(&limit, 20, "operations")},
		Action: func(c *cli.Context) error {
			if err := in.limited(limit); err != nil {
				return err
			}
			h, id, err := in.homeAndID(c)
			if err != nil {
				return err
			}
			list, err := h.Operations(in.context(), id, limit)
			if err != nil {
				return err
			}
			data := operationsListData{}
			for _, o := range list {
				data.Operations = append(data.Operations, newOperationData(o))
			}
			in.show(data, func(p *page) {
				if len(list) == 0 {
					in.note("No operations are recorded.")
					return
				}
				t := render.Table{
					Columns: []render.Column{{Title: "ID", Fixed: true}, {Title: "STATE", Wrap: true}, {Title: "STARTED", Fixed: true}, {Title: "OPERATION", Wrap: true}},
					Paint: func(row, column int) render.Mark {
						if column == 1 {
							return stateMark(list[row].State)
						}
						return render.Plain
					},
				}
				for _, o := range list {
					t.Rows = append(t.Rows, []string{o.ID, string(o.State), p.shortMoment(o.StartedAt, in.env.Now()), o.PluginID + " " + o.Action})
				}
				p.table(t)
			})
			return nil
		},
	}
}

func limitFlag(limit *int, value int, what string) cli.Flag {
	return &cli.IntFlag{Name: "limit", Value: value, Destination: limit,
		Usage: fmt.Sprintf("show at most `N` %s, 0 for all (default %d)", what, value)}
}

// limited refuses a --limit that is no number of things.
func (in *invocation) limited(limit int) error {
	if limit < 0 {
		return in.usage("--limit must be 0 or more, not %d", limit)
	}
	return nil
}

func stateMark(s state.OperationState) render.Mark {
	switch s {
	case state.Succeeded:
		return render.Good
	case state.Running:
		return render.Plain
	case state.PartiallySucceeded, state.Cancelled:
		return render.Warn
	}
	return render.Bad
}

type operationsShowData struct {
	Operation operationData  `json:"operation" doc:"The operation."`
	Result    jsontext.Value `json:"result" doc:"The plugin's result, or null where there is none or it is no longer kept."`
}

func operationsShowCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "ID",
		Description: "Shows one operation with its result.",
		UsageText:   "switchyard operations show 01890a5d-ac96-774b-bcce-b302099a8057",
		Action: func(c *cli.Context) error {
			h, id, err := in.homeAndArgument(c)
			if err != nil {
				return err
			}
			o, err := h.Operation(in.context(), id)
			if err != nil {
				return err
			}
			data := operationsShowData{newOperationData(o), o.Result}
			in.show(data, func(p *page) { p.operation(data) })
			return nil
		},
	}
}

func (p *page) operation(d operationsShowData) {
	o := d.Operation
	p.line("%s  %s", p.style.Mark(render.Strong, o.ID), p.style.Mark(stateMark(state.OperationState(o.State)), o.State))
	p.field("plugin", "%s %s", o.Plugin, o.Version)
	p.field("package", "%s", o.Package)
	p.field("action", "%s", o.Action)
	if o.Project != "" {
		p.field("project", "%s", o.Project)
	}
	p.field("started", "%s", p.moment(o.StartedAt))
	if !o.FinishedAt.IsZero() {
		p.field("finished", "%s", p.moment(o.FinishedAt))
	}
	if o.Cancel != nil {
		p.field("cancel asked", "%s by %s", p.moment(o.Cancel.At), o.Cancel.By)
	}
	if o.EffectState != "" {
		p.field("effect", "%s", o.EffectState)
	}
	if o.IdempotencyKey != "" {
		p.field("key", "%s", o.IdempotencyKey)
	}
	if o.Code != "" {
		p.field("code", "%s", o.Code)
	}
	if o.Message != "" {
		p.field("message", "%s", o.Message)
	}
	switch {
	case len(d.Result) > 0:
		p.line("")
		p.document(d.Result)
	case o.ResultBytes > 0:
		p.field("result", "%s, no longer kept", byteSize(int64(o.ResultBytes)))
	}
}

type operationsCancelData struct {
	Operation operationData `json:"operation" doc:"The operation, which may not have ended yet."`
}

func operationsCancelCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "ID",
		Description: "Asks a running operation to stop. The request is recorded; the process that supervises the operation sees it within moments, ends the plugin and records the end.",
		UsageText:   "switchyard operations cancel 01890a5d-ac96-774b-bcce-b302099a8057",
		Action: func(c *cli.Context) error {
			h, id, err := in.homeAndArgument(c)
			if err != nil {
				return err
			}
			o, err := h.CancelOperation(in.context(), id, "switchyard operations cancel")
			if err != nil {
				return err
			}
			in.report(operationsCancelData{newOperationData(o)}, func(p *page) {
				p.line("Asked operation %s to stop.", o.ID)
				p.next(in.next("operations", "show", o.ID))
			})
			return nil
		},
	}
}
