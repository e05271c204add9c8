package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/lines"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// A Client is one connection to a plugin. Its methods return the result, or an
// error response as *plugin.Error, or a *Violation; after a violation the
// connection is of no further use. A Client asks one thing at a time.
type Client struct {
	conn     *conn
	manifest plugin.Manifest
	timeout  time.Duration
	next     int
	answered bool // at least once, so the plugin has started
	close    func() error
}

// A Response is one answer on the wire.
type Response struct {
	ID     string          // as written; "null" for an answer to no request
	Result json.RawMessage // nil if Error is not
	Error  *plugin.Error
}

// dial connects without initializing.
func (s *subject) dial() (*Client, error) {
	c := &Client{manifest: s.Manifest, timeout: s.Timeout, next: 1}
	if s.Package == "" {
		c.conn = inProcess(s.Serve)
	} else {
		var err error
		if c.conn, err = process(s.Package, s.Manifest); err != nil {
			return nil, err
		}
	}
	c.close = sync.OnceValue(func() error {
		if c.answered {
			return c.conn.end(endTimeout)
		}
		return c.conn.end(c.timeout + endTimeout) // the start counts as well
	})
	return c, nil
}

// Close closes the plugin's input and waits for its end. It returns a
// *Violation if that is not orderly.
func (c *Client) Close() error { return c.close() }

// CloseInput closes the plugin's input as a host does that gives up: a call
// that is running is asked to stop, and may still answer.
func (c *Client) CloseInput() error { return c.conn.in.Close() }

// Stderr returns the last 16 KiB that a plugin's process wrote to its standard
// error so far.
func (c *Client) Stderr() string { return c.conn.stderr.String() }

// Initialize opens the connection and compares the plugin's identity and grants
// with its manifest and grants.
func (c *Client) Initialize(ctx context.Context, grants ...plugin.Scope) (plugin.InitializeResult, error) {
	var r plugin.InitializeResult
	raw, err := c.Call(ctx, plugin.MethodInitialize, plugin.InitializeParams{
		ProtocolVersion: plugin.Protocol, HostVersion: "plugintest", GrantedScopes: append([]plugin.Scope{}, grants...),
	})
	if err != nil {
		return r, err
	}
	if err := readInitialize(raw, &r); err != nil {
		return r, violated("initialize: result: %v", err)
	}
	return r, matches(r, c.manifest, grants)
}

// Health calls plugin.health.
func (c *Client) Health(ctx context.Context) (plugin.HealthResult, error) {
	var r plugin.HealthResult
	raw, err := c.Call(ctx, plugin.MethodHealth, struct{}{})
	if err != nil {
		return r, err
	}
	if err := readHealth(raw, &r); err != nil {
		return r, violated("%s: result: %v", plugin.MethodHealth, err)
	}
	return r, nil
}

// Inspect calls project.inspect. A host leaves out the root unless
// project.files.read is granted; so should the caller.
func (c *Client) Inspect(ctx context.Context, p plugin.Project) (plugin.InspectResult, error) {
	var r plugin.InspectResult
	raw, err := c.Call(ctx, plugin.MethodInspect, plugin.InspectRequest{Project: p})
	if err != nil {
		return r, err
	}
	if err := readInspect(raw, &r); err != nil {
		return r, violated("%s: result: %v", plugin.MethodInspect, err)
	}
	return r, nil
}

// Operate calls project.operate. The input is encoded as JSON.
func (c *Client) Operate(ctx context.Context, p plugin.Project, action string, input any) (plugin.OperateResult, error) {
	var r plugin.OperateResult
	given, err := json.Marshal(input)
	if err != nil {
		return r, fmt.Errorf("input: %w", err)
	}
	raw, err := c.Call(ctx, plugin.MethodOperate, plugin.OperateRequest{Project: p, Action: action, Input: given})
	if err != nil {
		return r, err
	}
	if err := readOperate(raw, &r); err != nil {
		return r, violated("%s: result: %v", plugin.MethodOperate, err)
	}
	return r, nil
}

// Call sends one request with an id of its own and returns the raw result.
func (c *Client) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id := c.next
	c.next++
	request, err := json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
	if err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	r, err := c.Exchange(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if r.ID != fmt.Sprint(id) {
		return nil, violated("%s: a response with id %s to a request with id %d", method, r.ID, id)
	}
	if r.Error != nil {
		return nil, r.Error
	}
	return r.Result, nil
}

// Exchange sends one line, which need not be a request, and returns the answer.
// The line feed is added here.
func (c *Client) Exchange(ctx context.Context, request []byte) (Response, error) {
	l, err := c.exchange(ctx, request)
	if err != nil {
		return Response{}, err
	}
	c.answered = true
	return parseResponse(l)
}

func (c *Client) exchange(ctx context.Context, request []byte) (lines.Line, error) {
	timeout := time.NewTimer(c.timeout)
	defer timeout.Stop()
	written := make(chan error, 1)
	go func() {
		_, err := c.conn.in.Write(append(request[:len(request):len(request)], '\n'))
		written <- err
	}()
	for {
		select {
		case err := <-written:
			if err != nil {
				// The plugin reads no more. If it still said something, or how
				// it ended, is the better explanation.
				select {
				case l, open := <-c.conn.answers:
					if open {
						return l, nil
					}
				case <-timeout.C:
				case <-ctx.Done():
				}
				return lines.Line{}, c.gone()
			}
			written = nil
		case l, open := <-c.conn.answers:
			if !open {
				return lines.Line{}, c.gone()
			}
			return l, nil
		case <-timeout.C:
			c.conn.kill()
			return lines.Line{}, violated("no answer within %v", c.timeout)
		case <-ctx.Done():
			c.conn.kill()
			return lines.Line{}, ctx.Err()
		}
	}
}

// gone says how a plugin ended that owes an answer.
func (c *Client) gone() error {
	how := ""
	wait := time.NewTimer(endTimeout)
	defer wait.Stop()
	select {
	case err := <-c.conn.ended:
		c.conn.ended <- err // Close reports it again
		if err != nil {
			how = ": " + err.Error()
		}
	case <-wait.C:
		how = ": it closed its output and lives on"
	}
	if text := strings.TrimSpace(c.Stderr()); text != "" {
		how += "; its standard error ends with " + strict.Quote(text[max(0, len(text)-200):])
	}
	return violated("the plugin ended before it answered%s", how)
}

// parseResponse reads one line of output as strictly as a host does.
func parseResponse(l lines.Line) (Response, error) {
	var r Response
	if l.TooLong {
		return r, violated("a response of more than %d bytes", plugin.MaxMessageBytes)
	}
	if !strings.HasPrefix(string(l.Text), "{") {
		return r, violated("a line that is not a response: %s", shown(l))
	}
	if err := strict.Check(l.Text); err != nil {
		return r, violated("a response that breaks the value rules: %v: %s", err, shown(l))
	}
	err := strict.Object(l.Text,
		strict.Required("jsonrpc", strict.Exactly("2.0")),
		strict.Required("id", func(value []byte) error { r.ID = string(value); return nil }),
		strict.Optional("result", strict.Raw(&r.Result)),
		strict.Optional("error", func(value []byte) error {
			r.Error = new(plugin.Error)
			var code json.RawMessage
			if err := strict.Object(value,
				strict.Required("code", strict.Integer(&code)),
				strict.Required("message", strict.String(&r.Error.Message)),
			); err != nil {
				return err
			}
			return json.Unmarshal(code, &r.Error.Code)
		}),
	)
	switch {
	case err != nil:
		return r, violated("a response that is none: %v: %s", err, shown(l))
	case (r.Result == nil) == (r.Error == nil):
		return r, violated("a response needs exactly one of result and error: %s", shown(l))
	case r.Error != nil && len(r.Error.Message) > plugin.MaxErrorBytes:
		return r, violated("an error message of %d bytes, more than %d", len(r.Error.Message), plugin.MaxErrorBytes)
	}
	return r, nil
}

// matches compares what the running plugin says it is with what it should be.
func matches(r plugin.InitializeResult, m plugin.Manifest, grants []plugin.Scope) error {
	got, want := r.Plugin, m.Identity()
	switch {
	case r.ProtocolVersion != plugin.Protocol:
		return violated("initialize: protocolVersion is %q, not %q", r.ProtocolVersion, plugin.Protocol)
	case got.SchemaVersion != want.SchemaVersion:
		return violated("initialize: plugin.schemaVersion is %q, in the manifest %q", got.SchemaVersion, want.SchemaVersion)
	case got.ID != want.ID:
		return violated("initialize: plugin.id is %q, in the manifest %q", got.ID, want.ID)
	case got.Name != want.Name:
		return violated("initialize: plugin.name is %q, in the manifest %q", got.Name, want.Name)
	case got.Version != want.Version:
		return violated("initialize: plugin.version is %q, in the manifest %q", got.Version, want.Version)
	case got.ProtocolVersion != want.ProtocolVersion:
		return violated("initialize: plugin.protocolVersion is %q, in the manifest %q", got.ProtocolVersion, want.ProtocolVersion)
	case !sameSet(got.Capabilities, want.Capabilities):
		return violated("initialize: plugin.capabilities are %q, in the manifest %q", got.Capabilities, want.Capabilities)
	case !sameSet(got.RequestedScopes, want.RequestedScopes):
		return violated("initialize: plugin.requestedScopes are %q, in the manifest %q", got.RequestedScopes, want.RequestedScopes)
	case !sameSet(r.GrantedScopes, grants):
		return violated("initialize: grantedScopes are %q, but %q were granted", r.GrantedScopes, grants)
	}
	return nil
}

func sameSet[T ~string](a, b []T) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
