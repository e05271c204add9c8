package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// serveCalls speaks the call protocol for the package in the working directory.
func serveCalls() {
	document, err := os.ReadFile(plugin.ManifestFile)
	if err == nil {
		var m plugin.Manifest
		if m, err = plugin.ParseManifest(document); err == nil {
			plugin.Main(m, calls{})
		}
	}
	fmt.Fprintln(os.Stderr, "conformance-go:", err)
	os.Exit(1)
}

type calls struct{}

var actions = []string{"echo", "partial", "failed", "refuse", "report", "raise", "print", "append", "hold"}

func (calls) Health(context.Context) (plugin.HealthResult, error) {
	return plugin.HealthResult{Status: plugin.Healthy}, nil
}

func (calls) Inspect(_ context.Context, r plugin.InspectRequest) (plugin.InspectResult, error) {
	result := plugin.InspectResult{
		Summary: "conformance",
		Facts:   []plugin.Fact{{ID: "name", Label: "Name", Value: r.Project.DisplayName, Source: "host"}},
	}
	if r.Project.Root != "" {
		result.Facts = append(result.Facts, plugin.Fact{ID: "root", Label: "Root", Value: r.Project.Root, Source: "host"})
	}
	for _, name := range actions {
		result.Actions = append(result.Actions, plugin.Action{ID: name, Name: name, Description: "see docs/conformance.md", Risk: "none"})
	}
	return result, nil
}

func (calls) Operate(ctx context.Context, r plugin.OperateRequest) (plugin.OperateResult, error) {
	var in struct {
		Message, Marker, Text, Line, Cleanup string
	}
	succeeded := func(summary string, output json.RawMessage) (plugin.OperateResult, error) {
		return plugin.OperateResult{Status: plugin.Succeeded, Summary: summary, Output: output}, nil
	}
	switch r.Action {
	case "report", "raise", "print", "append", "hold":
		if err := json.Unmarshal(r.Input, &in); err != nil {
			return plugin.OperateResult{}, plugin.BadInput("the input is no object of this action")
		}
	}
	switch r.Action {
	case "echo":
		return succeeded("echoed", r.Input)
	case "partial":
		return plugin.OperateResult{Status: plugin.PartiallySucceeded, Summary: r.Action}, nil
	case "failed":
		return plugin.OperateResult{Status: plugin.Failed, Summary: r.Action}, nil
	case "refuse":
		return plugin.OperateResult{}, plugin.BadInput("refused as asked")
	case "report":
		return plugin.OperateResult{}, plugin.Errorf("%s", in.Message)
	case "raise":
		panic("raised as asked: " + in.Marker)
	case "print":
		fmt.Println(in.Text)
		fmt.Fprintln(os.Stderr, in.Text)
		return succeeded("printed", nil)
	case "append":
		if err := appendTo(filepath.Join(r.Project.Root, "effects.log"), in.Line); err != nil {
			return plugin.OperateResult{}, err
		}
		return succeeded("appended", nil)
	case "hold":
		<-ctx.Done()
		if err := appendTo(filepath.Join(r.Project.Root, "cleanup.log"), in.Cleanup); err != nil {
			return plugin.OperateResult{}, err
		}
		return plugin.OperateResult{Status: plugin.Failed, Summary: "cancelled"}, nil
	}
	return plugin.OperateResult{}, plugin.UnknownAction(r.Action)
}

func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}
