package commands

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionFlag asks for completions. It stands first in what the scripts
// below call; wherever it stands, nothing but completion happens.
const completionFlag = "--generate-bash-completion"

type completionData struct {
	Shell  string `json:"shell" doc:"bash, zsh or fish."`
	Script string `json:"script" doc:"The script to load into the shell."`
}

func completionCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage: "bash|zsh|fish",
		Description: "Prints the script that teaches a shell to complete commands, flags, plugin names and actions. " +
			"Completion reads the data directory and starts nothing.",
		UsageText: "source <(switchyard completion bash)\n" +
			"switchyard completion zsh > \"${fpath[1]}/_switchyard\"\n" +
			"switchyard completion fish > ~/.config/fish/completions/switchyard.fish",
		Action: func(c *cli.Context) error {
			shell, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			script, ok := completionScript(shell)
			if !ok {
				return in.usage("no completion for \"%s\"; there is one for bash, zsh and fish", shell)
			}
			in.show(completionData{shell, script}, func(p *page) { p.out.WriteString(script) })
			return nil
		},
	}
}

func completionScript(shell string) (string, bool) {
	switch shell {
	case "bash":
		return bashCompletion, true
	case "zsh":
		return zshCompletion, true
	case "fish":
		return fishCompletion, true
	}
	return "", false
}

// filesMark stands for "file names belong here".
const filesMark = ":files"

// completionRequest reports whether args ask for completions, and the words to
// complete.
func completionRequest(args []string) (words []string, ok bool) {
	for i, a := range args {
		if a == completionFlag {
			words = append(words, args[:i]...)
			return append(words, args[i+1:]...), true
		}
	}
	return nil, false
}

// complete prints the candidates for the last of words. It builds commands to
// learn their flags and never calls one.
func complete(env Env, words []string) {
	in := newInvocation(env)
	var b strings.Builder
	for _, c := range in.candidates(words) {
		fmt.Fprintf(&b, "%s\t%s\n", c.value, c.about)
	}
	// A shell that went away needs no answer.
	_, _ = env.Stdout.Write([]byte(strings.ReplaceAll(b.String(), filesMark+"\t\n", filesMark+"\n")))
}

type candidate struct{ value, about string }

// candidates returns what can stand in place of the last word.
func (in *invocation) candidates(words []string) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	p := &permuter{args: words[:len(words)-1]}
	p.know(in.globals.flags())
	// What is in front of the cursor may be wrong or unfinished; completion makes
	// the best of it.
	_ = p.untilWord()
	name := p.word
	if name != "" && len(family(name)) > 0 {
		_ = p.untilWord()
		if p.word == "" {
			return in.withValue(p, last, func() []candidate { return secondWords(name, last) })
		}
		name += " " + p.word
	}
	if name == "" {
		return in.withValue(p, last, func() []candidate { return commandWords(last) })
	}
	e := find(name)
	if e == nil {
		return nil
	}
	in.entry = e
	command := e.build(in)
	p.command = name
	p.know(command.Flags)
	_ = p.toEnd()
	return in.withValue(p, last, func() []candidate {
		in.readDataDir(p)
		return filter(in.values(e.name, p.arguments), last)
	})
}

// withValue returns flag candidates where a flag or its value stands at the
// cursor, otherwise what words returns.
func (in *invocation) withValue(p *permuter, last string, words func() []candidate) []candidate {
	if len(p.args) > 0 {
		before := p.args[len(p.args)-1]
		name := strings.TrimLeft(before, "-")
		if f, ok := p.known[name]; ok && isFlag(before) && f.value {
			return filter(in.flagValues(f.name), last)
		}
	}
	if name, value, ok := strings.Cut(strings.TrimPrefix(last, "--"), "="); ok && strings.HasPrefix(last, "--") {
		var out []candidate
		for _, c := range filter(in.flagValues(name), value) {
			if c.value != filesMark {
				c.value = "--" + name + "=" + c.value
			}
			out = append(out, c)
		}
		return out
	}
	if strings.HasPrefix(last, "-") {
		return filter(in.flagNames(p), last)
	}
	return words()
}

// readDataDir takes --data-dir from the words, so that names come from there.
func (in *invocation) readDataDir(p *permuter) {
	for _, f := range p.flags {
		if dir, ok := strings.CutPrefix(f, "--data-dir="); ok {
			in.globals.dataDir = dir
		}
	}
}

func (in *invocation) flagNames(p *permuter) []candidate {
	list := in.globals.flags()
	if in.entry != nil {
		list = append(in.entry.build(in).Flags, list...)
	}
	var out []candidate
	for _, f := range list {
		_, usage := flagText(f)
		out = append(out, candidate{"--" + f.Names()[0], usage})
	}
	return out
}

func commandWords(prefix string) []candidate {
	var out []candidate
	seen := make(map[string]bool)
	for _, e := range table() {
		first, _, two := cutSpace(e.name)
		about := e.summary
		if two {
			about = strings.Join(family(first), ", ")
		}
		if !seen[first] {
			seen[first] = true
			out = append(out, candidate{first, about})
		}
	}
	return filter(out, prefix)
}

func secondWords(first, prefix string) []candidate {
	var out []candidate
	for _, e := range table() {
		if f, second, ok := cutSpace(e.name); ok && f == first {
			out = append(out, candidate{second, e.summary})
		}
	}
	return filter(out, prefix)
}

func filter(list []candidate, prefix string) []candidate {
	var out []candidate
	for _, c := range list {
		if c.value == filesMark || strings.HasPrefix(c.value, prefix) {
			out = append(out, c)
		}
	}
	return out
}
