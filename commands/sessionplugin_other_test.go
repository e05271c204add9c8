//go:build !unix

package commands

import "github.com/rogpeppe/go-internal/testscript"

func sessionPluginMain() {}

func writeSessionPlugin(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("the session plugin of the scripts is for Unix systems")
}
