//go:build unix && !linux

package process

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const killSignal = "SIGKILL"

// handle is the operating system's side of one child. These systems offer a
// process group and nothing that would bring back a descendant which leaves it.
type handle struct {
	process *os.Process
	state   *os.ProcessState
}

// runsByInode is false: nothing here executes a descriptor.
func runsByInode(*os.File) (bool, error) { return false, nil }

func (h *handle) start(spec Spec, _ bool, p *pipes) error {
	attr := &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   append(spec.Env[:len(spec.Env):len(spec.Env)], MarkVariable+"="+spec.CallID),
		Files: []*os.File{p.childStdin, p.childStdout, p.childStderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	for wait := time.Millisecond; ; wait *= 2 {
		child, err := os.StartProcess(spec.Path, append([]string{spec.Path}, spec.Args...), attr)
		if !errors.Is(err, syscall.ETXTBSY) || wait > 512*time.Millisecond {
			h.process = child
			return err
		}
		time.Sleep(wait)
	}
}

func (h *handle) wait() { h.state, _ = h.process.Wait() }

// kill ends the child and its process group; wait may have collected the child
// a moment ago, but not longer.
func (h *handle) kill() { _ = syscall.Kill(-h.process.Pid, syscall.SIGKILL) }

// reap ends the rest of the group and returns how the child ended.
func (h *handle) reap() (code int, signal string) {
	h.kill()
	if h.state == nil {
		return -1, ""
	}
	status, ok := h.state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return -1, signalName(status.Signal())
	}
	return h.state.ExitCode(), ""
}

func signalName(s syscall.Signal) string {
	if s == syscall.SIGKILL {
		return killSignal
	}
	return s.String()
}

// endTree has nothing to do: reap ended the group.
func (h *handle) endTree(time.Time) (ended, survivors int) { return 0, 0 }

// Sweep finds nothing on this system: it cannot recognise what a dead
// supervisor left.
func Sweep([]string) (ended int, err error) { return 0, nil }

// Guarantees says what this system can promise.
func Guarantees() []Guarantee {
	return []Guarantee{
		{Name: "process-group", Holds: true, Detail: "a plugin's process group is ended with the call"},
		{Name: "parent-death-signal", Detail: "a plugin survives when this program is killed"},
		{Name: "child-subreaper", Detail: "processes that leave a plugin's process group outlive the call"},
	}
}

func (h *handle) id() int { return h.process.Pid }
