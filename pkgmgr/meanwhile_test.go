//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
)

// meanwhile lets do happen once, right before the first step of that name: what
// another command does between two steps of this one.
func meanwhile(t *testing.T, name string, do func()) {
	t.Helper()
	happened := false
	step = func(at string) error {
		if at == name && !happened {
			happened = true
			do()
		}
		return nil
	}
	t.Cleanup(func() {
		step = func(string) error { return nil }
		if !happened {
			t.Errorf("there was no step %q", name)
		}
	})
}

// bothInstalled returns a site with two versions, the higher one as the default, and
// the source of the other one.
func bothInstalled(t *testing.T) (s *site, low sample, source string) {
	t.Helper()
	s, low = newSite(t), sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	source = low.archive(t)
	s.install(source)
	s.install(sample{id: "x", version: "2.0.0"}.archive(t))
	return s, low, source
}

// What an install links from the store before it holds the lock may be removed under
// its hands: then the source is what it installs.
func TestInstallOfWhatIsRemovedMeanwhile(t *testing.T) {
	for name, remove := range map[string]func(s *site) error{
		"uninstall": func(s *site) error {
			_, err := s.Uninstall(s.ctx, Ref{ID: "x", Version: "1.0.0"})
			return err
		},
		"gc": func(s *site) error { _, err := s.GC(s.ctx, GCOptions{}); return err },
	} {
		for _, at := range []string{"link", "sync"} {
			t.Run(name+" before "+at, func(t *testing.T) {
				s, low, source := bothInstalled(t)
				meanwhile(t, at, func() {
					must(t, remove(s))
					if exists(s.storePath(low.digest(t))) {
						t.Error("nothing was removed")
					}
				})
				out, err := s.Install(s.ctx, source, InstallOptions{Default: DefaultReplace})
				must(t, err)
				if !out.Default || out.Unchanged {
					t.Errorf("%+v", out)
				}
				wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 2.0.0 untrusted")
				s.sound()
			})
		}
	}
}

// A default that was linked from a tree which was altered and repaired meanwhile is
// linked again.
func TestInstallBesideARepair(t *testing.T) {
	s, low, source := bothInstalled(t)
	meanwhile(t, "sync", func() {
		damage(t, s.storePath(low.digest(t))) // and so what is linked from it
		out, err := s.Install(s.ctx, source, InstallOptions{Default: DefaultKeep})
		must(t, err)
		if !out.Repaired {
			t.Errorf("%+v", out)
		}
	})
	out, err := s.Install(s.ctx, source, InstallOptions{Default: DefaultReplace})
	must(t, err)
	if !out.Default {
		t.Errorf("%+v", out)
	}
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 2.0.0 untrusted")
	s.sound()
}

// A package that is removed while it is being pinned is not found, rather than an
// error of the file system.
func TestPinOfWhatIsRemovedMeanwhile(t *testing.T) {
	w := newWorkspace(t, "")
	p := sample{id: "x", version: "1.0.0"}
	w.install(p.dir(t))
	w.trust("x")
	in := w.installed(p.digest(t))
	in.Archive = ""
	// As it was recorded before archives were kept.
	must(t, w.update(w.ctx, func(tx *state.Tx) error { return tx.PutInstall(in) }))
	meanwhile(t, "stage", func() {
		removeTree(w.pluginPath("x"))
		removeTree(w.storePath(p.digest(t)))
	})
	_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	as[*NotFound](t, err)
}

// The store's copy of a locked archive may be collected between the look at it and
// its reading: the lock's source is read then.
func TestLockedArchiveIsCollectedMeanwhile(t *testing.T) {
	w := newWorkspace(t, "")
	p := sample{id: "x", version: "1.0.0"}
	path := w.built(p, "x.tar.zst")
	w.install(path)
	w.trust("x")
	_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)
	_, err = w.Uninstall(w.ctx, Ref{ID: "x"})
	must(t, err)
	e := w.entry("x")
	kept := w.archivePath(e.Platforms[lockfile.Any].Archive)
	if !exists(kept) {
		t.Fatal("the archive is not kept")
	}
	w.on.Stage = func(string) { os.Remove(kept) }
	out, err := w.InstallLocked(w.ctx, w.lock(), e)
	if err != nil || out.Source != filepath.Join(w.root, "dist", "x.tar.zst") {
		t.Errorf("%+v, %v", out, err)
	}
}

// What is uninstalled or upgraded while doctor looks is no finding.
func TestDiagnoseBesideAChange(t *testing.T) {
	s, low, source := bothInstalled(t)
	targets, err := s.verifyTargets(s.ctx, nil, nil)
	must(t, err)
	_, err = s.Install(s.ctx, source, InstallOptions{Default: DefaultReplace}) // 2.0.0 is no default any more
	must(t, err)
	for _, target := range targets {
		must(t, s.diagnosePackage(s.ctx, target))
	}
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	must(t, err)
	for _, target := range targets {
		if err := s.diagnosePackage(s.ctx, target); !errorsIs(err, errGone) {
			t.Errorf("%s: %v", target.ref, err)
		}
	}
	s.install(source)
	targets, err = s.verifyTargets(s.ctx, nil, nil)
	must(t, err)
	damage(t, s.storePath(low.digest(t)))
	as[*Integrity](t, s.diagnosePackage(s.ctx, targets[0]))
}
