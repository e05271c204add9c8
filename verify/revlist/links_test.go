package revlist

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLinks holds what the package's comment promises: it can open no connection
// and check no signature.
func TestLinks(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{join .Imports \"\\n\"}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := strings.Fields(string(out))
	if len(imports) < 10 {
		t.Fatalf("only %d imports: %v", len(imports), imports)
	}
	for _, p := range []string{"net", "net/http", "crypto/x509", "crypto/tls", "crypto/ecdsa", "log"} {
		if slices.Contains(imports, p) {
			t.Errorf("it imports %s", p)
		}
	}
	for _, p := range imports {
		const module = "github.com/switchyard-plugins/switchyard/"
		if rest, ok := strings.CutPrefix(p, module); ok && rest != "verify" && !strings.HasPrefix(rest, "schemas/") {
			t.Errorf("it imports %s", p)
		}
	}
}
