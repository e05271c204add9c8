package commands

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// methodRequest is what --json calls a request of a session.
const methodRequest = "request"

// maxItem bounds one line of NDJSON in bytes: a frame has no room for more.
const maxItem = wire.DefaultMaxFrame

// defaultParallel is how many requests of a batch are in flight.
const defaultParallel = 8

// ofSession reports whether the arguments ask a session package for its operations.
func (o *runOptions) ofSession(words []string) bool {
	return o.batch != "" || len(words) == 1 && strings.Contains(words[0], "/")
}

// runSession asks a session package for one operation, or for many of a batch.
func (in *invocation) runSession(ref pkgmgr.Ref, words []string, o runOptions) error {
	req, err := in.sessionRequest(words, o)
	if err != nil {
		return err
	}
	host, err := in.hostOn(&req.Request)
	if err != nil {
		return err
	}
	terms := req.terms()
	terms.Ref = ref
	return in.ask(req, o, reviewedMode, func(use sessionUse) (*runtime.Ended, error) { return host.RunSession(in.context(), terms, use) })
}

// A sessionUse asks a running session for what is wanted of it; a sessionRun starts the
// session for that.
type (
	sessionUse = func(context.Context, *runtime.Session) error
	sessionRun = func(sessionUse) (*runtime.Ended, error)
)

// ask performs one operation, or those of a batch.
func (in *invocation) ask(req *sessionAsked, o runOptions, mode runMode, run sessionRun) error {
	if o.batch != "" {
		return in.batch(run, o)
	}
	return in.one(run, req, mode)
}

// A sessionAsked is what the command line asks of a session.
type sessionAsked struct {
	runtime.Request
	deadline time.Duration
	settings json.RawMessage
	input    string
	parallel int
	over     runtime.Transport
}

// The values of --transport.
const (
	transportStdio = "stdio"
	transportUnix  = "unix"
)

func (r *sessionAsked) terms() runtime.SessionRequest {
	return runtime.SessionRequest{CallRequest: r.CallRequest, StartTimeout: r.Timeout, RequestTimeout: r.deadline, Settings: r.settings, MaxInFlight: r.parallel, Transport: r.over}
}

func (in *invocation) sessionRequest(words []string, o runOptions) (*sessionAsked, error) {
	req := &sessionAsked{input: o.input, parallel: o.parallel}
	req.IdempotencyKey = o.key
	switch {
	case o.batch != "" && len(words) > 0:
		return nil, in.usage("--batch says which operations: leave \"%s\" out", words[0])
	case o.batch != "" && (o.input != "" || o.key != ""):
		return nil, in.usage("--input and --idempotency-key belong to one operation: a batch has them in its lines")
	case o.transport != transportStdio && o.transport != transportUnix:
		return nil, in.usage("--transport is stdio or unix, not \"%s\"", o.transport)
	case o.parallel < 1 || o.parallel > 1024:
		return nil, in.usage("--parallel must be from 1 to 1024, not %d", o.parallel)
	}
	if o.transport == transportUnix {
		req.over = runtime.OverSocket
	}
	if o.batch == "" {
		req.Capability, req.Operation, _ = strings.Cut(words[0], "/")
	}
	var err error
	if req.Timeout, err = in.duration("timeout", o.timeout); err != nil {
		return nil, err
	}
	if req.deadline, err = in.duration("deadline", o.deadline); err != nil {
		return nil, err
	}
	if req.settings, err = in.settings(o.settings); err != nil {
		return nil, err
	}
	if o.project != "" {
		req.Project, err = pkgmgr.ResolveProject(o.project)
	}
	return req, err
}

// settings reads --settings, nil if it was not given.
func (in *invocation) settings(value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	return in.content("settings", value, maxInput)
}

// settingsFlag is --settings of the commands that start a session plugin.
func settingsFlag(value *string) cli.Flag {
	return &cli.StringFlag{Name: "settings", Destination: value, Usage: "of a session plugin: start it with these settings: `JSON`, @FILE, - or env:NAME"}
}

// duration reads a flag, 0 if it was not given.
func (in *invocation) duration(flag, value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, in.usage("--%s: \"%s\" is not a duration such as 30s or 2m", flag, value)
	}
	return d, nil
}

// one performs one operation and prints its answer: a document, or its items as they
// come, one a line.
func (in *invocation) one(run sessionRun, req *sessionAsked, mode runMode) error {
	var result *runtime.RequestResult
	var requestErr error
	ended, err := run(func(ctx context.Context, s *runtime.Session) error {
		operation, err := s.Operation(req.Capability, req.Operation)
		if err != nil {
			return err
		}
		if operation.Streaming.Response && in.globals.json {
			return in.usage("%s/%s answers with a stream, which is printed one item a line: leave --json out", req.Capability, req.Operation)
		}
		call := session.Request{CapabilityID: req.Capability, OperationName: req.Operation, IdempotencyKey: req.IdempotencyKey, Progress: in.showProgress}
		var items io.ReadCloser
		if operation.Streaming.Request {
			items, err = in.items(req.input)
		} else {
			call.Payload, err = in.payload(req.input)
		}
		if err != nil {
			return err
		}
		running, err := s.Do(ctx, call)
		if err != nil {
			return err
		}
		sent := make(chan error, 1)
		if items != nil {
			defer items.Close()
			go func() { sent <- in.sendItems(running, items) }()
		}
		var printed error
		if operation.Streaming.Response {
			printed = in.printItems(running)
		}
		result, requestErr = running.Result()
		select { // a plugin may answer before it has read everything
		case err := <-sent:
			if err != nil { // what was wrong with the items is why the request was stopped
				return err
			}
		default:
		}
		return errors.Join(requestErr, printed)
	})
	if err != nil {
		return err
	}
	for _, w := range ended.Warnings {
		in.warn("%s", w)
	}
	data := runData{Call: ended.Call, Plugin: ended.ID, Version: ended.Version, Method: methodRequest, Granted: words(ended.Granted),
		Replayed: result.Replayed, Dev: mode == devMode, Operation: result.Operation, Result: jsontext.Value(result.Payload)}
	if result.Receipt != nil {
		data.Receipt = jsontext.Value(result.Receipt.AppendJSON(nil))
	}
	in.show(data, func(p *page) {
		if result.Payload != nil && string(result.Payload) != "null" {
			p.document(data.Result)
		}
	})
	return nil
}

// payload reads --input of an operation that takes one value; {} where it is not given.
func (in *invocation) payload(input string) (json.RawMessage, error) {
	if input == "" {
		return json.RawMessage("{}"), nil
	}
	return in.content("input", input, maxItem)
}

// items opens --input of an operation that takes a stream: one JSON value a line.
func (in *invocation) items(input string) (io.ReadCloser, error) {
	switch {
	case input == "-":
		return io.NopCloser(in.env.Stdin), nil
	case strings.HasPrefix(input, "@"):
		f, err := os.Open(input[1:])
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &pkgmgr.NotFound{Kind: "file", Name: input[1:]}
		}
		return f, err
	case input == "":
		return nil, in.usage("the operation takes a stream: give it with --input - or --input @FILE, one JSON value a line")
	}
	return io.NopCloser(strings.NewReader(input)), nil
}

// sendItems sends the lines of a stream. An end of the request before that is no error of
// the sender's.
func (in *invocation) sendItems(running *runtime.Running, items io.Reader) error {
	lines := newLines(items)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		err := running.Send(line)
		var bad *session.BadRequest
		switch {
		case errors.As(err, &bad):
			running.Cancel(err)
			return fmt.Errorf("--input, line %d: %w", n, err)
		case err != nil:
			return nil // Result says why
		}
	}
	if err := lines.Err(); err != nil {
		running.Cancel(err)
		return fmt.Errorf("--input: %w", err)
	}
	return running.CloseSend()
}

func newLines(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxItem)
	return lines
}

// printItems prints a response stream, one item a line. A reader that is slow, or a pipe
// that is full, makes the plugin wait; one that is gone cancels the request.
func (in *invocation) printItems(running *runtime.Running) error {
	out := bufio.NewWriterSize(in.env.Stdout, 64<<10)
	pending := 0
	for {
		if pending > 0 && !running.Ready() { // nothing more is there yet: what is there goes out
			if err := out.Flush(); err != nil {
				running.Cancel(err)
				return err
			}
			pending = 0
		}
		item, err := running.Next()
		if err != nil {
			if flushed := out.Flush(); err == io.EOF && flushed != nil {
				return flushed
			}
			return nil // Result says how it ended
		}
		pending++
		if err := writeLine(out, item); err != nil {
			running.Cancel(err)
			return err
		}
	}
}

// writeLine writes one JSON value as one line, with nothing that a terminal would obey.
func writeLine(out *bufio.Writer, v json.RawMessage) error {
	for _, c := range v {
		if c < ' ' || c >= 0x7f {
			compact := jsontext.Value(v).Clone()
			if err := compact.Compact(); err != nil {
				return err
			}
			v = render.JSON(compact)
			break
		}
	}
	if _, err := out.Write(v); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// showProgress tells what a plugin says of its progress: on a terminal as a bar, else
// under --verbose.
func (in *invocation) showProgress(u wire.ProgressUpdate) {
	if in.bar == nil {
		in.detail("%s", u.Message)
		return
	}
	in.bar.enter(render.Format("%s", u.Message))
	switch {
	case u.Current != nil && u.Total != nil:
		in.bar.advance(*u.Current, *u.Total)
	case u.PercentCompleted != nil:
		in.bar.advance(int64(*u.PercentCompleted), 100)
	}
}

// A batchLine is one request of a batch.
type batchLine struct {
	Operation      string          `json:"operation"`
	Input          json.RawMessage `json:"input"`
	IdempotencyKey string          `json:"idempotencyKey"`
	DeadlineMs     int64           `json:"deadlineMs"`
}

// A batchAnswer is what is printed of one, on a line of its own.
type batchAnswer struct {
	Line      int            `json:"line"`
	OK        bool           `json:"ok"`
	Operation string         `json:"operationId,omitempty"`
	Result    jsontext.Value `json:"result,omitempty"`
	Replayed  bool           `json:"replayed,omitempty"`
	Error     *batchError    `json:"error,omitempty"`
}

type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// batch performs the requests of a file in one session, so many at a time, and prints
// their answers in the order in which they come.
func (in *invocation) batch(run sessionRun, o runOptions) error {
	if in.globals.json {
		return in.usage("a batch is printed one answer a line: leave --json out")
	}
	input, err := in.items(batchSource(o.batch))
	if err != nil {
		return err
	}
	defer input.Close()
	var printing sync.Mutex
	total, failures := 0, 0
	out := bufio.NewWriter(in.env.Stdout)
	print := func(a batchAnswer) error {
		printing.Lock()
		defer printing.Unlock()
		if total++; !a.OK {
			failures++
		}
		raw, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return errors.Join(writeLine(out, raw), out.Flush())
	}
	_, err = run(func(ctx context.Context, s *runtime.Session) error {
		slots := make(chan struct{}, o.parallel)
		failed := make(chan error, 1)
		var all sync.WaitGroup
		defer all.Wait()
		lines := newLines(input)
		for n := 1; lines.Scan(); n++ {
			text := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
			if len(text) == 0 {
				continue
			}
			select {
			case slots <- struct{}{}:
			case err := <-failed:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			all.Go(func() {
				defer func() { <-slots }()
				if err := print(in.batchOne(ctx, s, n, text)); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
		}
		return lines.Err()
	})
	if err != nil {
		return err
	}
	if failures > 0 {
		return &findings{exit: exitPlugin, code: "batch.failed", message: fmt.Sprintf("%d of %s failed", failures, count(total, "request", "requests"))}
	}
	return nil
}

func batchSource(value string) string {
	if value == "-" {
		return value
	}
	return "@" + value
}

// batchOne performs one line of a batch.
func (in *invocation) batchOne(ctx context.Context, s *runtime.Session, n int, text []byte) batchAnswer {
	fail := func(err error) batchAnswer {
		f := in.classify(err)
		return batchAnswer{Line: n, Error: &batchError{f.code, render.Format("%s", err.Error())}}
	}
	var line batchLine
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return batchAnswer{Line: n, Error: &batchError{"usage", "the line is no request: " + err.Error()}}
	}
	capability, name, _ := strings.Cut(line.Operation, "/")
	operation, err := s.Operation(capability, name)
	if err != nil {
		return fail(err)
	}
	if operation.Streaming.Request || operation.Streaming.Response {
		return batchAnswer{Line: n, Error: &batchError{"usage", line.Operation + " streams, which a batch cannot"}}
	}
	if len(line.Input) == 0 {
		line.Input = json.RawMessage("{}")
	}
	running, err := s.Do(ctx, session.Request{CapabilityID: capability, OperationName: name, Payload: line.Input,
		IdempotencyKey: line.IdempotencyKey, Timeout: time.Duration(line.DeadlineMs) * time.Millisecond})
	if err != nil {
		return fail(err)
	}
	result, err := running.Result()
	if err != nil {
		return fail(err)
	}
	return batchAnswer{Line: n, OK: true, Operation: result.Operation, Result: jsontext.Value(result.Payload), Replayed: result.Replayed}
}
