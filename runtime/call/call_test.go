package call

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

var (
	allScopes = manifest.Scopes
	identity  = manifest.Identity{
		SchemaVersion: manifest.SchemaVersion, ID: "sample", Name: "Sample", Version: "1.0.0", ProtocolVersion: manifest.Protocol,
		Capabilities: manifest.Capabilities, RequestedScopes: allScopes,
	}
	hello = Hello{HostVersion: "1.2.3", Identity: identity, Grants: allScopes}
)

const (
	goodHello = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"switchyard.plugin/v1","plugin":{"schemaVersion":"switchyard.plugin-manifest/v1",` +
		`"id":"sample","name":"Sample","version":"1.0.0","protocolVersion":"switchyard.plugin/v1","capabilities":["project.operate","project.inspect"],` +
		`"requestedScopes":["project.operate","project.files.read","project.metadata.read"]},"grantedScopes":["project.files.read","project.metadata.read","project.operate"]}}`
	goodHealth  = `{"jsonrpc":"2.0","id":2,"result":{"status":"degraded","message":"slow","checkedAt":"2024-02-29T23:59:59.123456789+05:30"}}`
	goodInspect = `{"jsonrpc":"2.0","id":2,"result":{"summary":"two","facts":[{"id":"a","label":"A","value":"1","source":"x","warning":"w"},` +
		`{"id":"b","label":"B","value":"","source":"y"}],"actions":[{"id":"act","name":"Act","description":"d","risk":"free text"}],"warnings":["w"],"observedAt":"2024-01-01T00:00:00Z"}}`
	goodOperate = `{"jsonrpc":"2.0","id":2,"result":{"status":"partially_succeeded","summary":"half","output":{"n":[1,2.5,null]}}}`
)

// A peer is the plugin's end: it reads requests and writes what it is told.
type peer struct {
	t        *testing.T
	requests *bufio.Reader
	stdin    *os.File // read end
	stdout   *os.File // write end
}

// connect returns a client and the other end of its pipes.
func connect(t *testing.T) (*Client, *peer, *os.File) {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{inR, inW, outR, outW} {
			f.Close()
		}
	})
	return New(inW, outR), &peer{t, bufio.NewReaderSize(inR, 2*MaxMessage), inR, outW}, inW
}

// answers makes the peer answer each request with the next text, verbatim, and
// close its output afterwards. It returns the requests once all are answered.
func (p *peer) answers(texts ...string) (requests func() []string) {
	got := make(chan []string, 1)
	go func() {
		var seen []string
		for _, text := range texts {
			request, err := p.requests.ReadString('\n')
			if err != nil {
				break
			}
			seen = append(seen, request)
			if _, err := io.WriteString(p.stdout, text); err != nil {
				break
			}
		}
		p.stdout.Close()
		got <- seen
	}()
	return func() []string { return <-got }
}

func open(t *testing.T, texts ...string) (*Client, func() []string) {
	t.Helper()
	c, p, _ := connect(t)
	requests := p.answers(append([]string{goodHello + "\n"}, texts...)...)
	if err := c.Initialize(context.Background(), hello); err != nil {
		t.Fatal(err)
	}
	return c, requests
}

func TestConversation(t *testing.T) {
	t.Parallel()
	project := plugin.Project{ID: "p1", DisplayName: "P <1> & é", Root: "/srv/p1"}

	c, requests := open(t, goodHealth+"\n")
	health, err := c.Health(context.Background())
	when := time.Date(2024, 2, 29, 18, 29, 59, 123456789, time.UTC)
	if err != nil || health.Status != plugin.Degraded || health.Message != "slow" || !health.CheckedAt.Equal(when) {
		t.Errorf("health: %+v, %v", health, err)
	}
	if err := c.End(context.Background()); err != nil {
		t.Errorf("end: %v", err)
	}
	want := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"switchyard.plugin/v1","hostVersion":"1.2.3",` +
			`"grantedScopes":["project.metadata.read","project.files.read","project.operate"]}}` + "\n",
		`{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}` + "\n",
	}
	if got := requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests:\n%q\n%q", got, want)
	}

	c, requests = open(t, goodInspect+"\n")
	inspection, err := c.Inspect(context.Background(), project)
	if err != nil || len(inspection.Facts) != 2 || inspection.Facts[0].Warning != "w" || inspection.Actions[0].Risk != "free text" || len(inspection.Warnings) != 1 {
		t.Errorf("inspect: %+v, %v", inspection, err)
	}
	if got, want := requests()[1], `{"jsonrpc":"2.0","id":2,"method":"project.inspect","params":{"project":{"id":"p1","displayName":"P \u003c1\u003e \u0026 é","root":"/srv/p1"}}}`+"\n"; got != want {
		t.Errorf("request %q", got)
	}

	c, requests = open(t, goodOperate+"\n")
	outcome, err := c.Operate(context.Background(), plugin.OperateRequest{
		Project: plugin.Project{ID: "p1", DisplayName: "P"}, Action: "act", Input: json.RawMessage("{\n  \"a\" : [ 1 ]\n}\n"),
	})
	if err != nil || outcome.Status != plugin.PartiallySucceeded || string(outcome.Output) != `{"n":[1,2.5,null]}` {
		t.Errorf("operate: %+v, %v", outcome, err)
	}
	if got, want := requests()[1], `{"jsonrpc":"2.0","id":2,"method":"project.operate","params":{"project":{"id":"p1","displayName":"P"},"action":"act","input":{"a":[1]}}}`+"\n"; got != want {
		t.Errorf("request %q", got)
	}
}

func TestNullListsAreEmpty(t *testing.T) {
	t.Parallel()
	c, _ := open(t, `{"jsonrpc":"2.0","id":2,"result":{"summary":"s","facts":null,"actions":null,"warnings":null,"observedAt":"2024-01-01T00:00:00Z"}}`+"\n")
	r, err := c.Inspect(context.Background(), plugin.Project{ID: "p"})
	if err != nil || r.Facts == nil || r.Actions == nil || r.Warnings == nil {
		t.Errorf("%+v, %v", r, err)
	}
	c, p, _ := connect(t)
	p.answers(strings.Replace(goodHello, `["project.files.read","project.metadata.read","project.operate"]`, "null", 1) + "\n")
	if err := c.Initialize(context.Background(), Hello{Identity: identity}); err != nil {
		t.Error(err)
	}
}

// An answer to health that the client must refuse, or take, whatever else.
func TestAnswers(t *testing.T) {
	t.Parallel()
	result := func(r string) string { return `{"jsonrpc":"2.0","id":2,"result":` + r + "}\n" }
	health := func(at string) string { return result(`{"status":"healthy","checkedAt":"` + at + `"}`) }
	for _, c := range []struct {
		name, text string
		want       Code // "" if it is accepted
		field      string
	}{
		{"plain", goodHealth + "\n", "", ""},
		{"crlf", goodHealth + "\r\n", "", ""},
		{"no line feed at the end", goodHealth, "", ""},
		{"spaces", " \t" + strings.ReplaceAll(goodHealth, `,"`, "\t, \"") + " \n", "", ""},
		{"members in another order", `{"result":{"checkedAt":"2024-01-01T00:00:00Z","status":"healthy"},"id":2,"jsonrpc":"2.0"}` + "\n", "", ""},
		{"escaped", strings.Replace(goodHealth, "slow", `\u0073low`, 1) + "\n", "", ""},
		{"zulu", health("2024-01-01T00:00:00Z"), "", ""},
		{"offset", health("2024-01-01T00:00:00-08:00"), "", ""},
		{"fraction", health("2024-01-01T00:00:00.000001Z"), "", ""},

		{"nothing", "", CodeExited, ""},
		{"half a message", goodHealth[:30], CodeExited, ""},
		{"empty line", "\n" + goodHealth + "\n", CodeMalformed, ""},
		{"blank line", " \r\n", CodeMalformed, ""},
		{"text", "hello\n", CodeMalformed, ""},
		{"text at the end", "panic: oh", CodeMalformed, ""},
		{"byte order mark", "\ufeff" + goodHealth + "\n", CodeMalformed, ""},
		{"array", "[" + goodHealth + "]\n", CodeMalformed, ""},
		{"two on a line", goodHealth + goodHealth + "\n", CodeMalformed, ""},
		{"across lines", strings.Replace(goodHealth, ",", ",\n", 1) + "\n", CodeMalformed, ""},
		{"not UTF-8", strings.Replace(goodHealth, "slow", "sl\xffow", 1) + "\n", CodeMalformed, "/result/message"},
		{"duplicate member", strings.Replace(goodHealth, `"id":2`, `"id":2,"id":2`, 1) + "\n", CodeMalformed, "/id"},
		{"duplicate in result", result(`{"status":"healthy","st\u0061tus":"healthy","checkedAt":"2024-01-01T00:00:00Z"}`), CodeMalformed, "/result/status"},
		{"deep", result(strings.Repeat("[", 70) + strings.Repeat("]", 70)), CodeMalformed, "*"},
		{"huge number", result(`{"status":1e999}`), CodeMalformed, "*"},
		{"no version", `{"id":2,"result":{}}` + "\n", CodeMalformed, ""},
		{"wrong version", strings.Replace(goodHealth, "2.0", "1.0", 1) + "\n", CodeMalformed, "jsonrpc"},
		{"no id", `{"jsonrpc":"2.0","result":{}}` + "\n", CodeMalformed, ""},
		{"another id", strings.Replace(goodHealth, `"id":2`, `"id":1`, 1) + "\n", CodeWrongID, "id"},
		{"string id", strings.Replace(goodHealth, `"id":2`, `"id":"2"`, 1) + "\n", CodeWrongID, "id"},
		{"null id", strings.Replace(goodHealth, `"id":2`, `"id":null`, 1) + "\n", CodeWrongID, "id"},
		{"fractional id", strings.Replace(goodHealth, `"id":2`, `"id":2.0`, 1) + "\n", CodeWrongID, "id"},
		{"object id", strings.Replace(goodHealth, `"id":2`, `"id":{"a":1}`, 1) + "\n", CodeWrongID, "id"},
		{"unknown member", strings.Replace(goodHealth, `"id"`, `"x":1,"id"`, 1) + "\n", CodeUnknownField, "/x"},
		{"wrong case", strings.Replace(goodHealth, `"id"`, `"ID"`, 1) + "\n", CodeUnknownField, "/ID"},
		{"unknown in result", result(`{"status":"healthy","checkedAt":"2024-01-01T00:00:00Z","x":{}}`), CodeUnknownField, "/result/x"},
		{"wrong case in result", result(`{"Status":"healthy","checkedAt":"2024-01-01T00:00:00Z"}`), CodeUnknownField, "/result/Status"},
		{"unknown in error", `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m","data":1}}` + "\n", CodeUnknownField, "/error/data"},
		{"both", `{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"m"}}` + "\n", CodeMalformed, ""},
		{"both, one null", `{"jsonrpc":"2.0","id":2,"result":{},"error":null}` + "\n", CodeMalformed, ""},
		{"neither", `{"jsonrpc":"2.0","id":2}` + "\n", CodeMalformed, ""},
		{"null result", result("null"), CodeMalformed, "/result"},
		{"null error", `{"jsonrpc":"2.0","id":2,"error":null}` + "\n", CodeMalformed, "/error"},
		{"empty result", result("{}"), CodeMalformed, "/result"},
		{"null member", result(`{"status":null,"checkedAt":"2024-01-01T00:00:00Z"}`), CodeMalformed, "/result/status"},
		{"unknown status", result(`{"status":"great","checkedAt":"2024-01-01T00:00:00Z"}`), CodeMalformed, "/result/status"},
		{"no time", result(`{"status":"healthy"}`), CodeMalformed, "/result"},
		{"no such day", health("2023-02-29T00:00:00Z"), CodeMalformed, "/result/checkedAt"},
		{"no zone", health("2024-01-01T00:00:00"), CodeMalformed, "/result/checkedAt"},
		{"lower-case t", health("2024-01-01t00:00:00Z"), CodeMalformed, "/result/checkedAt"},
		{"leap second", health("2016-12-31T23:59:60Z"), CodeMalformed, "/result/checkedAt"},
		{"comma", health("2024-01-01T00:00:00,5Z"), CodeMalformed, "/result/checkedAt"},
		{"date", health("2024-01-01"), CodeMalformed, "/result/checkedAt"},
		{"error", `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"m"}}` + "\n", CodeError, ""},
		{"error to an unread request", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}` + "\n", CodeError, ""},
		{"error without id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}` + "\n", CodeWrongID, "id"},
		{"error without message", `{"jsonrpc":"2.0","id":2,"error":{"code":-32000}}` + "\n", CodeMalformed, "/error"},
		{"error with text code", `{"jsonrpc":"2.0","id":2,"error":{"code":"x","message":"m"}}` + "\n", CodeMalformed, "/error/code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client, _ := open(t, c.text)
			_, err := client.Health(context.Background())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if f.Code != c.want || c.field != "*" && f.Field != c.field || f.Method != plugin.MethodHealth {
				t.Errorf("%s at %q: %v\nwant %s at %q", f.Code, f.Field, f, c.want, c.field)
			}
			if _, err := client.Health(context.Background()); !errors.Is(err, ErrUnusable) {
				t.Errorf("after the fault: %v", err)
			}
			if err := client.End(context.Background()); !errors.Is(err, ErrUnusable) {
				t.Errorf("end after the fault: %v", err)
			}
		})
	}
}

func TestOtherResults(t *testing.T) {
	t.Parallel()
	inspect := func(c *Client) error {
		_, err := c.Inspect(context.Background(), plugin.Project{ID: "p"})
		return err
	}
	operate := func(c *Client) error {
		_, err := c.Operate(context.Background(), plugin.OperateRequest{Action: "a", Input: json.RawMessage("1")})
		return err
	}
	for _, c := range []struct {
		name   string
		call   func(*Client) error
		answer string
		want   Code
		field  string
	}{
		{"inspect", inspect, goodInspect, "", ""},
		{"no facts", inspect, strings.Replace(goodInspect, `"facts":`, `"facets":`, 1), CodeUnknownField, "/result/facets"},
		{"missing list", inspect, strings.Replace(goodInspect, `"warnings":["w"],`, ``, 1), CodeMalformed, "/result"},
		{"null fact", inspect, strings.Replace(goodInspect, `"facts":[`, `"facts":[null,`, 1), CodeMalformed, "/result/facts/0"},
		{"unknown in fact", inspect, strings.Replace(goodInspect, `"label":"B"`, `"label":"B","x":1`, 1), CodeUnknownField, "/result/facts/1/x"},
		{"number as value", inspect, strings.Replace(goodInspect, `"value":"1"`, `"value":1`, 1), CodeMalformed, "/result/facts/0/value"},
		{"action without risk", inspect, strings.Replace(goodInspect, `,"risk":"free text"`, ``, 1), CodeMalformed, "/result/actions/0"},
		{"operate", operate, goodOperate, "", ""},
		{"null output", operate, strings.Replace(goodOperate, `{"n":[1,2.5,null]}`, `null`, 1), "", ""},
		{"no output", operate, strings.Replace(goodOperate, `,"output":{"n":[1,2.5,null]}`, ``, 1), CodeMalformed, "/result"},
		{"unknown status", operate, strings.Replace(goodOperate, `partially_succeeded`, `done`, 1), CodeMalformed, "/result/status"},
		{"duplicate in output", operate, strings.Replace(goodOperate, `"n":[1`, `"n":1,"n":[1`, 1), CodeMalformed, "/result/output/n"},
		{"integer beyond 2^53", operate, strings.Replace(goodOperate, `2.5`, `9007199254740993`, 1), CodeMalformed, "/result/output/n/1"},
	} {
		client, _ := open(t, c.answer+"\n")
		err := c.call(client)
		var f *Fault
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if !errors.As(err, &f) || f.Code != c.want || f.Field != c.field {
			t.Errorf("%s: %v, want %s at %q", c.name, err, c.want, c.field)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, more := range []int{-1, 0, 1} {
		text := strings.Replace(goodHealth, "slow", strings.Repeat("s", MaxMessage+more-len(goodHealth)+len("slow")), 1)
		if len(text) != MaxMessage+more {
			t.Fatal("wrong test")
		}
		for _, ending := range []string{"\n", ""} {
			client, _ := open(t, text+ending)
			_, err := client.Health(context.Background())
			var f *Fault
			if more <= 0 && err != nil || more > 0 && (!errors.As(err, &f) || f.Code != CodeOversized) {
				t.Errorf("answer of limit%+d, ending %q: %.200v", more, ending, err)
			}
		}
		// Requests: the input is what fills them.
		client, requests := open(t, goodOperate+"\n")
		request := plugin.OperateRequest{Project: plugin.Project{ID: "p"}, Action: "a"}
		const frame = `{"jsonrpc":"2.0","id":2,"method":"project.operate","params":{"project":{"id":"p","displayName":""},"action":"a","input":""}}`
		request.Input = json.RawMessage(`"` + strings.Repeat("i", MaxMessage+more-len(frame)) + `"`)
		_, err := client.Operate(context.Background(), request)
		if more > 0 {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("request of limit%+d: %.200v", more, err)
			}
			// Nothing was sent, and the connection is good.
			request.Input = json.RawMessage("{}")
			if _, err = client.Operate(context.Background(), request); err != nil {
				t.Errorf("after a request that was too large: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("request of limit%+d: %v", more, err)
		} else if got := requests(); len(got[1]) != MaxMessage+more+1 {
			t.Errorf("request of limit%+d has %d bytes on the wire", more, len(got[1]))
		}
	}
}

// TestEndless reads a message that never ends, in bounded memory.
func TestEndless(t *testing.T) {
	t.Parallel()
	c, p, _ := connect(t)
	go func() {
		p.requests.ReadString('\n')
		chunk := `{"jsonrpc":"` + strings.Repeat("x", 64<<10)
		for {
			if _, err := io.WriteString(p.stdout, chunk); err != nil {
				return
			}
		}
	}()
	var f *Fault
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeOversized {
		t.Errorf("%v", err)
	}
	if len(c.in.buf) > MaxMessage+64<<10 {
		t.Errorf("%d bytes of buffer", len(c.in.buf))
	}
}

func TestArrivesInPieces(t *testing.T) {
	t.Parallel()
	c, p, _ := connect(t)
	go func() {
		for _, text := range []string{goodHello, goodHealth} {
			p.requests.ReadString('\n')
			for i := range len(text) {
				p.stdout.WriteString(text[i : i+1])
			}
			p.stdout.WriteString("\r")
			p.stdout.WriteString("\n")
		}
		p.stdout.Close()
	}()
	if err := c.Initialize(context.Background(), hello); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Health(context.Background()); err != nil {
		t.Error(err)
	}
	if err := c.End(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestExtraOutput(t *testing.T) {
	t.Parallel()
	var f *Fault
	// In the same write as the answer to initialize.
	c, p, _ := connect(t)
	p.answers(goodHello+"\n"+goodHealth+"\n", "")
	if err := c.Initialize(context.Background(), hello); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Health(context.Background()); !errors.As(err, &f) || f.Code != CodeExtraOutput || f.Method != plugin.MethodHealth {
		t.Errorf("early answer: %v", err)
	}
	for _, extra := range []string{goodHealth + "\n", "bye", "\n", "\x00"} {
		c, _ := open(t, goodHealth+"\n"+extra)
		if _, err := c.Health(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := c.End(context.Background()); !errors.As(err, &f) || f.Code != CodeExtraOutput || f.Method != StepEnd {
			t.Errorf("extra %q: %v", extra, err)
		}
	}
}

func TestBanner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Code{
		"Welcome!\n" + goodHello + "\n":        CodeBanner,
		"Usage: sample [flags]":                CodeBanner,
		"[INFO] starting\n":                    CodeBanner,
		"\n" + goodHello + "\n":                CodeMalformed,
		`{"level":"info","msg":"up"}` + "\n":   CodeUnknownField,
		strings.Repeat("=", MaxMessage) + "==": CodeOversized,
	} {
		c, p, _ := connect(t)
		p.answers(text)
		var f *Fault
		if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != want || f.Excerpt == "" && want == CodeBanner {
			t.Errorf("%.40q: %.200v, want %s", text, err, want)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, new string
		want     Code
		field    string
	}{
		{"", "", "", ""},
		{`"result":{"protocolVersion":"switchyard.plugin/v1"`, `"result":{"protocolVersion":"switchyard.plugin/v2"`, CodeProtocolMismatch, "protocolVersion"},
		{`plugin-manifest/v1`, `plugin-manifest/v2`, CodeIdentityMismatch, "plugin.schemaVersion"},
		{`"id":"sample"`, `"id":"Sample"`, CodeIdentityMismatch, "plugin.id"},
		{`"Sample"`, `"Sample "`, CodeIdentityMismatch, "plugin.name"},
		{`"1.0.0"`, `"1.0.00"`, CodeIdentityMismatch, "plugin.version"},
		{`"version":"1.0.0","protocolVersion":"switchyard.plugin/v1"`, `"version":"1.0.0","protocolVersion":""`, CodeIdentityMismatch, "plugin.protocolVersion"},
		{`"capabilities":["project.operate","project.inspect"]`, `"capabilities":["project.operate"]`, CodeIdentityMismatch, "plugin.capabilities"},
		{`"capabilities":["project.operate",`, `"capabilities":["project.operate","project.delete",`, CodeIdentityMismatch, "plugin.capabilities"},
		{`"capabilities":["project.operate",`, `"capabilities":["project.operate","project.operate",`, CodeIdentityMismatch, "plugin.capabilities"},
		{`"requestedScopes":["project.operate",`, `"requestedScopes":[`, CodeIdentityMismatch, "plugin.requestedScopes"},
		{`"grantedScopes":["project.files.read",`, `"grantedScopes":[`, CodeIdentityMismatch, "grantedScopes"},
		{`"grantedScopes":[`, `"grantedScopes":["project.operate",`, CodeIdentityMismatch, "grantedScopes"},
		{`"grantedScopes":[`, `"grantedScopes":["everything",`, CodeIdentityMismatch, "grantedScopes"},
		{`"executable"`, ``, "", ""},
		{`"plugin":{`, `"plugin":{"executable":"x",`, CodeUnknownField, "/result/plugin/executable"},
		{`"name":"Sample",`, ``, CodeMalformed, "/result/plugin"},
		{`"capabilities":["project.operate","project.inspect"]`, `"capabilities":null`, CodeMalformed, "/result/plugin/capabilities"},
		{`,"grantedScopes":["project.files.read","project.metadata.read","project.operate"]`, ``, CodeMalformed, "/result"},
	} {
		client, p, _ := connect(t)
		p.answers(strings.Replace(goodHello, c.old, c.new, 1) + "\n")
		err := client.Initialize(context.Background(), hello)
		var f *Fault
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.new, err)
			}
		} else if !errors.As(err, &f) || f.Code != c.want || f.Field != c.field {
			t.Errorf("%s: %v, want %s at %q", c.new, err, c.want, c.field)
		} else if f.Code == CodeIdentityMismatch && (f.Expected == "" || f.Found == "") {
			t.Errorf("%s: facts are missing: %+v", c.new, f)
		}
	}
}

func TestGrantsAreKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fresh := func(granted ...manifest.Scope) *Client {
		c, p, _ := connect(t)
		list, _ := json.Marshal(append([]manifest.Scope{}, granted...))
		p.answers(strings.Replace(goodHello, `["project.files.read","project.metadata.read","project.operate"]`, string(list), 1) + "\n")
		if err := c.Initialize(ctx, Hello{Identity: identity, Grants: granted}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	inspect := func(c *Client, root string) error {
		_, err := c.Inspect(ctx, plugin.Project{ID: "p", Root: root})
		return err
	}
	operate := func(c *Client, root string) error {
		_, err := c.Operate(ctx, plugin.OperateRequest{Project: plugin.Project{Root: root}, Action: "a", Input: json.RawMessage("{}")})
		return err
	}
	for name, err := range map[string]error{
		"inspect without its scope":     inspect(fresh(manifest.ScopeOperate, manifest.ScopeFilesRead), ""),
		"inspect with a withheld root":  inspect(fresh(manifest.ScopeMetadataRead), "/srv"),
		"operate without its scope":     operate(fresh(manifest.ScopeMetadataRead, manifest.ScopeFilesRead), ""),
		"operate with a withheld root":  operate(fresh(manifest.ScopeOperate), "/srv"),
		"operate without a capability":  operate(&Client{grants: allScopes, identity: manifest.Identity{Capabilities: []manifest.Capability{manifest.CapabilityInspect}}}, ""),
		"inspect before initialize":     inspect(&Client{identity: identity}, ""),
		"inspect with a grant to spare": inspect(fresh(), ""),
	} {
		if !errors.Is(err, ErrNotGranted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, p, _ := connect(t)
	if _, err := c.Health(ctx); !errors.Is(err, ErrNotGranted) {
		t.Errorf("health before initialize: %v", err)
	}
	p.stdout.Close()
	for _, input := range []string{"", "{", `{"a":1,"a":2}`, "\xff", `{"n":1e400}`, "1 2"} {
		_, err := fresh(allScopes...).Operate(ctx, plugin.OperateRequest{Action: "a", Input: json.RawMessage(input)})
		if !errors.Is(err, ErrInput) {
			t.Errorf("input %q: %v", input, err)
		}
	}
	if err := inspect(fresh(allScopes...), "/srv/\xff"); !errors.Is(err, ErrInput) {
		t.Errorf("root that is not UTF-8: %v", err)
	}
}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000)
	c, _ := open(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32003,"message":"`+long+`"}}`+"\n")
	_, err := c.Health(context.Background())
	var f *Fault
	if !errors.As(err, &f) || f.Code != CodeError || f.RPC == nil || f.RPC.Code != plugin.CodeNotGranted || f.RPC.Message != long[:plugin.MaxErrorBytes] {
		t.Errorf("%+v", f)
	}
	c, p, _ := connect(t)
	p.answers(`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"only v9"}}` + "\n")
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeProtocolMismatch || f.RPC.Message != "only v9" {
		t.Errorf("%v", err)
	}
}

func TestContextInterrupts(t *testing.T) {
	t.Parallel()
	var f *Fault
	cause := errors.New("enough")

	// A read.
	c, p, _ := connect(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		p.requests.ReadString('\n')
		p.stdout.WriteString(goodHello[:40])
		cancel(cause)
	}()
	err := c.Initialize(ctx, hello)
	if !errors.As(err, &f) || f.Code != CodeCancelled || !errors.Is(err, cause) {
		t.Errorf("read: %v", err)
	}

	// A write that the other end does not read.
	c, _ = open(t)
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	_, err = c.Operate(ctx, plugin.OperateRequest{Action: "a", Input: json.RawMessage(`"` + strings.Repeat("x", 512<<10) + `"`)})
	if !errors.As(err, &f) || f.Code != CodeTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("write: %v", err)
	}

	// The end.
	c, p, _ = connect(t)
	ctx, stop = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	if err := c.End(ctx); !errors.As(err, &f) || f.Code != CodeTimeout {
		t.Errorf("end: %v", err)
	}
	p.stdout.Close()

	// A context that has ended before.
	c, p, _ = connect(t)
	p.answers(goodHello + "\n")
	ctx, cancel = context.WithCancelCause(context.Background())
	cancel(cause)
	if err := c.Initialize(ctx, hello); err != nil && (!errors.As(err, &f) || f.Code != CodeCancelled) {
		t.Errorf("ended before: %v", err)
	}

	// One that ends after an answer does not disturb the next call.
	c, p, _ = connect(t)
	p.answers(goodHello+"\n", goodHealth+"\n")
	ctx, cancel = context.WithCancelCause(context.Background())
	if err := c.Initialize(ctx, hello); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if _, err := c.Health(context.Background()); err != nil {
		t.Errorf("next call: %v", err)
	}
}

// TestGoneReader holds that an answer counts although the request could not be
// written any more.
func TestGoneReader(t *testing.T) {
	t.Parallel()
	c, p, _ := connect(t)
	p.stdin.Close()
	p.stdout.WriteString("fatal: no license\n")
	p.stdout.Close()
	var f *Fault
	// What was there before the request is not an answer to it.
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeBanner {
		t.Errorf("%v", err)
	}
	c, p, _ = connect(t)
	p.stdin.Close()
	p.stdout.Close()
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeExited {
		t.Errorf("%v", err)
	}
	if g := f.AfterExit("exit status 3", true); g.Code != CodeCrashed || f.Code != CodeExited {
		t.Errorf("%v", g)
	}
	if g := f.AfterExit("exit status 0", false); g.Code != CodeExited {
		t.Errorf("%v", g)
	}
}

func TestForeignTextIsTamed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\x1b[31m\u202eevil\u200b\x00\x07",
		strings.Repeat("世", 500),
		"password=hunter2-canary",
		"x\xff\xfe",
		"a\r\rb\tc",
	} {
		c, p, _ := connect(t)
		p.answers(text + "\n")
		var f *Fault
		if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) {
			t.Fatal(err)
		}
		wantTame(t, f)
		if strings.Contains(f.Error(), "canary") {
			t.Errorf("secret in %q", f.Error())
		}
	}
	// Member names are foreign text too.
	c, _ := open(t, `{"jsonrpc":"2.0","id":2,"\u202e`+strings.Repeat("x", 5000)+"\u200b\":1}\n")
	_, err := c.Health(context.Background())
	var f *Fault
	if !errors.As(err, &f) || f.Code != CodeUnknownField {
		t.Fatal(err)
	}
	wantTame(t, f)
}
