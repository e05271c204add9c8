package verify

import (
	"os/exec"
	"runtime"
	"syscall"
)

// supervise makes the worker a group of its own that dies with this program.
func supervise(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

// start starts the command from a thread that lives until gone is closed: the
// death of the starting thread would end the worker.
func start(c *exec.Cmd, gone <-chan struct{}) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		result <- err
		if err == nil {
			<-gone
		}
	}()
	return <-result
}
