//go:build unix

package main

import (
	"os"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/conformance"
)

// asPlugin makes the test binary the program under test.
const asPlugin = "SWITCHYARD_TEST_CONFORMANCE_PLUGIN"

func TestMain(m *testing.M) {
	// The runner gives its programs an environment of their own; their arguments are ours.
	if len(os.Args) == 2 && os.Args[1] == asPlugin {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestConformance holds the program that proves the SDK to the whole corpus, with
// nothing that is expected to fail.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a plugin for each of some hundred cases")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list, err := conformance.Cases()
	if err != nil {
		t.Fatal(err)
	}
	runner := &conformance.Runner{Command: []string{self, asPlugin}}
	results, err := runner.Run(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if f := r.Failure; f != nil {
			t.Errorf("%s line %d: %s %s\nwant %s\ngot %s", r.Case.Name, f.Line, f.Step, f.Fault, f.Expected, f.Received)
		}
	}
	if len(results) < 400 {
		t.Errorf("only %d cases ran", len(results))
	}
}
