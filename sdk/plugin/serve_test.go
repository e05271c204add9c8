package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// work is a handler made of functions; a nil one answers with something valid.
type work struct {
	health  func(context.Context) (HealthResult, error)
	inspect func(context.Context, InspectRequest) (InspectResult, error)
	operate func(context.Context, OperateRequest) (OperateResult, error)
}

func (w work) Health(ctx context.Context) (HealthResult, error) {
	if w.health == nil {
		return HealthResult{Status: Healthy}, nil
	}
	return w.health(ctx)
}

func (w work) Inspect(ctx context.Context, r InspectRequest) (InspectResult, error) {
	if w.inspect == nil {
		return InspectResult{Summary: "looked"}, nil
	}
	return w.inspect(ctx, r)
}

func (w work) Operate(ctx context.Context, r OperateRequest) (OperateResult, error) {
	if w.operate == nil {
		return OperateResult{Status: Succeeded, Summary: "done"}, nil
	}
	return w.operate(ctx, r)
}

func sample() Manifest {
	return Manifest{
		SchemaVersion: ManifestVersion, ID: "sample", Name: "Sample", Version: "1.0.0", ProtocolVersion: Protocol,
		Executable: "bin/sample", Arguments: []string{},
		Capabilities:    []Capability{CapabilityInspect, CapabilityOperate},
		RequestedScopes: []Scope{ScopeMetadataRead, ScopeFilesRead, ScopeOperate},
	}
}

const (
	initializeLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"switchyard.plugin/v1","hostVersion":"t","grantedScopes":["project.metadata.read","project.files.read","project.operate"]}}` + "\n"
	inspectLine    = `{"jsonrpc":"2.0","id":2,"method":"project.inspect","params":{"project":{"id":"p","displayName":"P"}}}` + "\n"
	operateLine    = `{"jsonrpc":"2.0","id":2,"method":"project.operate","params":{"project":{"id":"p","displayName":"P"},"action":"a","input":{}}}` + "\n"
	healthLine     = `{"jsonrpc":"2.0","id":3,"method":"plugin.health","params":{}}` + "\n"
)

type answer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *Error
}

// exchange serves input to its end and returns the answers after the one to
// initialize, and what was logged.
func exchange(t *testing.T, h Handler, input string) ([]answer, string) {
	t.Helper()
	var out, log bytes.Buffer
	if err := serve(context.Background(), strings.NewReader(initializeLine+input), &out, &log, sample(), h, nil); err != nil {
		t.Fatal(err)
	}
	var answers []answer
	for text := range strings.Lines(out.String()) {
		var a answer
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		answers = append(answers, a)
	}
	if len(answers) == 0 || answers[0].Error != nil {
		t.Fatalf("initialize: %s", out.String())
	}
	return answers[1:], log.String()
}

func (a answer) want(t *testing.T, id string, code Code) {
	t.Helper()
	var got Code
	if a.Error != nil {
		got = a.Error.Code
	}
	if string(a.ID) != id || got != code {
		t.Errorf("answer with id %s and code %d (%v), want id %s and code %d", a.ID, got, a.Error, id, code)
	}
}

func TestRequestLimit(t *testing.T) {
	pad := func(size int) string {
		s := strings.TrimSuffix(healthLine, "\n")
		return s + strings.Repeat(" ", size-len(s)) + "\n"
	}
	for _, tc := range []struct {
		size int
		id   string
		code Code
	}{
		{MaxMessageBytes - 1, "3", 0},
		{MaxMessageBytes, "3", 0},
		{MaxMessageBytes + 1, "null", CodeMalformed},
		{3*MaxMessageBytes + 7, "null", CodeMalformed},
	} {
		answers, _ := exchange(t, work{}, pad(tc.size)+healthLine)
		if len(answers) != 2 {
			t.Fatalf("%d bytes: %d answers", tc.size, len(answers))
		}
		answers[0].want(t, tc.id, tc.code)
		answers[1].want(t, "3", 0)
	}
}

func TestResponseLimit(t *testing.T) {
	overhead := len(`{"jsonrpc":"2.0","id":2,"result":{"status":"succeeded","summary":"s","output":""}}`)
	for _, tc := range []struct {
		size int
		code Code
	}{{MaxMessageBytes - 1, 0}, {MaxMessageBytes, 0}, {MaxMessageBytes + 1, CodeInternal}} {
		h := work{operate: func(context.Context, OperateRequest) (OperateResult, error) {
			output, err := JSON(strings.Repeat("x", tc.size-overhead))
			return OperateResult{Status: Succeeded, Summary: "s", Output: output}, err
		}}
		answers, _ := exchange(t, h, operateLine+healthLine)
		answers[0].want(t, "2", tc.code)
		answers[1].want(t, "3", 0)
	}
}

func TestLastLineWithoutLineFeed(t *testing.T) {
	answers, _ := exchange(t, work{}, strings.TrimSuffix(healthLine, "\n"))
	if len(answers) != 1 {
		t.Fatalf("%d answers", len(answers))
	}
	answers[0].want(t, "3", 0)
}

func TestPanicStaysOffTheWire(t *testing.T) {
	h := work{
		inspect: func(context.Context, InspectRequest) (InspectResult, error) { panic("hunter2") },
		health:  func(context.Context) (HealthResult, error) { runtime.Goexit(); return HealthResult{}, nil },
		operate: func(context.Context, OperateRequest) (OperateResult, error) {
			var none *Error
			return OperateResult{}, none // calling its method panics
		},
	}
	answers, log := exchange(t, h, inspectLine+healthLine+operateLine)
	for i, id := range []string{"2", "3", "2"} {
		answers[i].want(t, id, CodeInternal)
		if strings.Contains(answers[i].Error.Message, "hunter2") {
			t.Errorf("the panic is on the wire: %v", answers[i].Error)
		}
	}
	if !strings.Contains(log, "hunter2") || !strings.Contains(log, "serve_test.go") {
		t.Errorf("the panic and its place are not in the log: %s", log)
	}
}

func TestErrorsOfHandlers(t *testing.T) {
	long := strings.Repeat("ä", MaxErrorBytes)
	for _, tc := range []struct {
		err  error
		code Code
		text string
	}{
		{errors.New("  no luck\n"), CodeApplication, "no luck"},
		{errors.New(""), CodeApplication, CodeApplication.String()},
		{fmt.Errorf("while reading: %w", NotGranted(ScopeFilesRead)), CodeNotGranted, "while reading: the scope project.files.read is not granted"},
		{UnknownAction("x"), CodeBadParams, `unknown action "x"`},
		{Errorf("%s", long), CodeApplication, long[:MaxErrorBytes]},
		{Errorf("x%s", long), CodeApplication, "x" + long[:MaxErrorBytes-2]},
		{errors.New("bad \xff and \uFFFE"), CodeApplication, "bad \uFFFD and \uFFFD"},
		{&Error{Code: CodeMalformed, Message: "m"}, CodeInternal, "the handler returned an error with the reserved code -32700"},
		{&Error{Code: 7, Message: "m"}, CodeInternal, "the handler returned an error with the reserved code 7"},
		{context.Canceled, CodeApplication, "context canceled"},
	} {
		h := work{operate: func(context.Context, OperateRequest) (OperateResult, error) { return OperateResult{}, tc.err }}
		answers, _ := exchange(t, h, operateLine)
		answers[0].want(t, "2", tc.code)
		if got := answers[0].Error.Message; got != tc.text || len(got) > MaxErrorBytes {
			t.Errorf("%v: message %q, want %q", tc.err, got, tc.text)
		}
	}
}

func TestInvalidResults(t *testing.T) {
	fact, action := Fact{ID: "i", Label: "l", Source: "s"}, Action{ID: "i", Name: "n", Description: "d", Risk: "r"}
	inspections := map[string]InspectResult{
		"no summary":      {},
		"blank summary":   {Summary: " "},
		"fact id":         {Summary: "s", Facts: []Fact{{Label: "l", Source: "s"}}},
		"fact label":      {Summary: "s", Facts: []Fact{fact, {ID: "l", Source: "s"}}},
		"fact source":     {Summary: "s", Facts: []Fact{{ID: "l", Label: "s"}}},
		"action id":       {Summary: "s", Actions: []Action{{Name: "n", Description: "d", Risk: "r"}}},
		"action name":     {Summary: "s", Actions: []Action{{ID: "n", Description: "d", Risk: "r"}}},
		"action text":     {Summary: "s", Actions: []Action{{ID: "n", Name: "d", Risk: "r"}}},
		"action risk":     {Summary: "s", Actions: []Action{{ID: "n", Name: "d", Description: "r"}}},
		"action twice":    {Summary: "s", Actions: []Action{action, action}},
		"impossible year": {Summary: "s", ObservedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	for name, r := range inspections {
		answers, _ := exchange(t, work{inspect: func(context.Context, InspectRequest) (InspectResult, error) { return r, nil }}, inspectLine)
		if answers[0].Error == nil || answers[0].Error.Code != CodeInternal {
			t.Errorf("%s: %s", name, answers[0].Result)
		}
	}
	operations := map[string]OperateResult{
		"no status":      {Summary: "s"},
		"no summary":     {Status: Failed},
		"NaN":            {Status: Failed, Summary: "s", Output: json.RawMessage(`{"a":NaN}`)},
		"not JSON":       {Status: Failed, Summary: "s", Output: json.RawMessage(`{`)},
		"twice":          {Status: Failed, Summary: "s", Output: json.RawMessage(`{"a":1,"a":1}`)},
		"lone surrogate": {Status: Failed, Summary: "s", Output: json.RawMessage(`"\udc00"`)},
		"noncharacter":   {Status: Failed, Summary: "s", Output: json.RawMessage(`"\uffff"`)},
		"large integer":  {Status: Failed, Summary: "s", Output: json.RawMessage(`9007199254740993`)},
		"two values":     {Status: Failed, Summary: "s", Output: json.RawMessage(`1 2`)},
		"too deep":       {Status: Failed, Summary: "s", Output: json.RawMessage(strings.Repeat("[", 63) + strings.Repeat("]", 63))},
	}
	for name, r := range operations {
		answers, _ := exchange(t, work{operate: func(context.Context, OperateRequest) (OperateResult, error) { return r, nil }}, operateLine)
		if answers[0].Error == nil || answers[0].Error.Code != CodeInternal {
			t.Errorf("%s: %s", name, answers[0].Result)
		}
	}
	deepest := OperateResult{Status: Failed, Summary: "s", Output: json.RawMessage(strings.Repeat("[", 62) + strings.Repeat("]", 62))}
	answers, _ := exchange(t, work{operate: func(context.Context, OperateRequest) (OperateResult, error) { return deepest, nil }}, operateLine)
	answers[0].want(t, "2", 0)
}

func TestResultsAreCopied(t *testing.T) {
	facts := []Fact{{ID: "i", Label: "l\xff", Source: "s"}}
	h := work{inspect: func(context.Context, InspectRequest) (InspectResult, error) {
		return InspectResult{Summary: "s", Facts: facts, Warnings: []string{"\uFDD0"}}, nil
	}}
	answers, _ := exchange(t, h, inspectLine)
	if got := string(answers[0].Result); !strings.Contains(got, `"label":"l`+"\uFFFD"+`"`) || !strings.Contains(got, `"warnings":["`+"\uFFFD"+`"]`) {
		t.Errorf("result %s", got)
	}
	if facts[0].Label != "l\xff" {
		t.Error("the handler's own slice was changed")
	}
}

func TestTimesAreFilledIn(t *testing.T) {
	before := time.Now().Add(-time.Second)
	answers, _ := exchange(t, work{}, healthLine+inspectLine)
	var h HealthResult
	var i InspectResult
	if err := errors.Join(json.Unmarshal(answers[0].Result, &h), json.Unmarshal(answers[1].Result, &i)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{h.CheckedAt, i.ObservedAt} {
		if at.Before(before) || at.After(time.Now().Add(time.Second)) || at.Location() != time.UTC {
			t.Errorf("time %v", at)
		}
	}
}

func TestGranted(t *testing.T) {
	if Granted(context.Background(), ScopeFilesRead) {
		t.Error("granted out of nowhere")
	}
	var got []bool
	h := work{health: func(ctx context.Context) (HealthResult, error) {
		for _, s := range []Scope{ScopeMetadataRead, ScopeFilesRead, ScopeOperate} {
			got = append(got, Granted(ctx, s))
		}
		return HealthResult{Status: Healthy}, nil
	}}
	input := strings.Replace(initializeLine, `"project.files.read",`, "", 1) + healthLine
	if err := Serve(context.Background(), strings.NewReader(input), io.Discard, sample(), h); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[true false true]" {
		t.Errorf("granted %v", got)
	}
}

// TestInputClosedCancels holds that a running call learns that the host is gone
// and can still answer.
func TestInputClosedCancels(t *testing.T) {
	in, host := io.Pipe()
	started := make(chan struct{})
	h := work{operate: func(ctx context.Context, _ OperateRequest) (OperateResult, error) {
		close(started)
		<-ctx.Done()
		return OperateResult{}, context.Cause(ctx)
	}}
	var out bytes.Buffer
	served := make(chan error)
	go func() { served <- Serve(context.Background(), in, &out, sample(), h) }()
	io.WriteString(host, initializeLine+operateLine)
	<-started
	host.Close()
	if err := <-served; err != nil {
		t.Fatalf("the end of input is no error, got %v", err)
	}
	if want := `"error":{"code":-32000,"message":"` + ErrInputClosed.Error() + `"}`; !strings.Contains(out.String(), want) {
		t.Errorf("answers %s, want %s", out.String(), want)
	}
}

// TestSlowHealthIsWatched holds that an answer about health that takes its time is
// cancelled with the input as any other call is.
func TestSlowHealthIsWatched(t *testing.T) {
	in, host := io.Pipe()
	started := make(chan struct{})
	h := work{health: func(ctx context.Context) (HealthResult, error) {
		close(started)
		<-ctx.Done()
		return HealthResult{}, context.Cause(ctx)
	}}
	var out bytes.Buffer
	served := make(chan error)
	go func() { served <- Serve(context.Background(), in, &out, sample(), h) }()
	io.WriteString(host, initializeLine+healthLine)
	<-started
	host.Close()
	if err := <-served; err != nil || !strings.Contains(out.String(), ErrInputClosed.Error()) {
		t.Fatalf("served: %v, answers %s", err, out.String())
	}
}

// TestRequestsAreReadInOrder holds that lines read beside a call and between calls
// are answered in the order in which they came.
func TestRequestsAreReadInOrder(t *testing.T) {
	answers, _ := exchange(t, work{}, operateLine+healthLine+inspectLine+healthLine+operateLine+operateLine)
	var ids []string
	for _, a := range answers {
		ids = append(ids, string(a.ID))
	}
	if got := strings.Join(ids, ""); got != "232322" {
		t.Errorf("answered %s", got)
	}
}

// TestContextCancels holds that cancelling ends Serve although its input stays
// open, after the running call has answered.
func TestContextCancels(t *testing.T) {
	in, host := io.Pipe()
	defer host.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("asked to terminate")
	h := work{operate: func(ctx context.Context, _ OperateRequest) (OperateResult, error) {
		cancel(cause)
		<-ctx.Done()
		return OperateResult{Status: Failed, Summary: "stopped"}, nil
	}}
	var out bytes.Buffer
	served := make(chan error)
	go func() { served <- Serve(ctx, in, &out, sample(), h) }()
	io.WriteString(host, initializeLine+operateLine)
	if err := <-served; !errors.Is(err, cause) {
		t.Errorf("served: %v", err)
	}
	if !strings.Contains(out.String(), "stopped") {
		t.Errorf("the running call was not answered: %s", out.String())
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestBrokenStreams(t *testing.T) {
	broken := errors.New("broken")
	if err := Serve(context.Background(), failing{broken}, io.Discard, sample(), work{}); !errors.Is(err, broken) {
		t.Errorf("read: %v", err)
	}
	if err := Serve(context.Background(), strings.NewReader(healthLine), failing{broken}, sample(), work{}); !errors.Is(err, broken) {
		t.Errorf("write: %v", err)
	}
}

type onlyHealth struct{}

func (onlyHealth) Health(context.Context) (HealthResult, error) {
	return HealthResult{Status: Healthy}, nil
}

func TestServeRefusesToStart(t *testing.T) {
	bad := sample()
	bad.ID = "NO"
	operateOnly := sample()
	operateOnly.Capabilities = []Capability{CapabilityOperate}
	for name, tc := range map[string]struct {
		m Manifest
		h Handler
	}{
		"invalid manifest": {bad, work{}},
		"no handler":       {sample(), nil},
		"no Inspect":       {sample(), onlyHealth{}},
		"no Operate":       {operateOnly, onlyHealth{}},
	} {
		var out bytes.Buffer
		if err := Serve(context.Background(), strings.NewReader(initializeLine), &out, tc.m, tc.h); err == nil || out.Len() > 0 {
			t.Errorf("%s: error %v, wrote %q", name, err, out.String())
		}
	}
}
