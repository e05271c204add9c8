package commands

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
)

func devCommand(in *invocation) *cli.Command {
	var o runOptions
	return &cli.Command{
		ArgsUsage: "DIR health|inspect|operate [ACTION]",
		Description: "Calls the plugin that stands in DIR, as its author does again and again: it is installed into a data directory that is thrown away, " +
			"trusted as it is and granted everything it asks for. Everything says DEV. It is refused in a project with a lock: what runs there " +
			"is what was reviewed.",
		UsageText: "switchyard dev . health\nswitchyard dev . inspect --project ~/src/app\nswitchyard dev . operate write-count --input '{}'",
		Flags:     runFlags(&o),
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 2, 3)
			if err != nil {
				return err
			}
			req, err := in.callRequest(args[1:], o)
			if err != nil {
				return err
			}
			return in.dev(args[0], req)
		},
	}
}

// A devUnderLock is why dev refuses.
type devUnderLock struct{ lock string }

func (e *devUnderLock) Error() string {
	return "dev runs unreviewed code and this project has a lock: " + e.lock
}

func (in *invocation) dev(dir string, req *runtime.Request) (err error) {
	lock, err := in.lock()
	if err != nil {
		return err
	}
	if lock != nil {
		return &devUnderLock{lock.Path}
	}
	scratch, err := os.MkdirTemp("", "switchyard-dev-")
	if err != nil {
		return err
	}
	defer func() {
		if e := removeTree(scratch); err == nil {
			err = e
		}
	}()
	h, err := pkgmgr.Open(scratch, pkgmgr.Options{Now: in.env.Now, Progress: in.progress()})
	if err != nil {
		return err
	}
	in.force = make(chan struct{})
	host := in.hostOf(h)
	host.Force = in.force
	in.stderr("%s\n", in.style(2).Mark(render.Warn, "DEV: what stands in "+dir+" runs unreviewed, with everything it asks for granted"))
	result, installed, err := host.Dev(in.context(), dir, *req)
	if installed != nil {
		in.devLogs(h, installed.ID)
	}
	if err != nil {
		return err
	}
	return in.answered(req.Method, result, devMode)
}

// devLogs shows what the plugin wrote to standard error.
func (in *invocation) devLogs(h *pkgmgr.Home, id string) {
	lines, err := h.Logs(context.Background(), id, 0, 0)
	if err != nil {
		return // the call's own outcome matters more
	}
	for _, l := range lines {
		in.note("DEV %s: %s", id, l.Line)
	}
}

// removeTree removes a data directory, whose trees are read-only.
func removeTree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
