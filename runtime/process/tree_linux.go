package process

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// endTree ends every descendant that outlived the child. Each of them is, or
// becomes when its own parent is ended, a child of this process, because this
// process is a subreaper; so it is enough to end marked children until there
// are none. A child's pid stays valid until it is reaped here, so no signal can
// reach a stranger.
//
// In the usual case, a process without any other child, this is one system call.
func (h *handle) endTree(deadline time.Time) (ended, survivors int) {
	defer h.leave()
	for clean := 0; clean < 2; {
		if noChildren() {
			return ended, 0
		}
		orphans := h.orphans()
		if len(orphans) == 0 {
			// The kernel may skip an entry of the list while another exits.
			clean++
			continue
		}
		clean = 0
		for _, o := range orphans {
			if o.group > 1 && o.group != ownGroup() {
				_ = unix.Kill(-o.group, unix.SIGKILL) // no fork of a group member escapes this
			}
			_ = unix.Kill(o.pid, unix.SIGKILL)
		}
		killed, all := reapAll(orphans, deadline)
		ended += killed
		if !all || time.Now().After(deadline) {
			return ended, len(h.orphans())
		}
	}
	return ended, 0
}

// An orphan is a marked child of this process.
type orphan struct {
	pid, group int
	dead       bool // exited, not yet reaped
}

// calls counts the children that are supervised now.
var calls atomic.Int32

// enter notes, before the child is started, which children this process has.
func (h *handle) enter() {
	calls.Add(1)
	if !noChildren() {
		h.before = childrenOf(os.Getpid(), h.thread)
	}
}

func (h *handle) leave() { calls.Add(-1) }

// orphans lists this process's children that belong to the call: those that carry
// its mark, and, while no other call is supervised, those that came to this process
// since it began and carry none: a descendant can erase every mark, but it cannot
// choose another parent.
//
// Children that other code of this process started are left alone: they have
// the mark in their limit only if they were started in the very moment in which
// the call's child was (see withLimitMark), they usually stay in this process's
// group, and the kernel lists them under the thread that started them, while
// orphans come to the main thread.
func (h *handle) orphans() []orphan {
	var found []orphan
	for _, pid := range childrenOf(os.Getpid(), h.thread) {
		o, _, ok := readStat(pid)
		marked := h.marks.inEnvironment(pid) || h.marks.inLimit(pid) && o.group != ownGroup()
		adopted := calls.Load() == 1 && !o.dead && o.group != ownGroup() && !slices.Contains(h.before, pid)
		if ok && (marked || adopted) {
			found = append(found, o)
		}
	}
	return found
}

// noChildren reports, without collecting any, that this process has no child
// at all, dead or alive.
func noChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return errors.Is(err, unix.ECHILD)
}

func ownGroup() int { return unix.Getpgrp() }

// childrenOf lists the children, zombies included, that the kernel lists under
// the given threads of this process. Where it lists none at all, for want of
// CONFIG_PROC_CHILDREN, all children of the process are.
func childrenOf(threads ...int) []int {
	var pids []int
	for _, thread := range slices.Compact(threads) {
		path := "/proc/self/task/" + strconv.Itoa(thread)
		list, err := os.ReadFile(path + "/children")
		if errors.Is(err, os.ErrNotExist) {
			if _, err := os.Lstat(path); err == nil {
				return childrenByScan()
			}
		}
		for field := range bytes.FieldsSeq(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// childrenByScan serves kernels without CONFIG_PROC_CHILDREN.
func childrenByScan() []int {
	var pids []int
	self := os.Getpid()
	for _, pid := range allProcesses() {
		if _, parent, ok := readStat(pid); ok && parent == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

func allProcesses() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readStat reads state, parent and group from /proc/PID/stat. The
// command name before them is in parentheses and may contain anything.
func readStat(pid int) (o orphan, parent int, ok bool) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return orphan{}, 0, false
	}
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return orphan{}, 0, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 3 {
		return orphan{}, 0, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	state := fields[0][0]
	o = orphan{pid: pid, group: number(2), dead: state == 'Z' || state == 'X'}
	return o, number(1), true
}

// reapAll collects the orphans and reports how many of them the signal ended,
// others having exited before, and whether all ended in time.
func reapAll(orphans []orphan, deadline time.Time) (killed int, all bool) {
	for _, o := range orphans {
		if !awaitExit(o.pid, deadline) {
			return killed, false
		}
		status, err := waitFor(o.pid)
		if err == nil && status.Signaled() && status.Signal() == unix.SIGKILL {
			killed++
		}
	}
	return killed, true
}

// waitFor collects an exited child.
func waitFor(pid int) (status unix.WaitStatus, err error) {
	for {
		if _, err = unix.Wait4(pid, &status, unix.WALL, nil); err != unix.EINTR {
			return status, err
		}
	}
}

// awaitExit waits, without collecting it, until the process has exited.
func awaitExit(pid int, deadline time.Time) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return awaitExitByStat(pid, deadline)
	}
	defer unix.Close(fd)
	return pollPidfd(fd, deadline)
}

func pollPidfd(fd int, deadline time.Time) bool {
	for {
		left := time.Until(deadline)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(left.Milliseconds(), 0)))
		if n > 0 {
			return true
		}
		if err != unix.EINTR && left <= 0 {
			return false
		}
	}
}

// awaitExitByStat serves kernels without pidfd_open.
func awaitExitByStat(pid int, deadline time.Time) bool {
	for {
		o, _, ok := readStat(pid)
		if !ok || o.dead {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}
