package call

import (
	"bufio"
	"context"
	"encoding/json"
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
