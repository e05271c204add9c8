package plugin_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies holds what plugin authors are promised: they link the
// standard library, this module's schemas for them, and no more.
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
		switch strings.TrimPrefix(path, module) {
		case "schemas/manifest", "schemas/sessionmanifest", "schemas/subset", "schemas/format", "sdk/plugin":
			continue
		}
		if !strings.HasPrefix(path, module+"sdk/plugin/") {
			t.Errorf("%s is linked into plugins", path)
		}
	}
}
