// Package process supervises one child process at a time: it starts exactly the
// file that the caller opened and hashed, in a process group of its own with a given
// environment, drains and redacts its stderr, and ends the whole tree of its
// descendants, whatever they did to escape, before it reports the exit.
//
// On Linux the child dies with this process (parent-death signal), every
// descendant carries the call's mark (see MarkVariable), orphans come back to
// this process (child subreaper), and Sweep ends what an earlier process left
// after it was killed. Guarantees says which of these the running kernel
// offers. On other Unix systems the process group is ended and nothing more is
// promised; on Windows the tree lives in a job object.
//
// The package refuses to know what a plugin is: it reads no protocol, takes no
// decision about trust, never uses a shell or a search path, never inherits
// this process's environment, and never blocks a child that writes to stderr.
//
// Start makes the whole process a child subreaper for its remaining life, and on
// Linux closes its memory, environment and descriptors to other processes of the
// same user: a debugger cannot attach any more, and no core is dumped.
// Programs that use this package must not wait for arbitrary children
// (wait4(-1)); children that they start themselves are left alone, unless they
// put one into a process group of its own in the very moment of a Start.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
)

// DefaultGrace is how long a child may take to exit after its stdin closes.
const DefaultGrace = 3 * time.Second

const (
	stderrGrace = 500 * time.Millisecond // from the end of the tree to the end of stderr
	killWait    = 5 * time.Second        // from SIGKILL to giving a child up as stuck in the kernel
	treeWait    = 5 * time.Second        // for ending descendants
)

// ErrSpec is wrapped by every error that a faulty Spec causes.
var ErrSpec = errors.New("invalid process specification")

// ErrChanged reports that Spec.Path no longer names the file that was opened.
var ErrChanged = errors.New("path no longer names the opened file")

// A Spec says what to start. All fields but Args, Env and Now are
// required.
type Spec struct {
	// Executable is the opened file whose bytes the caller verified. A native
	// program is executed from this very inode, even if Path was replaced. A
	// script ("#!") is executed by Path, after checking that Path still is this
	// inode, because its interpreter opens it by name and it finds what lies
	// beside it by name. Start neither moves its offset nor closes it.
	Executable *os.File
	// Path is the file's absolute real path and becomes argv[0].
	Path string
	Args []string // after argv[0]
	Dir  string   // absolute working directory
	// Env is the whole environment, except the call's mark, which Start adds.
	Env []string
	// CallID identifies the call: 1 to 64 of A–Z, a–z, 0–9, "-", "_". It must be
	// unique among the calls of this user, for Sweep goes by it.
	CallID string
	// Secrets masks what the child is given to know and its stderr must not tell.
	Secrets *redact.Values
	// Now tells the time of lines on stderr. nil: time.Now.
	Now func() time.Time
}

// A StartError reports that the child could not be started. Nothing runs.
type StartError struct {
	Path string
	// Interpreter is the program that the file's "#!" line names, if that is
	// what is missing or cannot be executed.
	Interpreter string
	Err         error
}

func (e *StartError) Error() string {
	if e.Interpreter != "" {
		return fmt.Sprintf("start \"%s\": its interpreter \"%s\": %v", e.Path, e.Interpreter, e.Err)
	}
	return fmt.Sprintf("start \"%s\": %v", e.Path, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// An Exit is how a child ended.
type Exit struct {
	Code   int    // exit status, or -1 if a signal ended it
	Signal string // the signal's name, as "SIGSEGV", or ""
	// Killed is true if the child did not end by itself: Kill was called, or the
	// grace of Finish ran out. Reason is what was given to Kill first.
	Killed bool
	Reason string
	// Leftovers counts descendants that outlived the child and were ended.
	Leftovers int
	// Survivors counts processes that could not be ended: stuck in the kernel,
	// or running as somebody else.
	Survivors int
	Elapsed   time.Duration // from start to the end of the tree
}

// Clean reports whether the child ended by itself with status 0, leaving nothing.
func (e Exit) Clean() bool {
	return e.Code == 0 && e.Signal == "" && !e.Killed && e.Survivors == 0
}

// String describes the exit in words, as "exit status 3" or "ended by SIGSEGV".
func (e Exit) String() string {
	switch {
	case e.Killed && e.Reason != "":
		return "killed: " + e.Reason
	case e.Killed:
		return "killed"
	case e.Signal != "":
		return "ended by " + e.Signal
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

// A Child is a running supervised process. The caller must call Finish once;
// all methods may be called from any goroutine.
type Child struct {
	Stdin  *os.File // write end; Finish closes it
	Stdout *os.File // read end; the caller reads it, Finish does not close it
	Stderr *Log     // filled while the child runs

	stderr  *os.File
	handle  handle
	started time.Time
	drained chan struct{} // closed when stderr reached its end
	done    chan struct{} // closed when exit is final

	mu     sync.Mutex
	reaped bool   // no signal may be sent any more
	killed bool   // Kill was called while the child lived
	reason string // of the first Kill
	exit   Exit   // valid after done
}

// Start starts the child. The error is a *StartError, or wraps ErrSpec. A script whose
// "#!" line systems read differently, or not at all, is refused before anything runs.
//
// The supervising goroutine stays locked to its thread for the child's life:
// the parent-death signal follows the thread, not the process.
func Start(spec Spec) (*Child, error) {
	run, err := spec.check()
	if err != nil {
		return nil, err
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, &StartError{Path: spec.Path, Err: err}
	}
	c := &Child{
		Stdin: pipes.stdin, Stdout: pipes.stdout, stderr: pipes.stderr,
		Stderr:  &Log{known: spec.Secrets},
		drained: make(chan struct{}),
		done:    make(chan struct{}),
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c.started = time.Now()
		err := c.handle.start(spec, run.byPath, pipes)
		pipes.closeChildEnds()
		started <- err
		if err == nil {
			c.supervise()
		}
	}()
	if err := <-started; err != nil {
		pipes.closeParentEnds()
		return nil, startError(spec, run, err)
	}
	now := spec.Now
	if now == nil {
		now = time.Now
	}
	go func() {
		c.Stderr.drain(c.stderr, now)
		close(c.drained)
	}()
	return c, nil
}

// supervise waits for the child and ends what it leaves.
func (c *Child) supervise() {
	c.handle.wait()
	c.mu.Lock()
	code, signal := c.handle.reap()
	c.reaped = true
	killed, reason := c.killed && signal == killSignal, c.reason
	c.mu.Unlock()
	ended, survivors := c.handle.endTree(time.Now().Add(treeWait))

	// Every holder of stderr is gone now, unless it could not be ended.
	select {
	case <-c.drained:
	default:
		timer := time.AfterFunc(stderrGrace, func() { c.stderr.Close() })
		<-c.drained
		timer.Stop()
	}
	c.stderr.Close()

	exit := Exit{
		Code: code, Signal: signal, Killed: killed,
		Leftovers: ended, Survivors: survivors, Elapsed: time.Since(c.started),
	}
	if killed {
		exit.Reason = reason
	}
	c.mu.Lock()
	c.exit = exit
	c.mu.Unlock()
	close(c.done)
}

// Done is closed once the child and its whole tree have ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Kill ends the child's process group at once and returns without waiting.
// The first reason is the one that Exit reports; after the child's own exit
// Kill does nothing.
func (c *Child) Kill(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if !c.killed {
		c.killed, c.reason = true, reason
	}
	c.handle.kill()
}

// Finish closes stdin, waits up to grace (or until ctx ends, if that is
// earlier) for the child to exit, then kills it, and returns when the whole
// tree has ended and stderr is read. It always returns: a child that even
// SIGKILL does not end within seconds, being stuck in the kernel, is reported
// as a survivor. Finish may be called again and then returns the same Exit.
func (c *Child) Finish(ctx context.Context, grace time.Duration) Exit {
	c.Stdin.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.result()
	case <-ctx.Done():
		c.Kill(context.Cause(ctx).Error())
	case <-timer.C:
		c.Kill(fmt.Sprintf("still running %v after its stdin closed", grace))
	}
	timer.Reset(killWait + treeWait + stderrGrace)
	select {
	case <-c.done:
		return c.result()
	case <-timer.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		return Exit{Code: -1, Killed: true, Reason: c.reason, Survivors: 1, Elapsed: time.Since(c.started)}
	}
}

func (c *Child) result() Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// How an executable is started.
type how struct {
	byPath bool    // by its path, being no native program
	script *script // nil for what has no "#!" line
}

// check validates s and says how its executable is started.
func (s Spec) check() (how, error) {
	if s.Executable == nil {
		return how{}, fmt.Errorf("%w: no executable", ErrSpec)
	}
	if !filepath.IsAbs(s.Path) || !filepath.IsAbs(s.Dir) {
		return how{}, fmt.Errorf("%w: path and directory must be absolute", ErrSpec)
	}
	if !validCallID(s.CallID) {
		return how{}, fmt.Errorf("%w: call id \"%s\"", ErrSpec, s.CallID)
	}
	for _, kv := range s.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == MarkVariable {
			return how{}, fmt.Errorf("%w: environment entry \"%s\"", ErrSpec, name)
		}
	}
	info, err := s.Executable.Stat()
	if err != nil {
		return how{}, &StartError{Path: s.Path, Err: err}
	}
	if !info.Mode().IsRegular() {
		return how{}, &StartError{Path: s.Path, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	}
	native, err := runsByInode(s.Executable)
	if err != nil {
		return how{}, &StartError{Path: s.Path, Err: err}
	}
	if native {
		return how{}, nil
	}
	script, err := readScript(s.Executable)
	if err != nil {
		return how{}, &StartError{Path: s.Path, Err: err}
	}
	named, err := os.Lstat(s.Path)
	if err != nil {
		return how{}, &StartError{Path: s.Path, Err: err}
	}
	if !os.SameFile(info, named) {
		return how{}, &StartError{Path: s.Path, Err: ErrChanged}
	}
	return how{byPath: true, script: script}, nil
}

// startError explains a system's error by what it does not say: that the working
// directory, the script's interpreter or the program's loader is what is missing, or
// that the file is no program at all.
func startError(spec Spec, run how, err error) error {
	e := &StartError{Path: spec.Path, Err: err}
	if _, dirErr := os.Stat(spec.Dir); dirErr != nil {
		e.Err = fmt.Errorf("working directory: %w", dirErr)
		return e
	}
	if run.script != nil {
		if fault := run.script.missing(); fault != nil {
			e.Interpreter, e.Err = run.script.interpreter, fault
		}
		return e
	}
	switch {
	case isNoProgram(err) && run.byPath:
		e.Err = fmt.Errorf(`neither a program of this system nor a script that begins with "#!": %w`, err)
	case isNoProgram(err):
		e.Err = fmt.Errorf("a program for another system: %w", err)
	case errors.Is(err, fs.ErrNotExist) && !run.byPath:
		e.Err = fmt.Errorf("its dynamic loader is missing: %w", err)
	}
	return e
}

func validCallID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, b := range []byte(id) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '-', b == '_':
		default:
			return false
		}
	}
	return true
}

// pipes are the three pipes between this process and a child.
type pipes struct {
	stdin, stdout, stderr                *os.File // this process's ends
	childStdin, childStdout, childStderr *os.File
}

func newPipes() (*pipes, error) {
	p := new(pipes)
	var err error
	if p.childStdin, p.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stdout, p.childStdout, err = os.Pipe(); err == nil {
		p.stderr, p.childStderr, err = os.Pipe()
	}
	if err != nil {
		p.closeChildEnds()
		p.closeParentEnds()
		return nil, err
	}
	return p, nil
}

// Closing a nil *os.File is an error, not a panic.

func (p *pipes) closeChildEnds() {
	p.childStdin.Close()
	p.childStdout.Close()
	p.childStderr.Close()
}

func (p *pipes) closeParentEnds() {
	p.stdin.Close()
	p.stdout.Close()
	p.stderr.Close()
}

// PID returns the child's process id, which is the system's to use again once the child
// has ended.
func (c *Child) PID() int { return c.handle.id() }
