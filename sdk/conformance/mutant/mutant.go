// Package mutant is a plugin program without an SDK: the smallest thing that
// passes the whole corpus of sdk/conformance, with faults that can be switched
// on one at a time, so that a test can see whether the corpus notices each.
//
// It is no example of how to write a plugin; sdk/examples has those. It shares
// no code with any SDK and with the runner.
package mutant

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// A program is the plugin with its faults.
type program struct {
	faults []string
	dir    string // the package
	state  string
}

// has reports whether a fault is on. Every name that is asked for is in Faults.
func (p *program) has(fault string) bool { return slices.Contains(p.faults, fault) }

// Main runs the program with the given faults on, in the current directory and
// environment, and returns its exit status.
func Main(faults ...string) int {
	for _, f := range faults {
		if !slices.Contains(Faults(), f) {
			fmt.Fprintf(os.Stderr, "no fault is called %q\n", f)
			return 2
		}
	}
	p := &program{faults: faults, dir: ".", state: os.Getenv("SWITCHYARD_PLUGIN_STATE")}
	in, out := io.Reader(os.Stdin), io.Writer(os.Stdout)
	os.Stdout = os.Stderr // what a handler prints is no frame
	if p.has("prints-to-the-protocol") {
		os.Stdout = out.(*os.File)
	}
	var err error
	switch protocol := os.Getenv("SWITCHYARD_PLUGIN_PROTOCOL"); protocol {
	case "session/1":
		err = p.session(in, out)
	case "switchyard.plugin/v1":
		err = p.call(in, out)
	default:
		err = fmt.Errorf("unknown protocol %q", protocol)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutant:", err)
		return 1
	}
	return 0
}
