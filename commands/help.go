package commands

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
)

const tagline = "install, review, trust, pin, run and revoke out-of-process plugins"

type helpData struct {
	Topic string `json:"topic" doc:"The command that is explained, or an empty string for the overview."`
	Text  string `json:"text" doc:"The help text as printed without --json."`
}

func helpCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "[COMMAND]",
		Description: "Explains a command, or lists all of them.",
		UsageText:   "switchyard help install",
		Action: func(c *cli.Context) error {
			return in.help(strings.Join(c.Args().Slice(), " "))
		},
	}
}

// help explains a command or a family of commands, or with no topic lists all.
func (in *invocation) help(topic string) error {
	in.entry = find("help")
	in.globals.json = in.globals.json || wantsJSON(in.env.Args)
	write := in.overview
	if topic != "" {
		e := find(topic)
		switch {
		case e != nil:
			write = func(p *page) { in.explain(p, *e) }
		case len(family(topic)) > 0:
			write = func(p *page) { in.explainFamily(p, topic) }
		default:
			return &usageError{message: fmt.Sprintf("there is no command \"%s\"", topic), hint: []string{"help"}}
		}
	}
	var text bytes.Buffer
	if in.globals.json {
		write(&page{out: &text})
	}
	in.show(helpData{topic, text.String()}, write)
	return nil
}

// overview lists every command by group.
func (in *invocation) overview(p *page) {
	p.line("Usage: switchyard COMMAND [ARGUMENTS] [FLAGS]")
	p.line("")
	p.prose(0, strings.ToUpper(tagline[:1])+tagline[1:]+".")
	entries := table()
	wide := 0
	for _, e := range entries {
		wide = max(wide, len(e.name))
	}
	for _, g := range groups() {
		p.line("")
		p.title(string(g))
		for _, e := range entries {
			if e.group == g {
				p.line("  %s  %s", render.Safe(fmt.Sprintf("%-*s", wide, e.name)), e.summary)
			}
		}
	}
	p.line("")
	p.title("Flags of every command")
	p.flags((&globals{}).flags())
	p.line("")
	p.line("switchyard help COMMAND explains one. Exit codes: 0 done, 2 usage, 3 not found,")
	p.line("4 integrity, 5 needs a decision, 6 revoked, 7 evidence, 8 lock, 9 plugin failed,")
	p.line("10 permission, 11 busy, 12 partly done, 130 interrupted, 1 anything else.")
}

func (in *invocation) explain(p *page, e entry) {
	c := e.build(newInvocation(in.env))
	usage := "switchyard " + e.name
	if c.ArgsUsage != "" {
		usage += " " + c.ArgsUsage
	}
	p.line("Usage: %s", render.Safe(usage))
	for _, paragraph := range strings.Split(c.Description, "\n\n") {
		p.line("")
		p.prose(0, paragraph)
	}
	if c.UsageText != "" {
		p.line("")
		p.title("Examples")
		for _, l := range strings.Split(c.UsageText, "\n") {
			p.line("  %s", render.Safe(l))
		}
	}
	if len(c.Flags) > 0 {
		p.line("")
		p.title("Flags")
		p.flags(c.Flags)
	}
	p.line("")
	p.title("Flags of every command")
	p.flags((&globals{}).flags())
}

func (in *invocation) explainFamily(p *page, first string) {
	p.line("Usage: switchyard %s COMMAND [ARGUMENTS] [FLAGS]", first)
	p.line("")
	for _, e := range table() {
		if f, second, ok := cutSpace(e.name); ok && f == first {
			p.line("  %s  %s", render.Safe(fmt.Sprintf("%-8s", second)), e.summary)
		}
	}
}

// flagWidth is the column at which a flag's explanation begins.
const flagWidth = 28

func (p *page) flags(list []cli.Flag) {
	for _, f := range list {
		names, usage := flagText(f)
		width := p.width
		if width == 0 {
			width = proseWidth
		}
		lines := render.Wrap(usage, width-flagWidth)
		if len(names) > flagWidth-4 {
			p.line("  %s", render.Safe(names))
		} else {
			p.line("  %s%s", render.Safe(fmt.Sprintf("%-*s", flagWidth-2, names)), lines[0])
			lines = lines[1:]
		}
		for _, l := range lines {
			p.line("%s%s", render.Safe(strings.Repeat(" ", flagWidth)), l)
		}
	}
}

// flagText returns "-q, --quiet" or "--data-dir DIR" and the explanation; the
// value's name stands in backquotes in the flag's usage.
func flagText(f cli.Flag) (names, usage string) {
	all := f.Names()
	parts := make([]string, 0, len(all))
	for _, n := range all[1:] {
		if len(n) > 1 {
			n = "-" + n
		}
		parts = append(parts, "-"+n)
	}
	parts = append(parts, "--"+all[0])
	names = strings.Join(parts, ", ")
	if len(all) == 1 {
		names = "    " + names
	}
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return names, ""
	}
	usage = d.GetUsage()
	if before, rest, found := strings.Cut(usage, "`"); found {
		value, after, _ := strings.Cut(rest, "`")
		usage = before + value + after
		names += " " + value
	}
	return names, usage
}
