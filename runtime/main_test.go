//go:build unix

package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/process/misbehave"
	"github.com/switchyard-plugins/switchyard/runtime/session/sessiontest"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// The test binary is, by its arguments, also the plugins (see misbehave and
// worker_test.go) and the other processes that use a data directory (tool_test.go).
func TestMain(m *testing.M) {
	misbehave.Main()
	workerMain()
	sessiontest.Main()
	toolMain()
	os.Exit(m.Run())
}

const (
	scopeMetadata = manifest.ScopeMetadataRead
	scopeFiles    = manifest.ScopeFilesRead
	scopeOperate  = manifest.ScopeOperate
)

// What pkgmgr.Home.List lists.
const (
	defaultsOnly = false
	allVersions  = true
)

var allScopes = []manifest.Scope{scopeFiles, scopeMetadata, scopeOperate} // as grants are sorted

// A world is a data directory with one plugin, "sample", and a project. What the
// plugin does is said before each call by behave or work: its executable is a script
// that reads a file outside the package, so that nothing of the package changes.
type world struct {
	t       testing.TB
	dir     string // of everything; part of the command line or environment of every process of a call
	data    string
	project string
	source  string // the package directory that was installed
	home    *pkgmgr.Home
	host    *runtime.Host
	pkg     digest.Digest
}

// newWorld installs the plugin, trusts it, enables it with the given scopes, and
// trusts the project.
func newWorld(t testing.TB, scopes ...manifest.Scope) *world {
	t.Helper()
	w := newUntrustedWorld(t)
	w.approve(scopes...)
	return w
}

func newUntrustedWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, data: filepath.Join(dir, "data"), project: filepath.Join(dir, "project"), source: filepath.Join(dir, "source")}
	t.Cleanup(w.remove)
	w.must(os.MkdirAll(w.project, 0o755))
	w.writePackage(w.source, "1.0.0")
	w.open()
	w.work()
	in, err := w.home.Install(t.Context(), w.source, pkgmgr.InstallOptions{})
	w.must(err)
	w.pkg = in.Package
	return w
}

// open makes Home and Host anew, as a new process would.
func (w *world) open() {
	w.t.Helper()
	home, err := pkgmgr.Open(w.data, pkgmgr.Options{})
	w.must(err)
	w.home = home
	w.host = &runtime.Host{Home: home, Version: "test", Lookup: w.lookup}
}

// lookup is the environment of the host: everything of this process's, a canary,
// and a TMPDIR by which the processes of a call are found.
func (w *world) lookup(name string) (string, bool) {
	switch name {
	case "TMPDIR":
		return w.dir, true
	case "AWS_SECRET_ACCESS_KEY":
		return "canary", true
	}
	return os.LookupEnv(name)
}

func (w *world) approve(scopes ...manifest.Scope) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.home.Trust(ctx, sample, nil, w.pkg)
	w.must(err)
	_, err = w.host.Enable(ctx, sample, nil, scopes)
	w.must(err)
	_, _, err = w.home.TrustProject(ctx, w.project)
	w.must(err)
}

var sample = pkgmgr.Ref{ID: "sample"}

// writePackage writes a version of the plugin.
func (w *world) writePackage(dir, version string) {
	w.t.Helper()
	self, err := os.Executable()
	w.must(err)
	w.must(os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	w.must(os.WriteFile(filepath.Join(dir, "plugin.json"), fmt.Appendf(nil, `{
  "schemaVersion": "switchyard.plugin-manifest/v1", "id": "sample", "name": "Sample", "version": %q,
  "protocolVersion": "switchyard.plugin/v1", "executable": "bin/sample", "arguments": [%q],
  "capabilities": ["project.inspect", "project.operate"],
  "requestedScopes": ["project.metadata.read", "project.files.read", "project.operate"]
}`, version, w.control()), 0o644))
	w.must(os.WriteFile(filepath.Join(dir, "bin", "sample"),
		[]byte("#!/bin/sh\nread -r arguments <\"$1\" && exec "+self+" $arguments\n"), 0o755))
}

func (w *world) control() string { return filepath.Join(w.dir, "control") }

// behave makes the plugin a misbehaving one.
func (w *world) behave(name string, options ...string) {
	w.t.Helper()
	w.tell(misbehave.Args(name, append(options, "pids="+w.pids())...))
}

func (w *world) tell(arguments []string) {
	w.t.Helper()
	w.must(os.WriteFile(w.control(), []byte(strings.Join(arguments, " ")+"\n"), 0o644))
}

// pids is where the processes that a behaviour leaves behind record themselves.
func (w *world) pids() string { return filepath.Join(w.dir, "pids") }

func (w *world) run(req runtime.Request) (*runtime.Result, error) {
	req.Ref = sample
	if req.Method != pkgmgr.MethodHealth && req.Project == "" {
		req.Project = w.project
	}
	return w.host.Run(context.Background(), req)
}

func (w *world) inspect(timeout time.Duration) (*runtime.Result, error) {
	return w.run(runtime.Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodInspect}, Timeout: timeout})
}

func (w *world) health() (*runtime.Result, error) {
	return w.run(runtime.Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodHealth}})
}

// operation is a request for the action "touch".
func operation(key, input string) runtime.Request {
	return runtime.Request{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodOperate}, Action: "touch",
		Input: []byte(input), IdempotencyKey: key}
}

// recorded is the plugin's health and the newest event that tells of a call.
func (w *world) recorded() (state.Health, state.Event) {
	w.t.Helper()
	list, err := w.home.List(w.t.Context(), nil, defaultsOnly)
	w.must(err)
	events, err := w.home.History(w.t.Context(), "sample", 0)
	w.must(err)
	events = slices.DeleteFunc(events, func(e state.Event) bool {
		return e.Kind != pkgmgr.EventCall && e.Kind != pkgmgr.EventAbandoned
	})
	if len(list) != 1 || len(events) == 0 {
		w.t.Fatalf("%d packages, %d events", len(list), len(events))
	}
	if list[0].Health == nil {
		return state.Health{}, events[0]
	}
	return *list[0].Health, events[0]
}

// newest is the newest operation.
func (w *world) newest() state.Operation {
	w.t.Helper()
	list, err := w.home.Operations(w.t.Context(), "sample", 1)
	w.must(err)
	if len(list) != 1 {
		w.t.Fatalf("%d operations", len(list))
	}
	return list[0]
}

// wantNothingLeft fails if a process of this world lives or a call is marked as
// running. It looks once: when a call has returned, everything of it is gone.
func (w *world) wantNothingLeft() {
	w.t.Helper()
	for _, p := range w.processes() {
		w.t.Errorf("left behind: %s", p)
	}
	if calls := w.calls(); len(calls) > 0 {
		w.t.Errorf("marked as running: %v", calls)
	}
}

func (w *world) calls() []string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.data, "running", "*"))
	w.must(err)
	return names
}

// processes describes the living processes that name this world in their command
// line or environment, except the test's own and the tools that it started.
func (w *world) processes() []string {
	w.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	w.must(err)
	if len(dirs) == 0 {
		w.t.Log("no /proc: what a call leaves behind cannot be seen here")
	}
	var found []string
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		pid := filepath.Base(dir)
		ours := bytes.Contains(line, []byte(w.dir+"/")) || bytes.Contains(environ, []byte("="+w.dir+"\x00"))
		dead := bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
		if ours && !dead && pid != fmt.Sprint(os.Getpid()) {
			found = append(found, pid+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// remove makes the installed trees writable, so that the test's directory can go.
func (w *world) remove() {
	filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

// lines returns the lines of a file, none where there is no file.
func lines(t testing.TB, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(data)))
}
