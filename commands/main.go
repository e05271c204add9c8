// Package commands is the command line: it parses arguments, calls the packages
// that do the work, and renders what they return as text or as one JSON
// document, with an exit code and the next command to type.
//
// It holds no rule about packages, trust or plugins and decides no order of
// steps; those live in pkgmgr and runtime. One file holds one command, exit.go
// alone maps errors to exit codes and hints, and package render alone turns
// foreign strings into text.
package commands

import (
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	_ "github.com/switchyard-plugins/switchyard/commands/firstheap"
)

// Main runs the program once and returns its exit code.
func Main(env Env) int {
	if words, ok := completionRequest(env.Args); ok {
		complete(env, words)
		return exitOK
	}
	in := newInvocation(env)
	return in.finish(in.run())
}

// run parses the arguments and performs the command they name.
func (in *invocation) run() error {
	line, err := in.parse(in.env.Args)
	if err != nil {
		return err
	}
	if line.help {
		return in.help(line.topic)
	}
	return in.perform(line)
}

// perform hands an understood command line to the flag parser, which calls the
// command.
func (in *invocation) perform(l *line) error {
	app := &cli.App{
		Name:                      in.env.Program,
		Usage:                     tagline,
		HideHelp:                  true,
		HideVersion:               true,
		Compiled:                  in.env.Now(),
		Reader:                    in.env.Stdin,
		Writer:                    io.Discard, // every command prints through its invocation
		ErrWriter:                 io.Discard,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		Commands:                  []*cli.Command{l.command},
	}
	return app.RunContext(context.Background(), append([]string{app.Name, l.command.Name}, l.words...))
}

// finish writes what the command left to write and returns the exit code.
func (in *invocation) finish(err error) int {
	in.bar.end()
	defer func() {
		if in.stop != nil {
			in.stop()
		}
	}()
	if err == nil {
		err = in.flush()
		if err == nil {
			return exitOK
		}
		err = &outputError{err}
	}
	f := in.classify(err)
	in.fail(f)
	return f.exit
}

// An outputError says that the result could not be written.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write the result: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// errInterrupted is what a command returns that stopped because of a signal.
var errInterrupted = errors.New("interrupted")

// context returns the context that ends with the first interrupt. Commands that
// neither wait nor write never ask for it and leave signals their default action.
func (in *invocation) context() context.Context {
	if in.ctx == nil {
		ctx, stop := in.env.Interrupts(context.Background(), in.force)
		silence := func() bool { return true }
		if in.force != nil && in.commandName() != "approve" { // approve asks, and tells by itself
			silence = context.AfterFunc(ctx, func() { in.note("stopping; Ctrl-C again ends it at once") })
		}
		in.ctx, in.stop = ctx, func() {
			silence()
			stop()
		}
	}
	return in.ctx
}

// interrupted reports whether a signal arrived.
func (in *invocation) interrupted() bool { return in.ctx != nil && in.ctx.Err() != nil }
