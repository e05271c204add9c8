package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killSignal is the name that reap gives to an end by kill.
const killSignal = "SIGKILL"

// killedStatus is the exit status that TerminateJobObject gives to the tree.
const killedStatus = 0xC000013A // STATUS_CONTROL_C_EXIT

// handle is the operating system's side of one child: a job object that ends
// everything in it when it is closed, also by the death of this process.
type handle struct {
	process *os.Process
	job     windows.Handle
	state   *os.ProcessState
}

// runsByInode is false: Windows executes names.
func runsByInode(*os.File) (bool, error) { return false, nil }

// isNoProgram reports whether err says that the system cannot execute such a file.
func isNoProgram(err error) bool { return errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) }

// start creates the child suspended, so that it is in the job before it can
// start anything.
func (h *handle) start(spec Spec, _ bool, p *pipes) (err error) {
	if h.job, err = newJob(); err != nil {
		return fmt.Errorf("create a job object: %w", err)
	}
	h.process, err = os.StartProcess(spec.Path, append([]string{spec.Path}, spec.Args...), &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   append(spec.Env[:len(spec.Env):len(spec.Env)], MarkVariable+"="+spec.CallID),
		Files: []*os.File{p.childStdin, p.childStdout, p.childStderr},
		Sys: &syscall.SysProcAttr{
			HideWindow:    true,
			CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
		},
	})
	if err == nil {
		if err = h.admit(); err != nil {
			_ = h.process.Kill()
			_, _ = h.process.Wait()
		}
	}
	if err != nil {
		_ = windows.CloseHandle(h.job)
	}
	return err
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// admit puts the suspended child into the job and lets it run.
func (h *handle) admit() error {
	pid := uint32(h.process.Pid)
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(h.job, process); err != nil {
		return fmt.Errorf("assign the child to its job object: %w", err)
	}
	return resume(pid)
}

// resume resumes the only thread that a suspended new process has.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return errors.New("the suspended child has no thread")
	}
	return err
}

func (h *handle) wait() { h.state, _ = h.process.Wait() }

func (h *handle) kill() { _ = windows.TerminateJobObject(h.job, killedStatus) }

func (h *handle) reap() (code int, signal string) {
	if h.state == nil {
		return -1, ""
	}
	if uint32(h.state.ExitCode()) == killedStatus {
		return -1, killSignal
	}
	return h.state.ExitCode(), ""
}

// endTree ends what is left in the job.
func (h *handle) endTree(time.Time) (ended, survivors int) {
	_ = windows.TerminateJobObject(h.job, killedStatus)
	_ = windows.CloseHandle(h.job)
	return 0, 0
}

// Sweep has nothing to do: closing a supervisor's job object, which its death
// does too, ends the tree.
func Sweep([]string) (ended int, err error) { return 0, nil }

// Guarantees says what this system can promise.
func Guarantees() []Guarantee {
	return []Guarantee{{Name: "job-object", Holds: true,
		Detail: "a plugin and its descendants end with the call, and when this program is killed"}}
}

func (h *handle) id() int { return h.process.Pid }
