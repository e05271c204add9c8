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

// raiseLimits sets every soft limit to its hard one, so that none tells where the
// process comes from.
func raiseLimits() {
	for resource := range 16 {
		var l syscall.Rlimit
		if syscall.Getrlimit(resource, &l) == nil {
			l.Cur = l.Max
			_ = syscall.Setrlimit(resource, &l)
		}
	}
}
