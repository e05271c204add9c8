package commands

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
)

func devCommand(in *invocation) *cli.Command {
	var o runOptions
	return &cli.Command{
		ArgsUsage: "DIR [health|inspect|operate [ACTION]|CAPABILITY/OPERATION]",
		Description: "Calls the plugin that stands in DIR, as its author does again and again: it is installed into a data directory that is thrown away, " +
			"trusted as it is and granted everything it asks for that this host offers. Everything says DEV. It is refused in a project with a lock: what runs there " +
			"is what was reviewed. Without a method it asks for health. A package of the session protocol is asked for its operations as by run; what " +
			"`switchyard config` set counts not: give --settings.",
		UsageText: "switchyard dev my-plugin\nswitchyard dev . inspect --project ~/src/app\nswitchyard dev . operate write-count --input '{}'\n" +
			"switchyard dev . text.words/count --input @text.json --settings @set.json",
		Flags: append(runFlags(&o), sessionFlags(&o)...),
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 1, 3)
			if err != nil {
				return err
			}
			in.author = args[0]
			if o.ofSession(args[1:]) {
				req, err := in.sessionRequest(args[1:], o)
				if err != nil {
					return err
				}
				return in.dev(args[0], req.Project, func(host *runtime.Host) error { return in.devSession(host, args[0], req, o) })
			}
			if o.deadline != "" || o.transport != transportStdio {
				return in.usage("--deadline and --transport belong to CAPABILITY/OPERATION")
			}
			if len(args) == 1 {
				args = append(args, string(pkgmgr.MethodHealth))
			}
			req, err := in.callRequest(args[1:], o)
			if err != nil {
				return err
			}
			given, err := in.settings(o.settings)
			if err != nil {
				return err
			}
			return in.dev(args[0], req.Project, func(host *runtime.Host) error {
				host.Settings = given
				result, installed, err := host.Dev(in.context(), args[0], *req)
				in.devSaid(host, installed, err)
				return in.answered(req.Method, result, err, devMode)
			})
		},
	}
}

// A devUnderLock is why dev refuses.
type devUnderLock struct{ lock string }

func (e *devUnderLock) Error() string {
	return "dev runs unreviewed code and this project has a lock: " + e.lock
}

// dev lets call use a host on a throw-away data directory, under the denials of the one in
// force. project is the directory that the plugin is called on, or "".
func (in *invocation) dev(dir, project string, call func(*runtime.Host) error) error {
	lock, err := in.lock()
	if err != nil {
		return err
	}
	if lock == nil && project != "" {
		if lock, err = pkgmgr.ReadLock(project); err != nil {
			return err
		}
	}
	if lock != nil {
		return &devUnderLock{lock.Path}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return &pkgmgr.NotFound{Kind: "source", Name: dir}
	}
	denials, err := in.home()
	if err != nil {
		return err
	}
	in.force = make(chan struct{})
	return in.scratch(nil, func(h *pkgmgr.Home) error {
		host := in.hostOf(h)
		host.Force, host.Denials = in.force, denials
		in.stderr("%s\n", in.style(2).Mark(render.Warn, "DEV: what stands in "+dir+" runs unreviewed, with everything it asks for granted"))
		return call(host)
	})
}

// devSession asks the session package that stands in dir.
func (in *invocation) devSession(host *runtime.Host, dir string, req *sessionAsked, o runOptions) error {
	host.Settings = req.settings // for the exchange that enables it
	terms := req.terms()
	return in.ask(req, o, devMode, func(use sessionUse) (*runtime.Ended, error) {
		ended, installed, err := host.DevSession(in.context(), dir, terms, use)
		in.devSaid(host, installed, err)
		return ended, err
	})
}

// devSaid shows what the plugin wrote to standard error. A failure shows it itself.
func (in *invocation) devSaid(host *runtime.Host, installed *pkgmgr.Installed, err error) {
	var failed *runtime.Failed
	var session *runtime.SessionFailed
	if installed != nil && !errors.As(err, &failed) && !errors.As(err, &session) {
		in.devLogs(host.Home, installed.ID)
	}
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

// devHint replaces the hint of a failure in the author's loop: nothing of it is
// installed, so that commands about installed plugins lead nowhere.
func (in *invocation) devHint(err error, f *failure) {
	var (
		under  *devUnderLock
		broken *pkgmgr.Malformed
		denied *pkgmgr.NotOffered
		usage  *usageError
	)
	switch {
	case errors.As(err, &usage):
	case errors.As(err, &under):
		f.hint = in.next("install", dotted(in.author))
		if lock, err := pkgmgr.ReadLock(in.author); err == nil && lock == nil {
			f.hint = render.Command("cd", in.author) + " && " + in.next("dev", ".")
		}
	case errors.As(err, &broken) && f.hint != "": // says how to build it
	case f.exit == exitIntegrity:
		f.hint = in.next("check", in.author)
	case errors.As(err, &denied), f.exit == exitPlugin:
		f.hint = in.next("dev", in.author)
		if f.hint == in.again() {
			f.hint = ""
		}
	default:
		f.hint = ""
	}
}
