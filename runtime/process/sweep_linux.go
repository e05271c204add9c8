package process

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep ends what is left of calls whose supervisor died: every process of
// this user (as root: of any user) that carries the mark of one of callIDs,
// descendants of such processes included as far as they carry it. It repeats
// until it finds none, and returns how many it ended. The error is a
// *SurvivorError if some could not be ended. The caller makes sure that no
// supervisor of these calls is alive.
func Sweep(callIDs []string) (ended int, err error) {
	if len(callIDs) == 0 {
		return 0, nil
	}
	m := newMarks(callIDs...)
	deadline := time.Now().Add(treeWait)
	counted := make(map[int]bool)
	for {
		found := m.find()
		if len(found) == 0 {
			return ended, nil
		}
		for _, t := range found {
			if !counted[t.pid] {
				counted[t.pid] = true
				ended++
			}
			t.kill()
		}
		late := false
		for _, t := range found {
			late = !t.awaitExit(deadline) || late
			t.close()
		}
		if late || time.Now().After(deadline) {
			return ended, survivors(m)
		}
	}
}

func survivors(m marks) error {
	e := new(SurvivorError)
	for _, t := range m.find() {
		e.PIDs = append(e.PIDs, t.pid)
		t.close()
	}
	if len(e.PIDs) == 0 {
		return nil
	}
	return e
}

// A target is a marked process, held so that its number cannot come to mean
// another process between the check and the signal.
type target struct {
	pid, pidfd int // pidfd is -1 where the kernel has none
}

// find lists the living marked processes except this one.
func (m marks) find() []target {
	self, uid := os.Getpid(), os.Geteuid()
	var found []target
	for _, pid := range allProcesses() {
		if pid == self || pid == 1 || !ownedBy(pid, uid) || !m.swept(pid) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			fd = -1
		}
		t := target{pid: pid, pidfd: fd}
		// Once more, now that the process is held; and a zombie is no target.
		if o, _, ok := readStat(pid); !ok || o.dead || !m.swept(pid) {
			t.close()
			continue
		}
		found = append(found, t)
	}
	return found
}

// swept reports whether the process carries one of the marks and is none that other code
// of this process started in the very moment in which a call's child was: that has the
// mark in its limit alone, and this process's group.
func (m marks) swept(pid int) bool {
	if m.inEnvironment(pid) {
		return true
	}
	if !m.inLimit(pid) {
		return false
	}
	o, parent, ok := readStat(pid)
	return ok && (parent != os.Getpid() || o.group != ownGroup())
}

// ownedBy reports whether the process runs as uid; root may end anybody's.
func ownedBy(pid, uid int) bool {
	if uid == 0 {
		return true
	}
	info, err := os.Lstat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

func (t target) kill() {
	if t.pidfd < 0 {
		_ = unix.Kill(t.pid, unix.SIGKILL)
		return
	}
	_ = unix.PidfdSendSignal(t.pidfd, unix.SIGKILL, nil, 0)
}

func (t target) awaitExit(deadline time.Time) bool {
	if t.pidfd < 0 {
		return awaitExitByStat(t.pid, deadline)
	}
	return pollPidfd(t.pidfd, deadline)
}

func (t target) close() {
	if t.pidfd >= 0 {
		unix.Close(t.pidfd)
	}
}
