//go:build !unix

package conformance

import (
	"errors"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func terminate(*exec.Cmd) error { return errors.New("this system has no SIGTERM") }
