package pkgmgr

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A call is refused while a second directory claims the id, whichever version it asks
// for, and reads no manifest of packages that are recorded as something else.
func TestCallOfAContestedID(t *testing.T) {
	s := newSite(t)
	old, one := sample{id: "x", version: "0.9.0"}, sample{id: "x", version: "1.0.0"}
	for _, p := range []sample{old, one, {id: "y", version: "1.0.0"}} {
		s.install(p.dir(t))
		s.trust(p.id)
		s.enable(p.id, manifest.ScopeMetadataRead)
	}
	elsewhere := sample{id: "x", version: "2.0.0"}.dir(t)
	for name, put := range map[string]func(path string){
		"directory": func(path string) { sample{id: "x", version: "2.0.0"}.writeTo(t, path) },
		"same":      func(path string) { one.writeTo(t, path) },
		"link":      func(path string) { must(t, os.Symlink(elsewhere, path)) },
	} {
		for _, ref := range []string{"x", "x@1.0.0", "x@0.9.0"} {
			if _, err := s.health(ref); err != nil {
				t.Fatal(err)
			}
			put(s.pluginPath("other"))
			_, err := s.health(ref)
			if c := as[*Claimed](t, err); c.ID != "x" || !slices.Equal(c.Dirs, []string{s.pluginPath("other"), s.pluginPath("x")}) {
				t.Errorf("%s: %+v", name, c)
			}
			if _, err := s.health("y"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			must(t, os.RemoveAll(s.pluginPath("other")))
		}
	}
	// What holds no other id is in nobody's way.
	must(t, os.Mkdir(s.pluginPath("empty"), 0o755))
	must(t, syscall.Mkfifo(s.pluginPath("pipe"), 0o600))
	must(t, os.Symlink(s.pluginPath("pipe"), s.pluginPath("link")))
	write(t, s.pluginPath("file"), "x", 0o644)
	sample{id: "z", version: "1.0.0"}.writeTo(t, s.pluginPath("w"))
	if _, err := s.health("x"); err != nil {
		t.Error(err)
	}
}

// Two directories that claim one id are both named, at install and in the listing.
func TestTwoDirectoriesClaimOneID(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.dir(t))
	two.writeTo(t, s.pluginPath("other"))
	both := []string{s.pluginPath("other"), s.pluginPath("x")}

	_, err := s.Install(s.ctx, two.dir(t), InstallOptions{})
	if c := as[*Claimed](t, err); c.ID != "x" || !slices.Equal(c.Dirs, both) {
		t.Errorf("%+v", c)
	}
	list := s.list(false)
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	for _, i := range list {
		if c := as[*Claimed](t, i.Err); i.Status != StatusBroken || !slices.Equal(c.Dirs, both) {
			t.Errorf("%+v", i)
		}
	}
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	as[*Claimed](t, err)
	for _, ref := range []Ref{{ID: "x"}, {ID: "x", Version: "1.0.0"}} {
		_, err = s.Trust(s.ctx, ref, nil, one.digest(t))
		if c := as[*Claimed](t, err); !slices.Equal(c.Dirs, both) {
			t.Errorf("%+v", c)
		}
		_, err = s.ConsiderEnable(s.ctx, ref, nil, nil)
		as[*Claimed](t, err)
	}
	if f := findingOf(t, Diagnose(s.ctx, s.Path()), "plugin directories"); f.OK || !strings.Contains(f.Detail, both[0]) || !strings.Contains(f.Detail, both[1]) {
		t.Errorf("%+v", f)
	}
	must(t, os.RemoveAll(s.pluginPath("other")))
	wantLines(t, s.list(false), "x* 1.0.0 untrusted")

	// The only claimant has another name: an install would be the second.
	s = newSite(t)
	must(t, s.state.Ensure(s.ctx))
	two.writeTo(t, s.pluginPath("other"))
	_, err = s.Install(s.ctx, one.dir(t), InstallOptions{})
	if c := as[*Claimed](t, err); !slices.Equal(c.Dirs, both[:0:0]) && len(c.Dirs) != 2 {
		t.Errorf("%+v", c)
	}
	wantLines(t, s.list(false), "x* 2.0.0 untrusted")
	s.sound()
}

func TestInstallOverWhatIsNoInstall(t *testing.T) {
	one := sample{id: "x", version: "1.0.0"}
	for name, put := range map[string]func(t *testing.T, path string){
		"a package put there by hand": func(t *testing.T, path string) { sample{id: "x", version: "0.9.0"}.writeTo(t, path) },
		"another plugin":              func(t *testing.T, path string) { sample{id: "y", version: "1.0.0"}.writeTo(t, path) },
		"a directory of something":    func(t *testing.T, path string) { write(t, filepath.Join(path, "notes"), "mine", 0o600) },
		"a file":                      func(t *testing.T, path string) { write(t, path, "mine", 0o600) },
		"a link to a package": func(t *testing.T, path string) {
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.Symlink(one.dir(t), path))
		},
		"a link to nothing": func(t *testing.T, path string) {
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.Symlink("nowhere", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			must(t, s.state.Ensure(s.ctx))
			put(t, s.pluginPath("x"))
			before, err := os.Lstat(s.pluginPath("x"))
			must(t, err)
			_, err = s.Install(s.ctx, one.dir(t), InstallOptions{})
			if f := as[*ForeignDirectory](t, err); f.Path != s.pluginPath("x") {
				t.Errorf("%+v", f)
			}
			after, err := os.Lstat(s.pluginPath("x"))
			if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Errorf("it was touched: %v, %v, %v", before.Mode(), after.Mode(), err)
			}
			if exists(s.storePath(one.digest(t))) {
				t.Error("the package came into the store")
			}
			if names, _ := readNames(s.join(stagingDir)); len(names) > 0 {
				t.Errorf("staging holds %q", names)
			}
		})
	}
}
