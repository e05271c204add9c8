//go:build unix

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/receipt"
	"github.com/switchyard-plugins/switchyard/runtime/session"
	"github.com/switchyard-plugins/switchyard/runtime/session/sessiontest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

var sessionSample = pkgmgr.Ref{ID: sessiontest.ID}

// newSessionWorld is a world with a session plugin that is trusted and enabled.
func newSessionWorld(t testing.TB) *world {
	t.Helper()
	w := newUntrustedSessionWorld(t, sessiontest.Executable)
	w.approveSession()
	return w
}

func newUntrustedSessionWorld(t testing.TB, entry string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, data: filepath.Join(dir, "data"), project: filepath.Join(dir, "project"), source: filepath.Join(dir, "source")}
	t.Cleanup(w.remove)
	w.tell(nil)
	w.must(sessiontest.Write(w.source, w.dir, entry))
	_, err = pkgmgr.WriteDigests(w.source)
	w.must(err)
	w.open()
	in, err := w.home.Install(t.Context(), w.source, pkgmgr.InstallOptions{})
	w.must(err)
	w.pkg = in.Package
	return w
}

func (w *world) approveSession(scopes ...manifest.Scope) {
	w.t.Helper()
	_, err := w.home.Trust(w.t.Context(), sessionSample, nil, w.pkg)
	w.must(err)
	_, err = w.host.Enable(w.t.Context(), sessionSample, nil, append(scopes, manifest.Scope(sessionmanifest.ScopeFilesRead)))
	w.must(err)
}

func (w *world) session(use func(context.Context, *runtime.Session) error) (*runtime.Ended, error) {
	return w.host.RunSession(context.Background(), runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}}, use)
}

// ask performs one request in a session of its own.
func (w *world) ask(operation, key, payload string) (result *runtime.RequestResult, err error) {
	_, ended := w.session(func(ctx context.Context, s *runtime.Session) error {
		o, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: operation, IdempotencyKey: key, Payload: json.RawMessage(payload)})
		if err != nil {
			return err
		}
		result, err = o.Result()
		return err
	})
	return result, ended
}

func (w *world) newestOf(id string) state.Operation {
	w.t.Helper()
	list, err := w.home.Operations(w.t.Context(), id, 1)
	w.must(err)
	if len(list) != 1 {
		w.t.Fatalf("%d operations", len(list))
	}
	return list[0]
}

func (w *world) receipts() []state.Receipt {
	w.t.Helper()
	list, err := w.home.Receipts(w.t.Context(), sessionSample.ID, 0)
	w.must(err)
	return list
}

func TestSessionOfManyRequests(t *testing.T) {
	w := newSessionWorld(t)
	ended, err := w.session(func(ctx context.Context, s *runtime.Session) error {
		for i := range 10 {
			payload := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
			o, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: "read", Payload: payload})
			if err != nil {
				return err
			}
			if result, err := o.Result(); err != nil || string(result.Payload) != string(payload) {
				return fmt.Errorf("%v %w", result, err)
			}
		}
		o, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: "count", Payload: json.RawMessage(`{"n":100}`)})
		if err != nil {
			return err
		}
		n := 0
		for ; err == nil; n++ {
			_, err = o.Next()
		}
		if err != io.EOF || n != 101 {
			return fmt.Errorf("after %d items: %w", n, err)
		}
		_, err = o.Result()
		return err
	})
	if err != nil || ended.Health.Status != state.HealthHealthy || len(ended.Warnings) > 0 {
		t.Fatalf("%+v %v", ended, err)
	}
	if op := w.newestOf(sessionSample.ID); op.Action != "test.ops/count" || op.State != state.Succeeded || op.Call != ended.Call {
		t.Fatalf("%+v", op) // reads leave no record
	}
	w.wantNothingLeft()
}

// What a child gets: its directory, its own state, and nothing of the host's environment.
func TestSessionInit(t *testing.T) {
	w := newUntrustedSessionWorld(t, sessiontest.Executable)
	w.approveSession(manifest.Scope(sessionmanifest.ScopeSettingsRead))
	_, err := w.host.RunSession(t.Context(), runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}, Settings: json.RawMessage(`{"greeting":"hi"}`)},
		func(context.Context, *runtime.Session) error { return nil })
	w.must(err)
	raw, err := os.ReadFile(filepath.Join(w.dir, "init"))
	w.must(err)
	var init wire.Init
	w.must(wire.Decode(raw, &init))
	var permissions []string
	for _, g := range init.Grants {
		permissions = append(permissions, g.PermissionID)
	}
	if string(init.Settings) != `{"greeting":"hi"}` || !slices.Equal(permissions, []string{"files", "prefs"}) ||
		!slices.Equal(init.AcceptedClasses, []wire.PayloadClass{wire.ClassPublic, wire.ClassInternal}) {
		t.Fatalf("%s", raw)
	}
	if info, err := os.Stat(filepath.Join(w.data, "plugin-state", sessionSample.ID)); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info, err)
	}
	for name, settings := range map[string]string{"unknown": `{"farewell":"bye"}`, "type": `{"greeting":1}`, "twice": `{"greeting":"a","greeting":"b"}`} {
		_, err := w.host.RunSession(t.Context(), runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}, Settings: json.RawMessage(settings)}, nil)
		if !errors.Is(err, runtime.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = w.host.Enable(t.Context(), sessionSample, nil, []manifest.Scope{manifest.Scope(sessionmanifest.ScopeFilesRead)})
	w.must(err)
	var denied *pkgmgr.Denied
	_, err = w.host.RunSession(t.Context(), runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}, Settings: json.RawMessage(`{"greeting":"hi"}`)}, nil)
	if !errors.As(err, &denied) || denied.Scope != manifest.Scope(sessionmanifest.ScopeSettingsRead) {
		t.Error(err)
	}
}

func TestSessionOverSocket(t *testing.T) {
	w := newSessionWorld(t)
	_, err := w.host.RunSession(t.Context(), runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}, Transport: runtime.OverSocket},
		func(ctx context.Context, s *runtime.Session) error {
			o, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: "read", Payload: json.RawMessage(`{}`)})
			if err != nil {
				return err
			}
			_, err = o.Result()
			return err
		})
	w.must(err)
	w.wantNothingLeft()
}

// Nothing of a package that nobody trusts, or that was not enabled, is started.
func TestSessionNeedsDecisions(t *testing.T) {
	w := newUntrustedSessionWorld(t, sessiontest.Executable)
	var needs *pkgmgr.NeedsDecision
	if _, err := w.session(nil); !errors.As(err, &needs) || needs.Status != pkgmgr.StatusUntrusted {
		t.Fatal(err)
	}
	_, err := w.home.Trust(t.Context(), sessionSample, nil, w.pkg)
	w.must(err)
	if _, err := w.session(nil); !errors.As(err, &needs) || needs.Status != pkgmgr.StatusTrusted {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "init")); err == nil {
		t.Fatal("it was started")
	}
}

// Enabling is a good hello, init and healthCheck; what fails it grants nothing.
func TestSessionEnable(t *testing.T) {
	for control, code := range map[string]string{"impostor": "identity.mismatch", "banner": "plugin.malformed"} {
		w := newUntrustedSessionWorld(t, sessiontest.Executable)
		w.tell([]string{control})
		_, err := w.home.Trust(t.Context(), sessionSample, nil, w.pkg)
		w.must(err)
		_, err = w.host.Enable(t.Context(), sessionSample, nil, []manifest.Scope{manifest.Scope(sessionmanifest.ScopeFilesRead)})
		if runtime.Code(err) != code {
			t.Errorf("%s: %v", control, err)
		}
		var failed *runtime.SessionFailed
		if !errors.As(err, &failed) || control != "banner" && (len(failed.Stderr) == 0 || strings.Contains(failed.Stderr[0], "hunter2")) {
			t.Errorf("%s: %+v", control, failed)
		}
		var needs *pkgmgr.NeedsDecision
		if _, err := w.session(nil); !errors.As(err, &needs) {
			t.Errorf("%s: %v", control, err)
		}
		w.wantNothingLeft()
	}
	w := newUntrustedSessionWorld(t, sessiontest.Executable)
	w.tell([]string{"unhealthy"})
	_, err := w.home.Trust(t.Context(), sessionSample, nil, w.pkg)
	w.must(err)
	_, err = w.host.Enable(t.Context(), sessionSample, nil, []manifest.Scope{manifest.Scope(sessionmanifest.ScopeFilesRead)})
	var unhealthy *runtime.Unhealthy
	if !errors.As(err, &unhealthy) {
		t.Error(err)
	}
}

// An effect, its receipt signed by this host, and a second attempt that has no second
// effect.
func TestSessionReceipts(t *testing.T) {
	w := newSessionWorld(t)
	result, err := w.ask("write", "key", `{"line":"one"}`)
	if err != nil || result.Replayed || result.Receipt == nil {
		t.Fatalf("%+v %v", result, err)
	}
	list := w.receipts()
	if len(list) != 1 || list[0].Own || list[0].Effect != "committed" || list[0].Key != "key" {
		t.Fatalf("%+v", list)
	}
	raw, err := os.ReadFile(filepath.Join(w.data, runtime.KeysDir, receipt.PublicFile))
	w.must(err)
	public, err := receipt.ReadPublic(raw)
	w.must(err)
	if r, err := receipt.Verify(list[0].Document, public); err != nil || r.ReceiptID != result.Receipt.ReceiptID {
		t.Fatal(r, err)
	}
	again, err := w.ask("write", "key", `{"line":"one"}`)
	if err != nil || !again.Replayed || again.FromCopy || again.Receipt.ReceiptID != result.Receipt.ReceiptID {
		t.Fatalf("%+v %v", again, err)
	}
	// The plugin's store is lost: this host's copy answers, with the result.
	w.must(os.RemoveAll(filepath.Join(w.data, "plugin-state", sessionSample.ID)))
	again, err = w.ask("write", "key", `{"line":"one"}`)
	if err != nil || !again.FromCopy || string(again.Payload) != `{"ok":true}` {
		t.Fatalf("%+v %v", again, err)
	}
	_, err = w.ask("write", "key", `{"line":"two"}`)
	if runtime.Code(err) != "already_exists" {
		t.Fatal(err)
	}
	if n := len(lines(t, filepath.Join(w.dir, "effects"))); n != 1 {
		t.Fatalf("%d effects", n)
	}
}

// Where nothing would hold to a key, it is refused before anything is sent.
func TestSessionKeyWithoutReceipts(t *testing.T) {
	w := newSessionWorld(t)
	_, err := w.ask("read", "key", `{"n":1}`)
	var unkept *runtime.KeyUnkept
	if !errors.As(err, &unkept) || unkept.Action != "test.ops/read" || unkept.Declared {
		t.Fatal(err)
	}
	if _, err := w.ask("read", "", `{"n":1}`); err != nil {
		t.Fatal(err)
	}
}

// A deadline below the millisecond in which it is told is short, not the default.
func TestSessionShortestDeadline(t *testing.T) {
	w := newSessionWorld(t)
	terms := runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}, RequestTimeout: time.Nanosecond}
	_, err := w.host.RunSession(t.Context(), terms, func(ctx context.Context, s *runtime.Session) error {
		began := time.Now()
		o, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: "write", Payload: json.RawMessage(`{"line":"one","then":"hold"}`)})
		if err != nil {
			return err
		}
		if _, err = o.Result(); time.Since(began) > runtime.DefaultTimeout/2 {
			t.Error(time.Since(began))
		}
		return err
	})
	if runtime.Code(err) != "deadline_exceeded" {
		t.Error(err)
	}
}

// What a supervisor that was killed leaves knows how long the request's receipt lasts.
func TestSessionRetentionOutlivesSupervisor(t *testing.T) {
	w := newSessionWorld(t)
	for retention, days := range map[wire.Retention]int{"": 30, wire.RetentionNone: 7, wire.RetentionEphemeral: 1, wire.RetentionAudit: 365} {
		var running state.Operation
		_, err := w.session(func(ctx context.Context, s *runtime.Session) error {
			o, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: "write", Retention: retention, Payload: json.RawMessage(`{"line":"one"}`)})
			if err != nil {
				return err
			}
			running = w.newestOf(sessionSample.ID)
			_, err = o.Result()
			return err
		})
		w.must(err)
		m, err := w.home.ManifestOf(t.Context(), sessionSample, nil)
		w.must(err)
		r, err := w.host.Obituary(running, m)
		w.must(err)
		if lasts := r.ExpiresAt.Sub(running.StartedAt); lasts != time.Duration(days)*24*time.Hour {
			t.Errorf("%q: %v", retention, lasts)
		}
	}
}

// A child that is killed after its effect and before its answer: one effect, nobody knows
// what it did, a receipt says so, and it never runs again by itself.
func TestSessionCrashAfterEffect(t *testing.T) {
	for _, then := range []string{"crash", "exit", "malformed"} {
		w := newSessionWorld(t)
		_, err := w.ask("write", "key", fmt.Sprintf(`{"line":"one","then":%q}`, then))
		want := "plugin.crashed"
		if then == "malformed" {
			want = "plugin.malformed"
		}
		var failed *runtime.SessionFailed
		if runtime.Code(err) != want || !errors.As(err, &failed) {
			t.Fatalf("%s: %v", then, err)
		}
		op := w.newestOf(sessionSample.ID)
		if op.State != state.Failed || op.EffectState != state.EffectUnknown || op.Code != want {
			t.Fatalf("%s: %+v", then, op)
		}
		list := w.receipts()
		if len(list) != 1 || !list[0].Own || list[0].Execution != "abandoned" || list[0].Effect != "unknown" || list[0].OperationID != op.ID {
			t.Fatalf("%s: %+v", then, list)
		}
		if health := w.health2(); health.Status != state.HealthUnhealthy {
			t.Fatalf("%s: %+v", then, health)
		}
		_, err = w.ask("write", "key", fmt.Sprintf(`{"line":"one","then":%q}`, then))
		if runtime.Code(err) != "failed_precondition" {
			t.Fatalf("%s: %v", then, err)
		}
		if list := w.receipts(); len(list) != 1 || list[0].Own { // the plugin's own took its place
			t.Fatalf("%s: %+v", then, list)
		}
		w.must(os.RemoveAll(filepath.Join(w.data, "plugin-state", sessionSample.ID)))
		_, err = w.ask("write", "key", fmt.Sprintf(`{"line":"one","then":%q}`, then))
		if runtime.Code(err) != "failed_precondition" {
			t.Fatalf("%s, without the plugin's store: %v", then, err)
		}
		if n := len(lines(t, filepath.Join(w.dir, "effects"))); n != 1 {
			t.Fatalf("%s: %d effects", then, n)
		}
		w.wantNothingLeft()
	}
}

func (w *world) health2() state.Health {
	w.t.Helper()
	list, err := w.home.List(w.t.Context(), nil, defaultsOnly)
	w.must(err)
	if len(list) != 1 || list[0].Health == nil {
		return state.Health{}
	}
	return *list[0].Health
}

// Stopping: cooperatively by the context, by another process's cancel, by a revocation,
// and by force.
func TestSessionStops(t *testing.T) {
	hold := session.Request{CapabilityID: "test.ops", OperationName: "write", Payload: json.RawMessage(`{"line":"one","then":"hold"}`)}
	run := func(w *world, outer context.Context, held func()) error {
		_, err := w.host.RunSession(outer, runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: sessionSample}}, func(ctx context.Context, s *runtime.Session) error {
			o, err := s.Do(ctx, hold)
			if err != nil {
				return err
			}
			for {
				if _, err := os.Stat(filepath.Join(w.dir, "held")); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			held()
			_, err = o.Result()
			return err
		})
		return err
	}
	stop := errors.New("enough")
	t.Run("context", func(t *testing.T) {
		w := newSessionWorld(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		err := run(w, ctx, func() { cancel(stop) })
		if !errors.Is(err, runtime.ErrInterrupted) || !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if op := w.newestOf(sessionSample.ID); op.State != state.Cancelled || op.EffectState != state.EffectCommitted {
			t.Fatalf("%+v", op) // as the plugin's receipt says
		}
		w.wantNothingLeft()
	})
	t.Run("cancel of the operation", func(t *testing.T) {
		w := newSessionWorld(t)
		err := run(w, t.Context(), func() {
			_, err := w.home.CancelOperation(t.Context(), w.newestOf(sessionSample.ID).ID, "test")
			w.must(err)
		})
		var cancelled *session.Cancelled
		if !errors.As(err, &cancelled) || !errors.Is(err, pkgmgr.ErrCancelled) {
			t.Fatal(err)
		}
		w.wantNothingLeft()
	})
	t.Run("revocation", func(t *testing.T) {
		w := newSessionWorld(t)
		err := run(w, t.Context(), func() {
			_, err := w.home.Revoke(t.Context(), pkgmgr.Denial{PluginID: sessionSample.ID, Reason: "bad"})
			w.must(err)
		})
		var revoked *pkgmgr.Revoked
		if !errors.As(err, &revoked) {
			t.Fatal(err)
		}
		w.wantNothingLeft()
	})
	t.Run("force", func(t *testing.T) {
		w := newSessionWorld(t)
		w.tell([]string{"stubborn"})
		force := make(chan struct{})
		w.host.Force = force
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		err := run(w, ctx, func() { cancel(stop); close(force) })
		if !errors.Is(err, runtime.ErrInterrupted) || time.Since(start) > 2500*time.Millisecond {
			t.Fatal(err, time.Since(start))
		}
		if op := w.newestOf(sessionSample.ID); op.State != state.Cancelled || op.EffectState != state.EffectUnknown || op.Code != "cancelled" {
			t.Fatalf("%+v", op) // the plugin is not to blame
		}
		if list := w.receipts(); len(list) != 1 || !list[0].Own || list[0].Effect != "unknown" {
			t.Fatalf("%+v", list)
		}
		w.wantNothingLeft()
	})
}

// Grants are looked at before every request.
func TestSessionRechecks(t *testing.T) {
	w := newSessionWorld(t)
	_, err := w.session(func(ctx context.Context, s *runtime.Session) error {
		if _, err := w.home.Disable(ctx, sessionSample, nil); err != nil {
			return err
		}
		_, err := s.Do(ctx, session.Request{CapabilityID: "test.ops", OperationName: "read", Payload: json.RawMessage(`{}`)})
		return err
	})
	var needs *pkgmgr.NeedsDecision
	if !errors.As(err, &needs) {
		t.Fatal(err)
	}
}

// What starts a package that an interpreter runs: a stand-in for each tells how.
func TestSessionInterpreters(t *testing.T) {
	for _, test := range []struct{ entry, program, wants string }{
		{`"python": {"module": "sample", "callable": "create", "pythonVersion": "3.11"}`, "python3", "sample create 3.11"},
		{`"dotnet": {"assembly": "sample.py", "type": "Example.Sample, Sample", "targetFramework": "net8.0"}`, "dotnet", "exec %s/sample.py --switchyard-type Example.Sample, Sample"},
	} {
		w := newUntrustedSessionWorld(t, test.entry)
		bin := filepath.Join(w.dir, "bin")
		w.must(os.MkdirAll(bin, 0o755))
		self, err := os.Executable()
		w.must(err)
		_, err = w.home.Trust(t.Context(), sessionSample, nil, w.pkg)
		w.must(err)
		w.host.Lookup = func(name string) (string, bool) {
			if name == "PATH" {
				return bin + ":/usr/bin:/bin", true
			}
			return w.lookup(name)
		}
		// The stand-in is a script of this very test program's plugin.
		w.must(os.WriteFile(filepath.Join(bin, test.program), []byte("#!/bin/sh\nfor a; do printf '%s ' \"$a\"; done >"+w.dir+"/arguments\nexec "+self+" "+sessiontest.Flag+" "+w.dir+"\n"), 0o755))
		_, err = w.host.Enable(t.Context(), sessionSample, nil, []manifest.Scope{manifest.Scope(sessionmanifest.ScopeFilesRead)})
		w.must(err)
		raw, err := os.ReadFile(filepath.Join(w.dir, "arguments"))
		w.must(err)
		wants := test.wants
		if strings.Contains(wants, "%s") {
			entries, err := filepath.Glob(filepath.Join(w.data, "store", "sha256-*"))
			w.must(err)
			wants = fmt.Sprintf(wants, entries[0])
		}
		if !strings.HasSuffix(strings.TrimSpace(string(raw)), wants) || test.program == "python3" && !strings.HasPrefix(string(raw), "-I -B -c ") {
			t.Errorf("%s: %s", test.program, raw)
		}
		w.must(os.Remove(filepath.Join(bin, test.program)))
		w.host.Lookup = func(name string) (string, bool) {
			if name == "PATH" {
				return bin, true
			}
			return w.lookup(name)
		}
		_, err = w.session(nil)
		var none *runtime.NoInterpreter
		if !errors.As(err, &none) || none.Program != test.program {
			t.Errorf("%s: %v", test.program, err)
		}
	}
}
