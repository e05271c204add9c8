//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// faults are the findings that are not as they should be.
func faults(list []Finding) []Finding {
	var bad []Finding
	for _, f := range list {
		if !f.OK {
			bad = append(bad, f)
		}
	}
	return bad
}

// Whatever is broken below plugins/ is found, one at a time and named.
func TestDiagnoseBrokenPlugins(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "good", version: "1.0.0"}.dir(t))
	sample{id: "by-hand", version: "1.0.0"}.writeTo(t, s.pluginPath("by-hand"))
	write(t, s.pluginPath("README"), "plain files are no packages", 0o644)
	if bad := faults(Diagnose(s.ctx, s.Path())); len(bad) != 0 {
		t.Fatalf("%+v", bad)
	}
	one := sample{id: "x", version: "1.0.0"}
	for name, c := range map[string]struct {
		put  func(path string)
		says string
	}{
		"bad-json": {func(path string) {
			one.writeTo(t, path)
			write(t, filepath.Join(path, manifest.FileName), "{", 0o644)
		}, manifest.FileName},
		"empty": {func(path string) { must(t, os.Mkdir(path, 0o755)) }, "is missing"},
		"link":  {func(path string) { must(t, os.Symlink(one.dir(t), path)) }, "directory"},
		"pipe":  {func(path string) { must(t, syscall.Mkfifo(path, 0o600)) }, "directory"},
		"manifest-pipe": {func(path string) {
			must(t, os.Mkdir(path, 0o755))
			must(t, syscall.Mkfifo(filepath.Join(path, manifest.FileName), 0o600))
		}, manifest.FileName},
		"large": {func(path string) {
			one.writeTo(t, path)
			write(t, filepath.Join(path, manifest.FileName), strings.Repeat(" ", manifest.MaxBytes+1), 0o644)
		}, manifest.FileName},
		"esc\x1b[31m": {func(path string) { must(t, os.Mkdir(path, 0o755)) }, "is missing"},
		"inner-link": {func(path string) {
			one.writeTo(t, path)
			must(t, os.Symlink("/etc/passwd", filepath.Join(path, "out")))
		}, "out"},
	} {
		path := s.pluginPath(name)
		c.put(path)
		bad := faults(Diagnose(s.ctx, s.Path()))
		if len(bad) != 1 || bad[0].Check != "package "+name || !strings.Contains(bad[0].Detail, c.says) || bad[0].Repairable {
			t.Errorf("%q: %+v", name, bad)
		}
		must(t, os.RemoveAll(path))
	}
	// What is recorded and has become something else is found by its record.
	for _, put := range []func(path string) error{
		func(path string) error { return os.Mkdir(path, 0o755) },
		func(path string) error { return os.Symlink(one.dir(t), path) },
		func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		must(t, removeTree(s.pluginPath("good")))
		must(t, put(s.pluginPath("good")))
		if bad := faults(Diagnose(s.ctx, s.Path())); len(bad) != 1 || !strings.HasPrefix(bad[0].Check, "package good") {
			t.Errorf("%+v", bad)
		}
	}
}

// A default version that is gone from plugins/ is found, and comes back from the
// store with all that was decided about it.
func TestRepairOfALostDefault(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"x", "y"} {
		s.install(sample{id: id, version: "1.0.0"}.dir(t))
		s.install(sample{id: id, version: "1.1.0"}.dir(t))
		s.trust(id)
		s.enable(id, manifest.ScopeMetadataRead)
	}
	for _, gone := range [][]string{{"x"}, {"x", "y"}} {
		for _, id := range gone {
			must(t, removeTree(s.pluginPath(id)))
		}
		if len(gone) == 2 {
			must(t, os.Remove(s.join(pluginsDir)))
		}
		bad := faults(Diagnose(s.ctx, s.Path()))
		if len(bad) != len(gone) || bad[0].Check != "default version of x" || !bad[0].Repairable || !strings.Contains(bad[0].Detail, "1.1.0") {
			t.Fatalf("%+v", bad)
		}
		r, err := Repair(s.ctx, s.Path(), Options{})
		must(t, err)
		if len(r.Restored) != len(gone) || r.Restored[0].ID != "x" || r.Restored[0].Version != "1.1.0" {
			t.Errorf("%+v", r)
		}
		if bad := faults(Diagnose(s.ctx, s.Path())); len(bad) != 0 {
			t.Errorf("%+v", bad)
		}
		wantLines(t, s.list(false), "x* 1.1.0 enabled", "y* 1.1.0 enabled")
		if _, err := s.health("x"); err != nil {
			t.Error(err)
		}
		s.sound()
	}
	// Altered in the store, it stays away, and repairing again changes nothing.
	must(t, removeTree(s.pluginPath("x")))
	damage(t, s.storePath(sample{id: "x", version: "1.1.0"}.digest(t)))
	r, err := Repair(s.ctx, s.Path(), Options{})
	must(t, err)
	if len(r.Restored) != 0 || exists(s.pluginPath("x")) {
		t.Errorf("%+v", r)
	}
}
