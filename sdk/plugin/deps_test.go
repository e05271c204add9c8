package plugin_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies holds what plugin authors are promised: they link the
// standard library, this module's schemas/manifest, and no more.
func TestDependencies(t *testing.T) {
	const module = "github.com/switchyard-plugins/switchyard/"
	allowed := map[string]bool{
		module + "schemas/manifest":           true,
		module + "sdk/plugin":                 true,
		module + "sdk/plugin/internal/strict": true,
		module + "sdk/plugin/plugintest":      true,
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".", "./plugintest").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := strings.Fields(string(out))
	if len(found) < 3 {
		t.Fatalf("go list found only %q", found)
	}
	for _, path := range found {
		if !allowed[path] {
			t.Errorf("%s is linked into plugins", path)
		}
	}
}
