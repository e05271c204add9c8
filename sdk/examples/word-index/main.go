// Program word-index is an example of a session plugin: it keeps an index of the words
// of documents in its private directory. Documents come as a stream, hits go out as
// one, and a document that was added under an idempotency key is added once.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

func main() {
	pkg, err := plugin.LoadPackage(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "word-index:", err)
		os.Exit(1)
	}
	plugin.SessionMain(newPlugin(pkg, os.Getenv(plugin.EnvState)))
}

// newPlugin puts the handlers to their operations. The index is a file in state.
func newPlugin(pkg *plugin.Package, state string) *plugin.SessionPlugin {
	p := plugin.NewSessionPlugin(pkg)
	x := &library{path: filepath.Join(state, "index.json"), minLength: 1}
	p.Started(x.started)
	p.Health(x.health)
	p.Handle("index.documents", "add", x.add)
	p.Handle("index.documents", "find", x.find)
	p.Handle("index.documents", "count", x.count)
	return p
}

// started takes the settings, which have passed their schema.
func (x *library) started(_ context.Context, settings json.RawMessage) error {
	s := struct {
		MinLength int `json:"minLength"`
	}{MinLength: 1} // a default is the reader's to apply
	if err := json.Unmarshal(settings, &s); err != nil {
		return err
	}
	x.minLength = s.MinLength
	return nil
}

// health says whether the index can be read.
func (x *library) health(context.Context) (plugin.HealthReport, error) {
	if _, err := x.load(); err != nil {
		return plugin.HealthReport{Status: plugin.Unhealthy, Message: "the index cannot be read"}, nil
	}
	return plugin.HealthReport{Status: plugin.Healthy}, nil
}

// size is the answer of add and count.
type size struct {
	Documents int `json:"documents"`
	Words     int `json:"words"`
}

// add takes documents as a stream and adds all of them, or none.
func (x *library) add(ctx context.Context, op *plugin.Operation) (any, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	index, err := x.load()
	if err != nil {
		return nil, plugin.NewPluginError(plugin.Unavailable, "the index cannot be read")
	}
	var n int64
	for raw, err := range op.Items() {
		if err != nil {
			return nil, err // cancelled, or the host broke the stream; nothing is changed yet
		}
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, err
		}
		index.put(d, x.minLength)
		n++
		op.Progress(plugin.ProgressUpdate{Message: "read " + d.Name, Current: &n})
	}
	// From here on it is all or nothing: the file is replaced in one step.
	op.Effect(plugin.EffectUnknown)
	if err := x.save(index); err != nil {
		op.Effect(plugin.EffectNone)
		return nil, plugin.NewPluginError(plugin.Unavailable, "the index cannot be written")
	}
	op.Effect(plugin.EffectCommitted)
	return index.size(), nil
}

// find sends the lines in which a word stands.
func (x *library) find(ctx context.Context, op *plugin.Operation) (any, error) {
	var query struct {
		Word string `json:"word"`
	}
	if err := op.DecodePayload(&query); err != nil {
		return nil, err
	}
	index, err := x.load()
	if err != nil {
		return nil, plugin.NewPluginError(plugin.Unavailable, "the index cannot be read")
	}
	for _, hit := range index.find(query.Word) {
		if err := op.Send(hit); err != nil { // waits for the host to have room
			return nil, err
		}
	}
	return nil, nil
}

func (x *library) count(context.Context, *plugin.Operation) (any, error) {
	index, err := x.load()
	if err != nil {
		return nil, plugin.NewPluginError(plugin.Unavailable, "the index cannot be read")
	}
	return index.size(), nil
}
