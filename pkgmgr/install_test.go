//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestInstallLifecycle(t *testing.T) {
	s := newSite(t)
	one := sample{id: "repo-facts", version: "1.0.0", files: map[string]string{"lib/data.txt": "one"}}
	two := sample{id: "repo-facts", version: "1.1.0"}

	source := one.archive(t)
	first := s.install(source)
	if first.Unchanged || first.Repaired || !first.Default || first.Previous != "" || first.Package != one.digest(t) || first.Source != source {
		t.Errorf("first install: %+v", first)
	}
	if first.Archive == "" || !exists(s.archivePath(first.Archive)) {
		t.Error("the archive was not kept")
	}
	wantLines(t, s.list(false), "repo-facts* 1.0.0 untrusted")
	s.sound()

	// The same digest again, from the same archive, a directory and another packing.
	zip := filepath.Join(t.TempDir(), "x.zip")
	packInto(t, one.dir(t), zip)
	for _, again := range []string{source, one.dir(t), zip} {
		if r := s.install(again); !r.Unchanged || r.Repaired || r.Package != first.Package {
			t.Errorf("%s again: %+v", again, r)
		}
	}
	s.sound()

	second := s.install(two.dir(t))
	if second.Unchanged || !second.Default || second.Previous != "1.0.0" || second.SameVersion != "" {
		t.Errorf("second version: %+v", second)
	}
	wantLines(t, s.list(false), "repo-facts* 1.1.0 untrusted")
	wantLines(t, s.list(true), "repo-facts* 1.1.0 untrusted", "repo-facts 1.0.0 untrusted")
	s.sound()

	// A lower version does not become the default by itself.
	_, err := s.Install(s.ctx, one.dir(t), InstallOptions{})
	if d := as[*Downgrade](t, err); d.Installed != "1.1.0" || d.Offered != "1.0.0" || d.ID != "repo-facts" {
		t.Errorf("%+v", d)
	}
	wantLines(t, s.list(false), "repo-facts* 1.1.0 untrusted")
	s.sound()
	back, err := s.Install(s.ctx, one.dir(t), InstallOptions{Default: DefaultReplace})
	must(t, err)
	if !back.Default || back.Previous != "1.1.0" || back.Archive != first.Archive {
		t.Errorf("downgrade: %+v", back)
	}
	wantLines(t, s.list(true), "repo-facts* 1.0.0 untrusted", "repo-facts 1.1.0 untrusted")
	s.sound()

	// A third version beside them, without becoming the default.
	three := sample{id: "repo-facts", version: "2.0.0"}
	kept, err := s.Install(s.ctx, three.dir(t), InstallOptions{Default: DefaultKeep})
	must(t, err)
	if kept.Default || kept.Unchanged {
		t.Errorf("beside: %+v", kept)
	}
	wantLines(t, s.list(true), "repo-facts* 1.0.0 untrusted", "repo-facts 1.1.0 untrusted", "repo-facts 2.0.0 untrusted")
	s.sound()
}

func TestSameVersionOtherDigest(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	other := sample{id: "x", version: "1.0.0", files: map[string]string{"more": "m"}}
	s.install(one.dir(t))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	r := s.install(other.dir(t))
	if r.SameVersion != one.digest(t) || !r.Default || r.Unchanged {
		t.Errorf("%+v", r)
	}
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 1.0.0 enabled")
	_, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	if a := as[*Ambiguous](t, err); len(a.Candidates) != 2 {
		t.Errorf("%+v", a)
	}
	used, err := s.Use(s.ctx, Ref{ID: "x", Digest: one.digest(t)})
	must(t, err)
	if used.Status != StatusEnabled {
		t.Errorf("%+v", used)
	}
	wantLines(t, s.list(true), "x* 1.0.0 enabled", "x 1.0.0 untrusted")
	s.sound()
}

func TestUse(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.archive(t))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	s.install(two.archive(t))
	s.trust("x")
	wantLines(t, s.list(true), "x* 2.0.0 disabled", "x 1.0.0 enabled")

	used, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	if used.Previous != "2.0.0" || used.Status != StatusEnabled || used.Unchanged {
		t.Errorf("%+v", used)
	}
	wantLines(t, s.list(true), "x* 1.0.0 enabled", "x 2.0.0 disabled")
	s.sound()
	if used, err = s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"}); err != nil || !used.Unchanged {
		t.Errorf("again: %+v, %v", used, err)
	}
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "3.0.0"})
	if n := as[*NotFound](t, err); !slices.Equal(n.Near, []string{"x@1.0.0", "x@2.0.0"}) {
		t.Errorf("%+v", n)
	}

	// A version whose files in the store were changed is not taken.
	damage(t, s.storePath(two.digest(t)))
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "2.0.0"})
	if i := as[*Integrity](t, err); i.Expected != two.digest(t) || i.Found == i.Expected {
		t.Errorf("%+v", i)
	}
	wantLines(t, s.list(false), "x* 1.0.0 enabled")
}

// damage replaces the contents of a file of a sealed tree in place, so that every
// link to it changes.
func damage(t testing.TB, tree string) {
	t.Helper()
	path := filepath.Join(tree, "bin", "tool")
	must(t, os.Chmod(path, 0o755))
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n# altered\n"), 0o755))
	must(t, os.Chmod(path, 0o555))
}

func TestRepair(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	s.install(one.archive(t))
	for name, alter := range map[string]func(){
		"in place":        func() { damage(t, s.storePath(one.digest(t))) },
		"replaced":        func() { replaceInSealed(t, filepath.Join(s.pluginPath("x"), "lib/a"), "b") },
		"added":           func() { replaceInSealed(t, filepath.Join(s.pluginPath("x"), "lib/new"), "b") },
		"default removed": func() { must(t, removeTree(s.pluginPath("x"))) },
		"store removed":   func() { must(t, removeTree(s.storePath(one.digest(t)))) },
		"store is a file": func() {
			must(t, removeTree(s.storePath(one.digest(t))))
			write(t, s.storePath(one.digest(t)), "x", 0o600)
		},
		"a link in the store": func() {
			tree := s.storePath(one.digest(t))
			must(t, os.Chmod(tree, 0o755))
			must(t, os.Symlink("/etc/passwd", filepath.Join(tree, "link")))
		},
	} {
		alter()
		r := s.install(one.archive(t))
		if r.Unchanged || !r.Default {
			t.Errorf("%s: %+v", name, r)
		}
		if got := s.status("x"); got != StatusUntrusted {
			t.Errorf("%s: %s", name, got)
		}
		s.sound()
	}
}

// replaceInSealed puts a new file in place of another, as an editor does.
func replaceInSealed(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.Chmod(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path+".tmp", []byte(content), 0o444))
	must(t, os.Rename(path+".tmp", path))
	must(t, os.Chmod(filepath.Dir(path), 0o555))
}

func TestInstallRefuses(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	edited := func(edit func(m map[string]any)) string {
		return sample{id: "x", version: "1.0.0", edit: edit}.dir(t)
	}
	malformed := func(t *testing.T, err error) { as[*Malformed](t, err) }
	for name, c := range map[string]struct {
		source string
		o      InstallOptions
		check  func(t *testing.T, err error)
	}{
		"nothing there": {source: "/nonexistent/x.tar.zst", check: func(t *testing.T, err error) {
			if n := as[*NotFound](t, err); n.Kind != "source" {
				t.Errorf("%+v", n)
			}
		}},
		"no manifest": {source: func() string {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a"), "a", 0o644)
			return dir
		}(), check: malformed},
		"byte order mark": {source: func() string {
			dir := one.dir(t)
			write(t, filepath.Join(dir, manifest.FileName), "\xef\xbb\xbf"+string(one.manifest()), 0o644)
			return dir
		}(), check: malformed},
		"unknown member":            {source: edited(func(m map[string]any) { m["extra"] = 1 }), check: malformed},
		"reserved id":               {source: edited(func(m map[string]any) { m["id"] = "con" }), check: malformed},
		"missing executable":        {source: edited(func(m map[string]any) { m["executable"] = "bin/none" }), check: malformed},
		"executable is a directory": {source: edited(func(m map[string]any) { m["executable"] = "bin" }), check: malformed},
		"no execute bit": {source: func() string {
			dir := one.dir(t)
			must(t, os.Chmod(filepath.Join(dir, "bin/tool"), 0o644))
			return dir
		}(), check: malformed},
		"symbolic link": {source: func() string {
			dir := one.dir(t)
			must(t, os.Symlink("bin/tool", filepath.Join(dir, "link")))
			return dir
		}(), check: func(t *testing.T, err error) {
			if r := as[*archive.Refusal](t, err); r.Rule != archive.RuleLink || r.Entry != "link" {
				t.Errorf("%+v", r)
			}
		}},
		"no archive": {source: func() string {
			path := filepath.Join(t.TempDir(), "x.tar.zst")
			write(t, path, "hello", 0o644)
			return path
		}(), check: func(t *testing.T, err error) { as[*archive.Refusal](t, err) }},
		"other archive": {source: one.archive(t), o: InstallOptions{Archive: digest.Of([]byte("x"))}, check: func(t *testing.T, err error) {
			if i := as[*Integrity](t, err); i.What != "archive digest" || i.Found == "" {
				t.Errorf("%+v", i)
			}
		}},
		"archive digest of a directory": {source: one.dir(t), o: InstallOptions{Archive: digest.Of([]byte("x"))}, check: malformed},
		"other package": {source: one.archive(t), o: InstallOptions{Expect: &Expectation{Package: digest.Of([]byte("x"))}}, check: func(t *testing.T, err error) {
			if i := as[*Integrity](t, err); i.What != "package digest" {
				t.Errorf("%+v", i)
			}
		}},
		"other id": {source: one.archive(t), o: InstallOptions{Expect: &Expectation{ID: "y"}}, check: func(t *testing.T, err error) {
			if w := as[*WrongPackage](t, err); w.WantID != "y" || w.ID != "x" {
				t.Errorf("%+v", w)
			}
		}},
		"other version": {source: one.archive(t), o: InstallOptions{Expect: &Expectation{ID: "x", Version: "2"}}, check: func(t *testing.T, err error) {
			as[*WrongPackage](t, err)
		}},
		"a device": {source: "/dev/null", check: malformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Install(s.ctx, c.source, c.o)
			c.check(t, err)
			wantLines(t, s.list(true))
			if names, _ := readNames(s.join(stagingDir)); len(names) > 0 {
				t.Errorf("staging holds %q", names)
			}
			if names, _ := readNames(s.join(archivesDir)); len(names) > 0 {
				t.Errorf("archives were kept: %q", names)
			}
		})
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	for _, step := range []func(){func() {}, func() { s.install(one.archive(t)) }} {
		step()
		before := lines(s.list(true))
		r, err := s.Install(s.ctx, two.archive(t), InstallOptions{DryRun: true})
		must(t, err)
		if r.ID != "x" || r.Version != "2.0.0" || !r.Default {
			t.Errorf("%+v", r)
		}
		if after := lines(s.list(true)); !slices.Equal(before, after) || exists(s.storePath(two.digest(t))) {
			t.Errorf("%q became %q", before, after)
		}
		s.sound()
	}
	_, err := s.Install(s.ctx, sample{id: "x", version: "0.1.0"}.dir(t), InstallOptions{DryRun: true})
	as[*Downgrade](t, err)
}

func TestInstallSources(t *testing.T) {
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"ünïcode name/ä b.txt": "x"}}
	want := one.digest(t)
	dir := filepath.Join(scratch(t), "a b", "ünï cödé")
	for _, ext := range []string{".tar.zst", ".tar.gz", ".zip"} {
		s := siteAt(t, filepath.Join(dir, "données"+ext))
		source := filepath.Join(t.TempDir(), "päck age"+ext)
		packInto(t, one.dir(t), source)
		if r := s.install(source); r.Package != want {
			t.Errorf("%s: %s, want %s", ext, r.Package, want)
		}
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
		if got, err := s.health("x"); err != nil || got != want {
			t.Errorf("%s: %v", ext, err)
		}
		s.sound()
	}
}

// The temporary directory plays no part: it may be missing or unusable.
func TestTemporaryDirectoryIsIrrelevant(t *testing.T) {
	one := sample{id: "x", version: "1.0.0"}
	source := one.archive(t)
	s := newSite(t)
	t.Setenv("TMPDIR", "/nonexistent")
	s.install(source)
	_, err := s.ReviewArchive(s.ctx, source)
	must(t, err)
	s.sound()
}

// What a person chose stays with the digest, whatever is the default.
func TestArchiveOfAnUnchangedPackage(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	if r := s.install(one.dir(t)); r.Archive != "" {
		t.Errorf("%+v", r)
	}
	source := one.archive(t)
	want, err := hashFile(source)
	must(t, err)
	if r := s.install(source); !r.Unchanged {
		t.Errorf("%+v", r)
	}
	recorded := func() (in state.Install) {
		must(t, s.state.View(s.ctx, func(tx *state.Tx) (err error) {
			in, err = tx.Install(one.digest(t))
			return err
		}))
		return in
	}
	if got := recorded().Archive; got != want {
		t.Errorf("the archive was not recorded: %q", got)
	}
	s.sound()

	// A damaged copy in the store is replaced.
	must(t, os.WriteFile(s.archivePath(want), []byte("x"), 0o600))
	s.install(source)
	s.sound()
	must(t, os.Remove(s.archivePath(want)))
	s.install(source)
	s.sound()
	if !exists(s.archivePath(want)) {
		t.Error("the archive was not kept")
	}
}

func TestParseRef(t *testing.T) {
	d := digest.Of([]byte("x"))
	for text, want := range map[string]Ref{
		"x": {ID: "x"}, "x@1.0.0": {ID: "x", Version: "1.0.0"}, "a.b-c@weird version": {ID: "a.b-c", Version: "weird version"},
		"x@" + string(d): {ID: "x", Digest: d}, "x@" + d.Hex(): {ID: "x", Version: d.Hex()},
	} {
		if got, err := ParseRef(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "@", "X", "x@", "con", "x@sha256:12", strings.Repeat("a", 65), "../x", "x/y"} {
		if got, err := ParseRef(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
