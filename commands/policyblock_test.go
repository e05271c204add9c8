package commands

import (
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// What is told as the likely cause of a refusal is a cause of the rule that failed: that
// the package was signed by somebody else is said where that may be.
func TestPolicyCauses(t *testing.T) {
	const stranger = "signed by somebody else"
	for rule, word := range map[string]string{
		"evidence": stranger, "publisher": stranger, "lock": stranger,
		"signature": "nobody who counts here", "threshold": "a signature is missing", "provenance": "no provenance", "source": "another source",
		"sbom": "SBOM", "licence": "licences", "cool-down": "newer than", "lists": "newer lists",
	} {
		text := strings.Join(policyCauses([]policy.Result{{Rule: rule}}), "\n")
		if !strings.Contains(text, word) || strings.Contains(text, stranger) != (word == stranger) {
			t.Errorf("%s: %s", rule, text)
		}
	}
	both := policyCauses([]policy.Result{{Rule: "provenance"}, {Rule: "source"}, {Rule: "lists"}})
	if len(both) != 3 {
		t.Errorf("a cause is told once: %q", both)
	}
}
