package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

// open starts the plugin with a fresh private directory.
func open(t *testing.T, state string, c plugintest.SessionConfig) *plugintest.Session {
	t.Helper()
	t.Setenv(plugin.EnvState, state)
	pkg, err := plugin.LoadPackage("package")
	if err != nil {
		t.Fatal(err)
	}
	return plugintest.OpenSession(t, newPlugin(pkg, state), c)
}

// add streams documents to the plugin and returns how the request ended.
func add(t *testing.T, s *plugintest.Session, key string, docs ...document) *plugintest.Outcome {
	t.Helper()
	call, err := s.Start(plugintest.Request{Capability: "index.documents", Operation: "add", IdempotencyKey: key})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if err := call.Send(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	out, err := call.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAddAndFind(t *testing.T) {
	s := open(t, t.TempDir(), plugintest.SessionConfig{Settings: map[string]int{"minLength": 3}})
	var docs []document
	for n := range 200 { // more than one window of credit
		docs = append(docs, document{fmt.Sprintf("doc-%03d", n), "A switchyard\nof many tracks"})
	}
	out := add(t, s, "", docs...)
	if out.Response == nil || string(out.Response.Payload) != `{"documents":200,"words":3}` {
		t.Fatalf("%+v", out)
	}
	r := out.Receipt()
	if r == nil || r.EffectState != plugin.EffectCommitted || r.ItemCount != 200 || r.ExecutionState != "completed" {
		t.Errorf("receipt %+v", r)
	}
	if len(out.Progress) == 0 || *out.Progress[len(out.Progress)-1].Current != 200 {
		t.Errorf("the last progress is lost: %d updates", len(out.Progress))
	}
	found, err := s.Call(plugintest.Request{Capability: "index.documents", Operation: "find", Payload: map[string]string{"word": "Tracks"}})
	if err != nil || found.Response == nil || len(found.Items) != 200 || found.Ended == nil || found.Ended.ItemCount != 200 {
		t.Fatalf("%+v %v", found, err)
	}
	var first hit
	if err := json.Unmarshal(found.Items[0], &first); err != nil || first != (hit{"doc-000", 2, "of many tracks"}) {
		t.Errorf("%+v %v", first, err)
	}
}

// TestAddedOnce holds that a document added twice under one key is added once, also
// in a later process.
func TestAddedOnce(t *testing.T) {
	state := t.TempDir()
	first := add(t, open(t, state, plugintest.SessionConfig{}), "key-1", document{"a", "one two"})
	second := add(t, open(t, state, plugintest.SessionConfig{}), "key-1", document{"b", "three"})
	if first.Response == nil || second.Response == nil || string(second.Response.Payload) != `{"documents":1,"words":2}` ||
		second.Receipt().ReceiptID != first.Receipt().ReceiptID {
		t.Errorf("%+v\n%+v", first, second)
	}
}

func TestCancelChangesNothing(t *testing.T) {
	s := open(t, t.TempDir(), plugintest.SessionConfig{})
	call, err := s.Start(plugintest.Request{Capability: "index.documents", Operation: "add"})
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Send(document{"a", "one"}); err != nil {
		t.Fatal(err)
	}
	if err := call.WaitFor(func(o *plugintest.Outcome) bool { return len(o.Progress) > 0 }); err != nil {
		t.Fatal(err)
	}
	if err := call.Cancel("enough"); err != nil {
		t.Fatal(err)
	}
	out, err := call.Wait()
	if err != nil || out.Cancelled == nil || out.Receipt().EffectState != plugin.EffectNone {
		t.Fatalf("%+v %v", out, err)
	}
	count, err := s.Call(plugintest.Request{Capability: "index.documents", Operation: "count", Payload: struct{}{}})
	if err != nil || string(count.Response.Payload) != `{"documents":0,"words":0}` {
		t.Errorf("%+v %v", count, err)
	}
}

func TestHealth(t *testing.T) {
	state := t.TempDir()
	s := open(t, state, plugintest.SessionConfig{})
	if h, err := s.Health(false); err != nil || h.Status != plugin.Healthy {
		t.Errorf("%+v %v", h, err)
	}
	if err := os.WriteFile(filepath.Join(state, "index.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Health(false); err != nil || h.Status != plugin.Unhealthy || strings.Contains(h.Message, state) {
		t.Errorf("%+v %v", h, err)
	}
}
