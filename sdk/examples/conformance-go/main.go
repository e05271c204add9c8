// Program conformance-go is the plugin through which the Go SDK is tested from
// outside: what its operations do is in docs/conformance.md. It serves both protocols
// and takes its package from the working directory, as the runner starts it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

func main() {
	if os.Getenv(plugin.EnvProtocol) != plugin.SessionProtocol {
		serveCalls()
		return
	}
	pkg, err := plugin.LoadPackage(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance-go:", err)
		os.Exit(1)
	}
	plugin.SessionMain(newPlugin(pkg))
}

// A program is what the handlers share.
type program struct {
	session *plugin.SessionPlugin
	state   string
}

func newPlugin(pkg *plugin.Package) *plugin.SessionPlugin {
	p := &program{session: plugin.NewSessionPlugin(pkg), state: os.Getenv(plugin.EnvState)}
	p.session.Settings(validSettings)
	p.session.Started(p.started)
	for name, handler := range map[string]plugin.OperationHandler{
		"echo": echo, "versioned": echo, "typed": echo, "fail": fail, "raise": raise, "bad-result": badResult, "context": describe,
		"print": printText, "blob": blob, "set-health": p.setHealth, "exit": exit,
	} {
		p.session.Handle("conformance.basic", name, handler)
	}
	p.session.Handle("conformance.stream", "count", count)
	p.session.Handle("conformance.stream", "sum", sum)
	p.session.Handle("conformance.stream", "relay", relay)
	p.session.Handle("conformance.work", "slow", slow)
	p.session.Handle("conformance.work", "hold", p.hold)
	p.session.Handle("conformance.work", "stubborn", stubborn)
	p.session.Handle("conformance.effects", "append", p.append)
	p.session.Handle("conformance.effects", "note", p.append)
	p.session.Handle("conformance.effects", "count-once", p.countOnce)
	p.session.Handle("conformance.guarded", "read", read)
	p.session.Handle("conformance.guarded", "secret", secret)
	p.session.Handle("conformance.aging", "aging", echo)
	p.session.Handle("conformance.aging", "old", echo)
	return p.session
}

// appendLine appends a line to a file of the state directory, and is done once it is
// on the disk.
func (p *program) appendLine(file, line string) error {
	f, err := os.OpenFile(filepath.Join(p.state, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}
