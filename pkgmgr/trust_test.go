//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestTrustAndEnable(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	c := one.contents(t)
	s.install(one.archive(t))

	// Nothing runs before it is trusted and enabled.
	_, err := s.health("x")
	if n := as[*NeedsDecision](t, err); n.Status != StatusUntrusted || n.Package != c.Package {
		t.Errorf("%+v", n)
	}
	d, err := s.ConsiderEnable(s.ctx, Ref{ID: "x"}, nil, nil)
	must(t, err)
	d.Call.End()
	if n := as[*NeedsDecision](t, d.Trusted()); n.Status != StatusUntrusted {
		t.Errorf("%+v", n)
	}

	// Only what was read in the review is taken for a review.
	_, err = s.Trust(s.ctx, Ref{ID: "x"}, nil, digest.Of([]byte("other")))
	if i := as[*Integrity](t, err); i.Found != c.Package {
		t.Errorf("%+v", i)
	}
	_, err = s.Trust(s.ctx, Ref{ID: "x"}, nil, c.Fingerprint)
	if p := as[*PartialFingerprint](t, err); p.Files != 3 || p.Package != c.Package {
		t.Errorf("%+v", p)
	}
	wantLines(t, s.list(false), "x* 1.0.0 untrusted")

	trusted := s.trust("x")
	if trusted.Already || trusted.Status != StatusTrusted || trusted.Package != c.Package || trusted.Fingerprint != c.Fingerprint {
		t.Errorf("%+v", trusted)
	}
	if again := s.trust("x"); !again.Already {
		t.Errorf("%+v", again)
	}
	wantLines(t, s.list(false), "x* 1.0.0 disabled")
	_, err = s.health("x")
	if n := as[*NeedsDecision](t, err); n.Status != StatusTrusted {
		t.Errorf("%+v", n)
	}

	enabled := s.enable("x", manifest.ScopeMetadataRead, manifest.ScopeFilesRead)
	if !slices.Equal(enabled.Withheld, []manifest.Scope{manifest.ScopeOperate}) {
		t.Errorf("%+v", enabled)
	}
	if got, err := s.health("x"); err != nil || got != c.Package {
		t.Errorf("%s, %v", got, err)
	}
	if i := s.list(false)[0]; i.Status != StatusEnabled || len(i.Granted) != 2 || i.ByLock || i.Health == nil {
		t.Errorf("%+v", i)
	}
	if again := s.trust("x"); again.Status != StatusEnabled {
		t.Errorf("%+v", again)
	}

	w, err := s.Disable(s.ctx, Ref{ID: "x"}, nil)
	if err != nil || w.Was != StatusEnabled || w.Status != StatusTrusted || w.Package != c.Package {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := s.health("x"); as[*NeedsDecision](t, err).Status != StatusTrusted {
		t.Error(err)
	}
	s.enable("x")
	if got, err := s.health("x"); err != nil || got != c.Package {
		t.Errorf("no scope at all: %v", err)
	}
	w, err = s.Untrust(s.ctx, Ref{ID: "x"}, nil)
	if err != nil || w.Was != StatusEnabled || w.Status != StatusUntrusted {
		t.Errorf("%+v, %v", w, err)
	}
	s.trust("x")
	wantLines(t, s.list(false), "x* 1.0.0 disabled") // the grants do not come back by themselves
}

func TestFingerprintSufficesForTwoFiles(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.dir(t))
	r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
	must(t, err)
	if !r.FingerprintSuffices {
		t.Errorf("%+v", r)
	}
	out, err := s.Trust(s.ctx, Ref{ID: "x"}, nil, r.Fingerprint)
	if err != nil || out.Package != r.Package {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestEnableTakesASubset(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0", scopes: []manifest.Scope{manifest.ScopeMetadataRead}}.dir(t))
	s.trust("x")
	for _, scope := range []manifest.Scope{manifest.ScopeOperate, "project.*", ""} {
		d, err := s.ConsiderEnable(s.ctx, Ref{ID: "x"}, nil, []manifest.Scope{manifest.ScopeMetadataRead, scope})
		must(t, err)
		_, err = d.approve(s.ctx)
		if n := as[*NotRequested](t, err); n.Scope != string(scope) {
			t.Errorf("%+v", n)
		}
		d.Call.End()
	}
	wantLines(t, s.list(false), "x* 1.0.0 disabled")
}

func TestRehashNeedsEveryCheck(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	all := func(d *Decision) []func() error {
		return []func() error{d.NotRevoked, d.Trusted, d.Granted, d.ProjectTrusted}
	}
	for left := range 4 {
		d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodHealth})
		must(t, err)
		for i, check := range all(d) {
			if i != left {
				must(t, check())
			}
		}
		if a, err := d.Rehash(s.ctx); err == nil || a != nil {
			t.Errorf("check %d was left out: %v", left, a)
		}
		d.Call.End()
	}
}

func TestMethodsAndProjects(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.install(sample{id: "reader", version: "1.0.0", scopes: []manifest.Scope{manifest.ScopeMetadataRead}}.dir(t))
	for _, id := range []string{"x", "reader"} {
		s.trust(id)
		s.enable(id, manifest.ScopeMetadataRead)
	}
	root, err := ResolveProject(t.TempDir())
	must(t, err)

	_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Method: MethodInspect, Project: root})
	if d := as[*Denied](t, err); d.Project != root {
		t.Errorf("%+v", d)
	}
	// A project that is forgotten is no project that is trusted.
	_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Method: MethodInspect})
	as[*Denied](t, err)

	p, already, err := s.TrustProject(s.ctx, root)
	if err != nil || already || p.Root != root || p.ID == "" {
		t.Errorf("%+v, %v, %v", p, already, err)
	}
	if again, already, err := s.TrustProject(s.ctx, root); err != nil || !already || again.ID != p.ID {
		t.Errorf("%+v, %v, %v", again, already, err)
	}
	d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodInspect, Project: root})
	must(t, err)
	a, err := d.approve(s.ctx)
	must(t, err)
	if a.ProjectID != p.ID || a.ProjectRoot != root || !slices.Equal(a.Grants, []manifest.Scope{manifest.ScopeMetadataRead}) {
		t.Errorf("%+v", a)
	}
	a.Close()
	d.Call.End()

	// Not its children.
	child := filepath.Join(root, "sub")
	must(t, os.Mkdir(child, 0o755))
	_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Method: MethodInspect, Project: child})
	as[*Denied](t, err)

	_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Method: MethodOperate, Project: root})
	if d := as[*Denied](t, err); d.Scope != manifest.ScopeOperate {
		t.Errorf("%+v", d)
	}
	_, err = s.run(CallRequest{Ref: Ref{ID: "reader"}, Method: MethodOperate, Project: root})
	if n := as[*NotOffered](t, err); n.Capability != manifest.CapabilityOperate {
		t.Errorf("%+v", n)
	}

	must(t, s.UntrustProject(s.ctx, root))
	as[*NotFound](t, s.UntrustProject(s.ctx, root))
	_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Method: MethodInspect, Project: root})
	as[*Denied](t, err)
}

// Any change of any file is noticed, at a call and in a listing, takes the grants
// and needs a new review, even after the reviewed bytes are back.
func TestChangedFiles(t *testing.T) {
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a", "lib/b": "b"}}
	for name, alter := range map[string]func(t *testing.T, s *site, tree string){
		"executable in place": func(t *testing.T, s *site, tree string) { damage(t, tree) },
		"other file replaced": func(t *testing.T, s *site, tree string) { replaceInSealed(t, filepath.Join(tree, "lib/a"), "A") },
		"file added":          func(t *testing.T, s *site, tree string) { replaceInSealed(t, filepath.Join(tree, "lib/c"), "c") },
		"file removed": func(t *testing.T, s *site, tree string) {
			must(t, os.Chmod(filepath.Join(tree, "lib"), 0o755))
			must(t, os.Remove(filepath.Join(tree, "lib/a")))
		},
		"manifest": func(t *testing.T, s *site, tree string) {
			replaceInSealed(t, filepath.Join(tree, manifest.FileName), string(sample{id: "x", version: "1.0.1"}.manifest()))
		},
		"manifest broken": func(t *testing.T, s *site, tree string) {
			replaceInSealed(t, filepath.Join(tree, manifest.FileName), "{")
		},
		"execute bit": func(t *testing.T, s *site, tree string) {
			must(t, os.Chmod(filepath.Join(tree, "lib/a"), 0o555))
		},
		"execute bit of the executable": func(t *testing.T, s *site, tree string) {
			must(t, os.Chmod(filepath.Join(tree, "bin/tool"), 0o444))
		},
		"executable writable by all": func(t *testing.T, s *site, tree string) {
			must(t, os.Chmod(filepath.Join(tree, "bin/tool"), 0o777))
		},
		"link added": func(t *testing.T, s *site, tree string) {
			must(t, os.Chmod(tree, 0o755))
			must(t, os.Symlink("plugin.json", filepath.Join(tree, "link")))
		},
		"executable is a link": func(t *testing.T, s *site, tree string) {
			must(t, os.Chmod(filepath.Join(tree, "bin"), 0o755))
			must(t, os.Remove(filepath.Join(tree, "bin/tool")))
			must(t, os.Symlink("/bin/sh", filepath.Join(tree, "bin/tool")))
		},
		"tree is a link to a copy": func(t *testing.T, s *site, tree string) {
			copied := filepath.Join(scratch(t), "copy")
			must(t, linkTree(tree, copied))
			must(t, removeTree(tree))
			must(t, os.Symlink(copied, tree))
		},
	} {
		for _, place := range []string{"default", "store"} {
			for _, first := range []string{"run", "list"} {
				t.Run(name+"/"+place+"/"+first, func(t *testing.T) {
					s := newSite(t)
					s.install(one.archive(t))
					s.trust("x")
					s.enable("x", manifest.ScopeMetadataRead)
					s.list(false)
					tree := s.pluginPath("x")
					if place == "store" {
						tree = s.storePath(one.digest(t))
					}
					alter(t, s, tree)
					if first == "list" {
						// A listing looks at the default directory only.
						got := s.status("x")
						if place == "default" && got != StatusChanged && got != StatusBroken {
							t.Errorf("listed as %s", got)
						}
						if place == "store" {
							return
						}
					}
					_, err := s.health("x")
					if n := as[*NeedsDecision](t, err); n.Status != StatusChanged {
						t.Errorf("%+v", n)
					}
					if got := s.status("x"); got != StatusChanged && got != StatusBroken {
						t.Errorf("after the call: %s", got)
					}
					if info, err := os.Lstat(tree); place == "default" && err == nil && !info.IsDir() {
						_, err := s.Install(s.ctx, one.archive(t), InstallOptions{})
						as[*ForeignDirectory](t, err)
						return // whose link it is is not for an install to say
					}
					// The reviewed bytes are back, the decision is not.
					if r := s.install(one.archive(t)); !r.Repaired {
						t.Errorf("%+v", r)
					}
					s.sound()
					if got := s.status("x"); got != StatusChanged {
						t.Errorf("after the repair: %s", got)
					}
					_, err = s.health("x")
					if n := as[*NeedsDecision](t, err); n.Status != StatusChanged {
						t.Errorf("%+v", n)
					}
					if out := s.trust("x"); out.Already || out.Status != StatusTrusted {
						t.Errorf("%+v", out)
					}
					wantLines(t, s.list(false), "x* 1.0.0 disabled")
				})
			}
		}
	}
}

// Going back to a version that was reviewed needs no second review, and a new
// version is untrusted whatever the old one was.
func TestTrustBelongsToADigest(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.archive(t))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	s.install(two.archive(t))
	wantLines(t, s.list(true), "x* 2.0.0 untrusted", "x 1.0.0 enabled")
	if got, err := s.health("x@1.0.0"); err != nil || got != one.digest(t) {
		t.Errorf("%s, %v", got, err)
	}
	_, err := s.health("x")
	as[*NeedsDecision](t, err)
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	if got, err := s.health("x"); err != nil || got != one.digest(t) {
		t.Errorf("%s, %v", got, err)
	}

	// Collected and installed again, the same bytes are trusted as before.
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "2.0.0"})
	must(t, err)
	removed, err := s.GC(s.ctx, GCOptions{})
	must(t, err)
	if len(removed) != 2 || removed[0].Package != one.digest(t) {
		t.Errorf("%+v", removed)
	}
	_, err = s.health("x@1.0.0")
	as[*NotFound](t, err)
	_, err = s.Install(s.ctx, one.dir(t), InstallOptions{Default: DefaultReplace})
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 enabled", "x 2.0.0 untrusted")
}

func TestPackagePutByHand(t *testing.T) {
	s := newSite(t)
	must(t, s.state.Ensure(s.ctx))
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	one.writeTo(t, s.pluginPath("mine"))
	wantLines(t, s.list(false), "x* 1.0.0 untrusted")
	_, err := s.health("x")
	as[*NeedsDecision](t, err)
	w, err := s.Untrust(s.ctx, Ref{ID: "x"}, nil)
	if err != nil || w.Status != StatusUntrusted {
		t.Errorf("%+v, %v", w, err)
	}

	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	wantLines(t, s.list(true), "x* 1.0.0 enabled")
	if got, err := s.health("x"); err != nil || got != one.digest(t) {
		t.Errorf("%s, %v", got, err)
	}
	s.sound()
	if i := s.list(false)[0]; i.Dir != "mine" {
		t.Errorf("%+v", i)
	}

	// It is a version like any other now, and is changed like any other.
	replaceInSealed(t, filepath.Join(s.pluginPath("mine"), "lib/a"), "A")
	_, err = s.health("x")
	as[*NeedsDecision](t, err)
	wantLines(t, s.list(false), "x* 1.0.0 changed")
	s.trust("x")
	wantLines(t, s.list(false), "x* 1.0.0 disabled")
	s.sound()
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	must(t, err)
	wantLines(t, s.list(true))
	s.sound()
}

// What was changed and then reviewed as it stands is a package of its own, and
// nothing of the one that it was is left to fail a verification.
func TestTrustOfWhatWasChanged(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.archive(t))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	damage(t, s.pluginPath("x"))
	r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
	must(t, err)
	if r.Status != StatusChanged || r.Change == nil || r.Change.From != one.digest(t) || len(r.Granted) != 0 {
		t.Errorf("%+v", r)
	}
	s.trust("x")
	wantLines(t, s.list(true), "x* 1.0.0 disabled")
	s.sound()
	checks, err := s.Verify(s.ctx, nil, nil)
	must(t, err)
	if len(checks) != 1 || checks[0].Verdict != Unsigned || checks[0].Package != r.Package {
		t.Errorf("%+v", checks)
	}
	s.install(one.archive(t))
	wantLines(t, s.list(true), "x* 1.0.0 changed", "x 1.0.0 disabled") // the original, not reviewed again since
	s.sound()
}

func TestDecisionsThatChangeMeanwhile(t *testing.T) {
	one := sample{id: "x", version: "1.0.0"}
	ready := func(t *testing.T) (*site, *Decision, *Approval) {
		s := newSite(t)
		s.install(one.dir(t))
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead, manifest.ScopeOperate)
		root, err := ResolveProject(t.TempDir())
		must(t, err)
		_, _, err = s.TrustProject(s.ctx, root)
		must(t, err)
		d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodOperate, Project: root})
		must(t, err)
		t.Cleanup(d.Call.End)
		a, err := d.approve(s.ctx)
		must(t, err)
		t.Cleanup(a.Close)
		must(t, a.Recheck(s.ctx))
		return s, d, a
	}
	for name, c := range map[string]struct {
		do    func(s *site, a *Approval)
		check func(t *testing.T, err error)
	}{
		"revoked": {func(s *site, a *Approval) {
			_, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
			must(t, err)
		}, func(t *testing.T, err error) { as[*Revoked](t, err) }},
		"disabled": {func(s *site, a *Approval) {
			_, err := s.Disable(s.ctx, Ref{ID: "x"}, nil)
			must(t, err)
		}, func(t *testing.T, err error) { as[*NeedsDecision](t, err) }},
		"untrusted": {func(s *site, a *Approval) {
			_, err := s.Untrust(s.ctx, Ref{ID: "x"}, nil)
			must(t, err)
		}, func(t *testing.T, err error) { as[*NeedsDecision](t, err) }},
		"other grants": {func(s *site, a *Approval) { s.enable("x", manifest.ScopeOperate) },
			func(t *testing.T, err error) { as[*Denied](t, err) }},
		"project untrusted": {func(s *site, a *Approval) { must(t, s.UntrustProject(s.ctx, a.ProjectRoot)) },
			func(t *testing.T, err error) { as[*Denied](t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, a := ready(t)
			s.t = t
			c.do(s, a)
			c.check(t, a.Recheck(s.ctx))
		})
	}
}

func TestEnableAfterTheTrustIsGone(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.trust("x")
	d, err := s.ConsiderEnable(s.ctx, Ref{ID: "x"}, nil, []manifest.Scope{manifest.ScopeMetadataRead})
	must(t, err)
	defer d.Call.End()
	a, err := d.approve(s.ctx)
	must(t, err)
	defer a.Close()
	_, err = s.Untrust(s.ctx, Ref{ID: "x"}, nil)
	must(t, err)
	_, err = s.RecordEnable(s.ctx, a, state.Health{Package: a.Package, Status: state.HealthHealthy})
	as[*NeedsDecision](t, err)
	wantLines(t, s.list(false), "x* 1.0.0 untrusted")
}

// An approval holds the very inode that was hashed, whatever its name comes to mean.
func TestApprovalHoldsTheHashedInode(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.dir(t))
	s.trust("x")
	s.enable("x")
	d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodHealth})
	must(t, err)
	defer d.Call.End()
	a, err := d.approve(s.ctx)
	must(t, err)
	defer a.Close()
	replaceInSealed(t, a.Path, "#!/bin/sh\nevil\n")
	content := make([]byte, 100)
	n, err := a.Executable.ReadAt(content, 0)
	if n == 0 || string(content[:n]) != "#!/bin/sh\n# x 1.0.0\nexit 0\n" {
		t.Errorf("%q, %v", content[:n], err)
	}
	if a.Dir != s.storePath(one.digest(t)) || a.Path != filepath.Join(a.Dir, "bin", "tool") {
		t.Errorf("%+v", a)
	}
}

func TestReferencesOfOtherIDs(t *testing.T) {
	s := newSite(t)
	y := sample{id: "y", version: "1.0.0"}
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.install(y.dir(t))
	s.trust("y")
	s.enable("y")
	_, err := s.run(CallRequest{Ref: Ref{ID: "x", Digest: y.digest(t)}, Method: MethodHealth})
	as[*NotFound](t, err)
	_, err = s.Use(s.ctx, Ref{ID: "x", Digest: y.digest(t)})
	as[*NotFound](t, err)
	if got, err := s.run(CallRequest{Ref: Ref{ID: "y", Digest: y.digest(t)}, Method: MethodHealth}); err != nil || got != y.digest(t) {
		t.Errorf("%s, %v", got, err)
	}
	_, err = s.health("yy")
	if n := as[*NotFound](t, err); !slices.Contains(n.Near, "y") {
		t.Errorf("%+v", n)
	}
}

// A record that does not state the manifest which its package holds is no install in
// progress: the package is changed, and an install of it writes the record again.
func TestRecordOfAnotherManifest(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	source := one.archive(t)
	s.install(source)
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	in := s.installed(one.digest(t))
	good := in.ManifestJSON
	in.ManifestJSON = append([]byte(" "), good...)
	must(t, s.update(s.ctx, func(tx *state.Tx) error { return tx.PutInstall(in) }))
	_, err := s.health("x")
	if n := as[*NeedsDecision](t, err); n.Status != StatusChanged {
		t.Errorf("%+v", n)
	}
	s.install(source)
	if in := s.installed(one.digest(t)); string(in.ManifestJSON) != string(good) {
		t.Errorf("%s", in.ManifestJSON)
	}
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	if got, err := s.health("x"); err != nil || got != one.digest(t) {
		t.Errorf("%s, %v", got, err)
	}
}
