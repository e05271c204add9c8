// Package call is the host's side of the wire protocol switchyard.plugin/v1
// (docs/protocol-call.md): it sends one request at a time and reads the answer
// strictly, or says as a *Fault what is wrong with it.
//
// A plugin that answers initialize must state exactly the identity that was
// reviewed and the grants that it was sent. Nothing is sent that the grants do
// not cover: no method without its scope, no project root without
// project.files.read.
//
// The package refuses to know about processes, trust and records, to repair or
// skip anything on the wire, and to continue after a fault.
package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

const (
	// MaxMessage is the largest message in bytes, its line feed not counted.
	MaxMessage = plugin.MaxMessageBytes
	// DefaultTimeout is how long a call may take, its process's start included.
	DefaultTimeout = 15 * time.Second
)

// Errors of the caller: nothing was sent, and the connection is still good.
var (
	// ErrTooLarge reports a request of more than MaxMessage bytes.
	ErrTooLarge = errors.New("request is larger than a message may be")
	// ErrNotGranted reports a method, or a project root, that the grants of this
	// connection do not cover.
	ErrNotGranted = errors.New("not granted")
	// ErrInput reports values that cannot be sent, as an input that is no I-JSON.
	ErrInput = errors.New("cannot be sent")
)

// ErrUnusable reports a call on a connection that had a fault before.
var ErrUnusable = errors.New("connection is unusable after a fault")

// A Reader is where answers come from. A read that blocks when the call's
// context ends is interrupted through the deadline; on systems whose pipes have
// none, the owner of the process must end it then.
type Reader interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// A Writer is where requests go.
type Writer interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// A Client speaks to one plugin process. It is not safe for concurrent use.
// Every method that asks the plugin something returns a *Fault if the plugin or
// the context is at fault, or wraps ErrTooLarge, ErrNotGranted, ErrInput or
// ErrUnusable.
type Client struct {
	w        Writer
	in       lines
	id       int // of the last request
	identity manifest.Identity
	grants   []manifest.Scope // nil until initialized
	broken   bool
}

// New returns a client that writes to the plugin's stdin and reads from its
// stdout. It closes neither.
func New(stdin Writer, stdout Reader) *Client {
	return &Client{w: stdin, in: lines{r: stdout}}
}

// A Hello is what initialize says and expects to hear.
type Hello struct {
	HostVersion string
	Identity    manifest.Identity // as reviewed
	Grants      []manifest.Scope  // sent, and expected back
}

// Initialize opens the conversation and compares the plugin's statement with
// the reviewed identity: id, name, version, schema and protocol exactly,
// capabilities, requested scopes and grants as sets.
func (c *Client) Initialize(ctx context.Context, h Hello) error {
	grants := append([]manifest.Scope{}, h.Grants...) // never null on the wire
	var result struct {
		ProtocolVersion string            `json:"protocolVersion"`
		Plugin          manifest.Identity `json:"plugin"`
		GrantedScopes   *[]manifest.Scope `json:"grantedScopes"`
	}
	params := plugin.InitializeParams{ProtocolVersion: manifest.Protocol, HostVersion: h.HostVersion, GrantedScopes: grants}
	if err := c.ask(ctx, plugin.MethodInitialize, params, &result); err != nil {
		return err
	}
	stated := statement{result.ProtocolVersion, result.Plugin, items(result.GrantedScopes)}
	if f := stated.compare(statement{manifest.Protocol, h.Identity, grants}); f != nil {
		return c.fail(f)
	}
	c.identity, c.grants = h.Identity, grants
	return nil
}

// Health asks how the plugin is.
func (c *Client) Health(ctx context.Context) (plugin.HealthResult, error) {
	var r plugin.HealthResult
	if err := c.mayAsk(plugin.MethodHealth, ""); err != nil {
		return r, err
	}
	if err := c.ask(ctx, plugin.MethodHealth, struct{}{}, &r); err != nil {
		return plugin.HealthResult{}, err
	}
	switch r.Status {
	case plugin.Healthy, plugin.Degraded, plugin.Unhealthy:
		return r, nil
	}
	return plugin.HealthResult{}, c.fail(unknownStatus(plugin.MethodHealth, string(r.Status),
		string(plugin.Healthy), string(plugin.Degraded), string(plugin.Unhealthy)))
}

// Inspect asks what the plugin sees in a project. A root needs the grant
// project.files.read.
func (c *Client) Inspect(ctx context.Context, project plugin.Project) (plugin.InspectResult, error) {
	if err := c.mayAsk(plugin.MethodInspect, manifest.CapabilityInspect); err != nil {
		return plugin.InspectResult{}, err
	}
	if err := c.mayTell(plugin.MethodInspect, project); err != nil {
		return plugin.InspectResult{}, err
	}
	// Encoders of several languages write an empty list as null; it is one.
	var r struct {
		Summary    string           `json:"summary"`
		Facts      *[]plugin.Fact   `json:"facts"`
		Actions    *[]plugin.Action `json:"actions"`
		Warnings   *[]string        `json:"warnings"`
		ObservedAt time.Time        `json:"observedAt"`
	}
	if err := c.ask(ctx, plugin.MethodInspect, plugin.InspectRequest{Project: project}, &r); err != nil {
		return plugin.InspectResult{}, err
	}
	return plugin.InspectResult{
		Summary: r.Summary, Facts: items(r.Facts), Actions: items(r.Actions), Warnings: items(r.Warnings), ObservedAt: r.ObservedAt,
	}, nil
}

// Operate asks for one action. The input must be I-JSON; insignificant white
// space in it is not sent.
func (c *Client) Operate(ctx context.Context, r plugin.OperateRequest) (plugin.OperateResult, error) {
	if err := c.mayAsk(plugin.MethodOperate, manifest.CapabilityOperate); err != nil {
		return plugin.OperateResult{}, err
	}
	if err := c.mayTell(plugin.MethodOperate, r.Project); err != nil {
		return plugin.OperateResult{}, err
	}
	if err := ijson.Check(r.Input); err != nil {
		return plugin.OperateResult{}, fmt.Errorf("%s: input %w: %w", plugin.MethodOperate, ErrInput, err)
	}
	var result plugin.OperateResult
	if err := c.ask(ctx, plugin.MethodOperate, r, &result); err != nil {
		return plugin.OperateResult{}, err
	}
	switch result.Status {
	case plugin.Succeeded, plugin.PartiallySucceeded, plugin.Failed:
		return result, nil
	}
	return plugin.OperateResult{}, c.fail(unknownStatus(plugin.MethodOperate, string(result.Status),
		string(plugin.Succeeded), string(plugin.PartiallySucceeded), string(plugin.Failed)))
}

// End reads to the end of the plugin's output after its stdin was closed.
// Anything that it says then is a fault. The end comes when every process that
// holds the output has ended, so End runs beside whatever waits for that.
func (c *Client) End(ctx context.Context) error {
	if c.broken {
		return ErrUnusable
	}
	defer c.guard(ctx)()
	for {
		if rest := c.in.rest(); len(rest) > 0 {
			return c.fail(extraOutput(StepEnd, rest))
		}
		if err := c.in.fill(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return c.fail(readFault(ctx, StepEnd, err, 0))
		}
	}
}

// mayAsk refuses a method whose capability was not declared or whose scope was
// not granted.
func (c *Client) mayAsk(method string, needs manifest.Capability) error {
	if c.broken {
		return fmt.Errorf("%s: %w", method, ErrUnusable)
	}
	if c.grants == nil {
		return fmt.Errorf("%s: %w: initialize comes first", method, ErrNotGranted)
	}
	if needs == "" {
		return nil
	}
	if !slices.Contains(c.identity.Capabilities, needs) {
		return fmt.Errorf("%s: %w: the plugin does not declare %s", method, ErrNotGranted, needs)
	}
	if scope := needs.Requires(); !slices.Contains(c.grants, scope) {
		return fmt.Errorf("%s: %w: needs %s", method, ErrNotGranted, scope)
	}
	return nil
}

func (c *Client) mayTell(method string, p plugin.Project) error {
	if p.Root != "" && !slices.Contains(c.grants, manifest.ScopeFilesRead) {
		return fmt.Errorf("%s: the project's root: %w: needs %s", method, ErrNotGranted, manifest.ScopeFilesRead)
	}
	return nil
}

// ask sends one request and decodes the result of its answer.
func (c *Client) ask(ctx context.Context, method string, params, result any) error {
	if c.broken {
		return fmt.Errorf("%s: %w", method, ErrUnusable)
	}
	message, err := json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", c.id + 1, method, params}, jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true)) // as encoding/json writes them
	if err != nil {
		return fmt.Errorf("%s: %w: %w", method, ErrInput, err)
	}
	if len(message) > MaxMessage {
		return fmt.Errorf("%s: %w: %d bytes, at most %d", method, ErrTooLarge, len(message), MaxMessage)
	}
	defer c.guard(ctx)()
	if rest := c.in.rest(); len(rest) > 0 {
		return c.fail(extraOutput(method, rest))
	}
	c.id++
	if f := c.send(ctx, method, append(message, '\n')); f != nil {
		return c.fail(f)
	}
	line, err := c.in.next()
	if err != nil {
		line, err = c.unfinished(ctx, method, line, err)
		if err != nil {
			return err
		}
	}
	if f := decode(method, line, c.id, result); f != nil {
		return c.fail(f)
	}
	return nil
}

// send writes a request. A plugin that no longer reads may still have said
// something that explains it, so that alone is no fault yet.
func (c *Client) send(ctx context.Context, method string, message []byte) *Fault {
	_, err := c.w.Write(message)
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	f := contextFault(ctx, method)
	f.Message += "; the plugin did not read the request"
	return f
}

// unfinished judges what was read when no complete message was: an object
// without its line feed at the end of the output is one.
func (c *Client) unfinished(ctx context.Context, method string, partial []byte, err error) ([]byte, error) {
	switch {
	case errors.Is(err, errOversized):
		return nil, c.fail(oversized(method, partial))
	case !errors.Is(err, io.EOF) || ctx.Err() != nil || len(partial) == 0:
		return nil, c.fail(readFault(ctx, method, err, len(partial)))
	case !looksLikeObject(partial):
		return nil, c.fail(notAnObject(method, partial))
	case ijson.Check(partial) != nil:
		f := readFault(ctx, method, err, len(partial))
		f.Excerpt = excerpt(partial)
		return nil, c.fail(f)
	}
	c.in.start = c.in.end
	return partial, nil
}

// fail marks the connection as unusable.
func (c *Client) fail(f *Fault) error {
	c.broken = true
	return f
}

// guard lets the end of ctx interrupt reads and writes until the returned
// function is called.
func (c *Client) guard(ctx context.Context) (release func()) {
	_ = c.in.r.SetReadDeadline(time.Time{})
	_ = c.w.SetWriteDeadline(time.Time{})
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		_ = c.in.r.SetReadDeadline(past)
		_ = c.w.SetWriteDeadline(past)
		close(interrupted)
	})
	return func() {
		if !stop() {
			<-interrupted
		}
	}
}

// decode reads one message strictly.
func decode(method string, line []byte, id int, result any) *Fault {
	if !looksLikeObject(line) {
		return notAnObject(method, line)
	}
	var response struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Result  jsontext.Value `json:"result,omitempty"`
		Error   jsontext.Value `json:"error,omitempty"`
	}
	if err := ijson.Unmarshal(line, &response); err != nil {
		return undecodable(method, "", line, err)
	}
	if response.JSONRPC != "2.0" {
		return mismatch(CodeMalformed, method, "jsonrpc", "2.0", response.JSONRPC)
	}
	var failure plugin.Error
	if response.Error != nil {
		if response.Result != nil {
			return &Fault{Code: CodeMalformed, Method: method, Message: "the answer has both result and error", Excerpt: excerpt(line)}
		}
		if err := ijson.Unmarshal(response.Error, &failure); err != nil {
			return undecodable(method, "/error", response.Error, err)
		}
	} else if response.Result == nil {
		return &Fault{Code: CodeMalformed, Method: method, Message: "the answer has neither result nor error", Excerpt: excerpt(line)}
	}
	// A request that could not be read is answered without its id.
	unread := string(response.ID) == "null" && failure.Code == plugin.CodeMalformed
	if string(response.ID) != strconv.Itoa(id) && !unread {
		return mismatch(CodeWrongID, method, "id", strconv.Itoa(id), string(response.ID))
	}
	if response.Error != nil {
		if f := outside(method, failure); f != nil {
			return f
		}
		return refusal(method, failure)
	}
	if err := ijson.Unmarshal(response.Result, result); err != nil {
		return undecodable(method, "/result", response.Result, err)
	}
	return nil
}

// items returns the elements of a list that may be null, never nil.
func items[T any](list *[]T) []T {
	if list == nil || *list == nil {
		return []T{}
	}
	return *list
}
