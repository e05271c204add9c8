//go:build unix

package plugintest

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a group, so that killGroup reaches
// the children it did not take care of.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
