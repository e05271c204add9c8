package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A process is the program under test while it runs.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	chunks int           // bytes of one write, 0 for all at once
	exited chan struct{} // closed when it has ended and its output was read
	state  *os.ProcessState
	stderr *tail
	dial   *os.File // waits for the program's connection; nil without a socket
}

// tail keeps the last bytes of standard error, and all of it for searching.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// maxStderr bounds what is kept of a program's standard error.
const maxStderr = 4 << 20

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := maxStderr - t.text.Len(); room > 0 {
		t.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// A StartError says that the program could not be started at all.
type StartError struct {
	Command []string
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s cannot be started: %v", strings.Join(e.Command, " "), e.Err)
}
func (e *StartError) Unwrap() error { return e.Err }

// environment is what a host gives a plugin, and what a case adds.
func environment(p Protocol, extra ...string) []string {
	env := []string{"SWITCHYARD_PLUGIN_PROTOCOL=" + string(p)}
	for _, name := range []string{"PATH", "TMPDIR", "LANG", "SYSTEMROOT"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, extra...)
}

// start runs command in dir. stderr goes on from a process before it.
func start(command []string, dir, state string, c *Case, stderr *tail) (*process, error) {
	p := &process{exited: make(chan struct{}), stderr: stderr}
	var extra []string
	if c.Protocol == Session {
		extra = append(extra, "SWITCHYARD_PLUGIN_STATE="+state)
	}
	if c.Unix {
		path := filepath.Join(filepath.Dir(state), "s")
		_ = os.Remove(path) // of a process before
		listener, err := listen(path)
		if err != nil {
			return nil, err
		}
		p.dial = listener
		extra = append(extra, "SWITCHYARD_PLUGIN_SOCKET="+path)
	}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr, p.cmd.WaitDelay = dir, environment(c.Protocol, extra...), p.stderr, time.Second
	ownGroup(p.cmd)
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = outW
	in, err := p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	outW.Close()
	if err != nil {
		outR.Close()
		return nil, &StartError{command, err}
	}
	p.in, p.out = in, outR
	go func() {
		_ = p.cmd.Wait() // its state says how it ended
		p.state = p.cmd.ProcessState
		close(p.exited)
	}()
	if c.Unix {
		return p, p.connect()
	}
	return p, nil
}

// connect waits for the program's connection.
func (p *process) connect() error {
	defer p.dial.Close()
	conn, err := accept(p.dial, 5*time.Second)
	if err != nil {
		return &failure{"the program to connect to SWITCHYARD_PLUGIN_SOCKET within 5s", err.Error()}
	}
	p.in.Close()
	p.in, p.out = halfClose{conn}, conn
	return nil
}

// write sends bytes, in pieces where the case wants that. A program that has
// gone is noticed by what it did not send, not here.
func (p *process) write(data []byte) error {
	n := len(data)
	if p.chunks > 0 {
		n = p.chunks
	}
	for len(data) > 0 {
		piece := data[:min(n, len(data))]
		if _, err := p.in.Write(piece); err != nil {
			return err
		}
		data = data[len(piece):]
	}
	return nil
}

// end kills what is left of the process and its children.
func (p *process) end() {
	killGroup(p.cmd)
	<-p.exited
	p.in.Close()
	if closer, ok := p.out.(io.Closer); ok {
		closer.Close()
	}
}

// memory returns the resident bytes of the process, or false where the system
// does not tell.
func (p *process) memory() (int64, bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(s.Text(), "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}
