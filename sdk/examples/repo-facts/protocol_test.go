package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

func TestProtocol(t *testing.T) {
	plugintest.Run(t, plugintest.Config{Manifest: plugin.MustParseManifest(manifestJSON), Handler: facts{defaultBounds}})
}

// TestPackage builds the package as README.md says and runs the kit on it.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	m := plugin.MustParseManifest(manifestJSON)
	program := filepath.Join(dir, filepath.FromSlash(m.Executable))
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, plugin.ManifestFile), manifestJSON, 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the executable has %d bytes", info.Size())
	plugintest.Run(t, plugintest.Config{Package: dir})
}
