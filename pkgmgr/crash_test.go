//go:build unix

package pkgmgr

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A scenario is a change that is interrupted at every step.
type scenario struct {
	name    string
	change  string
	prepare func(t *testing.T, s *site, aux string)
	// altered: the old state holds files that were changed by hand, which makes it
	// differ from its records.
	altered bool
}

var (
	oldX = sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	newX = sample{id: "x", version: "2.0.0", files: map[string]string{"lib/b": "b"}}
)

func scenarios() []scenario {
	enabled := func(t *testing.T, s *site, aux string) {
		s.install(filepath.Join(aux, "old.tar.zst"))
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
	}
	both := func(t *testing.T, s *site, aux string) {
		enabled(t, s, aux)
		s.install(filepath.Join(aux, "new.tar.zst"))
		s.trust("x")
	}
	return []scenario{
		{name: "first install", change: "install", prepare: func(t *testing.T, s *site, aux string) {}},
		{name: "upgrade", change: "install", prepare: enabled},
		{name: "install beside", change: "beside", prepare: enabled},
		{name: "repair of the default", change: "install", altered: true, prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			damage(t, s.pluginPath("x"))
			s.list(false)
		}},
		{name: "repair of a default directory", change: "install", altered: true, prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			replaceInSealed(t, filepath.Join(s.pluginPath("x"), "lib/b"), "other")
			s.list(false)
		}},
		{name: "archive of an installed directory", change: "install", prepare: func(t *testing.T, s *site, aux string) {
			s.install(newX.dir(t))
		}},
		{name: "version in the store becomes the default", change: "install", prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			_, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
			must(t, err)
		}},
		{name: "use", change: "use", prepare: both},
		{name: "uninstall", change: "uninstall", prepare: both},
		{name: "uninstall by hand", change: "uninstall", prepare: func(t *testing.T, s *site, aux string) {
			must(t, s.state.Ensure(s.ctx))
			oldX.writeTo(t, s.pluginPath("x"))
		}},
		{name: "gc", change: "gc", prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			s.install(sample{id: "y", version: "1.0.0"}.archive(t))
			_, err := s.Uninstall(s.ctx, Ref{ID: "y"})
			must(t, err)
		}},
		{name: "revoke", change: "revoke", prepare: both},
		{name: "revoke of what was put by hand", change: "revoke", prepare: func(t *testing.T, s *site, aux string) {
			must(t, s.state.Ensure(s.ctx))
			oldX.writeTo(t, s.pluginPath("mine"))
		}},
		{name: "unrevoke", change: "unrevoke", prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			_, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "test"})
			must(t, err)
		}},
		{name: "unrevoke with a lost database", change: "unrevoke", prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			_, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "test"})
			must(t, err)
			must(t, os.Remove(s.state.Path()))
			_, err = Repair(s.ctx, s.Path(), Options{})
			must(t, err)
		}},
		{name: "trust of what was put by hand", change: "trust", prepare: func(t *testing.T, s *site, aux string) {
			must(t, s.state.Ensure(s.ctx))
			oldX.writeTo(t, s.pluginPath("x"))
		}},
		{name: "trust of an installed directory", change: "trust", prepare: func(t *testing.T, s *site, aux string) {
			s.install(oldX.dir(t))
		}},
		{name: "trust of what was changed", change: "trust", altered: true, prepare: func(t *testing.T, s *site, aux string) {
			enabled(t, s, aux)
			damage(t, s.pluginPath("x"))
			s.list(false)
		}},
		{name: "pin", change: "pin", prepare: func(t *testing.T, s *site, aux string) {
			s.install(newX.dir(t))
			s.trust("x")
			// As it was recorded before trust kept an archive.
			in := s.installed(newX.digest(t))
			must(t, os.Remove(s.archivePath(in.Archive)))
			in.Archive = ""
			must(t, s.update(s.ctx, func(tx *state.Tx) error { return tx.PutInstall(in) }))
		}},
		{name: "lock", change: "lock", prepare: func(t *testing.T, s *site, aux string) {
			s.install(filepath.Join(aux, "new.tar.zst"))
			s.trust("x")
		}},
		{name: "repair of a lost database", change: "repair", prepare: func(t *testing.T, s *site, aux string) {
			both(t, s, aux)
			must(t, os.Remove(s.state.Path()))
		}},
	}
}

// A stand is a prepared data directory, and the states before and after a change.
type stand struct {
	scenario
	base     string // holds data/ and aux/
	old, new []string
}

func build(t *testing.T, c scenario) *stand {
	t.Helper()
	st := &stand{scenario: c, base: filepath.Join(scratch(t), "base")}
	aux := filepath.Join(st.base, "aux")
	packInto(t, oldX.dir(t), filepath.Join(aux, "old.tar.zst"))
	packInto(t, newX.dir(t), filepath.Join(aux, "new.tar.zst"))
	write(t, filepath.Join(aux, "project", "switchyard.toml"), "version = 1\n[plugins.x]\nsource = \"../new.tar.zst\"\n", 0o644)
	must(t, os.Mkdir(filepath.Join(aux, "project", ".git"), 0o755))
	s := siteAt(t, filepath.Join(st.base, "data"))
	c.prepare(t, s, aux)
	st.old = st.snapshot(t, st.base)
	after := st.copy(t)
	if err := change(filepath.Join(after, "data"), filepath.Join(after, "aux"), c.change); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	st.new = st.snapshot(t, after)
	siteAt(t, filepath.Join(after, "data")).sound()
	if slices.Equal(st.old, st.new) {
		t.Fatalf("%s changes nothing:\n%s", c.name, strings.Join(st.new, "\n"))
	}
	return st
}

// copy returns a copy of the base in which hard links are hard links.
func (st *stand) copy(t *testing.T) string {
	t.Helper()
	to := filepath.Join(scratch(t), "run")
	links := map[uint64]string{}
	modes := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(st.base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(p, st.base)
		ino := info.Sys().(*syscall.Stat_t).Ino
		switch {
		case d.IsDir():
			modes[target] = info.Mode().Perm()
			return os.Mkdir(target, 0o700)
		case links[ino] != "":
			return os.Link(links[ino], target)
		}
		links[ino] = target
		return copyFile(p, target)
	}))
	for dir, mode := range modes {
		must(t, os.Chmod(dir, mode))
	}
	return to
}

// snapshot describes everything that people can see of a data directory and of the
// project beside it. Trees in the store that no record names are not seen.
func snapshot(t *testing.T, base string) []string {
	t.Helper()
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	dir := filepath.Join(base, "data")
	if _, err := os.Lstat(filepath.Join(dir, state.FileName)); err != nil && exists(filepath.Join(dir, storeDir)) {
		add("the database is lost")
	} else {
		s := siteAt(t, dir)
		for _, i := range s.list(true) {
			add("%s %s default=%v dir=%q %s recorded=%s found=%s granted=%v", i.ID, i.Version, i.Default, i.Dir, i.Status, i.Recorded, i.Package, i.Granted)
		}
		must(t, s.state.View(s.ctx, func(tx *state.Tx) error {
			installs, err := tx.Installs()
			must(t, err)
			for _, in := range installs {
				kept := in.Archive != "" && exists(s.archivePath(in.Archive))
				add("recorded %s %s archive=%s kept=%v", in.ID, in.Package, in.Archive, kept)
			}
			standings, err := tx.Standings()
			must(t, err)
			for pkg, st := range standings {
				var blocks []state.BlockKind
				for _, b := range st.Blocks {
					blocks = append(blocks, b.Kind)
				}
				add("standing %s trust=%v enabled=%v blocks=%v", pkg, st.Trust != nil, st.Enablement != nil, blocks)
			}
			return nil
		}))
		denials, err := s.Revocations()
		must(t, err)
		for _, d := range denials {
			add("denied %s", d.Subject())
		}
	}
	for _, name := range []string{quarantineDir, pluginsDir} {
		names, err := readNames(filepath.Join(dir, name))
		must(t, err)
		for _, n := range names {
			add("%s/%s", name, n)
		}
	}
	archives, err := readNames(filepath.Join(dir, archivesDir))
	must(t, err)
	for _, n := range archives {
		add("%s/%s", archivesDir, n)
	}
	if raw, err := os.ReadFile(filepath.Join(base, "aux", "project", lockfile.FileName)); err == nil {
		add("lock %q", raw)
	}
	slices.Sort(out)
	return out
}

// snapshot leaves out archives for a gc, which removes them one by one after the
// packages, and for a trust and a pin, which keep the archive before they record it
// or write the lock: each of them is wanted or not for itself.
func (st *stand) snapshot(t *testing.T, base string) []string {
	t.Helper()
	return slices.DeleteFunc(snapshot(t, base), func(line string) bool {
		switch st.change {
		case "gc", "trust":
			return strings.HasPrefix(line, archivesDir+"/")
		case "pin":
			return strings.HasPrefix(line, archivesDir+"/") || strings.HasPrefix(line, "recorded ")
		}
		return false
	})
}

// settled checks that a data directory is in the old or the new state, with nothing
// left in between, and that the change can be made again.
func (st *stand) settled(t *testing.T, run, when string) {
	t.Helper()
	data, aux := filepath.Join(run, "data"), filepath.Join(run, "aux")
	if st.change != "repair" {
		if _, err := openAt(data); err != nil {
			t.Fatalf("%s: open: %v", when, err)
		}
	}
	got := st.snapshot(t, run)
	isOld, isNew := slices.Equal(got, st.old), slices.Equal(got, st.new)
	if !isOld && !isNew && st.change != "repair" { // a repair is made of steps that each mend something
		t.Errorf("%s: a mixture:\n%s\nold:\n%s\nnew:\n%s", when, strings.Join(got, "\n"), strings.Join(st.old, "\n"), strings.Join(st.new, "\n"))
	}
	if names, _ := readNames(filepath.Join(data, stagingDir)); len(names) > 0 && st.change != "repair" {
		t.Errorf("%s: staging holds %q", when, names)
	}
	if isNew || isOld && !st.altered && st.change != "repair" {
		siteAt(t, data).sound()
	}
	if err := change(data, aux, st.change); err != nil {
		t.Errorf("%s: again: %v", when, err)
	}
	if got := st.snapshot(t, run); !slices.Equal(got, st.new) {
		t.Errorf("%s: again:\n%s\nwant:\n%s", when, strings.Join(got, "\n"), strings.Join(st.new, "\n"))
	}
	siteAt(t, data).sound()
}

// TestKilledAtEveryStep ends the process with SIGKILL at every step of every change.
func TestKilledAtEveryStep(t *testing.T) {
	for _, c := range scenarios() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st := build(t, c)
			n := 1
			for ; ; n++ {
				run := st.copy(t)
				out, ps := inProcess(t, "change", []string{fmt.Sprintf("%s=%d", killEnv, n)}, filepath.Join(run, "data"), filepath.Join(run, "aux"), c.change)
				if !killed(ps) {
					if !ps.Success() {
						t.Fatalf("step %d: %v\n%s", n, ps, out)
					}
					break
				}
				st.settled(t, run, fmt.Sprintf("killed at step %d", n))
			}
			if n == 1 {
				t.Error("there are no steps")
			}
		})
	}
}

// TestKilledInRecovery kills the command that cleans up after a killed one, too, at
// every third step; which ones, changes with the step that the first was killed at.
func TestKilledInRecovery(t *testing.T) {
	for _, c := range scenarios() {
		if !slices.Contains([]string{"upgrade", "uninstall", "revoke", "unrevoke"}, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st := build(t, c)
			twice := 0
			for n := 1; ; n++ {
				first := st.copy(t)
				_, ps := inProcess(t, "change", []string{fmt.Sprintf("%s=%d", killEnv, n)}, filepath.Join(first, "data"), filepath.Join(first, "aux"), c.change)
				if !killed(ps) {
					break
				}
				again := &stand{scenario: c, base: first}
				for m := 1 + n%3; ; m += 3 {
					run := again.copy(t)
					_, ps := inProcess(t, "open", []string{fmt.Sprintf("%s=%d", killEnv, m)}, filepath.Join(run, "data"))
					if !killed(ps) {
						break
					}
					twice++
					st.settled(t, run, fmt.Sprintf("killed at step %d, the recovery at step %d", n, m))
				}
			}
			if twice == 0 {
				t.Error("no recovery was ever killed")
			}
		})
	}
}

// TestFailingAtEveryStep lets every step fail as on a full disk: the old state
// stays, or the new one where the change was decided before.
func TestFailingAtEveryStep(t *testing.T) {
	for _, c := range scenarios() {
		t.Run(c.name, func(t *testing.T) {
			st := build(t, c)
			for n := 1; ; n++ {
				run := st.copy(t)
				reached, name := false, ""
				restore := stepAt(n, func(s string) error {
					reached, name = true, s
					return &fs.PathError{Op: "write", Path: "somewhere", Err: syscall.ENOSPC}
				})
				err := change(filepath.Join(run, "data"), filepath.Join(run, "aux"), c.change)
				restore()
				if !reached {
					must(t, err)
					break
				}
				if err == nil && !slices.Equal(st.snapshot(t, run), st.new) {
					t.Errorf("step %d (%s): no error, and not the new state", n, name)
				}
				if err != nil && !errorsIs(err, syscall.ENOSPC) {
					t.Errorf("step %d (%s): the cause is lost: %v", n, name, err)
				}
				st.settled(t, run, fmt.Sprintf("step %d (%s) failed", n, name))
			}
		})
	}
}
