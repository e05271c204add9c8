//go:build unix

package pkgmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ranged is a switchyard.toml that asks for a range of versions of x.
func ranged(version string) string {
	text := "version = 1\n[plugins.x]\nsource = \"dist/x-{version}-{os}-{arch}.tar.zst\"\n"
	if version != "" {
		text += fmt.Sprintf("version = %q\n", version)
	}
	return text
}

// offer puts builds of x for this machine into dist/.
func (w *workspace) offer(versions ...string) {
	w.t.Helper()
	for _, v := range versions {
		p, _, _ := programs()
		p.version = v
		w.built(p, "x-"+v+"-"+hostName()+".tar.zst")
	}
}

func (w *workspace) installProject() ([]*Installed, error) {
	return w.InstallProject(w.ctx, w.project(), w.lock(), InstallOptions{})
}

// A range of versions beside {version} means the highest version that is there for
// this machine; a locked version that is in the range stays.
func TestRangeOfVersions(t *testing.T) {
	for wanted, want := range map[string]string{
		"^1":                      "1.10.0",
		"~1.2":                    "1.2.9",
		"1.2":                     "1.2.9",
		"":                        "3.0.0",
		"*":                       "3.0.0",
		"<1.10 || ^2":             "2.1.0",
		">=1.2.9 <1.10":           "1.9.0",
		"^1.11.0-alpha":           "1.11.0-rc.2",
		">=1.11.0-rc.1 <1.11.0":   "1.11.0-rc.2",
		"1.2.0":                   "1.2.0",
		"!=1.10.0, ^1":            "1.9.0",
		"^1.10.0-beta || ^0.0.1":  "1.11.0-rc.2",
		">=1.0 <1.11.0, !=1.10.0": "1.9.0",
	} {
		t.Run(wanted, func(t *testing.T) {
			w := newWorkspace(t, ranged(wanted))
			w.offer("1.2.0", "1.2.9", "1.9.0", "1.10.0", "1.11.0-rc.1", "1.11.0-rc.2", "2.0.0", "2.1.0", "3.0.0", "4.0.0-pre")
			_, there, otherName := programs()
			there.version = "1.99.0"
			w.built(there, "x-1.99.0-"+otherName+".tar.zst") // for another machine
			write(t, filepath.Join(w.root, "dist", "x-1.98.0-"+hostName()+".tar.zst.part"), "", 0o644)

			out, err := w.installProject()
			must(t, err)
			if len(out) != 1 || out[0].Version != want {
				t.Fatalf("installed %+v, want %s", out, want)
			}
			w.trust("x")
			_, err = w.relock(LockWrite)
			must(t, err)
			if e := w.entry("x"); e.Version != want || !strings.Contains(e.Source, "{version}") {
				t.Errorf("%+v", e)
			}
			if d, err := CheckProject(w.project(), w.lock()); d != nil || err != nil {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
}

func TestLockedVersionStaysInItsRange(t *testing.T) {
	w := newWorkspace(t, ranged("^1"))
	w.offer("1.0.0")
	_, err := w.installProject()
	must(t, err)
	w.trust("x")
	_, err = w.relock(LockWrite)
	must(t, err)

	// A higher one appears, and the locked one goes: nothing changes.
	w.offer("1.1.0")
	for range 2 {
		if r, err := w.relock(LockWrite); err != nil || r.Written {
			t.Errorf("%+v, %v", r, err)
		}
		if out, err := w.installProject(); err != nil || len(out) != 1 || out[0].Version != "1.0.0" || !out[0].Unchanged {
			t.Errorf("%+v, %v", out, err)
		}
		os.Remove(filepath.Join(w.root, "dist", "x-1.0.0-"+hostName()+".tar.zst"))
	}

	// A range that it is not in moves on.
	write(t, w.project().ConfigPath(), ranged("^1.1"), 0o644)
	if d, err := CheckProject(w.project(), w.lock()); err != nil || d == nil || d.Items[0].What != DriftRange {
		t.Errorf("%v, %v", d, err)
	}
	_, err = w.relock(LockWrite)
	if n := as[*NeedsDecision](t, err); n.Version != "1.1.0" {
		t.Errorf("%+v", n)
	}
	if out, err := w.installProject(); err != nil || len(out) != 1 || out[0].Version != "1.1.0" {
		t.Errorf("%+v, %v", out, err)
	}
	w.trust("x")
	if _, err := w.relock(LockWrite); err != nil || w.entry("x").Version != "1.1.0" {
		t.Errorf("%+v, %v", w.entry("x"), err)
	}

	// And so does an entry that was taken out.
	w.offer("1.2.0")
	must(t, w.Unpin(w.project(), []string{"x"}))
	if out, err := w.installProject(); err != nil || len(out) != 1 || out[0].Version != "1.2.0" {
		t.Errorf("%+v, %v", out, err)
	}
}

// Every platform is locked in the version that this machine's archives decide.
func TestRangeForSeveralPlatforms(t *testing.T) {
	w := newWorkspace(t, strings.Replace(ranged("^1"), "\n", "\nplatforms = [\"linux/amd64\", \"linux/arm64\"]\n", 1))
	_, there, otherName := programs()
	w.offer("1.0.0", "1.1.0")
	there.version = "1.0.0"
	w.built(there, "x-1.0.0-"+otherName+".tar.zst")
	_, err := w.installProject()
	must(t, err)
	w.trust("x")
	_, err = w.relock(LockWrite)
	if n := as[*NotFound](t, err); !strings.Contains(n.Name, "x-1.1.0-"+otherName) {
		t.Errorf("%+v", n)
	}
	there.version = "1.1.0"
	w.built(there, "x-1.1.0-"+otherName+".tar.zst")
	_, err = w.relock(LockWrite)
	must(t, err)
	if e := w.entry("x"); e.Version != "1.1.0" || len(e.Platforms) != 2 {
		t.Errorf("%+v", e)
	}
	// A lock for another machine alone asks for that machine's archives.
	must(t, os.Remove(w.project().LockPath()))
	write(t, w.project().ConfigPath(), strings.Replace(ranged("^1"), "\n", fmt.Sprintf("\nplatforms = [%q]\n", strings.ReplaceAll(otherName, "-", "/")), 1), 0o644)
	must(t, os.Remove(filepath.Join(w.root, "dist", "x-1.1.0-"+otherName+".tar.zst")))
	_, err = w.relock(LockWrite)
	must(t, err)
	if e := w.entry("x"); e.Version != "1.0.0" || len(e.Platforms) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestRangeWithoutAMatch(t *testing.T) {
	both := func(t *testing.T, w *workspace, check func(err error)) {
		t.Helper()
		_, err := w.installProject()
		check(err)
		_, err = w.relock(LockWrite)
		check(err)
		if w.lock() != nil || len(w.list(true)) > 0 {
			t.Error("something was installed or locked")
		}
	}
	t.Run("others are there", func(t *testing.T) {
		w := newWorkspace(t, ranged("^2"))
		for i := range 12 {
			w.offer(fmt.Sprintf("1.%d.0", i))
		}
		w.offer("2.0.0-rc.1")
		both(t, w, func(err error) {
			e := as[*NoVersion](t, err)
			if e.ID != "x" || e.Range != "^2" || len(e.Found) != 10 || e.More != 3 || e.Found[0] != "2.0.0-rc.1" || e.Found[1] != "1.11.0" {
				t.Errorf("%+v", e)
			}
			as[*NotFound](t, err)
			for _, part := range []string{"x-{version}-" + hostName(), "^2", "1.11.0", "and 3 more"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	})
	t.Run("nothing is there", func(t *testing.T) {
		w := newWorkspace(t, ranged(""))
		both(t, w, func(err error) {
			if e := as[*NoVersion](t, err); len(e.Found) != 0 || !strings.Contains(e.Error(), "nothing of that name is there") {
				t.Errorf("%+v", e)
			}
		})
	})
	t.Run("a name that is not what it holds", func(t *testing.T) {
		w := newWorkspace(t, ranged("^1"))
		p, _, _ := programs()
		w.built(p, "x-1.7.0-"+hostName()+".tar.zst") // holds 1.0.0, which is in the range
		both(t, w, func(err error) {
			if e := as[*WrongPackage](t, err); e.WantVersion != "1.7.0" || e.Version != "1.0.0" {
				t.Errorf("%+v", e)
			}
		})
	})
	t.Run("an open directory", func(t *testing.T) {
		w := newWorkspace(t, strings.ReplaceAll(ranged("^1"), "dist/", "dist-{version}/"))
		both(t, w, func(err error) { as[*OpenSource](t, err) })
	})
	t.Run("a URL", func(t *testing.T) {
		w := newWorkspace(t, strings.ReplaceAll(ranged("^1"), "dist/", "https://example.com/"))
		both(t, w, func(err error) { as[*RemoteSource](t, err) })
	})
}

// A locked version whose file was rebuilt with another version in it is refused, also
// where that is in the range: the lock would name another file than it means.
func TestLockedNameHoldsAnotherVersion(t *testing.T) {
	w := newWorkspace(t, ranged("^1"))
	w.offer("1.0.0")
	_, err := w.installProject()
	must(t, err)
	w.trust("x")
	_, err = w.relock(LockWrite)
	must(t, err)
	p, _, _ := programs()
	p.version = "1.5.0"
	path := w.built(p, "x-1.0.0-"+hostName()+".tar.zst")
	w.install(path)
	w.trust("x")
	_, err = w.relock(LockWrite)
	if e := as[*WrongPackage](t, err); e.WantVersion != "1.0.0" || e.Version != "1.5.0" {
		t.Errorf("%+v", e)
	}
	if e := w.entry("x"); e.Version != "1.0.0" {
		t.Errorf("%+v", e)
	}
}
