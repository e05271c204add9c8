package commands

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/urfave/cli/v2"
)

// apiVersion names the form of every JSON document that the program prints.
const apiVersion = "switchyard.cli/v1"

// An invocation is one run of one command: what it was given and what it has to
// say.
type invocation struct {
	env     Env
	globals globals
	entry   *entry // nil until the command is known

	ctx   context.Context // nil until a command asks for it
	stop  func()
	force chan struct{} // closed by a second interrupt; nil: that one ends the process
	bar   *bar          // nil: none is drawn

	adjust func(*pkgmgr.Assurance) error // what a command's flags say about evidence; nil: nothing
	// heedless commands go on under the user's policy alone, and say so, where the project's
	// file cannot be read: denials must reach a machine whatever stands there.
	heedless bool

	given   []string // the command's arguments, when they are known
	author  string   // the directory of an author's loop, "" for every other command
	subject string   // the plugin as the user named it, for hints; "" where there is none

	telling  sync.Mutex   // holds stderr
	data     any          // for --json
	text     bytes.Buffer // for stdout otherwise
	warnings []string
}

func newInvocation(env Env) *invocation { return &invocation{env: env} }

func (in *invocation) commandName() string {
	if in.entry == nil {
		return ""
	}
	return in.entry.name
}

// flags is what a command takes beside the flags of every command.
type flags = []cli.Flag

// show hands over a command's result: data is what --json prints, text writes it
// for people. It is called once.
func (in *invocation) show(data any, text func(*page)) {
	in.data = data
	if in.globals.json {
		return
	}
	text(in.page())
}

// report is show for commands whose result is that something was done: --quiet
// leaves the text out.
func (in *invocation) report(data any, text func(*page)) {
	if in.globals.quiet {
		text = func(*page) {}
	}
	in.show(data, text)
}

func (in *invocation) page() *page {
	width := 0
	if in.env.Terminal(1) {
		width = in.env.Width()
	}
	return &page{out: &in.text, width: width, style: in.style(1)}
}

// style allows colour on a terminal that was not told otherwise.
func (in *invocation) style(stream int) render.Style {
	if in.globals.noColor || !in.env.Terminal(stream) {
		return render.Style{}
	}
	if v, _ := in.env.LookupEnv("NO_COLOR"); v != "" {
		return render.Style{}
	}
	if v, _ := in.env.LookupEnv("TERM"); v == "dumb" {
		return render.Style{}
	}
	return render.Style{Colour: true}
}

// warn tells, once, what the user should know although the command goes on.
func (in *invocation) warn(format string, args ...any) {
	warning := render.Format(format, args...)
	if slices.Contains(in.warnings, warning) {
		return
	}
	in.warnings = append(in.warnings, warning)
	if !in.globals.json {
		in.stderr("%s %s\n", in.style(2).Mark(render.Warn, "warning:"), render.Safe(warning))
	}
}

// note tells what is being done; --quiet and --json leave it out.
func (in *invocation) note(format string, args ...any) {
	if !in.globals.json && !in.globals.quiet {
		in.stderr("%s\n", render.Safe(render.Format(format, args...)))
	}
}

// detail is note under --verbose.
func (in *invocation) detail(format string, args ...any) {
	if in.globals.verbose {
		in.note(format, args...)
	}
}

// stderr writes at once. A standard error that cannot be written to is nobody's
// loss, and there is nowhere to tell.
func (in *invocation) stderr(format string, args ...any) {
	in.telling.Lock()
	defer in.telling.Unlock()
	in.bar.aside(func() { _, _ = in.env.Stderr.Write([]byte(render.Format(format, args...))) })
}

// next returns the exact command line that runs this program with words, on the
// same data directory.
func (in *invocation) next(words ...string) string {
	words = append([]string{in.env.Program}, words...)
	if in.globals.dataDir != "" {
		words = append(words, "--data-dir", in.globals.dataDir)
	}
	return render.Command(words...)
}

// interactive reports whether a person can be asked.
func (in *invocation) interactive() bool {
	return !in.globals.noInput && !in.globals.json && in.env.Terminal(0) && in.env.Terminal(2)
}

// noArguments is for commands that take flags alone.
func (in *invocation) noArguments(c *cli.Context) error {
	_, err := in.arguments(c, 0, 0)
	return err
}

// oneArgument returns the single argument of a command.
func (in *invocation) oneArgument(c *cli.Context) (string, error) {
	args, err := in.arguments(c, 1, 1)
	if err != nil {
		return "", err
	}
	return args[0], nil
}

// arguments returns the command's arguments if there are between least and most
// of them (most < 0: any number), otherwise a usage error.
func (in *invocation) arguments(c *cli.Context, least, most int) ([]string, error) {
	args := c.Args().Slice()
	usage := in.entry.name
	if c.Command.ArgsUsage != "" {
		usage += " " + c.Command.ArgsUsage
	}
	switch {
	case len(args) < least:
		return nil, in.usage("not enough arguments; usage: switchyard %s", usage)
	case most >= 0 && len(args) > most:
		return nil, in.usage("unexpected argument \"%s\"; usage: switchyard %s", args[most], usage)
	}
	in.given = args
	return args, nil
}
