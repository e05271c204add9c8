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
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".", "./plugintest").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := strings.Fields(string(out))
	if len(found) < 3 {
		t.Fatalf("go list found only %q", found)
	}
	for _, path := range found {
		if path != module+"schemas/manifest" && path != module+"sdk/plugin" && !strings.HasPrefix(path, module+"sdk/plugin/") {
			t.Errorf("%s is linked into plugins", path)
		}
	}
}
