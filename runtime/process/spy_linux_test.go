package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts are ways into another process of the same user. Each is nil if it is open.
var attempts = []struct {
	name string
	try  func(pid int) error
}{
	{"environment", func(pid int) error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); return err }},
	{"memory", func(pid int) error {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
		if err == nil {
			f.Close()
		}
		return err
	}},
	{"open files", func(pid int) error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); return err }},
	{"debugger", unix.PtraceSeize},
	{"remote reads", func(pid int) error {
		b := make([]byte, 1)
		local := []unix.Iovec{{Base: unsafe.SliceData(b), Len: 1}}
		_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0, Len: 1}}, 0)
		if errors.Is(err, unix.EFAULT) { // it was allowed, and there is nothing at 0
			return nil
		}
		return err
	}},
	{"taken descriptor", func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	}},
}

// spy says of each way into a process whether it is open.
func spy(pid int) {
	for _, a := range attempts {
		err := a.try(pid)
		if errors.Is(err, unix.ENOSYS) {
			fmt.Println(a.name, "unknown")
		} else {
			fmt.Println(a.name, err == nil)
		}
	}
}

// TestClosedToChildren holds that a plugin cannot look into the process that supervises
// it, whose environment may hold secrets and whose memory holds the answers of others.
// Nothing keeps one that runs as root.
func TestClosedToChildren(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may look into every process; TestUnprivileged runs this test")
	}
	t.Parallel()
	s := spec(t, "good")
	s.Args = []string{"-helper", "spy"}
	c := start(t, s)
	out, err := io.ReadAll(c.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if exit := finish(c); !exit.Clean() {
		t.Fatalf("%v", exit)
	}
	if n := strings.Count(string(out), "\n"); n != len(attempts) || strings.Contains(string(out), "true") {
		t.Errorf("open to the child:\n%s", out)
	}
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Errorf("closed to itself: %v", err)
	}
}
