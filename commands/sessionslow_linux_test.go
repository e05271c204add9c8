package commands

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident returns the memory of a process that is in use, in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// onlyChild returns the process that was started by another one.
func onlyChild(t *testing.T, pid int) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, path := range lists {
		text, _ := os.ReadFile(path) // a thread that has ended meanwhile
		children = append(children, strings.Fields(string(text))...)
	}
	if len(children) != 1 {
		t.Fatalf("children: %q", children)
	}
	child, err := strconv.Atoi(children[0])
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// Whoever reads a stream slowly slows the plugin: while nothing is read, neither process
// grows, whatever there is to send, and afterwards every item comes. The plugin is one
// with the Go SDK.
func TestSessionSlowReader(t *testing.T) {
	const id = "org.switchyard.conformance"
	p := newPlace(t)
	src := filepath.Join(p.dir, "src")
	if err := os.CopyFS(src, os.DirFS("../sdk/conformance/corpus/package")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(src, "run")); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(src, "run"), "../sdk/examples/conformance-go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.run("install", "src")
	_, rest, _ := strings.Cut(p.run("review", id), "--fingerprint ")
	p.run("trust", id, "--fingerprint", strings.TrimSpace(rest))
	p.run("config", "set", id, "greeting", "--text", "hello")
	p.run("enable", id)

	cmd := p.command(p.program, "run", id, "conformance.stream/count", "--input", `{"to":1000000,"size":400}`, "--deadline", "10m")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { cmd.Process.Kill() })
	items, next := bufio.NewScanner(r), 1
	read := func(n int) {
		for range n {
			if !items.Scan() {
				cmd.Wait()
				t.Fatalf("no item %d: %v\n%s", next, items.Err(), said.String())
			}
			if want := fmt.Sprintf(`{"n":%d,`, next); !strings.HasPrefix(items.Text(), want) {
				t.Fatalf("%.80s, want %s", items.Text(), want)
			}
			next++
		}
	}
	read(20_000)
	host, plugin := cmd.Process.Pid, onlyChild(t, cmd.Process.Pid)
	time.Sleep(500 * time.Millisecond) // what may wait on the way is on its way
	host0, plugin0 := resident(t, host), resident(t, plugin)
	time.Sleep(2 * time.Second)
	const most = 4 << 20
	if grown := resident(t, host) - host0; grown > most {
		t.Errorf("the host has grown by %d bytes", grown)
	}
	if grown := resident(t, plugin) - plugin0; grown > most {
		t.Errorf("the plugin has grown by %d bytes", grown)
	}
	read(50_000)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for items.Scan() {
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit %d\n%s", code, said.String())
	}
}
