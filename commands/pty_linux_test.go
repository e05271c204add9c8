package commands

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a program on a pseudo terminal of its own: what it writes is
// collected, what the test types is its input.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File

	mu     sync.Mutex
	more   *sync.Cond
	output bytes.Buffer
	closed bool
}

// onTerminal starts a program with its three streams on a new pseudo terminal.
func onTerminal(t *testing.T, columns uint16, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	var slave *os.File
	control(t, master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		if err != nil {
			return err
		}
		if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
			return err
		}
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
		return err
	})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	p := &terminal{t: t, cmd: cmd, master: master}
	p.more = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	go p.collect()
	return p
}

func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

func (p *terminal) collect() {
	buffer := make([]byte, 4096)
	for {
		n, err := p.master.Read(buffer)
		p.mu.Lock()
		p.output.Write(buffer[:n])
		p.closed = err != nil // the last process left the terminal
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until text was written after what earlier calls saw, and returns all
// that came up to its end.
func (p *terminal) await(text string) string {
	p.t.Helper()
	const patience = time.Minute
	late := time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed = true
		p.more.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if i := strings.Index(p.output.String(), text); i >= 0 {
			return string(p.output.Next(i + len(text)))
		}
		if p.closed {
			p.t.Fatalf("no %q on the terminal:\n%q", text, p.output.String())
		}
		p.more.Wait()
	}
}

// keys types.
func (p *terminal) keys(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the program and returns its exit code and what it wrote last.
func (p *terminal) end() (code int, rest string) {
	p.t.Helper()
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		p.more.Wait()
	}
	return p.cmd.ProcessState.ExitCode(), p.output.String()
}

// A place is a directory with the program and a home, for tests that start it as a
// process.
type place struct {
	t       *testing.T
	dir     string
	program string
	env     []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &place{t: t, dir: dir, program: filepath.Join(dir, "bin", "switchyard")}
	if err := os.Mkdir(filepath.Dir(p.program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, p.program); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"HOME=" + dir, "PATH=" + filepath.Dir(p.program) + ":" + os.Getenv("PATH"), "TERM=xterm", "LC_ALL=C.UTF-8"}
	return p
}

func (p *place) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// run must exit 0.
func (p *place) run(args ...string) string {
	p.t.Helper()
	out, err := p.command(p.program, args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// write makes a file below the place.
func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}
