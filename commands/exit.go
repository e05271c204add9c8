package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

// Exit codes; docs/exit-codes.md explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitIntegrity   = 4
	exitDecision    = 5
	exitRevoked     = 6
	exitEvidence    = 7
	exitLock        = 8
	exitPlugin      = 9
	exitPermission  = 10
	exitBusy        = 11
	exitPartial     = 12
	exitInterrupted = 130
)

// A failure is an error as its reader meets it.
type failure struct {
	exit    int
	code    string // stable, for programs: "integrity.digest"
	message string // one sentence, as the error says it; foreign
	hint    string // the exact next command, "" where none helps
	details any    // facts for --json; nil: none
	block   *block // set for failures that must look like nothing else
	quiet   bool   // the text said it all already
	after   func(*page)
}

// A block is how integrity, signature and revocation failures are told.
type block struct {
	title  string // "INTEGRITY FAILURE"
	facts  [][2]string
	causes []string
}

// A usageError says that the command line cannot be understood.
type usageError struct {
	message  string
	hint     []string // arguments of the command that helps; nil: none
	overview bool     // show the list of commands
}

func (e *usageError) Error() string { return e.message }

// usage returns a usage error of the command.
func (in *invocation) usage(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), hint: []string{"help", in.entry.name}}
}

// classify is the only place that turns an error into an exit code, a stable
// code, a hint and details.
func (in *invocation) classify(err error) failure {
	f := failure{exit: exitFailed, code: "failed", message: err.Error()}
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		in.globals.json = wantsJSON(in.env.Args)
		f.exit, f.code = exitUsage, "usage"
		if usage.hint != nil {
			f.hint = render.Command(append([]string{in.env.Program}, usage.hint...)...)
		}
		if usage.overview {
			f.after = in.overview
		}
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled) && in.interrupted():
		f.exit, f.code, f.message = exitInterrupted, "interrupted", errInterrupted.Error()
	}
	return f
}

// interrupted reports whether a signal arrived.
func (in *invocation) interrupted() bool { return in.ctx != nil && in.ctx.Err() != nil }

// failText tells a failure on standard error.
func (in *invocation) failText(f failure) {
	style := in.style(2)
	if f.after != nil {
		p := &page{style: style, width: 0}
		if in.env.Terminal(2) {
			p.width = in.env.Width()
		}
		p.out = &in.text
		f.after(p)
		in.stderr("%s\n", render.Safe(in.text.String()))
		in.text.Reset()
	}
	if f.quiet {
		return
	}
	if f.block == nil {
		in.stderr("%s %s\n", style.Mark(render.Bad, "switchyard:"), f.message)
		if f.hint != "" {
			in.stderr("  %s %s\n", style.Mark(render.Faint, "next:"), render.Safe(f.hint))
		}
		return
	}
	in.stderr("%s %s: %s\n", style.Mark(render.Bad, "switchyard:"), style.Mark(render.Bad, f.block.title), f.message)
	width := len("next command")
	for _, fact := range f.block.facts {
		width = max(width, len(fact[0]))
	}
	label := func(s string) render.Safe {
		return style.Mark(render.Faint, fmt.Sprintf("%-*s", width, s))
	}
	for _, fact := range f.block.facts {
		in.stderr("  %s  %s\n", label(fact[0]), fact[1])
	}
	for i, cause := range f.block.causes {
		name := ""
		if i == 0 {
			name = "likely causes"
		}
		in.stderr("  %s  - %s\n", label(name), cause)
	}
	if f.hint != "" {
		in.stderr("  %s  %s\n", label("next command"), render.Safe(f.hint))
	}
}
