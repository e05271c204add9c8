//go:build unix

package misbehave

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func detach(cmd *exec.Cmd, setsid, setpgid bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid, Setpgid: setpgid}
}

func signalSelf() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	hang()
}

func stopSelf() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

func ignoreSignals() { signal.Ignore() }
