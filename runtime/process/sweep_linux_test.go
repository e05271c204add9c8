package process

import (
	"os/exec"
	"syscall"
	"testing"
)

// A child that other code started in the moment in which a call's child was has the
// call's mark in its limit and is left alone, while nobody else with that mark is.
func TestSweepSparesOwnChildren(t *testing.T) {
	const id = "sweep-spares-own-children"
	started := func(attr *syscall.SysProcAttr) *exec.Cmd {
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = attr
		var err error
		withLimitMark(limitMark(id), func() { err = cmd.Start() })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if !newMarks(id).inLimit(cmd.Process.Pid) {
			t.Skip("this process may set no such limit")
		}
		return cmd
	}
	ours := started(nil)
	if n, err := Sweep([]string{id}); n != 0 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	left := started(&syscall.SysProcAttr{Setpgid: true})
	if n, err := Sweep([]string{id}); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if err := left.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	if err := ours.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}
