package commands

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

type runData struct {
	Call      string         `json:"call" doc:"The call's id; of operate also the operation's."`
	Plugin    string         `json:"plugin" doc:"The plugin's id."`
	Version   string         `json:"version" doc:"The package's version."`
	Method    string         `json:"method" doc:"What was called." enum:"health|inspect|operate|request"`
	Granted   []string       `json:"granted" doc:"The scopes that the plugin was started with."`
	Replayed  bool           `json:"replayed" doc:"Whether this is the recorded result of an earlier operation with the same key."`
	Dev       bool           `json:"dev" doc:"Whether it ran in the author's loop."`
	Operation string         `json:"operation" doc:"Of a request, the operation's id; else empty."`
	Receipt   jsontext.Value `json:"receipt" doc:"Of a request, the receipt that came with the answer, or null."`
	Result    jsontext.Value `json:"result" doc:"The plugin's answer, as the protocol defines it for the method."`
}

type runOptions struct {
	project, timeout, key, input string
	deadline, batch, settings    string // of session packages
	transport                    string
	parallel                     int
}

// maxInput bounds --input in bytes: a message of the protocol has no room for more.
const maxInput = 1 << 20

func runCommand(in *invocation) *cli.Command {
	var o runOptions
	return &cli.Command{
		ArgsUsage: "NAME health|inspect|operate [ACTION]|CAPABILITY/OPERATION",
		Description: "Calls a plugin once in a fresh supervised process and prints its answer as JSON. Before anything is started, revocation, trust, " +
			"grants, the project's trust and the package's digests are checked.\n\n" +
			"health asks whether it is well; inspect what it sees in a project; operate performs one of the actions that inspect offers, as a " +
			"recorded operation that can be cancelled from elsewhere.\n\n" +
			"A package of the session protocol is asked for its operations by CAPABILITY/OPERATION. Items of a stream are printed one a line as they come, " +
			"and sent from --input one a line; --batch performs many requests, one a line, in one session. The first interrupt asks a plugin to stop, the second ends it.",
		UsageText: "switchyard run repo-facts health\n" +
			"switchyard run repo-facts inspect --project ~/src/app\n" +
			"switchyard run repo-facts operate write-inventory --input @input.json\n" +
			"echo '{}' | switchyard run repo-facts operate write-inventory --input -\n" +
			"switchyard run org.example.words text.words/count --input @text.json\n" +
			"switchyard run org.example.words --batch requests.ndjson",
		Flags: append(runFlags(&o), sessionFlags(&o)...),
		Action: func(c *cli.Context) error {
			least := 2
			if o.batch != "" {
				least = 1
			}
			args, err := in.arguments(c, least, 3)
			if err != nil {
				return err
			}
			ref, err := in.ref(args[0])
			if err != nil {
				return err
			}
			if o.ofSession(args[1:]) {
				return in.runSession(ref, args[1:], o)
			}
			if o.deadline != "" || o.transport != transportStdio {
				return in.usage("--deadline and --transport belong to CAPABILITY/OPERATION")
			}
			req, err := in.callRequest(args[1:], o)
			if err != nil {
				return err
			}
			host, err := in.hostOn(req)
			if err != nil {
				return err
			}
			if host.Settings, err = in.settings(o.settings); err != nil {
				return err
			}
			req.Ref = ref
			result, err := host.Run(in.context(), *req)
			return in.answered(req.Method, result, err, reviewedMode)
		},
	}
}

func runFlags(o *runOptions) flags {
	return flags{
		&cli.StringFlag{Name: "project", Destination: &o.project, Usage: "call it on the project in `DIR` (default: the working directory)"},
		&cli.StringFlag{Name: "input", Destination: &o.input, Usage: "the action's input: `JSON`, @FILE, - for standard input, or env:NAME"},
		&cli.StringFlag{Name: "timeout", Destination: &o.timeout, Usage: "end the call after `DURATION` (default 15s)"},
		&cli.StringFlag{Name: "idempotency-key", Destination: &o.key, Usage: "perform an operation with this `KEY` once only"},
	}
}

func sessionFlags(o *runOptions) flags {
	return flags{
		&cli.StringFlag{Name: "deadline", Destination: &o.deadline, Usage: "of CAPABILITY/OPERATION: end the request after `DURATION` (default 15s)"},
		settingsFlag(&o.settings),
		&cli.StringFlag{Name: "transport", Destination: &o.transport, Value: transportStdio, Usage: "of CAPABILITY/OPERATION: what frames go over: `stdio` or unix, a socket, where the package knows that (default stdio)"},
		&cli.StringFlag{Name: "batch", Destination: &o.batch, Usage: "perform the requests of `FILE`, one {\"operation\",\"input\"} a line (- is standard input)"},
		&cli.IntFlag{Name: "parallel", Destination: &o.parallel, Value: defaultParallel, Usage: "of a batch: `N` requests at a time (default 8)"},
	}
}

// callRequest reads "health", "inspect" or "operate ACTION" and the flags.
func (in *invocation) callRequest(words []string, o runOptions) (*runtime.Request, error) {
	req := &runtime.Request{IdempotencyKey: o.key}
	req.Method = pkgmgr.Method(words[0])
	operate := req.Method == pkgmgr.MethodOperate
	switch {
	case req.Method != pkgmgr.MethodHealth && req.Method != pkgmgr.MethodInspect && !operate:
		return nil, in.usage("unknown method \"%s\": say health, inspect or operate", words[0])
	case operate && len(words) < 2:
		return nil, in.usage("operate needs the name of an action")
	case !operate && len(words) > 1:
		return nil, in.usage("unexpected argument \"%s\" after %s", words[1], words[0])
	case !operate && (o.input != "" || o.key != ""):
		return nil, in.usage("--input and --idempotency-key belong to operate")
	}
	if o.timeout != "" {
		d, err := time.ParseDuration(o.timeout)
		if err != nil || d <= 0 {
			return nil, in.usage("--timeout: \"%s\" is not a duration such as 30s or 2m", o.timeout)
		}
		req.Timeout = d
	}
	if operate {
		req.Action = words[1]
		req.Input = []byte("{}")
		if o.input != "" {
			var err error
			if req.Input, err = in.content("input", o.input, maxInput); err != nil {
				return nil, err
			}
		}
	}
	if req.Method == pkgmgr.MethodHealth {
		if o.project != "" {
			return nil, in.usage("health has no project")
		}
		return req, nil
	}
	dir := o.project
	if dir == "" {
		var err error
		if dir, err = in.env.Getwd(); err != nil {
			return nil, err
		}
	}
	var err error
	req.Project, err = pkgmgr.ResolveProject(dir)
	return req, err
}

type runMode int

const (
	reviewedMode runMode = iota
	devMode              // the author's loop
)

// answered prints what a call brought, or returns why it brought nothing. An operation
// that did not wholly succeed and a call that could not be recorded are failures that
// still have a result.
func (in *invocation) answered(method pkgmgr.Method, r *runtime.Result, err error, mode runMode) error {
	unrecorded, err := withAnswer(r, err)
	if err != nil {
		return err
	}
	var answer any
	switch {
	case r.Health != nil:
		answer = r.Health
	case r.Inspect != nil:
		answer = r.Inspect
	default:
		answer = r.Operate
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	for _, w := range r.Warnings {
		in.warn("%s", w)
	}
	data := runData{Call: r.Call, Plugin: r.ID, Version: r.Version, Method: string(method), Granted: words(r.Granted),
		Replayed: r.Replayed, Dev: mode == devMode, Result: jsontext.Value(raw)}
	in.show(data, func(p *page) { p.document(data.Result) })
	if unrecorded != nil {
		return &unrecordedAnswer{unrecorded, data}
	}
	if r.Operate == nil {
		return nil
	}
	switch r.Operate.Status {
	case plugin.PartiallySucceeded:
		return &findings{exit: exitPartial, code: "operation.partially_succeeded", message: "the operation succeeded in part: " + r.Operate.Summary,
			hint: in.next("operations", "show", r.Call), data: data}
	case plugin.Failed:
		return &findings{exit: exitPlugin, code: "operation.failed", message: "the operation failed: " + r.Operate.Summary,
			hint: in.next("operations", "show", r.Call), data: data}
	}
	return nil
}

// An unrecordedAnswer is an answer that has been shown, of a call whose end could not
// be recorded.
type unrecordedAnswer struct {
	*runtime.Unrecorded
	data any
}

func (e *unrecordedAnswer) Unwrap() error { return e.Unrecorded }

// withAnswer splits the error of a call: that it could not be recorded stands beside
// an answer, any other error instead of one.
func withAnswer(r *runtime.Result, err error) (*runtime.Unrecorded, error) {
	var unrecorded *runtime.Unrecorded
	if r == nil || !errors.As(err, &unrecorded) {
		return nil, err
	}
	return unrecorded, nil
}
