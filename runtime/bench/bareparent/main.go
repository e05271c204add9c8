// Program bareparent is the least that a Go program can do to ask a plugin for its
// health: it starts the plugin, exchanges two lines, closes stdin and waits. It
// checks, hashes, bounds and records nothing.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"switchyard.plugin/v1","hostVersion":"bench","grantedScopes":["project.metadata.read"]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"plugin.health","params":{}}`,
	} {
		if _, err := in.Write([]byte(request + "\n")); err != nil {
			return err
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if len(os.Args) == 2 {
			os.Stdout.WriteString(answer)
		}
	}
	in.Close()
	return cmd.Wait()
}
