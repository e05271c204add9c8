package conformance_test

import (
	"os"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/conformance"
	"github.com/switchyard-plugins/switchyard/sdk/conformance/mutant"
)

// TestMain runs the program under test when the test binary is started as one:
// with the word "mutant" and the faults to switch on.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "mutant" {
		os.Exit(mutant.Main(os.Args[2:]...))
	}
	os.Exit(m.Run())
}

func cases(t testing.TB) []*conformance.Case {
	t.Helper()
	list, err := conformance.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func program(t testing.TB, faults ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{self, "mutant"}, faults...)
}

// TestReferencePassesTheCorpus holds the program without an SDK to every case.
func TestReferencePassesTheCorpus(t *testing.T) {
	list := cases(t)
	if len(list) < 400 {
		t.Fatalf("only %d cases", len(list))
	}
	runner := &conformance.Runner{Command: program(t)}
	results, err := runner.Run(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(list) {
		t.Errorf("%d results for %d cases", len(results), len(list))
	}
	for _, r := range results {
		if r.Duration > time.Second {
			t.Logf("%s took %v", r.Case.Name, r.Duration)
		}
		if f := r.Failure; f != nil {
			t.Errorf("%s:%d: %s\n\texpected %s\n\treceived %s\n\t%s\n\t%s", r.Case.Name, f.Line, f.Step, f.Expected, f.Received, f.Fault, f.Stderr)
		}
	}
}
