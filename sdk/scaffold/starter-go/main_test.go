package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

func config() plugintest.Config {
	return plugintest.Config{Manifest: plugin.MustParseManifest(manifestJSON), Handler: handler{}}
}

// TestProtocol holds the plugin to what every plugin owes the protocol.
func TestProtocol(t *testing.T) {
	plugintest.Run(t, config())
}

func project(t *testing.T) plugin.Project {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return plugin.Project{ID: "p", DisplayName: "A project", Root: root}
}

func TestInspect(t *testing.T) {
	c := plugintest.Open(t, config(), plugin.ScopeMetadataRead, plugin.ScopeFilesRead)
	r, err := c.Inspect(t.Context(), project(t))
	if err != nil || r.Summary != "2 files" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWriteCount(t *testing.T) {
	p := project(t)
	c := plugintest.Open(t, config(), plugin.ScopeFilesRead, plugin.ScopeOperate)
	if r, err := c.Operate(t.Context(), p, "write-count", map[string]string{"name": "n.txt"}); err != nil || r.Status != plugin.Succeeded {
		t.Fatalf("%+v, %v", r, err)
	}
	if text, err := os.ReadFile(filepath.Join(p.Root, "n.txt")); err != nil || string(text) != "2\n" {
		t.Errorf("wrote %q, %v", text, err)
	}
	var fault *plugin.Error
	if _, err := c.Operate(t.Context(), p, "write-count", map[string]string{"name": "../n.txt"}); !errors.As(err, &fault) {
		t.Errorf("a name outside of the project: %v", err)
	}
}
