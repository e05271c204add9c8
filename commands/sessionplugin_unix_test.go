//go:build unix

package commands

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime/session/sessiontest"
)

// sessionPluginMain makes this process the session plugin of the scripts, if its
// arguments say so.
func sessionPluginMain() { sessiontest.Main() }

func writeSessionPlugin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: session-plugin DIR CONTROL")
	}
	control := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(control, 0o755))
	ts.Check(sessiontest.Write(ts.MkAbs(args[0]), control, sessiontest.Executable))
	_, err := pkgmgr.WriteDigests(ts.MkAbs(args[0]))
	ts.Check(err)
}
