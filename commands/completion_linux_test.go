package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A value with spaces is completed by each shell itself, on a terminal: the shell
// quotes what it inserts, finds the value by its quoted beginning, and hands the
// program the whole of it.
func TestShellsCompleteSpaces(t *testing.T) {
	shells := []struct {
		name  string
		args  []string
		setup string // loads the script and makes the command show its arguments
	}{
		{"bash", []string{"--norc", "--noprofile", "-i"}, `
			source bash.sh
			switchyard() {
				if [[ $1 == ` + completionFlag + ` ]]; then command switchyard "$@"; else printf '<%s>' "$@"; echo; fi
			}
			PS1='ready'':'`},
		{"zsh", []string{"-f", "-i"}, `
			autoload -U compinit && compinit -u -D
			source ./zsh.sh
			switchyard() {
				if [[ $1 == ` + completionFlag + ` ]]; then command switchyard "$@"; else printf '<%s>' "$@"; echo; fi
			}
			PS1='ready'':'`},
		{"fish", []string{"--no-config", "-i"}, `
			source fish.sh
			function switchyard
				if test "$argv[1]" = ` + completionFlag + `
					command switchyard $argv
				else
					printf '<%s>' $argv
					echo
				end
			end
			function fish_prompt
				echo -n 'ready'':'
			end`},
	}
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			if _, err := exec.LookPath(shell.name); err != nil {
				t.Skip(shell.name + " is not installed")
			}
			p := newPlace(t)
			root := filepath.Join(p.dir, "my project")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			p.run("project", "trust", root)
			p.write(shell.name+".sh", p.run("completion", shell.name))
			p.write("setup", shell.setup)
			s := onTerminal(t, 200, p.command(shell.name, shell.args...))
			s.keys("source ./setup\r")
			s.await("ready:")
			for _, typed := range []string{
				"/",
				p.dir + `/my\ p`,
				`"` + p.dir + `/my pro`,
				`'` + p.dir + `/my pro`,
			} {
				s.keys("switchyard project untrust " + typed + "\t\r")
				s.await("<project><untrust><" + root + ">")
				s.await("ready:")
			}
			s.keys("exit\r")
			s.end()
		})
	}
}
