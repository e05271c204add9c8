//go:build unix

package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
)

const toolVariable = "TEST_TOOL"

// A job is what another process does with a world's data directory. Every job begins
// like every command: the directory is opened, and what killed commands left is ended.
type job struct {
	Do      string // "run", "install", "cancel" or "recover"
	World   string
	Data    string
	Request runtime.Request
	Source  string // of install
	Times   int    // of install
	ID      string // of cancel
	Wait    bool   // after the beginning, for the end of stdin
	Group   bool   // in a process group of its own; see package process, whose Start must not run meanwhile
}

// An answer is what a job came to.
type answer struct {
	Ended     int // processes that the beginning ended
	Call      string
	Replayed  bool
	Version   string
	Err, Code string
	Busy      string // the running operation's id
	Outcome   string // the recorded state of the operation that must not run again
	Stopped   bool
}

// A tool is a process that does a job.
type tool struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	at  *os.File // ends when the first interrupt was seen
	out bytes.Buffer
	log bytes.Buffer
}

func (w *world) start(j job) *tool {
	w.t.Helper()
	j.World, j.Data, j.Request.Ref = w.dir, w.data, sample
	if j.Do == "run" && j.Request.Method != pkgmgr.MethodHealth {
		j.Request.Project = w.project
	}
	spec, err := json.Marshal(j)
	w.must(err)
	k := &tool{t: w.t, cmd: exec.Command(must(os.Executable()))}
	k.cmd.Env = append(os.Environ(), toolVariable+"="+string(spec))
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: j.Group}
	k.cmd.Stdout, k.cmd.Stderr = &k.out, &k.log
	k.in, err = k.cmd.StdinPipe()
	w.must(err)
	at, theirs, err := os.Pipe()
	w.must(err)
	k.at, k.cmd.ExtraFiles = at, []*os.File{theirs}
	w.must(k.cmd.Start())
	theirs.Close()
	w.t.Cleanup(func() {
		at.Close()
		if k.cmd.ProcessState == nil {
			k.cmd.Process.Kill()
			k.cmd.Wait()
		}
	})
	return k
}

// awaitInterrupted returns when the tool has seen the first interrupt.
func (k *tool) awaitInterrupted() { io.Copy(io.Discard, k.at) }

// answer waits for the tool's end.
func (k *tool) answer() (a answer) {
	k.t.Helper()
	k.in.Close()
	if err := k.cmd.Wait(); err != nil {
		k.t.Fatalf("tool: %v\n%s", err, k.log.String())
	}
	if err := json.Unmarshal(k.out.Bytes(), &a); err != nil {
		k.t.Fatalf("tool: %v\n%s%s", err, k.out.String(), k.log.String())
	}
	return a
}

func toolMain() {
	spec, ok := os.LookupEnv(toolVariable)
	if !ok {
		return
	}
	var j job
	if err := json.Unmarshal([]byte(spec), &j); err != nil {
		panic(err)
	}
	var a answer
	err := j.perform(&a)
	if err != nil {
		a.Err, a.Code = err.Error(), runtime.Code(err)
		var busy *pkgmgr.Busy
		if errors.As(err, &busy) {
			a.Busy = busy.Operation
		}
		var outcome *pkgmgr.Outcome
		if errors.As(err, &outcome) {
			a.Outcome = outcome.State
		}
		a.Stopped = errors.Is(err, runtime.ErrInterrupted)
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func (j job) perform(a *answer) error {
	home, err := pkgmgr.Open(j.Data, pkgmgr.Options{})
	if err != nil {
		return err
	}
	ctx, force := interruptible()
	w := &world{dir: j.World}
	host := &runtime.Host{Home: home, Version: "test", Lookup: w.lookup, Force: force}
	if a.Ended, err = host.Recover(ctx); err != nil {
		return err
	}
	if j.Wait {
		io.Copy(io.Discard, os.Stdin)
	}
	switch j.Do {
	case "run":
		r, err := host.Run(ctx, j.Request)
		if r != nil {
			a.Call, a.Replayed, a.Version = r.Call, r.Replayed, r.Version
		}
		return err
	case "install":
		for range j.Times {
			if _, err := home.Install(ctx, j.Source, pkgmgr.InstallOptions{Default: pkgmgr.DefaultReplace}); err != nil {
				return err
			}
		}
	case "cancel":
		_, err = home.CancelOperation(ctx, j.ID, "another process")
	}
	return err
}

// interruptible is what the command line does: the first interrupt cancels, the
// second forces.
func interruptible() (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	force := make(chan struct{})
	syscall.CloseOnExec(3)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	go func() {
		<-signals
		cancel()
		os.NewFile(3, "interrupted").Close()
		<-signals
		close(force)
	}()
	return ctx, force
}
