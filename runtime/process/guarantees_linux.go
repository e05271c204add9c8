package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Guarantees asks the running kernel what it can do; it executes nothing. The
// last three are not used by this package: they say what stronger isolation
// the system would allow.
func Guarantees() []Guarantee {
	return []Guarantee{
		parentDeathSignal(), subreaper(), childrenList(), pidfds(), secondMark(),
		namespaces("user-namespaces", syscall.CLONE_NEWUSER),
		namespaces("pid-namespaces", syscall.CLONE_NEWUSER|syscall.CLONE_NEWPID),
		landlock(),
	}
}

func guarantee(name string, err error, holds, lacks string) Guarantee {
	if err == nil {
		return Guarantee{Name: name, Holds: true, Detail: holds}
	}
	return Guarantee{Name: name, Detail: fmt.Sprintf("%s (%v)", lacks, err)}
}

func parentDeathSignal() Guarantee {
	var signal int32
	err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0)
	return guarantee("parent-death-signal", err,
		"a plugin dies at once when this program is killed",
		"a plugin survives when this program is killed, until the next command")
}

func subreaper() Guarantee {
	var set int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0, 0, 0)
	return guarantee("child-subreaper", err,
		"processes that escape from a plugin come back to this program and are ended with the call",
		"processes that leave a plugin's process group outlive the call")
}

func childrenList() Guarantee {
	_, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat("/proc/self/stat"); statErr == nil {
			return Guarantee{Name: "children-list", Detail: "escaped processes are found by reading all of /proc, which is slower"}
		}
	}
	return guarantee("children-list", err,
		"escaped processes are found at once",
		"escaped processes cannot be found")
}

func pidfds() Guarantee {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		unix.Close(fd)
	}
	return guarantee("pidfd", err,
		"signals go to the process that was meant, never to a later one with its number",
		"processes are signalled by number, right after they were checked")
}

func secondMark() Guarantee {
	var limit unix.Rlimit
	err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &limit)
	if err == nil && limit.Max < limitMark("") {
		err = fmt.Errorf("the hard limit of RLIMIT_LOCKS is %d", limit.Max)
	}
	return guarantee("second-mark", err,
		"processes of a call are recognised even if they clear their environment",
		"processes of a call that clear their environment are not recognised")
}

// namespaces clones a child that fails to execute a name that cannot exist:
// the kind of the failure tells whether the clone itself was allowed.
func namespaces(name string, flags uintptr) Guarantee {
	_, err := syscall.ForkExec("/dev/null/none", []string{"none"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: flags},
	})
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOENT) {
		err = nil
	}
	return guarantee(name, err, "available to this user (not used)", "not available to this user")
}

func landlock() Guarantee {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return guarantee("landlock", errno, "", "not available")
	}
	return Guarantee{Name: "landlock", Holds: true, Detail: fmt.Sprintf("ABI %d (not used)", abi)}
}
