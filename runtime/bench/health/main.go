// Program health is the plugin that the benchmarks call: the Go SDK and nothing
// else, about 2 MB.
package main

import (
	"context"
	_ "embed"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

//go:embed plugin.json
var manifestJSON []byte

func main() { plugin.Main(plugin.MustParseManifest(manifestJSON), handler{}) }

type handler struct{}

func (handler) Health(context.Context) (plugin.HealthResult, error) {
	return plugin.HealthResult{Status: plugin.Healthy}, nil
}

func (handler) Inspect(context.Context, plugin.InspectRequest) (plugin.InspectResult, error) {
	return plugin.InspectResult{Summary: "nothing to see"}, nil
}
