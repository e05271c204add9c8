package call

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// TestTranscripts replays the transcripts that every implementation shares from
// the host's side: for each request that a host makes, the client must write it
// byte for byte and read the answer as what it is. The transcripts also hold
// requests that no host makes, to show what a plugin answers; a transcript is
// followed as far as its first of those.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/transcripts/call/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	replayed := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			replayed += replay(t, archive)
		})
	}
	if replayed < len(files) {
		t.Errorf("only %d requests were replayed", replayed)
	}
	t.Logf("%d requests of %d transcripts", replayed, len(files))
}

type transcriptRequest struct {
	JSONRPC string
	ID      int
	Method  string
	Params  json.RawMessage
}

func replay(t *testing.T, archive *txtar.Archive) (replayed int) {
	var reviewed manifest.Manifest
	var exchange []byte
	for _, f := range archive.Files {
		switch f.Name {
		case "plugin.json":
			if err := json.Unmarshal(f.Data, &reviewed); err != nil {
				t.Fatal(err)
			}
		case "exchange":
			exchange = f.Data
		}
	}
	var requests, answers []string
	for line := range strings.Lines(string(exchange)) {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			requests = append(requests, text)
		} else if text, ok := strings.CutPrefix(line, "< "); ok {
			answers = append(answers, text)
		}
	}
	c, p, _ := connect(t)
	said := p.answers(answers...)
	for i, text := range requests {
		var r transcriptRequest
		if json.Unmarshal([]byte(text), &r) != nil || r.ID != i+1 || (i == 0) != (r.Method == plugin.MethodInitialize) {
			break
		}
		ask, ok := hostCall(c, reviewed, r)
		if !ok {
			break
		}
		err := ask()
		var answer struct{ Error *plugin.Error }
		if err := json.Unmarshal([]byte(answers[i]), &answer); err != nil {
			t.Fatal(err)
		}
		if errors.Is(err, ErrNotGranted) {
			// The plugin refuses it as well, had it been asked.
			if answer.Error == nil || answer.Error.Code != plugin.CodeNotGranted {
				t.Errorf("request %d: %v, but the plugin answers %s", i+1, err, answers[i])
			}
			break
		}
		replayed++
		if answer.Error == nil {
			if err != nil {
				t.Errorf("request %d: %v", i+1, err)
			}
			continue
		}
		var f *Fault
		if !errors.As(err, &f) || f.RPC == nil || *f.RPC != *answer.Error {
			t.Errorf("request %d: %v, want %v", i+1, err, answer.Error)
		}
		break
	}
	p.stdin.Close()
	p.stdout.Close()
	for i, sent := range said() {
		if sent != requests[i] {
			t.Errorf("request %d:\nsent %swant %s", i+1, sent, requests[i])
		}
	}
	return replayed
}

// hostCall returns the client's call that makes the request, if there is one:
// with exactly the members that a host sends.
func hostCall(c *Client, reviewed manifest.Manifest, r transcriptRequest) (ask func() error, ok bool) {
	ctx := context.Background()
	strict := func(v any) bool {
		d := json.NewDecoder(bytes.NewReader(r.Params))
		d.DisallowUnknownFields()
		if r.Params == nil || d.Decode(v) != nil {
			return false
		}
		again, err := json.Marshal(v)
		return err == nil && bytes.Equal(again, r.Params)
	}
	switch r.Method {
	case plugin.MethodInitialize:
		var p plugin.InitializeParams
		return func() error {
			return c.Initialize(ctx, Hello{HostVersion: p.HostVersion, Identity: reviewed.Identity(), Grants: p.GrantedScopes})
		}, strict(&p) && p.ProtocolVersion == plugin.Protocol && slices.Equal(slices.Compact(slices.Clone(p.GrantedScopes)), p.GrantedScopes)
	case plugin.MethodHealth:
		return func() error { _, err := c.Health(ctx); return err }, strict(&struct{}{})
	case plugin.MethodInspect:
		var p plugin.InspectRequest
		return func() error { _, err := c.Inspect(ctx, p.Project); return err }, strict(&p)
	case plugin.MethodOperate:
		var p plugin.OperateRequest
		return func() error { _, err := c.Operate(ctx, p); return err }, strict(&p)
	}
	return nil, false
}

func FuzzAnswer(f *testing.F) {
	files, err := filepath.Glob("../../testdata/transcripts/call/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	seeds := 0
	add := func(line string) {
		for kind := range byte(4) {
			f.Add([]byte(line), kind)
		}
		seeds++
	}
	for _, text := range []string{goodHello, goodHealth, goodInspect, goodOperate, "", "text", "{", "{}", "\xff", "null",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m"}}`} {
		add(text)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if answer, ok := strings.CutPrefix(line, "< "); ok {
				add(strings.TrimSuffix(answer, "\n"))
			}
		}
	}
	if seeds < 40 {
		f.Fatalf("only %d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, line []byte, kind byte) {
		var result any
		method := [...]string{plugin.MethodInitialize, plugin.MethodHealth, plugin.MethodInspect, plugin.MethodOperate}[kind%4]
		switch kind % 4 {
		case 0:
			result = new(plugin.InitializeResult)
		case 1:
			result = new(plugin.HealthResult)
		case 2:
			result = new(plugin.InspectResult)
		case 3:
			result = new(plugin.OperateResult)
		}
		fault := decode(method, line, 2, result)
		if fault != nil {
			if fault.Code == "" || fault.Message == "" || fault.Method != method {
				t.Fatalf("incomplete fault %+v", fault)
			}
			wantTame(t, fault)
			return
		}
		// What was accepted is JSON to a lenient reader too, with this id.
		var message struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(line, &message); err != nil || message.ID != 2 || message.Result == nil {
			t.Fatalf("accepted %q: %v", line, err)
		}
	})
}
