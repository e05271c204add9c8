package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// A line is a command line that was understood: the command and its words in the
// order that the flag parser needs, which stops at the first argument.
type line struct {
	command *cli.Command
	words   []string // --flag or --flag=value each, then "--", then the arguments

	help  bool
	topic string // what help was asked about: a command, a family, or ""
}

// globals are the flags that every command takes, before or after its name.
type globals struct {
	dataDir                                         string
	json, quiet, verbose, noInput, offline, noColor bool
}

func (g *globals) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "data-dir", Destination: &g.dataDir, Usage: "keep packages and records in `DIR`"},
		&cli.BoolFlag{Name: "json", Destination: &g.json, Usage: "print one JSON document"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &g.quiet, Usage: "print results and errors only"},
		&cli.BoolFlag{Name: "verbose", Destination: &g.verbose, Usage: "say more about what is done"},
		&cli.BoolFlag{Name: "no-input", Destination: &g.noInput, Usage: "never ask, fail instead"},
		&cli.BoolFlag{Name: "offline", Destination: &g.offline, Usage: "open no network connection"},
		&cli.BoolFlag{Name: "no-color", Destination: &g.noColor, Usage: "print without colour"},
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "explain the command"},
	}
}

// parse understands args or returns a *usageError.
func (in *invocation) parse(args []string) (*line, error) {
	shared := in.globals.flags()
	p := &permuter{program: in.env.Program, args: args}
	p.know(shared)
	p.know([]cli.Flag{&cli.BoolFlag{Name: "version"}})

	if err := p.untilWord(); err != nil {
		return nil, err
	}
	name := p.word
	if name == "" {
		switch {
		case p.given["version"]:
			name = "version"
			p.flags = slices.DeleteFunc(p.flags, func(f string) bool { return f == "--version" })
		case p.given["help"]:
			return &line{help: true}, nil
		default:
			return nil, &usageError{message: "no command given", overview: true, hint: []string{"help"}}
		}
	}
	delete(p.known, "version") // it stands alone
	if seconds := family(name); len(seconds) > 0 {
		own := find(name) // a family's name can be a command too
		if own != nil {
			p.know(own.build(newInvocation(in.env)).Flags)
		}
		position := p.next
		if err := p.untilWord(); err != nil {
			return nil, err
		}
		switch {
		case p.word == "" && p.given["help"]:
			return &line{help: true, topic: name}, nil
		case p.word == "" && own != nil:
		case p.word == "":
			return nil, &usageError{
				message: fmt.Sprintf("%s needs one of: %s", name, strings.Join(seconds, ", ")),
				hint:    []string{"help", name},
			}
		case !slices.Contains(seconds, p.word):
			return nil, p.unknownWord(name+" "+p.word, p.word, seconds, position)
		}
		name = strings.TrimSuffix(name+" "+p.word, " ")
	}
	e := find(name)
	if e == nil {
		return nil, p.unknownWord(name, name, firstWords(), 0)
	}
	in.entry = e
	command := e.build(in)
	command.Name = e.name
	command.HideHelp = true
	command.Flags = append(command.Flags, shared...)
	command.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return &usageError{message: err.Error(), hint: helpOn(e.name)}
	}
	p.command = e.name
	p.know(command.Flags)
	if err := p.toEnd(); err != nil {
		return nil, err
	}
	if p.given["help"] {
		return &line{help: true, topic: e.name}, nil
	}
	return &line{command: command, words: slices.Concat(p.flags, []string{"--"}, p.arguments)}, nil
}

// wantsJSON reports whether the arguments ask for JSON, for errors in the
// arguments themselves.
func wantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "--json=true", "-json":
			return true
		}
	}
	return false
}

// A permuter sorts words into flags and arguments. It needs to know every flag
// of the command to tell a value from an argument.
type permuter struct {
	program string
	command string // the command's name, once it is known
	args    []string
	next    int // index of the next word of args

	known     map[string]knownFlag // by every name
	given     map[string]bool      // canonical names seen
	flags     []string             // canonical: --name or --name=value
	arguments []string
	word      string // what untilWord stopped at, "" at the end
}

type knownFlag struct {
	name  string // canonical
	value bool   // takes one
}

func (p *permuter) know(flags []cli.Flag) {
	if p.known == nil {
		p.known = make(map[string]knownFlag)
		p.given = make(map[string]bool)
	}
	for _, f := range flags {
		names := f.Names()
		takesValue := false
		if d, ok := f.(cli.DocGenerationFlag); ok {
			takesValue = d.TakesValue()
		}
		for _, n := range names {
			p.known[n] = knownFlag{names[0], takesValue}
		}
	}
}

// untilWord consumes flags up to and including the next word that is none.
func (p *permuter) untilWord() error {
	p.word = ""
	for p.next < len(p.args) {
		a := p.args[p.next]
		if a == "--" {
			return nil
		}
		p.next++
		if !isFlag(a) {
			p.word = a
			return nil
		}
		if err := p.flag(a); err != nil {
			return err
		}
	}
	return nil
}

// toEnd consumes everything that is left.
func (p *permuter) toEnd() error {
	for p.next < len(p.args) {
		a := p.args[p.next]
		p.next++
		switch {
		case a == "--":
			p.arguments = append(p.arguments, p.args[p.next:]...)
			p.next = len(p.args)
		case !isFlag(a):
			p.arguments = append(p.arguments, a)
		default:
			if err := p.flag(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func isFlag(a string) bool { return len(a) > 1 && a[0] == '-' }

func (p *permuter) flag(a string) error {
	if !strings.HasPrefix(a, "--") {
		return p.short(a)
	}
	name, value, hasValue := strings.Cut(a[2:], "=")
	f, ok := p.known[name]
	if !ok || len(name) == 1 {
		return p.unknownFlag("--"+name, name)
	}
	if hasValue {
		return p.takeValue(f, "--"+name, value)
	}
	return p.take(f, "--"+name)
}

// short takes "-x", "-xy" for two switches, "-xVALUE" and "-x=VALUE".
func (p *permuter) short(a string) error {
	for letters := a[1:]; letters != ""; {
		letter, rest := letters[:1], letters[1:]
		f, ok := p.known[letter]
		switch {
		case !ok:
			name, _, _ := strings.Cut(a[1:], "=")
			return p.unknownFlag("-"+name, name)
		case f.value && rest != "":
			return p.takeValue(f, "-"+letter, strings.TrimPrefix(rest, "="))
		case strings.HasPrefix(rest, "="):
			return p.takeValue(f, "-"+letter, rest[1:])
		}
		if err := p.take(f, "-"+letter); err != nil {
			return err
		}
		letters = rest
	}
	return nil
}

// take takes a flag that was typed without a value: a switch, or one whose value is the
// next word.
func (p *permuter) take(f knownFlag, typed string) error {
	p.given[f.name] = true
	switch {
	case !f.value:
		p.flags = append(p.flags, "--"+f.name)
		return nil
	case p.next == len(p.args):
		return p.usage("%s needs a value", typed)
	}
	value := p.args[p.next]
	if name, _, _ := strings.Cut(strings.TrimLeft(value, "-"), "="); isFlag(value) && p.known[name].name != "" {
		return p.usage("%s needs a value, and %s is another flag; if it is the value, write %s=%s", typed, value, typed, value)
	}
	p.next++
	return p.takeValue(f, typed, value)
}

// takeValue takes a flag with its value.
func (p *permuter) takeValue(f knownFlag, typed, value string) error {
	p.given[f.name] = true
	if value == "" {
		return p.usage("%s needs a value that is not empty", typed)
	}
	p.flags = append(p.flags, "--"+f.name+"="+value)
	return nil
}

func (p *permuter) usage(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), hint: helpOn(p.command)}
}

// helpOn is the command that explains a command, or the overview.
func helpOn(command string) []string {
	return append([]string{"help"}, strings.Fields(command)...)
}

func (p *permuter) unknownFlag(typed, name string) error {
	where := "before the command's name"
	if p.command != "" {
		where = p.command
	}
	e := &usageError{message: fmt.Sprintf("unknown flag %s (%s)", typed, where), hint: helpOn(p.command)}
	if len(typed) > 1 && '0' <= typed[1] && typed[1] <= '9' {
		e.message += "; write -- before a number below zero"
	}
	var names []string
	for n, f := range p.known {
		if len(n) > 1 && f.name == n {
			names = append(names, n)
		}
	}
	if best := nearest(name, names); best != "" {
		e.message += fmt.Sprintf("; did you mean --%s?", best)
		e.hint = p.replaced(p.next-1, func(word string) string {
			_, value, hasValue := strings.Cut(word, "=")
			if hasValue {
				return "--" + best + "=" + value
			}
			return "--" + best
		})
	}
	return e
}

// unknownWord says which command was probably meant. One that only looks is ready to
// copy; of one that changes something the help is.
func (p *permuter) unknownWord(name, word string, words []string, from int) error {
	e := &usageError{message: fmt.Sprintf("unknown command \"%s\"", name), hint: []string{"help"}}
	best := nearest(word, words)
	if best == "" || distance(strings.ToLower(word), best) > min(2, max(1, len(word)/3)) {
		return e
	}
	e.message += fmt.Sprintf("; did you mean \"%s\"?", best)
	meant := strings.TrimSuffix(name, word) + best
	if !looks(meant) {
		e.hint = append(e.hint, strings.Fields(meant)...)
		return e
	}
	at := from + slices.Index(p.args[from:], word)
	e.hint = p.replaced(at, func(string) string { return best })
	return e
}

// looks reports whether a command, or each of a family, changes nothing and starts no
// plugin, whatever flags it is given.
func looks(name string) bool {
	return slices.Contains([]string{"check", "list", "show", "verify", "review", "project list", "operations list", "operations show",
		"logs", "history", "env", "version", "completion", "help"}, name)
}

// replaced returns the arguments with one of them changed: the command that was
// probably meant.
func (p *permuter) replaced(at int, change func(string) string) []string {
	words := slices.Clone(p.args)
	words[at] = change(words[at])
	return words
}

// firstWords lists what can follow the program's name.
func firstWords() []string {
	var words []string
	for _, e := range table() {
		first, _, _ := cutSpace(e.name)
		if !slices.Contains(words, first) {
			words = append(words, first)
		}
	}
	return words
}

// nearest returns the word of words that name was probably meant to be, or "".
func nearest(name string, words []string) string {
	name = strings.ToLower(name)
	best, least := "", 1+len(name)/3
	for _, w := range slices.Sorted(slices.Values(words)) {
		if d := distance(name, w); d <= least && d < max(len(name), len(w)) {
			if best == "" || d < least {
				best, least = w, d
			}
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
