package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A Runner runs cases against one program.
type Runner struct {
	Command  []string      // the program and its arguments; the program is found as a shell would, or relative to the working directory
	Package  *Package      // what the program is the plugin of; nil: the corpus's own package of each case
	Parallel int           // cases at a time; 0: as many as there are processors
	Patience time.Duration // how long an expected frame may take; 0: 5 s
	Stop     bool          // stop at the first case that fails
	Unprobed bool          // do not try first whether the program answers at all
	Done     func(Result)  // called after each case, one at a time; may be nil
}

// A Result is how one case went.
type Result struct {
	Case     *Case
	Failure  *Failure // nil: it passed
	Duration time.Duration
}

// A Failure says at which step a case failed and why.
type Failure struct {
	Line               int    // of the case's file; 0: after its last step
	Step               string // as the case has it
	Expected, Received string
	Fault              string   // set instead of the two: the case could not be run
	Trace              []string // the last frames, "->" to the program and "<-" from it
	Stderr             string   // the end of the program's standard error
}

const defaultPatience = 5 * time.Second

// ErrNoCommand is returned where there is nothing to run.
var ErrNoCommand = errors.New("no program is named")

// A DeadError says that the program answers nothing at all: it ends, or is
// silent, before the first frame of a case that every plugin passes.
type DeadError struct {
	Command  []string
	Protocol Protocol
	How      string
	Stderr   string
}

func (e *DeadError) Error() string {
	return fmt.Sprintf("%s is no plugin of %s: to the first message it answered with %s", strings.Join(e.Command, " "), e.Protocol, e.How)
}

// Run runs the cases and returns their results in the cases' order. It returns
// an error, and runs nothing, if the program cannot be started or does not
// answer the first message.
func (r *Runner) Run(ctx context.Context, cases []*Case) ([]Result, error) {
	command, err := r.resolve()
	if err != nil {
		return nil, err
	}
	if !r.Unprobed {
		if err := r.probe(command, cases); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parallel := r.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	var (
		results = make([]Result, len(cases))
		next    = make(chan int)
		wg      sync.WaitGroup
		telling sync.Mutex
	)
	for range min(parallel, len(cases)) {
		wg.Go(func() {
			for i := range next {
				result := r.one(ctx, command, cases[i])
				telling.Lock()
				results[i] = result
				if result.Failure != nil && r.Stop {
					cancel()
				}
				if r.Done != nil {
					r.Done(result)
				}
				telling.Unlock()
			}
		})
	}
	for i := range cases {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	done := results[:0:0]
	for _, result := range results {
		if result.Case != nil {
			done = append(done, result)
		}
	}
	if len(done) < len(cases) && !r.Stop {
		return done, ctx.Err()
	}
	return done, nil
}

// resolve finds the program, so that it can be started from another directory.
// Arguments stay as they are.
func (r *Runner) resolve() ([]string, error) {
	if len(r.Command) == 0 {
		return nil, ErrNoCommand
	}
	path, err := exec.LookPath(r.Command[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, &StartError{r.Command, err}
	}
	return append([]string{path}, r.Command[1:]...), nil
}

// probe starts the program once for each protocol among the cases and waits for
// its first word.
func (r *Runner) probe(command []string, cases []*Case) error {
	for _, p := range []Protocol{Session, Call} {
		used := false
		for _, c := range cases {
			used = used || c.Protocol == p
		}
		if !used {
			continue
		}
		c := &Case{Name: "probe/first", Protocol: p, Deadline: defaultDeadline, Steps: []step{{verb: "send", text: "hello"}}}
		if p == Call {
			c.Steps = []step{{verb: "rpc", text: "plugin.health"}}
		}
		run, err := r.prepare(command, c)
		if err != nil {
			return err
		}
		err = run.do(c.Steps)
		if err == nil {
			err = run.await(func() bool { return len(run.pending) > 0 }, "an answer")
		}
		run.cleanup()
		var start *StartError
		var fail *failure
		switch {
		case errors.As(err, &start):
			return err
		case errors.As(err, &fail):
			return &DeadError{r.Command, p, fail.received, lastLines(run.stderr.String())}
		case err != nil:
			return err
		}
	}
	return nil
}

// prepare makes the directories of a case.
func (r *Runner) prepare(command []string, c *Case) (*run, error) {
	root, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	run := &run{
		c: c, command: command, dir: filepath.Join(root, "package"), state: filepath.Join(root, "state"), patience: r.Patience,
		vars: variables{}, marks: map[string]time.Time{}, stop: make(chan struct{}),
	}
	if run.patience == 0 {
		run.patience = defaultPatience
	}
	if err := os.Mkdir(run.state, 0o700); err != nil {
		return nil, err
	}
	if run.own = r.Package; run.own != nil {
		run.dir = run.own.Dir
	}
	run.vars["root"], run.vars["dir"] = quote(run.state), quote(run.dir)
	if run.own != nil {
		return run, nil
	}
	if run.ops, err = unpack(c, run.dir); err != nil {
		return nil, err
	}
	return run, nil
}

func (r *run) cleanup() {
	close(r.stop)
	if r.p != nil {
		r.p.end()
	}
	_ = os.RemoveAll(filepath.Dir(r.state)) // what a killed child holds open is the system's to remove
}

// one runs one case.
func (r *Runner) one(ctx context.Context, command []string, c *Case) Result {
	began := time.Now()
	result := Result{Case: c}
	run, err := r.prepare(command, c)
	if err != nil {
		result.Failure = &Failure{Fault: err.Error()}
		return result
	}
	deadline := max(c.Deadline, c.Deadline*run.patience/defaultPatience)
	done := make(chan error, 1)
	go func() {
		err := run.do(c.Steps)
		if err == nil {
			err = run.settle()
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-time.After(deadline):
		err = run.interrupt(done, &failure{"the case to end within " + deadline.String(), "no end"})
	case <-ctx.Done():
		err = run.interrupt(done, ctx.Err())
	}
	run.cleanup()
	if err != nil {
		result.Failure = run.failure(err)
	}
	result.Duration = time.Since(began)
	return result
}

// interrupt kills the program so that the steps end, and waits for them.
func (r *run) interrupt(done <-chan error, why error) error {
	if p := r.running.Load(); p != nil {
		killGroup(p.cmd)
	}
	<-done
	return why
}

func (r *run) failure(err error) *Failure {
	f := &Failure{Line: r.step.line, Step: r.step.String(), Trace: r.trace, Stderr: lastLines(r.stderr.String())}
	var wrong *failure
	var mis *mismatch
	switch {
	case errors.As(err, &wrong):
		f.Expected, f.Received = wrong.expected, wrong.received
	case errors.As(err, &mis):
		f.Expected, f.Received = mis.expected, mis.received
	default:
		f.Fault = err.Error()
	}
	return f
}

// lastLines returns the end of a text: at most ten lines and 2 KiB.
func lastLines(s string) string {
	s = strings.TrimRight(s, "\n")
	if len(s) > 2048 {
		s = s[len(s)-2048:]
	}
	lines := strings.Split(s, "\n")
	if len(lines) > 10 {
		lines = lines[len(lines)-10:]
	}
	return strings.Join(lines, "\n")
}
