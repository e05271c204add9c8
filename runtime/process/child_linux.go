package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const killSignal = "SIGKILL"

// handle is the operating system's side of one child.
type handle struct {
	pid    int
	thread int      // the supervising thread, whose child it is
	pidfd  *os.File // in the runtime poller, or nil where the kernel has none
	marks  marks
	before []int // children that this process had when the call began
}

// runsByInode reports whether the kernel can execute f from its descriptor
// alone. Everything but ELF is handed by name to an interpreter.
func runsByInode(f *os.File) (bool, error) {
	var magic [4]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return false, fmt.Errorf("read its first bytes: %w", err)
	}
	return bytes.Equal(magic[:], []byte("\x7fELF")), nil
}

// once holds what is done or asked once in the life of this process.
var once struct {
	becomeSubreaper, closeToChildren, closeInherited, hasTerminal sync.Once

	terminal bool
}

// becomeSubreaper makes orphaned descendants children of this process. A
// kernel that refuses is reported by Guarantees, not here.
func becomeSubreaper() {
	once.becomeSubreaper.Do(func() {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	})
}

// closeToChildren keeps a child, which runs as the same user, from this process's
// memory, environment and open files: without it /proc and ptrace would give it all of
// them. A child can be read again once it has executed its own program. What this
// process reads of itself stays readable to it: /proc/self/fd to its own threads, the
// list of children to everybody. A process with CAP_SYS_PTRACE, as root's, is not kept
// from anything.
func closeToChildren() {
	once.closeToChildren.Do(func() {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	})
}

// start runs on a goroutine that stays locked to its thread until the child
// has been reaped.
func (h *handle) start(spec Spec, byPath bool, p *pipes) error {
	becomeSubreaper()
	closeToChildren()
	path := spec.Path
	if !byPath {
		// The descriptor is closed on exec, after the kernel has opened the inode.
		path = "/proc/self/fd/" + strconv.Itoa(int(spec.Executable.Fd()))
	}
	argv := append([]string{spec.Path}, spec.Args...)
	env := append(spec.Env[:len(spec.Env):len(spec.Env)], MarkVariable+"="+spec.CallID)
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir: spec.Dir,
		Env: env,
		// Fd makes these descriptors blocking, which is what programs expect.
		Files: []uintptr{p.childStdin.Fd(), p.childStdout.Fd(), p.childStderr.Fd()},
		Sys: &syscall.SysProcAttr{
			// A group of its own, so that the terminal's interrupt reaches this
			// process only; where there is a terminal, a session of its own, so
			// that the child can neither write to it nor read what is typed.
			// Elsewhere no session: that would put the child into a scheduling
			// group of its own, which doubles its start on a busy machine.
			Setpgid:   !hasTerminal(),
			Setsid:    hasTerminal(),
			Pdeathsig: syscall.SIGKILL,
			PidFD:     &pidfd,
		},
	}
	h.marks = newMarks(spec.CallID)
	h.thread = unix.Gettid()
	closeInherited()
	h.enter()
	var err error
	withLimitMark(limitMark(spec.CallID), func() {
		h.pid, err = forkExec(path, argv, attr)
	})
	if err != nil {
		h.leave()
		return err
	}
	if pidfd >= 0 {
		if unix.SetNonblock(pidfd, true) == nil {
			h.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
		} else {
			unix.Close(pidfd)
		}
	}
	return nil
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	once.hasTerminal.Do(func() {
		if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
			once.terminal = true
		}
	})
	return once.terminal
}

// closeInherited keeps descriptors that this process was started with, such as a
// caller's pipes and locks, from reaching any child. What Go opened itself is
// marked already.
func closeInherited() {
	once.closeInherited.Do(func() {
		if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
			return
		}
		entries, _ := os.ReadDir("/proc/self/fd") // kernels before 5.11
		for _, e := range entries {
			if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
				unix.CloseOnExec(fd)
			}
		}
	})
}

// forkExec retries while a process that is being forked elsewhere still holds
// the file open for writing ("text file busy"): the holder execs within
// milliseconds.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		pid, err := syscall.ForkExec(path, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) || wait > 512*time.Millisecond {
			return pid, err
		}
		time.Sleep(wait)
	}
}

// wait returns when the child has exited; the child stays unreaped, so its pid
// and its group's number cannot be used again before reap.
func (h *handle) wait() {
	if h.pidfd != nil {
		defer h.pidfd.Close()
		if conn, err := h.pidfd.SyscallConn(); err == nil {
			exited := false
			err = conn.Read(func(uintptr) bool {
				exited = h.exited(unix.WNOHANG)
				return exited
			})
			if err == nil && exited {
				return
			}
		}
	}
	h.exited(0)
}

// exited reports whether the child is waitable.
func (h *handle) exited(flag int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, h.pid, &info, unix.WEXITED|unix.WNOWAIT|flag, nil)
		if err != unix.EINTR {
			return err != nil || info.Signo != 0
		}
	}
}

// kill ends the child and its process group, which the child may have left. The
// caller holds the lock that reap is called under.
func (h *handle) kill() {
	_ = unix.Kill(-h.pid, unix.SIGKILL)
	_ = unix.Kill(h.pid, unix.SIGKILL)
}

// reap ends the rest of the group, in one step that no fork escapes, and
// collects the exited child.
func (h *handle) reap() (code int, signal string) {
	h.kill()
	status, err := waitFor(h.pid)
	if err != nil { // somebody else collected it
		return -1, ""
	}
	if status.Signaled() {
		return -1, unix.SignalName(status.Signal())
	}
	return status.ExitStatus(), ""
}

func (h *handle) id() int { return h.pid }
