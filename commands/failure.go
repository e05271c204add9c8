package commands

import (
	"fmt"
	"slices"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

// A failure is an error as its reader meets it.
type failure struct {
	exit    int
	code    string      // stable, for programs: "integrity.digest"
	message string      // as the error says it; foreign
	lines   []string    // message, where it is several sentences; foreign
	hint    string      // the exact next command, "" where none helps
	details any         // facts for --json; nil: none
	block   *block      // set for failures that must look like nothing else
	more    []string    // further sentences of the same kind; foreign
	before  func(*page) // what to show first; nil: nothing
}

// A block is how integrity, signature and revocation failures are told.
type block struct {
	title  string // "INTEGRITY FAILURE"
	facts  [][2]string
	causes []string
}

// failText tells a failure on standard error.
func (in *invocation) failText(f failure) {
	style := in.style(2)
	if f.before != nil {
		p := &page{style: style, width: 0}
		if in.env.Terminal(2) {
			p.width = in.env.Width()
		}
		p.out = &in.text
		f.before(p)
		in.stderr("%s\n", render.Safe(in.text.String()))
		in.text.Reset()
	}
	if len(f.lines) > 1 {
		f.message, f.more = f.lines[0], slices.Concat(f.lines[1:], f.more)
	}
	if f.block == nil {
		in.stderr("%s %s\n", style.Mark(render.Bad, "switchyard:"), f.message)
		for _, m := range f.more {
			in.stderr("  %s\n", m)
		}
		if f.hint != "" {
			in.stderr("  %s %s\n", style.Mark(render.Faint, "next:"), render.Safe(f.hint))
		}
		return
	}
	in.stderr("%s %s: %s\n", style.Mark(render.Bad, "switchyard:"), style.Mark(render.Bad, f.block.title), f.message)
	for _, m := range f.more {
		in.stderr("  %s\n", m)
	}
	width := len("likely causes")
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
		for n, l := range in.wrapped(cause, 2+width+2+2) {
			bullet := "- "
			if n > 0 {
				name, bullet = "", "  "
			}
			in.stderr("  %s  %s%s\n", label(name), render.Safe(bullet), render.Safe(l))
		}
	}
	if f.hint != "" {
		in.stderr("  %s  %s\n", label("next command"), render.Safe(f.hint))
	}
}

// wrapped escapes a sentence and, where standard error is a terminal, breaks it into
// lines with room for indent cells before them.
func (in *invocation) wrapped(s string, indent int) []string {
	text := render.Text(s)
	if width := in.env.Width(); in.env.Terminal(2) && width > 0 && indent+render.Width(text) > width {
		return render.Wrap(text, width-indent)
	}
	return []string{text}
}
