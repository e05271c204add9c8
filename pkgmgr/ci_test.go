//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// ready locks x for this machine and returns another data directory beside it.
func ready(t *testing.T) (*workspace, *workspace, sample) {
	w := newWorkspace(t, "")
	here, _, _ := programs()
	w.install(w.built(here, "x.tar.zst"))
	w.trust("x")
	w.enable("x", manifest.ScopeMetadataRead, manifest.ScopeOperate)
	_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)
	return w, &workspace{newSite(t), w.root}, here
}

// approveByLock is what `ci --trust-lock` does with one entry.
func (w *workspace) approveByLock(id string, given digest.Digest) error {
	lock := w.lock()
	if err := w.MayTrustLock(w.ctx, lock, given); err != nil {
		return err
	}
	d, err := w.ConsiderLock(w.ctx, lock, w.entry(id))
	if err != nil {
		return err
	}
	defer d.Call.End()
	a, err := d.approve(w.ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	_, err = w.RecordLockApproval(w.ctx, a, lock, state.Health{Package: a.Package, Status: state.HealthHealthy, At: w.now()})
	return err
}

func (w *workspace) runLocked(m Method) (grants []manifest.Scope, err error) {
	req := CallRequest{Ref: Ref{ID: "x"}, Lock: w.lock(), Method: m}
	if m != MethodHealth {
		req.Project = w.root
	}
	d, err := w.Consider(w.ctx, req)
	if err != nil {
		return nil, err
	}
	defer d.Call.End()
	a, err := d.approve(w.ctx)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Grants, nil
}

func TestInstallLocked(t *testing.T) {
	w, fresh, here := ready(t)
	// In an empty data directory, from the source.
	out, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	if out.Unchanged || out.Package != here.digest(t) || !out.Default {
		t.Errorf("%+v", out)
	}
	fresh.sound()
	if out, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x")); err != nil || !out.Unchanged {
		t.Errorf("%+v, %v", out, err)
	}
	// Without the source, from the store's archive; also where the tree is damaged.
	must(t, os.Rename(filepath.Join(w.root, "dist"), filepath.Join(w.root, "away")))
	for _, alter := range []func(){
		func() { damage(t, fresh.storePath(here.digest(t))) },
		func() { replaceInSealed(t, fresh.pluginPath("x")+"/bin/tool", "x") },
		func() {
			_, err := fresh.Uninstall(w.ctx, Ref{ID: "x"})
			must(t, err)
		},
	} {
		alter()
		out, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
		if err != nil || out.Unchanged {
			t.Errorf("%+v, %v", out, err)
		}
		fresh.sound()
	}
	// A damaged archive in the store is no way in, and not the end where there is
	// a source.
	_, err = fresh.Uninstall(w.ctx, Ref{ID: "x"})
	must(t, err)
	must(t, os.WriteFile(fresh.archivePath(w.entry("x").Platforms[HostPlatform()].Archive), []byte("junk"), 0o600))
	_, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	if i := as[*Integrity](t, err); i.What != "archive digest" {
		t.Errorf("%+v", i)
	}
	must(t, os.Rename(filepath.Join(w.root, "away"), filepath.Join(w.root, "dist")))
	_, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	fresh.sound()

	// Another project's default version stays.
	two := sample{id: "x", version: "2.0.0"}
	fresh.install(two.dir(t))
	_, err = fresh.Uninstall(w.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	out, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	if err != nil || out.Default || out.Unchanged {
		t.Errorf("%+v, %v", out, err)
	}
	list, err := fresh.List(w.ctx, w.lock(), false)
	must(t, err)
	wantLines(t, list, "x* 2.0.0 untrusted", "x 1.0.0 untrusted")
	if !list[1].Locked || list[0].Locked {
		t.Errorf("%+v", list)
	}
}

func TestInstallLockedRefuses(t *testing.T) {
	w, fresh, _ := ready(t)
	wrong := digest.Of([]byte("wrong"))
	for name, c := range map[string]struct {
		edit  func(e *lockfile.Plugin, p *lockfile.Platform)
		check func(t *testing.T, err error)
	}{
		"archive":     {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Archive = wrong }, integrityOf("archive digest")},
		"package":     {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Package = wrong }, integrityOf("package digest")},
		"manifest":    {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Manifest = wrong }, integrityOf("manifest digest")},
		"fingerprint": {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Fingerprint = wrong }, integrityOf("fingerprint")},
		"all that is read": {func(e *lockfile.Plugin, p *lockfile.Platform) {
			p.Package, p.Manifest, p.Fingerprint = wrong, wrong, wrong
		},
			func(t *testing.T, err error) {
				i := as[*Integrity](t, err)
				if i.What != "package digest" || len(i.Also) != 2 || i.Also[0].What != "manifest digest" || i.Also[1].What != "fingerprint" ||
					strings.Count(err.Error(), string(wrong)) != 3 {
					t.Errorf("%v", err)
				}
			}},
		"version":     {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Version = "1.0.1" }, func(t *testing.T, err error) { as[*WrongPackage](t, err) }},
		"source gone": {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Source = "dist/none.tar.zst" }, func(t *testing.T, err error) { as[*NotFound](t, err) }},
		"no source":   {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Source = "" }, func(t *testing.T, err error) { as[*NoSource](t, err) }},
		"remote":      {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Source = "https://example.com/x.tar.zst" }, func(t *testing.T, err error) { as[*RemoteSource](t, err) }},
		"grants":      {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Grants = append(e.Grants, "no.such") }, driftOf(DriftGrants)},
		"platform": {func(e *lockfile.Plugin, p *lockfile.Platform) {
			e.Platforms = map[string]lockfile.Platform{"windows/386": *p}
		}, func(t *testing.T, err error) {
			if d := as[*Drift](t, err); d.What != DriftPlatform {
				t.Errorf("%+v", d)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := w.entry("x")
			p := e.Platforms[HostPlatform()]
			e.Platforms = map[string]lockfile.Platform{}
			c.edit(&e, &p)
			if len(e.Platforms) == 0 {
				e.Platforms[HostPlatform()] = p
			}
			_, err := fresh.InstallLocked(w.ctx, w.lock(), e)
			c.check(t, err)
			wantLines(t, fresh.list(true))
			if name == "package" || name == "all that is read" || name == "source gone" || name == "no source" || name == "remote" {
				return
			}
			// Also where it is installed already.
			if _, err := w.InstallLocked(w.ctx, w.lock(), e); err == nil {
				t.Error("an installed package was taken for it")
			}
		})
	}
}

// A package that came from a directory, or from another packing, is the locked one
// only once the locked archive was read.
func TestInstallLockedReadsTheArchive(t *testing.T) {
	w, _, here := ready(t)
	for name, source := range map[string]string{"directory": here.dir(t), "another packing": w.built(here, "other.zip")} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.install(source)
			dist := filepath.Join(w.root, "dist")
			must(t, os.Rename(dist, dist+".away"))
			_, err := s.InstallLocked(w.ctx, w.lock(), w.entry("x"))
			driftOf(DriftArchive)(t, err)
			must(t, os.Rename(dist+".away", dist))
			locked := w.entry("x").Platforms[HostPlatform()].Archive
			wrong := w.entry("x")
			p := wrong.Platforms[HostPlatform()]
			p.Archive = digest.Of([]byte("wrong"))
			wrong.Platforms = map[string]lockfile.Platform{HostPlatform(): p}
			_, err = s.InstallLocked(w.ctx, w.lock(), wrong)
			integrityOf("archive digest")(t, err)
			if out, err := s.InstallLocked(w.ctx, w.lock(), w.entry("x")); err != nil || !out.Unchanged || !exists(s.archivePath(locked)) {
				t.Errorf("%+v, %v", out, err)
			}
			_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Lock: w.lock(), Method: MethodHealth})
			as[*NeedsDecision](t, err)
			s.sound()
		})
	}
}

// Every digest of the lock's entry counts at every call, not only the one by which
// the package is found.
func TestRunComparesTheWholeEntry(t *testing.T) {
	w, _, _ := ready(t)
	w.enable("x", manifest.Scopes...)
	if _, err := w.runLocked(MethodHealth); err != nil {
		t.Fatal(err)
	}
	good := w.entry("x").Platforms[HostPlatform()]
	wrong := digest.Of([]byte("wrong"))
	for what, edit := range map[string]func(p *lockfile.Platform){
		DriftArchive:     func(p *lockfile.Platform) { p.Archive = wrong },
		DriftManifest:    func(p *lockfile.Platform) { p.Manifest = wrong },
		DriftFingerprint: func(p *lockfile.Platform) { p.Fingerprint = wrong },
	} {
		p := good
		edit(&p)
		_, err := lockfile.Edit(w.project().LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
			return f.WithPlatform("x", HostPlatform(), p)
		})
		must(t, err)
		_, err = w.runLocked(MethodHealth)
		driftOf(what)(t, err)
		if _, err := w.Disable(w.ctx, Ref{ID: "x"}, w.lock()); err != nil {
			t.Errorf("%s: a lock stands in the way of disable: %v", what, err)
		}
	}
}

// What the lock alone approves is no trust: nothing is started to enable it.
func TestEnableOfWhatOnlyALockApproves(t *testing.T) {
	w, s, _ := ready(t)
	_, err := s.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	must(t, s.approveByLock("x", w.lock().Digest))
	if _, err := s.runLocked(MethodHealth); err != nil {
		t.Fatal(err)
	}
	d, err := s.ConsiderEnable(w.ctx, Ref{ID: "x"}, w.lock(), nil)
	must(t, err)
	defer d.Call.End()
	a, err := d.approve(w.ctx)
	if n := as[*NeedsDecision](t, err); n.Status != StatusUntrusted || !strings.Contains(n.Detail, "approved by the lock only") || a != nil {
		t.Errorf("%+v", n)
	}
	// With a person's trust it goes.
	s.trust("x")
	s.enable("x")
}

func driftOf(what string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		t.Helper()
		if d := as[*Drift](t, err); d.What != what {
			t.Errorf("%+v", d)
		}
	}
}

func integrityOf(what string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		t.Helper()
		if i := as[*Integrity](t, err); i.What != what {
			t.Errorf("%+v", i)
		}
	}
}

// Under a lock only what it names runs, in its version, with at most its grants.
func TestRunUnderALock(t *testing.T) {
	w, _, here := ready(t)
	_, _, err := w.TrustProject(w.ctx, w.root)
	must(t, err)
	if grants, err := w.runLocked(MethodOperate); err != nil || len(grants) != 2 {
		t.Errorf("%v, %v", grants, err)
	}
	w.enable("x", manifest.Scopes...)
	if grants, err := w.runLocked(MethodHealth); err != nil || len(grants) != 2 {
		t.Errorf("the lock is no ceiling: %v, %v", grants, err)
	}
	w.enable("x", manifest.ScopeMetadataRead)
	if grants, err := w.runLocked(MethodHealth); err != nil || len(grants) != 1 {
		t.Errorf("the lock is no grant: %v, %v", grants, err)
	}
	_, err = w.runLocked(MethodOperate)
	if d := as[*Denied](t, err); d.ByLock != "" {
		t.Errorf("%+v", d)
	}

	// The lock lacks a scope.
	w.enable("x", manifest.Scopes...)
	_, err = lockfile.Edit(w.project().LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
		e, _ := f.Plugin("x")
		e.Grants = []string{"project.metadata.read"}
		return f.With(e), nil
	})
	must(t, err)
	_, err = w.runLocked(MethodOperate)
	if d := as[*Denied](t, err); d.ByLock != w.lock().Path || d.Scope != manifest.ScopeOperate {
		t.Errorf("%+v", d)
	}

	// Another version is the default: the locked one runs.
	two := sample{id: "x", version: "2.0.0"}
	w.install(two.dir(t))
	if _, err := w.runLocked(MethodInspect); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		ref  Ref
		what string
	}{{Ref{ID: "x", Version: "2.0.0"}, DriftVersion}, {Ref{ID: "x", Digest: two.digest(t)}, DriftVersion}, {Ref{ID: "y"}, DriftNotLocked}} {
		_, err := w.run(CallRequest{Ref: c.ref, Lock: w.lock(), Method: MethodHealth})
		if d := as[*Drift](t, err); d.What != c.what || d.Lock != w.lock().Path || d.ID != c.ref.ID {
			t.Errorf("%+v", d)
		}
	}
	// What the lock names is not here.
	_, err = w.Uninstall(w.ctx, Ref{ID: "x", Digest: here.digest(t)})
	must(t, err)
	_, err = w.runLocked(MethodHealth)
	if d := as[*Drift](t, err); d.What != DriftNotInstalled {
		t.Errorf("%+v", d)
	}
	// The lock names a package of another id.
	y := sample{id: "y", version: "1.0.0"}
	w.install(y.dir(t))
	w.trust("y")
	w.enable("y", manifest.Scopes...)
	_, err = lockfile.Edit(w.project().LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
		return f.WithPlatform("x", HostPlatform(), lockfile.Platform{Archive: y.digest(t), Package: y.digest(t), Manifest: y.digest(t), Fingerprint: y.digest(t)})
	})
	must(t, err)
	_, err = w.runLocked(MethodHealth)
	if d := as[*Drift](t, err); d.What != DriftNotInstalled {
		t.Errorf("%+v", d)
	}
}

func TestTrustLock(t *testing.T) {
	w, fresh, here := ready(t)
	_, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)

	// Neither a trusted project nor the lock's digest: no.
	if d := as[*Denied](t, fresh.approveByLock("x", "")); d.Project != w.root {
		t.Errorf("%+v", d)
	}
	if i := as[*Integrity](t, fresh.approveByLock("x", digest.Of(nil))); i.What != "lockfile digest" {
		t.Errorf("%+v", i)
	}
	must(t, fresh.approveByLock("x", w.lock().Digest))
	if grants, err := fresh.runLocked(MethodHealth); err != nil || len(grants) != 2 {
		t.Errorf("%v, %v", grants, err)
	}
	list, err := fresh.List(w.ctx, w.lock(), false)
	must(t, err)
	if i := list[0]; i.Status != StatusEnabled || !i.ByLock || !i.Locked || len(i.Granted) != 2 {
		t.Errorf("%+v", i)
	}
	// For that project only.
	if _, err := fresh.health("x"); as[*NeedsDecision](t, err).Status != StatusUntrusted {
		t.Error(err)
	}
	// The project itself is another matter.
	_, err = fresh.runLocked(MethodInspect)
	as[*Denied](t, err)
	_, _, err = fresh.TrustProject(w.ctx, w.root)
	must(t, err)
	if _, err := fresh.runLocked(MethodInspect); err != nil {
		t.Error(err)
	}
	events, err := fresh.History(w.ctx, "x", 0)
	must(t, err)
	if i := slices.IndexFunc(events, func(e state.Event) bool { return e.Kind == EventLockApproval }); i < 0 || events[i].Project != w.root || events[i].Detail["lock"] != string(w.lock().Digest) {
		t.Errorf("%+v", events)
	}
	// It goes with the project's trust.
	must(t, fresh.UntrustProject(w.ctx, w.root))
	_, err = fresh.runLocked(MethodHealth)
	as[*NeedsDecision](t, err)
	_ = here
}

// An approval by a lock never overrides an untrust, a disable, a change or a
// revocation, made before or after it.
func TestTrustLockOverridesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(w *workspace, pkg digest.Digest)
		status Status
	}{
		"untrust": {func(w *workspace, _ digest.Digest) {
			_, err := w.Untrust(w.ctx, Ref{ID: "x"}, nil)
			must(w.t, err)
		}, StatusUntrusted},
		"disable": {func(w *workspace, _ digest.Digest) {
			_, err := w.Disable(w.ctx, Ref{ID: "x"}, nil)
			must(w.t, err)
		}, StatusUntrusted},
		"change": {func(w *workspace, pkg digest.Digest) {
			if w.status("x") == StatusUntrusted { // somebody must have decided for it
				w.trust("x")
			}
			damage(w.t, w.pluginPath("x"))
			w.list(false)
			_, err := w.InstallLocked(w.ctx, w.lock(), w.entry("x"))
			must(w.t, err)
		}, StatusChanged},
		"revoke": {func(w *workspace, pkg digest.Digest) {
			_, err := w.Revoke(w.ctx, Denial{Digest: pkg, Reason: "r"})
			must(w.t, err)
		}, StatusRevoked},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+" "+when, func(t *testing.T) {
				w, fresh, here := ready(t)
				fresh.t = t
				_, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
				must(t, err)
				if when == "after" {
					must(t, fresh.approveByLock("x", w.lock().Digest))
				}
				c.do(fresh, here.digest(t))
				for what, err := range map[string]error{
					"run":          func() error { _, err := fresh.runLocked(MethodHealth); return err }(),
					"approve":      fresh.approveByLock("x", w.lock().Digest),
					"run again":    func() error { _, err := fresh.runLocked(MethodHealth); return err }(),
					"install":      func() error { _, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x")); return err }(),
					"lock --check": nil,
				} {
					var needs *NeedsDecision
					switch {
					case name == "revoke" && what != "lock --check":
						as[*Revoked](t, err)
					case what == "install" || what == "lock --check":
						must(t, err)
					default:
						if !errors.As(err, &needs) {
							t.Errorf("%s: %v", what, err)
						}
					}
				}
				if name == "revoke" {
					_, err := fresh.Unrevoke(w.ctx, string(here.digest(t)))
					must(t, err)
					_, err = fresh.runLocked(MethodHealth)
					as[*NeedsDecision](t, err) // it came back untrusted, for the project too
					return
				}
				// The person decides again.
				fresh.trust("x")
				fresh.enable("x", manifest.ScopeMetadataRead)
				if _, err := fresh.runLocked(MethodHealth); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Every kind of drift between the project's files is named, each for itself.
func TestCheckProject(t *testing.T) {
	host, _, other := machines()
	_ = host
	p := lockfile.Platform{Archive: digest.Of(nil), Package: digest.Of(nil), Manifest: digest.Of(nil), Fingerprint: digest.Of(nil)}
	entry := lockfile.Plugin{ID: "x", Version: "1.2.0", Source: "dist/x.tar.zst", Grants: []string{"project.metadata.read"},
		Platforms: map[string]lockfile.Platform{HostPlatform(): p}}
	const base = "version = 1\n[plugins.x]\nsource = \"./dist/x.tar.zst\"\nversion = \"^1.0.0\"\nscopes = [\"project.metadata.read\"]\n"
	for name, c := range map[string]struct {
		config string
		edit   func(e *lockfile.Plugin)
		want   []string
	}{
		"nothing":     {config: base},
		"no config":   {},
		"not wanted":  {config: "version = 1\n", want: []string{DriftNotWanted}},
		"not locked":  {config: base + "[plugins.y]\nsource = \"y.tar.zst\"\n", want: []string{DriftUnlocked}},
		"range":       {config: strings.ReplaceAll(base, "^1.0.0", "^2.0.0"), want: []string{DriftRange}},
		"source":      {config: strings.ReplaceAll(base, "./dist", "out"), want: []string{DriftSource}},
		"scopes":      {config: strings.ReplaceAll(base, "metadata", "files"), want: []string{DriftScopes}},
		"no scopes":   {config: strings.ReplaceAll(base, `"project.metadata.read"`, ""), want: []string{DriftScopes}},
		"any scopes":  {config: strings.ReplaceAll(base, `scopes = ["project.metadata.read"]`, "")},
		"platforms":   {config: strings.Replace(base, "\n", "\nplatforms = [\""+HostPlatform()+"\", \""+other+"\"]\n", 1), want: []string{DriftPlatforms}},
		"no platform": {edit: func(e *lockfile.Plugin) { e.Platforms = map[string]lockfile.Platform{other: p} }, want: []string{DriftPlatform}},
		"any platform": {config: strings.Replace(base, "\n", "\nplatforms = [\""+HostPlatform()+"\", \""+other+"\"]\n", 1),
			edit: func(e *lockfile.Plugin) { e.Platforms = map[string]lockfile.Platform{lockfile.Any: p} }},
		"several": {config: "version = 1\n[plugins.x]\nsource = \"out/x.tar.zst\"\nversion = \"2.0.0\"\nscopes = []\n[plugins.y]\nsource = \"y.tar.zst\"\n",
			want: []string{DriftRange, DriftSource, DriftScopes, DriftUnlocked}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, c.config)
			e := entry
			if c.edit != nil {
				c.edit(&e)
			}
			must(t, lockfile.Write(filepath.Join(w.root, lockfile.FileName), (&lockfile.File{}).With(e)))
			drifts, err := CheckProject(w.project(), w.lock())
			must(t, err)
			var got []string
			if drifts != nil {
				for _, d := range drifts.Items {
					got = append(got, d.What)
					if d.ID == "" || d.Lock == "" || d.Wanted == "" && d.Found == "" && d.What != DriftScopes {
						t.Errorf("%+v", d)
					}
				}
				if drifts.Error() == "" {
					t.Error("no message")
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
