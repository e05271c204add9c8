// Command starter-go is a Switchyard plugin. It counts the files of a project
// and can write the count down.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

//go:embed plugin.json
var manifestJSON []byte

func main() { plugin.Main(plugin.MustParseManifest(manifestJSON), handler{}) }

type handler struct{}

// Health says whether the plugin could work. Check here what it needs: a file
// of its package, another program.
func (handler) Health(context.Context) (plugin.HealthResult, error) {
	return plugin.HealthResult{Status: plugin.Healthy}, nil
}

// Inspect says what there is, and what Operate offers. It changes nothing. The
// project's root is known only if project.files.read was granted.
func (handler) Inspect(ctx context.Context, r plugin.InspectRequest) (plugin.InspectResult, error) {
	result := plugin.InspectResult{
		Summary: "the files were not counted",
		Actions: []plugin.Action{{
			ID:          "write-count",
			Name:        "Write the count",
			Description: `Writes the number of files to a file in the project; input {"name": "COUNT"}, optional.`,
			Risk:        "creates or replaces that file; changes nothing else",
		}},
	}
	if r.Project.Root == "" {
		result.Warnings = []string{"the scope project.files.read is not granted"}
		return result, nil
	}
	root, err := os.OpenRoot(r.Project.Root)
	if err != nil {
		return result, err
	}
	defer root.Close()
	n, err := countFiles(ctx, root)
	if err != nil {
		return result, err
	}
	result.Summary = fmt.Sprintf("%d files", n)
	result.Facts = []plugin.Fact{{ID: "files", Label: "Files", Value: strconv.Itoa(n), Source: "."}}
	return result, nil
}

// Operate performs one action. An error says that the action could not be
// tried; a result with plugin.Failed, that it was tried and failed.
func (handler) Operate(ctx context.Context, r plugin.OperateRequest) (plugin.OperateResult, error) {
	var none plugin.OperateResult
	if r.Action != "write-count" {
		return none, plugin.UnknownAction(r.Action)
	}
	input := struct {
		Name string `json:"name"`
	}{Name: "COUNT"}
	if err := r.DecodeInput(&input); err != nil {
		return none, err
	}
	if r.Project.Root == "" {
		return none, plugin.NotGranted(plugin.ScopeFilesRead)
	}
	// An os.Root keeps names like "../x", and links that lead out, from
	// reaching beyond the project.
	root, err := os.OpenRoot(r.Project.Root)
	if err != nil {
		return none, err
	}
	defer root.Close()
	n, err := countFiles(ctx, root)
	if err != nil {
		return none, err
	}
	if err := root.WriteFile(input.Name, []byte(strconv.Itoa(n)+"\n"), 0o644); err != nil {
		return none, err
	}
	output, err := plugin.JSON(map[string]any{"name": input.Name, "files": n})
	if err != nil {
		return none, err
	}
	return plugin.OperateResult{Status: plugin.Succeeded, Summary: "wrote " + input.Name, Output: output}, nil
}

// countFiles counts the regular files below root. It stops when the host ends
// the call.
func countFiles(ctx context.Context, root *os.Root) (n int, err error) {
	err = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Type().IsRegular():
			n++
		}
		return nil
	})
	return n, err
}
