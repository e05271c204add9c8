//go:build unix

package runtime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// started reports whether the plugin's program was executed since the last call.
func (w *world) started() bool {
	w.t.Helper()
	path := filepath.Join(w.dir, "started")
	_, err := os.Lstat(path)
	os.Remove(path)
	return err == nil
}

// TestRefusals holds, for each decision in its order, that where it is missing the
// call is refused for that reason and nothing of the package is executed.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newUntrustedWorld(t)
	ctx := t.Context()
	w.work("trace")
	refuse := func(why string, is func(error) bool) {
		t.Helper()
		for _, req := range []runtime.Request{{CallRequest: pkgmgr.CallRequest{Method: pkgmgr.MethodInspect}}, operation("", "{}")} {
			if _, err := w.run(req); !is(err) {
				t.Errorf("%s: %s: %v", why, req.Method, err)
			}
		}
		if w.started() {
			t.Errorf("%s: the plugin was started", why)
		}
		w.wantNothingLeft()
	}
	needs := func(status pkgmgr.Status) func(error) bool {
		return func(err error) bool {
			var e *pkgmgr.NeedsDecision
			return errors.As(err, &e) && e.Status == status
		}
	}
	denied := func(check func(*pkgmgr.Denied) bool) func(error) bool {
		return func(err error) bool {
			var e *pkgmgr.Denied
			return errors.As(err, &e) && check(e)
		}
	}

	refuse("untrusted", needs(pkgmgr.StatusUntrusted))
	_, err := w.home.Trust(ctx, sample, nil, w.pkg)
	w.must(err)
	refuse("trusted, not enabled", needs(pkgmgr.StatusTrusted))
	if _, err := w.host.Enable(ctx, sample, nil, []manifest.Scope{"project.everything"}); err == nil {
		t.Error("a scope that was not requested was granted")
	}
	if w.started() {
		t.Error("the plugin was started for an impossible offer")
	}
	_, err = w.host.Enable(ctx, sample, nil, []manifest.Scope{scopeFiles})
	w.must(err)
	if !w.started() {
		t.Fatal("the trace does not work: enable did not start the plugin")
	}
	refuse("scope not granted", denied(func(e *pkgmgr.Denied) bool { return e.Scope != "" }))
	_, err = w.host.Enable(ctx, sample, nil, allScopes)
	w.must(err)
	w.started()
	refuse("project not trusted", denied(func(e *pkgmgr.Denied) bool { return e.Project == w.project }))
	_, _, err = w.home.TrustProject(ctx, w.project)
	w.must(err)

	if _, err := w.inspect(0); err != nil || !w.started() {
		t.Fatalf("with every decision made: %v", err)
	}

	_, err = w.home.Disable(ctx, sample, nil)
	w.must(err)
	refuse("disabled", needs(pkgmgr.StatusTrusted))
	_, err = w.host.Enable(ctx, sample, nil, allScopes)
	w.must(err)
	w.started()

	denial := pkgmgr.Denial{Digest: w.pkg, Reason: "leaks"}
	_, err = w.home.Revoke(ctx, denial)
	w.must(err)
	refuse("revoked", func(err error) bool {
		var e *pkgmgr.Revoked
		return errors.As(err, &e) && strings.Contains(e.Error(), "leaks")
	})
	_, err = w.home.Unrevoke(ctx, denial.Subject())
	w.must(err)
	w.approve(allScopes...)
	w.started()

	// Any file of the package, also one that is not executed.
	path := filepath.Join(w.data, "store", w.pkg.DirName(), "plugin.json")
	w.must(os.Chmod(path, 0o644))
	document, err := os.ReadFile(path)
	w.must(err)
	w.must(os.WriteFile(path, append(document, '\n'), 0o644))
	refuse("changed", needs(pkgmgr.StatusChanged))
	w.must(os.WriteFile(path, document, 0o444))
	w.must(os.Chmod(path, 0o444))
	refuse("changed back", needs(pkgmgr.StatusChanged))
}

// TestBadRequests holds that what no plugin could be asked is refused before
// anything is looked at.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	host := &runtime.Host{} // a look at the data directory would panic
	bad := func(change func(*runtime.Request)) runtime.Request {
		r := operation("key", "{}")
		r.Project = "/project"
		change(&r)
		return r
	}
	for name, req := range map[string]runtime.Request{
		"no method":               bad(func(r *runtime.Request) { r.Method = "" }),
		"unknown method":          bad(func(r *runtime.Request) { r.Method = "explode" }),
		"health with a project":   bad(func(r *runtime.Request) { r.Method = pkgmgr.MethodHealth }),
		"operate without project": bad(func(r *runtime.Request) { r.Project = "" }),
		"operate without action":  bad(func(r *runtime.Request) { r.Action = "" }),
		"operate without input":   bad(func(r *runtime.Request) { r.Input = nil }),
		"input is no JSON":        bad(func(r *runtime.Request) { r.Input = []byte("{") }),
		"input is no I-JSON":      bad(func(r *runtime.Request) { r.Input = []byte(`{"a":1,"a":2}`) }),
		"two inputs":              bad(func(r *runtime.Request) { r.Input = []byte(`{}{}`) }),
	} {
		var input *pkgmgr.BadInput
		if _, err := host.Run(context.Background(), req); !errors.Is(err, runtime.ErrRequest) && !errors.As(err, &input) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatThePluginSees holds that the child gets its whole environment from a short
// list, and the project's root only under project.files.read.
func TestWhatThePluginSees(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scopeMetadata)
	w.work("environ")
	result, err := w.inspect(0)
	w.must(err)
	facts := map[string][]string{}
	for _, f := range result.Inspect.Facts {
		facts[f.ID] = append(facts[f.ID], f.Value)
	}
	if root := facts["root"]; !slices.Equal(root, []string{""}) {
		t.Errorf("root without project.files.read: %q", root)
	}
	if name := facts["name"]; !slices.Equal(name, []string{"project"}) || facts["id"][0] == "" {
		t.Errorf("project: %q, %q", name, facts["id"])
	}
	var names []string
	for _, e := range facts["environ"] {
		name, value, _ := strings.Cut(e, "=")
		names = append(names, name)
		if strings.Contains(value, "canary") {
			t.Errorf("the secret came through as %s", e)
		}
	}
	known := []string{"LANG", "PATH", "SWITCHYARD_PLUGIN_CALL", "SWITCHYARD_PLUGIN_PROTOCOL", "TMPDIR"}
	known = append(known, "PWD", "OLDPWD", "SHLVL", "_") // of the shell that the script runs in
	for _, name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("environment variable %s", name)
		}
	}
	if !slices.Contains(names, "SWITCHYARD_PLUGIN_PROTOCOL") || len(names) != len(facts["environ"]) {
		t.Errorf("environment: %q", names)
	}
	if !slices.Equal(result.Granted, []manifest.Scope{scopeMetadata}) {
		t.Errorf("granted: %q", result.Granted)
	}

	_, err = w.host.Enable(t.Context(), sample, nil, []manifest.Scope{scopeMetadata, scopeFiles})
	w.must(err)
	result, err = w.inspect(0)
	w.must(err)
	for _, f := range result.Inspect.Facts {
		if f.ID == "root" && f.Value != w.project {
			t.Errorf("root with project.files.read: %q", f.Value)
		}
	}
}

// TestEnable holds that grants are stored only after a good exchange.
func TestEnable(t *testing.T) {
	t.Parallel()
	w := newUntrustedWorld(t)
	ctx := t.Context()
	_, err := w.home.Trust(ctx, sample, nil, w.pkg)
	w.must(err)
	status := func() (pkgmgr.Status, state.HealthStatus) {
		t.Helper()
		list, err := w.home.List(ctx, nil, defaultsOnly)
		w.must(err)
		if list[0].Health == nil {
			return list[0].Status, ""
		}
		return list[0].Status, list[0].Health.Status
	}
	for _, behaviour := range []string{"crash-at-initialize", "mismatch-grants", "error-result", "malformed", "unhealthy"} {
		w.behave(behaviour)
		if behaviour == "unhealthy" {
			w.work("unhealthy")
		}
		if out, err := w.host.Enable(ctx, sample, nil, allScopes); err == nil {
			t.Errorf("%s: %+v", behaviour, out)
		}
		if s, _ := status(); s != pkgmgr.StatusTrusted {
			t.Errorf("%s: status %s", behaviour, s)
		}
	}
	if _, health := status(); health != state.HealthUnhealthy {
		t.Errorf("health after a plugin that called itself unhealthy: %s", health)
	}
	w.behave("extra-at-end")
	out, err := w.host.Enable(ctx, sample, nil, []manifest.Scope{scopeOperate, scopeMetadata, scopeOperate})
	w.must(err)
	if !slices.Equal(out.Granted, []manifest.Scope{scopeMetadata, scopeOperate}) || !slices.Equal(out.Withheld, []manifest.Scope{scopeFiles}) {
		t.Errorf("granted %q, withheld %q", out.Granted, out.Withheld)
	}
	if s, health := status(); s != pkgmgr.StatusEnabled || health != state.HealthDegraded {
		t.Errorf("%s, %s", s, health)
	}
	w.wantNothingLeft()
}

// TestScriptAndProgram holds that a native program runs as well as a script, from
// the inode that was hashed, with its arguments as they are.
func TestScriptAndProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, allScopes...)
	self, err := os.ReadFile(must(os.Executable()))
	w.must(err)
	document, err := os.ReadFile(filepath.Join(w.source, "plugin.json"))
	w.must(err)
	text := strings.Replace(string(document), `"1.0.0"`, `"2.0.0"`, 1)
	text = strings.Replace(text, `"arguments": [`, `"arguments": ["`+workerFlag+`", "`+w.dir+`", "environ", `, 1)
	w.must(os.WriteFile(filepath.Join(w.source, "plugin.json"), []byte(text), 0o644))
	w.must(os.WriteFile(filepath.Join(w.source, "bin", "sample"), self, 0o755))
	in, err := w.home.Install(t.Context(), w.source, pkgmgr.InstallOptions{})
	w.must(err)
	w.pkg = in.Package
	if _, err := w.inspect(0); err == nil {
		t.Error("another version runs without a review")
	}
	w.approve(allScopes...)
	result, err := w.inspect(0)
	w.must(err)
	if result.Version != "2.0.0" {
		t.Errorf("version %s", result.Version)
	}
	w.wantNothingLeft()
}
