package commands

import "github.com/urfave/cli/v2"

// An entry is one command: its name as typed (one or two words), where help
// lists it, one line about it, and how to build it. data is a value of the type
// that --json prints, for the published schema; nil for a command that prints
// none.
type entry struct {
	name    string
	group   group
	summary string
	build   func(*invocation) *cli.Command
	data    any
}

type group string

const (
	groupAuthor   group = "Write and pack plugins"
	groupPackage  group = "Install and look"
	groupDecide   group = "Review and decide"
	groupLock     group = "Pin and reproduce"
	groupRun      group = "Run and follow"
	groupTool     group = "This tool"
	groupInternal group = "" // in no overview
)

// groups is the order of the overview.
func groups() []group {
	return []group{groupAuthor, groupPackage, groupDecide, groupLock, groupRun, groupTool}
}

// table lists every command. It is a function so that nothing is built before it
// is asked for.
func table() []entry {
	return []entry{
		{"completion", groupTool, "print the completion script of a shell", completionCommand, completionData{}},
		{"version", groupTool, "print the version of this program", versionCommand, versionData{}},
		{"help", groupTool, "explain a command", helpCommand, helpData{}},
	}
}

// find returns the entry of a command, or nil.
func find(name string) *entry {
	entries := table()
	for i := range entries {
		if entries[i].name == name {
			return &entries[i]
		}
	}
	return nil
}

// family returns the second words of the commands that begin with word, as
// "list" and "show" for "operations"; empty where word begins none.
func family(word string) []string {
	var seconds []string
	for _, e := range table() {
		if first, second, ok := cutSpace(e.name); ok && first == word {
			seconds = append(seconds, second)
		}
	}
	return seconds
}

func cutSpace(name string) (first, second string, ok bool) {
	for i := range len(name) {
		if name[i] == ' ' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}
