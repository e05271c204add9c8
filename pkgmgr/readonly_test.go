//go:build linux

package pkgmgr

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// ordinaryEnv tells the re-executed test binary that it runs as an ordinary user.
const ordinaryEnv = "PKGMGR_TEST_ORDINARY"

// nobody is a user id that owns nothing.
const nobody = 65534

// asOrdinaryUser runs a test as an ordinary user, since root may write whatever the
// modes say, and reports whether that was done in another process.
func asOrdinaryUser(t *testing.T) (done bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	if os.Getenv(ordinaryEnv) != "" {
		t.Skip("user ids cannot be changed here")
	}
	dir := scratch(t)
	must(t, os.Chmod(dir, 0o755))
	binary := filepath.Join(dir, "tests")
	copyBinary(t, binary)
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), ordinaryEnv+"=1", "HOME="+dir, "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		t.Skipf("an ordinary user cannot run here: %v", err)
	case err != nil:
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Errorf("it did not run as an ordinary user:\n%s", out)
	}
	return true
}

func copyBinary(t *testing.T, to string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err)
	must(t, out.Close())
}

// freeze takes every right to write below a directory away.
func freeze(t *testing.T, dir string) {
	t.Helper()
	var dirs []string
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, p)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(p, info.Mode().Perm()&0o555)
	}))
	slices.Reverse(dirs)
	for _, d := range dirs {
		must(t, os.Chmod(d, 0o500))
	}
}

// On a read-only data directory everything that only reads works, and everything
// else refuses as such.
func TestReadOnlyDataDirectory(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	s := newSite(t)
	root, err := ResolveProject(t.TempDir())
	must(t, err)
	_, _, err = s.TrustProject(s.ctx, root)
	must(t, err)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	source := one.archive(t)
	for _, id := range []string{"x", "y", "bad"} {
		s.install(sample{id: id, version: "1.0.0", files: map[string]string{"lib/a": "a"}}.archive(t))
		s.trust(id)
		s.enable(id, manifest.Scopes...)
	}
	_, err = s.Revoke(s.ctx, Denial{PluginID: "bad", Reason: "r"})
	must(t, err)
	replaceInSealed(t, s.pluginPath("y")+"/lib/a", "A")

	// What killed commands left: a call, a change before and one after its decision.
	dead, err := s.beginCall(callMarker{PluginID: "x"})
	must(t, err)
	dead.lock.Unlock()
	st, err := s.newStage()
	must(t, err)
	must(t, st.writeIntent(intent{Action: actQuarantine, Denial: Denial{PluginID: "bad", Reason: "r"}}))
	st.lock.Unlock()
	freeze(t, s.Path())

	s = siteAt(t, s.Path())
	wantLines(t, s.list(true), "bad 1.0.0 revoked", "x* 1.0.0 enabled", "y* 1.0.0 changed")
	for _, m := range []Method{MethodHealth, MethodInspect} {
		req := CallRequest{Ref: Ref{ID: "x"}, Method: m}
		if m != MethodHealth {
			req.Project = root
		}
		d, err := s.Consider(s.ctx, req)
		must(t, err)
		a, err := d.approve(s.ctx)
		must(t, err)
		if why, asked := d.Call.StopRequested(); asked {
			t.Errorf("asked to stop: %v", why)
		}
		must(t, a.Recheck(s.ctx))
		must(t, s.RecordCall(s.ctx, a, CallRecord{Method: m, Health: state.Health{Package: a.Package, Status: state.HealthHealthy}}))
		must(t, s.RecordAfter(s.ctx, a, nil, []state.LogEntry{{ID: "x", Line: "x"}}))
		a.Close()
		d.Call.End()
	}
	_, err = s.health("y")
	if n := as[*NeedsDecision](t, err); n.Status != StatusChanged {
		t.Errorf("%+v", n)
	}
	_, err = s.health("bad")
	as[*Revoked](t, err)
	if r, err := s.Review(s.ctx, Ref{ID: "x"}, nil); err != nil || r.Status != StatusEnabled {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.ReviewArchive(s.ctx, source); err != nil || r.Package != one.digest(t) || r.Status != StatusEnabled {
		t.Errorf("%+v, %v", r, err)
	}
	if v, err := s.VerifyArchive(s.ctx, source, "", Asked{}); err != nil || v.Verdict != Unsigned {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := s.Check(s.ctx, one.dir(t)); err != nil {
		t.Error(err)
	}
	if _, err := s.Pack(s.ctx, one.dir(t), PackOptions{Out: filepath.Join(t.TempDir(), "x.zip")}); err != nil {
		t.Error(err)
	}
	checks, err := s.Verify(s.ctx, nil, nil)
	must(t, err)
	if len(checks) != 2 || checks[0].Verdict != Unsigned || checks[1].Verdict != Failed {
		t.Errorf("%+v", checks)
	}
	if got := s.DeadCalls(); !slices.Equal(got, []string{dead.ID}) {
		t.Errorf("%q", got)
	}
	must(t, s.Bury(s.ctx, dead.ID, nil))
	if _, err := s.History(s.ctx, "", 0); err != nil {
		t.Error(err)
	}

	d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodOperate, Project: root})
	must(t, err)
	a, err := d.approve(s.ctx)
	must(t, err)
	defer a.Close()
	for what, do := range map[string]func() error{
		"operate": func() error {
			_, err := s.StartOperation(s.ctx, a, OperationRequest{Action: "w", Input: []byte("{}")})
			return err
		},
		"install": func() error {
			_, err := s.Install(s.ctx, sample{id: "n", version: "1"}.dir(t), InstallOptions{})
			return err
		},
		"use":             func() error { _, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"}); return err },
		"uninstall":       func() error { _, err := s.Uninstall(s.ctx, Ref{ID: "x"}); return err },
		"trust":           func() error { _, err := s.Trust(s.ctx, Ref{ID: "y"}, nil, digest.Of(nil)); return err },
		"untrust":         func() error { _, err := s.Untrust(s.ctx, Ref{ID: "x"}, nil); return err },
		"disable":         func() error { _, err := s.Disable(s.ctx, Ref{ID: "x"}, nil); return err },
		"revoke":          func() error { _, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"}); return err },
		"unrevoke":        func() error { _, err := s.Unrevoke(s.ctx, "bad"); return err },
		"gc":              func() error { _, err := s.GC(s.ctx, GCOptions{}); return err },
		"project trust":   func() error { _, _, err := s.TrustProject(s.ctx, "/p"); return err },
		"project untrust": func() error { return s.UntrustProject(s.ctx, root) },
		"cancel":          func() error { _, err := s.CancelOperation(s.ctx, "x", "me"); return err },
		"repair":          func() error { _, err := Repair(s.ctx, s.Path(), Options{}); return err },
		"enable": func() error {
			d, err := s.ConsiderEnable(s.ctx, Ref{ID: "x"}, nil, nil)
			must(t, err)
			a, err := d.approve(s.ctx)
			must(t, err)
			defer a.Close()
			_, err = s.RecordEnable(s.ctx, a, state.Health{Package: a.Package, Status: state.HealthHealthy})
			return err
		},
	} {
		if err := do(); !errors.Is(err, state.ErrReadOnly) {
			t.Errorf("%s: %v (%T)", what, err, err)
		}
	}
	for _, f := range Diagnose(s.ctx, s.Path()) {
		if !f.OK && !slices.Contains([]string{"interrupted changes", "dead calls", "package y 1.0.0"}, f.Check) {
			t.Errorf("%+v", f)
		}
	}
	wantLines(t, s.list(true), "bad 1.0.0 revoked", "x* 1.0.0 enabled", "y* 1.0.0 changed")
}

// Files that may not be read break their package and hide no other.
func TestUnreadableFiles(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	for name, hide := range map[string]func(s *site, tree string){
		"executable": func(s *site, tree string) { must(t, os.Chmod(filepath.Join(tree, "bin/tool"), 0o100)) },
		"manifest":   func(s *site, tree string) { must(t, os.Chmod(filepath.Join(tree, manifest.FileName), 0)) },
		"directory":  func(s *site, tree string) { must(t, os.Chmod(filepath.Join(tree, "lib"), 0)) },
		"root":       func(s *site, tree string) { must(t, os.Chmod(tree, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			for _, id := range []string{"a", "x", "z"} {
				s.install(sample{id: id, version: "1.0.0", files: map[string]string{"lib/a": "a"}}.archive(t))
				s.trust(id)
				s.enable(id)
			}
			hide(s, s.pluginPath("x"))
			list := s.list(false)
			if len(list) != 3 || list[0].Status != StatusEnabled || list[1].Status != StatusBroken || list[2].Status != StatusEnabled {
				t.Fatalf("%q", lines(list))
			}
			as[*Malformed](t, list[1].Err)
			_, err := s.health("x")
			if n := as[*NeedsDecision](t, err); n.Status != StatusChanged {
				t.Errorf("%+v", n)
			}
			checks, err := s.Verify(s.ctx, nil, nil)
			must(t, err)
			if len(checks) != 3 || checks[0].Verdict != Unsigned || checks[1].Verdict != Failed || checks[2].Verdict != Unsigned {
				t.Errorf("%+v", checks)
			}
			if r := s.install(sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}.archive(t)); !r.Repaired {
				t.Errorf("%+v", r)
			}
			s.sound()
		})
	}
}

// Everything works as an ordinary user, whose rights end where modes say: trees of
// read-only directories are moved, exchanged and removed.
func TestAsAnOrdinaryUser(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"a/b/c/d": "d"}}
	two := sample{id: "x", version: "2.0.0", files: map[string]string{"a/b/c/e": "e"}}
	s := newSite(t)
	for _, p := range []sample{one, two} {
		s.install(p.archive(t))
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
		s.sound()
	}
	_, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	s.sound()
	_, err = s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
	must(t, err)
	s.sound()
	_, err = s.Unrevoke(s.ctx, "x")
	must(t, err)
	s.sound()
	damage(t, s.storePath(one.digest(t)))
	s.list(false)
	_, err = s.Install(s.ctx, one.archive(t), InstallOptions{Default: DefaultReplace})
	must(t, err)
	s.sound()
	_, err = s.GC(s.ctx, GCOptions{})
	must(t, err)
	sample{id: "h", version: "1.0.0"}.writeTo(t, s.pluginPath("hand"))
	s.trust("h")
	s.sound()
	for _, id := range []string{"x", "h"} {
		_, err = s.Uninstall(s.ctx, Ref{ID: id})
		must(t, err)
	}
	s.sound()
	wantLines(t, s.list(true))
}
