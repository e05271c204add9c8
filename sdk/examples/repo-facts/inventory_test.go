package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

func operate(t *testing.T, root string, b bounds, input any) (plugin.OperateResult, error) {
	t.Helper()
	c := plugintest.Open(t, plugintest.Config{Manifest: plugin.MustParseManifest(manifestJSON), Handler: facts{b}},
		plugin.ScopeFilesRead, plugin.ScopeOperate)
	return c.Operate(t.Context(), plugin.Project{ID: "p", DisplayName: "P", Root: root}, "write-inventory", input)
}

type written struct {
	Kind    string          `json:"kind"`
	Version int             `json:"version"`
	Files   []inventoryLine `json:"files"`
	Skipped []skippedLine   `json:"skipped"`
}

func read(t *testing.T, path string) (written, string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var w written
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return w, string(text)
}

func TestInventory(t *testing.T) {
	root := project(t, map[string]string{"b.txt": "bee\n", "a/x <1>.txt": "", ".git/HEAD": "x", "out/keep": "k"})
	r, err := operate(t, root, defaultBounds, map[string]string{"path": "out/list.json"})
	if err != nil || r.Status != plugin.Succeeded {
		t.Fatalf("%+v, %v", r, err)
	}
	w, text := read(t, filepath.Join(root, "out", "list.json"))
	empty := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	bee := sha256.Sum256([]byte("bee\n"))
	k := sha256.Sum256([]byte("k"))
	want := []inventoryLine{{"a/x <1>.txt", 0, empty}, {"b.txt", 4, hex.EncodeToString(bee[:])}, {"out/keep", 1, hex.EncodeToString(k[:])}}
	if w.Kind != "repo-facts/inventory" || w.Version != 1 || len(w.Files) != 3 || w.Files[0] != want[0] || w.Files[1] != want[1] || w.Files[2] != want[2] || len(w.Skipped) != 0 {
		t.Errorf("inventory %s", text)
	}
	var output struct {
		Path, SHA256          string
		Files, Bytes, Skipped int
	}
	if err := json.Unmarshal(r.Output, &output); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	if output.Path != "out/list.json" || output.SHA256 != hex.EncodeToString(sum[:]) || output.Files != 3 || output.Bytes != 5 || output.Skipped != 0 {
		t.Errorf("output %s", r.Output)
	}

	// Again: the inventory is replaced, is not part of itself, and is the same.
	if _, err := operate(t, root, defaultBounds, map[string]string{"path": "out/list.json"}); err != nil {
		t.Fatal(err)
	}
	if _, again := read(t, filepath.Join(root, "out", "list.json")); again != text {
		t.Errorf("the second inventory differs:\n%s", again)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "out", ".*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestInventoryDefaultPath(t *testing.T) {
	root := project(t, nil)
	if _, err := operate(t, root, defaultBounds, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if _, text := read(t, filepath.Join(root, "inventory.json")); !strings.Contains(text, `"files": [],`) {
		t.Errorf("empty inventory %s", text)
	}
}

func TestInventoryRefusals(t *testing.T) {
	outside := t.TempDir()
	root := project(t, map[string]string{"go.mod": "module m\n", "dir/x": "", ".git/HEAD": "x"})
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := os.Symlink(filepath.Join(outside, "new.json"), filepath.Join(root, "link.json")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		input any
		code  plugin.Code
		says  string
	}{
		{map[string]string{"path": "../x.json"}, plugin.CodeBadParams, "inside the project"},
		{map[string]string{"path": "/tmp/x.json"}, plugin.CodeBadParams, "inside the project"},
		{map[string]string{"path": `a\b`}, plugin.CodeBadParams, "inside the project"},
		{map[string]string{"path": "C:x"}, plugin.CodeBadParams, "inside the project"},
		{map[string]string{"path": ""}, plugin.CodeBadParams, "inside the project"},
		{map[string]string{"path": "."}, plugin.CodeBadParams, "inside the project"},
		{map[string]string{"path": ".Git/x"}, plugin.CodeBadParams, "must not lead into .git"},
		{map[string]string{"Path": "x"}, plugin.CodeBadParams, "unknown member"},
		{map[string]int{"path": 1}, plugin.CodeBadParams, "path must not be"},
		{map[string]string{"path": "go.mod"}, plugin.CodeApplication, "is not an inventory; it is left alone"},
		{map[string]string{"path": "dir"}, plugin.CodeApplication, "not a regular file"},
		{map[string]string{"path": "link.json"}, plugin.CodeApplication, "not a regular file"},
		{map[string]string{"path": "out/x.json"}, plugin.CodeApplication, "escapes"},
		{map[string]string{"path": "missing/x.json"}, plugin.CodeApplication, "missing"},
	} {
		_, err := operate(t, root, defaultBounds, tc.input)
		var fault *plugin.Error
		if !errors.As(err, &fault) || fault.Code != tc.code || !strings.Contains(fault.Message, tc.says) {
			t.Errorf("%v: %v, want code %d and %q", tc.input, err, tc.code, tc.says)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside of the project: %v", left)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "go.mod")); string(text) != "module m\n" {
		t.Error("go.mod was overwritten")
	}
	for name, b := range map[string]bounds{
		"entries": {entries: 2, depth: 64, hashed: 1 << 20}, "bytes": {entries: 100, depth: 64, hashed: 3}, "depth": {entries: 100, depth: 1, hashed: 1 << 20},
	} {
		if r, err := operate(t, root, b, struct{}{}); err == nil || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "inventory.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error("an inventory was written all the same")
	}
}

func TestInventoryNeedsFiles(t *testing.T) {
	c := plugintest.Open(t, plugintest.Config{Manifest: plugin.MustParseManifest(manifestJSON), Handler: facts{defaultBounds}}, plugin.ScopeOperate)
	_, err := c.Operate(t.Context(), plugin.Project{ID: "p", DisplayName: "P"}, "write-inventory", struct{}{})
	var fault *plugin.Error
	if !errors.As(err, &fault) || fault.Code != plugin.CodeNotGranted {
		t.Errorf("without the root: %v", err)
	}
}

// TestInventoryCancelled holds that a cancelled inventory changes nothing,
// wherever the cancellation comes.
func TestInventoryCancelled(t *testing.T) {
	dir := project(t, map[string]string{"a": "x", "b": "y"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	after := 0
	for ; ; after++ {
		ctx := &countdown{Context: t.Context(), left: after}
		_, err := inventory(ctx, root, "inventory.json", defaultBounds)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d looks: %v", after, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("after %d looks: %v, %v", after, entries, err)
		}
	}
	if after < 4 {
		t.Errorf("cancelled at only %d places", after)
	}
}

// A countdown is a context that ends after it was looked at a number of times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}
