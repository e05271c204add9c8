package process

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// marks recognises the processes of a set of calls.
type marks struct {
	ids    map[string]bool
	limits map[uint64]bool
}

func newMarks(callIDs ...string) marks {
	m := marks{ids: make(map[string]bool, len(callIDs)), limits: make(map[uint64]bool, len(callIDs))}
	for _, id := range callIDs {
		m.ids[id] = true
		m.limits[limitMark(id)] = true
	}
	return m
}

// limitMark maps a call id to a soft limit: a 62-bit FNV-1a hash with bit 62
// set, so that it is no number that anybody would choose as a limit.
func limitMark(callID string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, b := range []byte(callID) {
		h = (h ^ uint64(b)) * prime
	}
	return 1<<62 | h>>2
}

var limitMu sync.Mutex

// withLimitMark runs start while this process's own soft limit is mark, so that
// the child has it from its first instruction. A child that other code starts
// in that moment has it too; orphans and swept tell it apart. If the hard limit is lower
// than the mark, start runs without one.
func withLimitMark(mark uint64, start func()) {
	limitMu.Lock()
	defer limitMu.Unlock()
	var before unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &before) == nil {
		marked := unix.Rlimit{Cur: mark, Max: before.Max}
		if unix.Prlimit(0, unix.RLIMIT_LOCKS, &marked, nil) == nil {
			defer unix.Prlimit(0, unix.RLIMIT_LOCKS, &before, nil)
		}
	}
	start()
}

func (m marks) inLimit(pid int) bool {
	var limit unix.Rlimit
	return unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit) == nil && m.limits[limit.Cur]
}

// maxEnvironment bounds what is read of a process's environment; Linux itself
// allows about a quarter of the stack limit.
const maxEnvironment = 8 << 20

func (m marks) inEnvironment(pid int) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer f.Close()
	environ, _ := io.ReadAll(io.LimitReader(f, maxEnvironment))
	name := []byte(MarkVariable + "=")
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, name); ok && m.ids[string(value)] {
			return true
		}
	}
	return false
}
