// Command repo-facts is a sample plugin that says what a project directory
// holds: languages, build files, version control, licences, size. Its action
// write-inventory writes the paths, sizes and SHA-256 digests of all files.
//
// It runs no program, follows no symbolic link out of the project, opens no
// socket, and stops at fixed bounds, so that an unusual project costs time and
// never harm. It writes nothing but the one inventory that it was asked for.
package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

//go:embed package/plugin.json
var manifestJSON []byte

func main() { plugin.Main(plugin.MustParseManifest(manifestJSON), facts{bounds: defaultBounds}) }

// facts is the plugin.
type facts struct{ bounds bounds }

// Health implements plugin.Handler. There is nothing that could be missing: the
// plugin needs no configuration and no other program.
func (facts) Health(context.Context) (plugin.HealthResult, error) {
	return plugin.HealthResult{Status: plugin.Healthy}, nil
}

// Inspect implements plugin.Inspector. Without the project's root it states
// what the host told, and says what is missing.
func (f facts) Inspect(ctx context.Context, r plugin.InspectRequest) (plugin.InspectResult, error) {
	if r.Project.Root == "" {
		return withoutFiles(r.Project), nil
	}
	root, err := os.OpenRoot(r.Project.Root)
	if err != nil {
		return plugin.InspectResult{}, err
	}
	defer root.Close()
	return inspect(ctx, root, f.bounds)
}

// Operate implements plugin.Operator.
func (f facts) Operate(ctx context.Context, r plugin.OperateRequest) (plugin.OperateResult, error) {
	if r.Action != writeInventory.ID {
		return plugin.OperateResult{}, plugin.UnknownAction(r.Action)
	}
	options := struct {
		Path string `json:"path"`
	}{Path: defaultInventory}
	if err := r.DecodeInput(&options); err != nil {
		return plugin.OperateResult{}, err
	}
	if r.Project.Root == "" {
		return plugin.OperateResult{}, plugin.NotGranted(plugin.ScopeFilesRead)
	}
	root, err := os.OpenRoot(r.Project.Root)
	if err != nil {
		return plugin.OperateResult{}, err
	}
	defer root.Close()
	b := f.bounds
	b.time = 0 // half an inventory is of no use; the host knows how long to wait
	return inventory(ctx, root, options.Path, b)
}
