package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// SessionMain serves the host that started this process and ends the program: with
// status 0 after a session that ended in good order, else with status 1 and a line on
// standard error. SIGTERM and an interrupt make the plugin take its leave.
//
// Frames go over the Unix socket that SWITCHYARD_PLUGIN_SOCKET names, else over
// standard input and output. In either case os.Stdout writes to standard error while
// SessionMain runs, and os.Stdin is empty.
func SessionMain(p *SessionPlugin) {
	if err := serveProcess(p); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Package.Manifest.Plugin.PluginID, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveProcess(p *SessionPlugin) error {
	if err := p.Check(); err != nil {
		return err
	}
	var in io.Reader
	var out io.Writer
	stdin, stdout, err := takeStdio()
	if err != nil {
		return err
	}
	out = stdout
	if path := os.Getenv(EnvSocket); path != "" {
		stdin.Close()
		stdout.Close()
		conn, err := dialUnix(path)
		if err != nil {
			return fmt.Errorf("the host's socket: %w", err)
		}
		defer conn.Close()
		in, out = conn, conn
	} else {
		polled, restore := pollable(stdin)
		defer restore()
		in = polled
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return ServeSession(ctx, in, out, p)
}
