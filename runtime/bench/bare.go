package main

import (
	"bufio"
	"os/exec"
)

// bareCall is what program bareparent does, in this process.
func bareCall(path string) error {
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
		if _, err := lines.ReadString('\n'); err != nil {
			return err
		}
	}
	in.Close()
	return cmd.Wait()
}
