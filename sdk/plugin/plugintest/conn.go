package plugintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/lines"
)

// A conn is a running plugin and the two ends of its streams.
type conn struct {
	in      io.WriteCloser
	answers chan lines.Line // closed at the end of the plugin's output
	ended   chan error      // the plugin's end, once; nil if it was orderly
	kill    func()          // ends the plugin at once; may be called twice
	stderr  *tail
}

// follow reads the plugin's output until it ends.
func (c *conn) follow(out io.Reader, stop <-chan struct{}) {
	r := lines.NewReader(out, plugin.MaxMessageBytes)
	defer close(c.answers)
	for {
		l, err := r.Next()
		if err != nil {
			return
		}
		select {
		case c.answers <- l:
		case <-stop:
			return
		}
	}
}

// inProcess runs serve over two pipes.
func inProcess(serve func(context.Context, io.Reader, io.Writer) error) *conn {
	toPlugin, in := io.Pipe()
	out, fromPlugin := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &conn{in: in, answers: make(chan lines.Line), ended: make(chan error, 1), stderr: &tail{}}
	c.kill = func() {
		cancel()
		toPlugin.CloseWithError(errors.New("ended by the test"))
		out.CloseWithError(errors.New("ended by the test"))
	}
	go func() {
		err := serve(ctx, toPlugin, fromPlugin)
		fromPlugin.Close()
		toPlugin.CloseWithError(errors.New("the plugin has returned"))
		if err != nil {
			err = violated("Serve returned %v, not nil", err)
		}
		c.ended <- err
	}()
	go c.follow(out, ctx.Done())
	return c
}

// process starts the executable of the package in dir.
func process(dir string, m plugin.Manifest) (*conn, error) {
	path := filepath.Join(dir, filepath.FromSlash(m.Executable))
	cmd := exec.Command(path, m.Arguments...)
	cmd.Dir = dir
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &conn{in: in, answers: make(chan lines.Line), ended: make(chan error, 1), stderr: &tail{}}
	cmd.Stdout, cmd.Stderr = child, c.stderr
	err = cmd.Start()
	child.Close()
	if err != nil {
		out.Close()
		return nil, violated("the executable does not start: %v", err)
	}
	stop := make(chan struct{})
	c.kill = sync.OnceFunc(func() {
		killGroup(cmd)
		out.Close()
		close(stop)
	})
	go c.follow(out, stop)
	go func() { c.ended <- describe(cmd.Wait()) }()
	return c, nil
}

// describe makes a violation of how a process ended.
func describe(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrWaitDelay):
		return violated("a process that the plugin started still holds its standard error")
	}
	return violated("the plugin ended with %v, not with status 0", err)
}

// environment is what a host gives to a plugin, and nothing more.
func environment() []string {
	env := []string{plugin.EnvProtocol + "=" + plugin.Protocol}
	names := []string{"PATH", "TMPDIR", "LANG"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT")
	}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// A tail keeps the last bytes of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailBytes):]...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), "\uFFFD")
}

// end closes the plugin's input and waits at most limit until it is gone. What
// the plugin still says after its last answer is a violation.
func (c *conn) end(limit time.Duration) error {
	defer c.kill()
	if err := c.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close input: %w", err)
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	answers, ended := c.answers, c.ended
	for answers != nil || ended != nil {
		select {
		case l, open := <-answers:
			if open {
				return violated("output that answers nothing: %s", shown(l))
			}
			answers = nil
		case err := <-ended:
			if err != nil {
				return err
			}
			ended = nil
		case <-deadline.C:
			if ended == nil {
				return violated("a process that the plugin started still holds its standard output")
			}
			return violated("the plugin did not end within %v after its input was closed", limit)
		}
	}
	return nil
}

// shown renders a line of output for a message.
func shown(l lines.Line) string {
	const most = 200
	switch {
	case l.TooLong:
		return fmt.Sprintf("a line of more than %d bytes", plugin.MaxMessageBytes)
	case len(l.Text) > most:
		return fmt.Sprintf("%q…", l.Text[:most])
	}
	return fmt.Sprintf("%q", l.Text)
}
