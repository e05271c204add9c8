//go:build unix

package pkgmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestListOfNothing(t *testing.T) {
	s := newSite(t)
	if list := s.list(true); list == nil || len(list) != 0 {
		t.Errorf("%#v", list)
	}
	if exists(s.Path()) {
		t.Error("a listing created the data directory")
	}
}

// A broken package is listed with its error and hides no other.
func TestListIsolatesFaults(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"a", "m", "z"} {
		s.install(sample{id: id, version: "1.0.0"}.dir(t))
	}
	good := sample{id: "x", version: "1.0.0"}
	for name, put := range map[string]func(dir string){
		"b-empty":   func(dir string) { must(t, os.MkdirAll(dir, 0o755)) },
		"c-garbage": func(dir string) { write(t, filepath.Join(dir, manifest.FileName), "{{{", 0o644) },
		"d-bom":     func(dir string) { write(t, filepath.Join(dir, manifest.FileName), "\xef\xbb\xbf{}", 0o644) },
		"e-huge": func(dir string) {
			write(t, filepath.Join(dir, manifest.FileName), strings.Repeat(" ", manifest.MaxBytes+1), 0o644)
		},
		"f-linked":   func(dir string) { must(t, os.Symlink(good.dir(t), dir)) },
		"g-loop":     func(dir string) { must(t, os.Symlink(filepath.Base(dir), dir)) },
		"h-inner":    func(dir string) { good.writeTo(t, dir); must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link"))) },
		"i-noexec":   func(dir string) { good.writeTo(t, dir); must(t, os.Chmod(filepath.Join(dir, "bin/tool"), 0o644)) },
		"j-writable": func(dir string) { good.writeTo(t, dir); must(t, os.Chmod(filepath.Join(dir, "bin"), 0o777)) },
		"k-setuid": func(dir string) {
			good.writeTo(t, dir)
			must(t, os.Chmod(filepath.Join(dir, "bin/tool"), 0o755|os.ModeSetuid))
		},
		"l-manifest-is-a-link": func(dir string) {
			good.writeTo(t, dir)
			must(t, os.Rename(filepath.Join(dir, manifest.FileName), filepath.Join(dir, "real.json")))
			must(t, os.Symlink("real.json", filepath.Join(dir, manifest.FileName)))
		},
		"n-not a plugin id": func(dir string) {
			write(t, filepath.Join(dir, manifest.FileName), strings.Replace(string(good.manifest()), `"id":"x"`, `"id":"../x"`, 1), 0o644)
		},
	} {
		put(s.pluginPath(name))
	}
	write(t, s.pluginPath("a file"), "no package", 0o644)
	write(t, s.pluginPath(".hidden/x"), "no package", 0o644)

	list := s.list(false)
	var broken, fine []string
	for _, i := range list {
		if i.Status == StatusBroken {
			broken = append(broken, i.Dir)
			if i.Err == nil || i.ID != i.Dir || i.Package != "" || len(i.Granted) > 0 {
				t.Errorf("%+v", i)
			}
			if !isFault(i.Err) {
				t.Errorf("%s: %T %v", i.Dir, i.Err, i.Err)
			}
			continue
		}
		fine = append(fine, i.ID)
	}
	if !slices.Equal(fine, []string{"a", "m", "z"}) || len(broken) != 12 {
		t.Errorf("fine %q, broken %q", fine, broken)
	}
	if !slices.IsSortedFunc(list, compareInfos) {
		t.Error("the listing is not sorted")
	}
	// It is the same every time.
	for range 3 {
		if again := lines(s.list(false)); !slices.Equal(again, lines(list)) {
			t.Errorf("%q became %q", lines(list), again)
		}
	}
	var bom *ijson.Error
	for _, i := range list {
		if i.Dir == "d-bom" && !errorsAs(i.Err, &bom) {
			t.Errorf("%T %v", i.Err, i.Err)
		}
	}
}

// What was seen before is taken for the same only while nothing says otherwise.
func TestListNoticesWhatItSawBefore(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	one.writeTo(t, s.pluginPath("x"))
	must(t, os.Remove(s.pluginPath("x")+"/lib/a"))
	must(t, os.MkdirAll(s.pluginPath("y"), 0o755))
	must(t, os.RemoveAll(s.Path()))
	must(t, s.state.Ensure(s.ctx))
	one.writeTo(t, s.pluginPath("x"))
	want := one.digest(t)
	seen := func() (list []state.Seen) {
		must(t, s.state.View(s.ctx, func(tx *state.Tx) (err error) {
			list, err = tx.AllSeen()
			return err
		}))
		return list
	}
	for range 2 {
		if got := s.list(false)[0].Package; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if list := seen(); len(list) != 1 || list[0].Package != want || len(list[0].Stats) != 6 {
			t.Fatalf("%+v", list)
		}
	}
	for _, c := range []struct {
		name  string
		alter func()
	}{
		{"content of the same size and time", func() {
			path := s.pluginPath("x") + "/lib/a"
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte("b"), 0o644))
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		}},
		{"new file", func() { write(t, s.pluginPath("x")+"/lib/new", "n", 0o644) }},
		{"removed", func() { must(t, os.Remove(s.pluginPath("x")+"/lib/new")) }},
		{"executable", func() { must(t, os.Chmod(s.pluginPath("x")+"/lib/a", 0o755)) }},
		{"new directory", func() { write(t, s.pluginPath("x")+"/other/new", "n", 0o644) }},
		{"replaced", func() {
			must(t, os.Rename(s.pluginPath("x"), s.pluginPath("x")+".old"))
			one.writeTo(t, s.pluginPath("x"))
			must(t, os.RemoveAll(s.pluginPath("x")+".old"))
		}},
	} {
		before := s.list(false)[0].Package
		c.alter()
		want, err := hashPath(s.ctx, s.pluginPath("x"))
		must(t, err)
		if got := s.list(false)[0].Package; got != want {
			t.Errorf("%s: listed as %s, is %s, was %s", c.name, got, want, before)
		}
	}

	// With a clock that says "now" nothing that young is remembered.
	young, err := Open(filepath.Join(scratch(t), "data"), Options{})
	must(t, err)
	must(t, young.state.Ensure(s.ctx))
	one.writeTo(t, young.pluginPath("x"))
	_, err = young.List(s.ctx, nil, false)
	must(t, err)
	must(t, young.state.View(s.ctx, func(tx *state.Tx) error {
		if list, err := tx.AllSeen(); err != nil || len(list) > 0 {
			t.Errorf("%+v, %v", list, err)
		}
		return nil
	}))
}

func TestSettled(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(ago time.Duration) state.FileStat {
		return state.FileStat{MtimeNs: now.Add(-ago).UnixNano(), CtimeNs: now.Add(-time.Hour).UnixNano()}
	}
	for _, c := range []struct {
		ago  time.Duration
		want bool
	}{{time.Second, true}, {timestampGrain, true}, {timestampGrain - 1, false}, {0, false}, {-time.Hour, false}} {
		if got := settled([]state.FileStat{at(time.Minute), at(c.ago)}, now); got != c.want {
			t.Errorf("%v ago: %v", c.ago, got)
		}
	}
}

// A default directory that is removed by hand is gone, and says so.
func TestDefaultRemovedByHand(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.archive(t))
	s.trust("x")
	s.enable("x")
	must(t, removeTree(s.pluginPath("x")))
	wantLines(t, s.list(false))
	wantLines(t, s.list(true), "x 1.0.0 enabled")
	_, err := s.health("x")
	as[*NotFound](t, err)
	if got, err := s.health("x@1.0.0"); err != nil || got != one.digest(t) {
		t.Errorf("%s, %v", got, err)
	}
	s.install(one.archive(t))
	wantLines(t, s.list(false), "x* 1.0.0 enabled")
	s.sound()
}

func TestListShowsWhyAPackageIsDenied(t *testing.T) {
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"a": "a"}}
	c := one.contents(t)
	for _, d := range []Denial{
		{PluginID: "x", Reason: "r"}, {PluginID: "x", Range: "<2", Reason: "r"},
		{Digest: c.Package, Reason: "r"}, {Digest: c.ManifestDigest, Reason: "r"}, {Digest: c.Fingerprint, Reason: "r"},
	} {
		t.Run(d.Subject(), func(t *testing.T) {
			s := newSite(t)
			must(t, s.state.Ensure(s.ctx))
			must(t, s.writeDenials([]Denial{d}))
			one.writeTo(t, s.pluginPath("x")) // put there by hand after the denial
			list := s.list(false)
			if len(list) != 1 || list[0].Status != StatusRevoked || list[0].Denial == nil || list[0].Denial.Reason != "r" {
				t.Errorf("%+v", list)
			}
			_, err := s.health("x")
			if d.Digest == c.Package || d.Digest == c.Fingerprint {
				as[*NeedsDecision](t, err) // a call does not read what nobody trusts
			} else {
				as[*Revoked](t, err)
			}
			_, err = s.Trust(s.ctx, Ref{ID: "x"}, nil, c.Package)
			as[*Revoked](t, err)
			r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
			if err != nil || r.Status != StatusRevoked {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// An unreadable list of denials is an error, never an empty one.
func TestUnreadableDenials(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.trust("x")
	s.enable("x")
	for name, text := range map[string]string{
		"empty": "", "cut off": `{"version":1,"denials":[`, "duplicate": `{"version":1,"version":1,"denials":[]}`,
		"unknown member": `{"version":1,"denials":[],"x":1}`, "newer": `{"version":2,"denials":[]}`, "null": "null",
	} {
		write(t, s.join(revokedDir, denialsFile), text, 0o600)
		_, err := s.List(s.ctx, nil, false)
		if m := as[*Malformed](t, err); m.File != denialsFile {
			t.Errorf("%s: %+v", name, m)
		}
		for what, do := range map[string]func() error{
			"run": func() error { _, err := s.health("x"); return err },
			"install": func() error {
				_, err := s.Install(s.ctx, sample{id: "y", version: "1"}.dir(t), InstallOptions{})
				return err
			},
			"trust":    func() error { _, err := s.Trust(s.ctx, Ref{ID: "x"}, nil, digest.Of(nil)); return err },
			"revoke":   func() error { _, err := s.Revoke(s.ctx, Denial{PluginID: "y", Reason: "r"}); return err },
			"unrevoke": func() error { _, err := s.Unrevoke(s.ctx, "y"); return err },
		} {
			if err := do(); !isFault(err) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
	must(t, os.Remove(s.join(revokedDir, denialsFile)))
	wantLines(t, s.list(true), "x* 1.0.0 enabled")
}

func TestNear(t *testing.T) {
	names := []string{"repo-facts", "repo-fact", "other", "repository", "x"}
	for name, want := range map[string][]string{
		"repo-fatcs": {"repo-facts", "repo-fact"}, "repo": {"repo-facts", "repo-fact", "repository"}, "y": {"x"}, "zzzzzz": nil, "other": nil,
	} {
		if got := near(name, names); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := editDistance(c.a, c.b); got != c.want || editDistance(c.b, c.a) != c.want {
			t.Errorf("%s", fmt.Sprint(c, got))
		}
	}
}
