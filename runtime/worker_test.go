//go:build unix

package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/switchyard-plugins/switchyard/runtime/process/misbehave"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

const workerFlag = "-worker"

// work makes the plugin a well-behaved one, built with the SDK, that does what the
// options say:
//
//	gate       a method opens the named pipe gate/reached for writing, an operation as
//	           soon as it has had its effect, and then waits at gate/go
//	slow-start the plugin does that before it answers initialize
//	daemon     it leaves a process behind that has a session of its own and no parent
//	stubborn   it does not let a cancelled context end the wait; one that does leaves
//	           the file "told"
//	fail       an operation answers "failed"; partial likewise; crash: it ends instead
//	refuse=N   an operation answers with the error code N, before any effect; with
//	           late, after its effect
//	stderr=N   it writes N numbered lines, with a secret, before it answers
//	environ    its facts are its environment, too
//	unhealthy  it calls itself unhealthy
//	trace      it leaves the file "started"
func (w *world) work(options ...string) {
	w.t.Helper()
	w.tell(append([]string{workerFlag, w.dir}, options...))
}

const gate = "gate"

// makeGate makes the named pipes of "gate" and "slow-start".
func (w *world) makeGate() {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Join(w.dir, gate), 0o755))
	for _, name := range []string{"reached", "go"} {
		w.must(syscall.Mkfifo(filepath.Join(w.dir, gate, name), 0o600))
	}
}

// awaitReached returns when the plugin has reached the gate.
func (w *world) awaitReached() {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, gate, "reached"), os.O_RDONLY, 0)
	w.must(err)
	w.must(f.Close())
}

// letGo returns when the plugin, which waits at the gate, has gone on.
func (w *world) letGo() {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, gate, "go"), os.O_WRONLY, 0)
	w.must(err)
	w.must(f.Close())
}

// told reports whether a waiting plugin was told to end since the last call.
func (w *world) told() bool {
	w.t.Helper()
	return os.Remove(filepath.Join(w.dir, "told")) == nil
}

// effects are what operations did, one line each.
func (w *world) effects() []string {
	w.t.Helper()
	return lines(w.t, filepath.Join(w.dir, "effects"))
}

type worker struct {
	dir     string
	options map[string]string
}

func workerMain() {
	if len(os.Args) < 3 || os.Args[1] != workerFlag {
		return
	}
	k := worker{dir: os.Args[2], options: map[string]string{}}
	for _, o := range os.Args[3:] {
		name, value, _ := strings.Cut(o, "=")
		k.options[name] = value
	}
	document, err := os.ReadFile("plugin.json")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(66)
	}
	if k.has("trace") {
		must(os.Create(filepath.Join(k.dir, "started"))).Close()
	}
	if k.has("daemon") {
		k.daemon()
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		<-interrupts
		must(os.Create(filepath.Join(k.dir, "interrupted"))).Close()
	}()
	if k.has("slow-start") {
		k.reached()
		if err := k.wait(context.Background()); err != nil {
			panic(err)
		}
	}
	plugin.Main(plugin.MustParseManifest(document), k)
}

func (k worker) has(option string) bool { _, ok := k.options[option]; return ok }

func (k worker) Health(ctx context.Context) (plugin.HealthResult, error) {
	k.log()
	if err := k.pass(ctx); err != nil {
		return plugin.HealthResult{}, err
	}
	status := plugin.Healthy
	if k.has("unhealthy") {
		status = plugin.Unhealthy
	}
	return plugin.HealthResult{Status: status, Message: "so it says", CheckedAt: time.Now()}, nil
}

func (k worker) Inspect(ctx context.Context, r plugin.InspectRequest) (plugin.InspectResult, error) {
	k.log()
	if err := k.pass(ctx); err != nil {
		return plugin.InspectResult{}, err
	}
	fact := func(id, value string) plugin.Fact {
		return plugin.Fact{ID: id, Label: id, Value: value, Source: "worker"}
	}
	m := plugin.MustParseManifest(must(os.ReadFile("plugin.json")))
	facts := []plugin.Fact{fact("root", r.Project.Root), fact("id", r.Project.ID), fact("name", r.Project.DisplayName),
		fact("version", m.Version)}
	if k.has("environ") {
		for _, e := range os.Environ() {
			facts = append(facts, fact("environ", e))
		}
	}
	return plugin.InspectResult{Summary: "one project", Facts: facts, ObservedAt: time.Now()}, nil
}

func (k worker) Operate(ctx context.Context, r plugin.OperateRequest) (plugin.OperateResult, error) {
	k.log()
	refusal, refuses := &plugin.Error{Message: "not today"}, k.has("refuse")
	fmt.Sscan(k.options["refuse"], &refusal.Code)
	if refuses && !k.has("late") {
		return plugin.OperateResult{}, refusal
	}
	f, err := os.OpenFile(filepath.Join(k.dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return plugin.OperateResult{}, err
	}
	fmt.Fprintf(f, "%s %s\n", r.Action, r.Input)
	f.Close()
	if refuses {
		return plugin.OperateResult{}, refusal
	}
	if err := k.pass(ctx); err != nil {
		return plugin.OperateResult{}, err
	}
	status := plugin.Succeeded
	switch {
	case k.has("crash"):
		os.Exit(9)
	case k.has("fail"):
		status = plugin.Failed
	case k.has("partial"):
		status = plugin.PartiallySucceeded
	}
	return plugin.OperateResult{Status: status, Summary: "touched", Output: json.RawMessage(r.Input)}, nil
}

// pass waits at the gate, if there is one, until it opens or ctx ends.
func (k worker) pass(ctx context.Context) error {
	if !k.has(gate) {
		return nil
	}
	k.reached()
	if k.has("stubborn") {
		ctx = context.Background()
	}
	return k.wait(ctx)
}

func (k worker) reached() {
	must(os.OpenFile(filepath.Join(k.dir, gate, "reached"), os.O_WRONLY, 0)).Close()
}

func (k worker) wait(ctx context.Context) error {
	opened := make(chan struct{})
	go func() {
		must(os.OpenFile(filepath.Join(k.dir, gate, "go"), os.O_RDONLY, 0)).Close()
		close(opened)
	}()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		must(os.Create(filepath.Join(k.dir, "told"))).Close()
		return ctx.Err()
	}
}

// daemon leaves a process behind and records its pid after this one's in "pids".
func (k worker) daemon() {
	pids := filepath.Join(k.dir, "pids")
	f := must(os.OpenFile(pids, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	ready, child, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(must(os.Executable()), misbehave.Args("helper-middle", "how=setsid,double", "pids="+pids)...)
	cmd.ExtraFiles = []*os.File{child}
	if err := cmd.Run(); err != nil {
		panic(err)
	}
	child.Close()
	io.Copy(io.Discard, ready)
	ready.Close()
}

func (k worker) log() {
	n := 0
	fmt.Sscan(k.options["stderr"], &n)
	for i := range n {
		fmt.Fprintf(os.Stderr, "line %d password=canary-%d\n", i, i)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
