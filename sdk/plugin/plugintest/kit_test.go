package plugintest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

type good struct{}

func (good) Health(context.Context) (plugin.HealthResult, error) {
	return plugin.HealthResult{Status: plugin.Healthy}, nil
}

func (good) Inspect(ctx context.Context, r plugin.InspectRequest) (plugin.InspectResult, error) {
	if r.Project.Root == "" {
		return plugin.InspectResult{}, plugin.NotGranted(plugin.ScopeFilesRead)
	}
	text, err := os.ReadFile(filepath.Join(r.Project.Root, "README.md"))
	return plugin.InspectResult{
		Summary: "read the README",
		Facts:   []plugin.Fact{{ID: "readme", Label: "README", Value: string(text), Source: "README.md"}},
		Actions: []plugin.Action{{ID: "echo", Name: "Echo", Description: "Returns its input.", Risk: "none"}},
	}, err
}

func (good) Operate(_ context.Context, r plugin.OperateRequest) (plugin.OperateResult, error) {
	if r.Action != "echo" {
		return plugin.OperateResult{}, plugin.UnknownAction(r.Action)
	}
	return plugin.OperateResult{Status: plugin.Succeeded, Summary: "echoed", Output: r.Input}, nil
}

func goodManifest() plugin.Manifest {
	return plugin.Manifest{
		SchemaVersion: plugin.ManifestVersion, ID: "good", Name: "Good", Version: "1.0.0", ProtocolVersion: plugin.Protocol,
		Executable: "bin/good", Arguments: []string{},
		Capabilities:    []plugin.Capability{plugin.CapabilityInspect, plugin.CapabilityOperate},
		RequestedScopes: []plugin.Scope{plugin.ScopeMetadataRead, plugin.ScopeFilesRead, plugin.ScopeOperate},
	}
}

// inspectOnly declares less than the handler could do.
func inspectOnly() plugin.Manifest {
	m := goodManifest()
	m.Capabilities = []plugin.Capability{plugin.CapabilityInspect}
	m.RequestedScopes = []plugin.Scope{plugin.ScopeMetadataRead, plugin.ScopeFilesRead}
	return m
}

func TestRunInProcess(t *testing.T) {
	Run(t, Config{Manifest: goodManifest(), Handler: good{}})
}

func TestRunWithLess(t *testing.T) {
	Run(t, Config{Manifest: inspectOnly(), Handler: good{}})
}

// A filter stands between the kit and a correct plugin. It gets each request
// line and a function that asks the correct plugin, and returns the lines to
// write, line feeds included.
type filter func(request string, ask func(string) string) string

// serve runs a filter in front of plugin.Serve. tamper, if not nil, may change
// how the connection ends.
func (f filter) serve(m plugin.Manifest) func(context.Context, io.Reader, io.Writer) error {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		toPlugin, forward := io.Pipe()
		back, fromPlugin := io.Pipe()
		go plugin.Serve(ctx, toPlugin, fromPlugin, m, good{})
		defer forward.Close()
		answers := bufio.NewReader(back)
		ask := func(request string) string {
			io.WriteString(forward, request)
			answer, _ := answers.ReadString('\n')
			return answer
		}
		requests := bufio.NewReader(in)
		for {
			request, err := requests.ReadString('\n')
			if err != nil {
				return nil
			}
			answer := f(request, ask)
			if answer == "" {
				return errors.New("gave up")
			}
			if _, err := io.WriteString(out, answer); err != nil {
				return err
			}
		}
	}
}

// replacing changes what the plugin answers.
func replacing(old, new string) filter {
	return func(request string, ask func(string) string) string {
		return strings.Replace(ask(request), old, new, 1)
	}
}

// lax changes what the plugin is asked, so that it accepts what it should not.
func lax(old, new string) filter {
	return func(request string, ask func(string) string) string {
		return ask(strings.Replace(request, old, new, 1))
	}
}

// unrefused answers a method with result where the plugin refuses a grant.
func unrefused(method, result string) filter {
	return func(request string, ask func(string) string) string {
		answer := ask(request)
		if strings.Contains(request, `"method":"`+method+`"`) && strings.Contains(answer, `"code":-32003`) {
			return `{"jsonrpc":"2.0","id":7,"result":` + result + "}\n"
		}
		return answer
	}
}

const granted = `"grantedScopes":["project.metadata.read","project.files.read","project.operate"]}`

func TestSeededFaults(t *testing.T) {
	faults := []struct {
		name   string
		caught string // the check that must fail, among others perhaps
		fault  filter
	}{
		{"a banner", "initialize/identity", func(r string, ask func(string) string) string {
			if strings.Contains(r, "initialize") {
				return "Welcome!\n" + ask(r)
			}
			return ask(r)
		}},
		{"a JSON log line", "end/after-call", func(r string, ask func(string) string) string {
			return ask(r) + `{"level":"info"}` + "\n"
		}},
		{"an answer over two lines", "end/after-call", replacing(`,"id"`, ",\n"+`"id"`)},
		{"another id", "initialize/identity", replacing(`"id":1,`, `"id":10,`)},
		{"the id as a string", "initialize/identity", replacing(`"id":1,`, `"id":"1",`)},
		{"the id as a double", "id/echo", replacing(`9007199254740991`, `9.007199254740991e15`)},
		{"an id for what has none", "malformed/not-json", replacing(`"id":null`, `"id":0`)},
		{"jsonrpc missing", "initialize/identity", replacing(`"jsonrpc":"2.0",`, ``)},
		{"an unknown member", "initialize/identity", replacing(`{"jsonrpc"`, `{"took":3,"jsonrpc"`)},
		{"result and error", "end/after-call", replacing(`"result":`, `"error":{"code":-32000,"message":"m"},"result":`)},
		{"error: null beside a result", "end/after-call", replacing(`"result":`, `"error":null,"result":`)},
		{"neither result nor error", "end/after-call", replacing(`"result":{"status":"healthy"`, `"resul":{"status":"healthy"`)},
		{"a duplicate name in an answer", "health/params", replacing(`"code":`, `"code":0,"code":`)},
		{"another name", "initialize/identity", replacing(`"name":"Good"`, `"name":"Better"`)},
		{"another version", "initialize/identity", replacing(`"version":"1.0.0"`, `"version":"1.0.1"`)},
		{"a capability more", "initialize/identity", replacing(`["project.inspect",`, `["project.inspect","project.more",`)},
		{"a scope less", "initialize/identity", replacing(`"requestedScopes":["project.metadata.read",`, `"requestedScopes":[`)},
		{"executable in the identity", "initialize/identity", replacing(`"capabilities":`, `"executable":"x","capabilities":`)},
		{"grants not echoed", "initialize/each-grant", replacing(`"grantedScopes":["project.files.read"]`, granted[:len(granted)-1])},
		{"grants null", "initialize/no-grants", replacing(`"grantedScopes":[]`, `"grantedScopes":null`)},
		{"health before initialize", "initialize/first", func(r string, ask func(string) string) string {
			return strings.Replace(ask(r), `"error":{"code":-32002,"message":"initialize must be called first"}`, `"result":{"status":"healthy","checkedAt":"2026-01-01T00:00:00Z"}`, 1)
		}},
		{"initialize twice", "initialize/once", replacing(`"error":{"code":-32002,"message":"initialize was called already"}`, `"result":{}`)},
		{"any protocol", "initialize/protocol", lax(`plugin/v2"`, `plugin/v1"`)},
		{"protocol without case", "initialize/protocol", lax(`"Switchyard.plugin/v1"`, `"switchyard.plugin/v1"`)},
		{"any scope", "initialize/undeclared-scope", lax(`"plugintest.everything"`, ``)},
		{"inspect without the grant", "inspect/grant", unrefused("project.inspect", `{"summary":"s","facts":[],"actions":[],"warnings":[],"observedAt":"2026-01-01T00:00:00Z"}`)},
		{"a root without the grant", "operate/root-grant", lax(`,"root":"/srv/p"`, ``)},
		{"operate without the grant", "operate/grant", unrefused("project.operate", `{"status":"succeeded","summary":"s","output":{}}`)},
		{"an unknown action succeeds", "operate/unknown-action", lax(`"action":"plugintest.no-such-action"`, `"action":"echo"`)},
		{"unknown parameters", "health/params", lax(`{"extra":1}`, `{}`)},
		{"unknown project members", "inspect/params", lax(`,"path":"/srv/p"`, ``)},
		{"input not needed", "operate/params", lax(`"action":"plugintest.no-such-action"}}`, `"action":"echo","input":{}}}`)},
		{"unknown envelope members", "malformed/unknown-member", lax(`,"extra":1}`, `}`)},
		{"duplicate names", "malformed/duplicate-name", lax(`"id":7,"id":8`, `"id":8`)},
		{"invalid UTF-8", "malformed/unicode", lax("\xff", "")},
		{"notifications answered by nothing", "malformed/not-a-request", func(r string, ask func(string) string) string {
			if !strings.Contains(r, `"id"`) {
				return "\n"
			}
			return ask(r)
		}},
		{"dies of what is not JSON", "malformed/not-json", func(r string, ask func(string) string) string {
			if strings.HasPrefix(r, "hello") {
				return ""
			}
			return ask(r)
		}},
		{"dies of a long line", "limit/request", func(r string, ask func(string) string) string {
			if len(r) > plugin.MaxMessageBytes+1 {
				return ""
			}
			return ask(r)
		}},
		{"too small a limit", "limit/request", func(r string, ask func(string) string) string {
			if len(r) > plugin.MaxMessageBytes {
				r = "x\n"
			}
			return ask(r)
		}},
		{"no limit", "limit/request", func(r string, ask func(string) string) string {
			if len(r) > plugin.MaxMessageBytes {
				r = request(plugin.MethodHealth, "{}") + "\n"
			}
			return ask(r)
		}},
		{"members by position", "reading/spelling", func(r string, ask func(string) string) string {
			if strings.HasPrefix(r, " ") {
				r = "x\n"
			}
			return ask(r)
		}},
		{"an unknown status", "end/after-call", replacing(`"healthy"`, `"ok"`)},
		{"no time", "end/after-call", replacing(`"checkedAt"`, `"message"`)},
		{"a local time", "end/after-call", func(r string, ask func(string) string) string {
			a := ask(r)
			if i := strings.Index(a, `"checkedAt":"`); i > 0 {
				return a[:i] + `"checkedAt":"2026-01-01 10:00:00"}}` + "\n"
			}
			return a
		}},
		{"message null", "end/after-call", replacing(`"status":"healthy"`, `"status":"healthy","message":null`)},
		{"facts null", "inspect/result", replacing(`"warnings":[]`, `"warnings":null`)},
		{"a fact without source", "inspect/result", replacing(`,"source":"README.md"`, ``)},
		{"a value that is no string", "inspect/result", replacing(`"id":"readme","label":"README","value":"`, `"id":"readme","label":"README","value":7,"warning":"`)},
		{"an action without risk", "inspect/result", replacing(`,"risk":"none"`, ``)},
		{"a long message", "method/unknown", replacing(`unknown method`, strings.Repeat("m", plugin.MaxErrorBytes+1))},
		{"a code that is a string", "method/unknown", replacing(`-32601`, `"-32601"`)},
		{"another code", "method/unknown", replacing(`-32601`, `-32600`)},
		{"a huge answer", "health/params", replacing(`"message":"params`, `"message":"`+strings.Repeat("m", plugin.MaxMessageBytes))},
	}
	if len(faults) < 10 {
		t.Fatal("too few faults")
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			m := goodManifest()
			caughtBy(t, Config{Manifest: m, Serve: f.fault.serve(m)}, f.caught)
		})
	}
	t.Run("an undeclared capability", func(t *testing.T) {
		m := inspectOnly()
		f := unrefused("project.operate", `{"status":"succeeded","summary":"s","output":{}}`)
		caughtBy(t, Config{Manifest: m, Serve: f.serve(m)}, "capability/undeclared")
	})
}

// caughtBy holds that a check fails, by a violation, and that its message says
// something.
func caughtBy(t *testing.T, c Config, check string) {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	results, err := Check(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	failed := []string{}
	for _, r := range results {
		if r.Err == nil {
			continue
		}
		failed = append(failed, r.Name)
		if v := (*Violation)(nil); r.Name == check && !errors.As(r.Err, &v) {
			t.Errorf("%s: %v is not a violation", r.Name, r.Err)
		}
		if r.Name == check {
			t.Logf("%s: %v", r.Name, r.Err)
		}
	}
	if !slices.Contains(failed, check) {
		t.Errorf("not caught by %s; failed: %q", check, failed)
	}
}

func TestFaultsOfTheEnd(t *testing.T) {
	m := goodManifest()
	for _, tc := range []struct {
		name, caught string
		serve        func(context.Context, io.Reader, io.Writer) error
	}{
		{"an error at the end", "end/unused", func(ctx context.Context, in io.Reader, out io.Writer) error {
			return errors.Join(plugin.Serve(ctx, in, out, m, good{}), errors.New("status 3"))
		}},
		{"a farewell", "end/unused", func(ctx context.Context, in io.Reader, out io.Writer) error {
			err := plugin.Serve(ctx, in, out, m, good{})
			io.WriteString(out, "bye\n")
			return err
		}},
		{"ends at once", "initialize/no-grants", func(context.Context, io.Reader, io.Writer) error { return nil }},
		{"fails at once", "initialize/no-grants", func(context.Context, io.Reader, io.Writer) error { return errors.New("no database") }},
	} {
		t.Run(tc.name, func(t *testing.T) { caughtBy(t, Config{Manifest: m, Serve: tc.serve}, tc.caught) })
	}
}

// TestSilence holds that a plugin that reads and never answers costs the
// time-out and no more.
func TestSilence(t *testing.T) {
	s, err := newSubject(Config{Manifest: goodManifest(), Timeout: 50 * time.Millisecond, Serve: func(_ context.Context, in io.Reader, _ io.Writer) error {
		_, err := io.Copy(io.Discard, in)
		return err
	}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	var v *Violation
	if _, err := c.Health(t.Context()); !errors.As(err, &v) || !strings.Contains(v.Message, "no answer within") {
		t.Errorf("health: %v", err)
	}
	c.Close()
}

func TestClient(t *testing.T) {
	c := Open(t, Config{Manifest: goodManifest(), Handler: good{}}, plugin.ScopeMetadataRead, plugin.ScopeOperate)
	r, err := c.Operate(t.Context(), plugin.Project{ID: "p", DisplayName: "P"}, "echo", map[string]int{"n": 1})
	if err != nil || r.Status != plugin.Succeeded || string(r.Output) != `{"n":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	var fault *plugin.Error
	if _, err := c.Operate(t.Context(), plugin.Project{ID: "p", DisplayName: "P"}, "dance", nil); !errors.As(err, &fault) || fault.Code != plugin.CodeBadParams {
		t.Errorf("unknown action: %v", err)
	}
	if _, err := c.Inspect(t.Context(), plugin.Project{ID: "p", DisplayName: "P"}); !errors.As(err, &fault) || fault.Code != plugin.CodeNotGranted {
		t.Errorf("inspect without files: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	other := Open(t, Config{Manifest: goodManifest(), Handler: good{}})
	if _, err := other.Health(t.Context()); err != nil {
		t.Error(err)
	}
	s, _ := newSubject(Config{Manifest: goodManifest(), Serve: func(context.Context, io.Reader, io.Writer) error { select {} }}, t.TempDir())
	stuck, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stuck.Health(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	bad := goodManifest()
	bad.Version = ""
	for name, c := range map[string]Config{
		"nothing":          {},
		"two":              {Manifest: goodManifest(), Handler: good{}, Package: "."},
		"invalid manifest": {Manifest: bad, Handler: good{}},
		"no package":       {Package: t.TempDir()},
	} {
		if r, err := Check(t.Context(), c); err == nil {
			t.Errorf("%s: %d results", name, len(r))
		}
	}
}

func TestExecutableRules(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has no such modes")
	}
	for _, tc := range []struct {
		name string
		make func(dir, path string) error
		says string
	}{
		{"good", func(dir, path string) error { return nil }, ""},
		{"missing", func(dir, path string) error { return os.Remove(path) }, "does not exist"},
		{"no execute bit", func(dir, path string) error { return os.Chmod(path, 0o644) }, "no execute bit"},
		{"symlink", func(dir, path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink("good2", path))
		}, "not a regular file"},
		{"symlinked directory", func(dir, path string) error {
			return errors.Join(os.Rename(dir+"/bin", dir+"/bin2"), os.Symlink("bin2", dir+"/bin"))
		}, "not a directory"},
		{"directory", func(dir, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, "not a regular file"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "bin", "good")
		err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755),
			os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o755), tc.make(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		err = checkExecutable(dir, "bin/good")
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}

func TestTail(t *testing.T) {
	var x tail
	x.Write(bytes.Repeat([]byte("a"), 3*tailBytes))
	x.Write([]byte("end"))
	if got := x.String(); len(got) != tailBytes || !strings.HasSuffix(got, "aend") {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-4:])
	}
}
