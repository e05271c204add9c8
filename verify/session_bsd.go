//go:build unix && !linux

package verify

import (
	"os/exec"
	"syscall"
)

// supervise makes the worker a group of its own.
func supervise(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

func start(c *exec.Cmd, _ <-chan struct{}) error { return c.Start() }
