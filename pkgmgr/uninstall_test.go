package pkgmgr

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestUninstall(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.archive(t))
	s.install(sample{id: "y", version: "1.0.0"}.dir(t))
	s.install(two.archive(t))
	s.trust("x")

	removed, err := s.Uninstall(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	if len(removed) != 1 || removed[0].Package != one.digest(t) || removed[0].Bytes == 0 {
		t.Errorf("%+v", removed)
	}
	wantLines(t, s.list(true), "x* 2.0.0 disabled", "y* 1.0.0 untrusted")
	s.sound()

	// The version that is the default goes, the other stays without becoming it.
	_, err = s.Install(s.ctx, one.archive(t), InstallOptions{Default: DefaultKeep})
	must(t, err)
	_, err = s.Uninstall(s.ctx, Ref{ID: "x", Version: "2.0.0"})
	must(t, err)
	wantLines(t, s.list(true), "x 1.0.0 untrusted", "y* 1.0.0 untrusted")
	_, err = s.Review(s.ctx, Ref{ID: "x"}, nil)
	if n := as[*NotFound](t, err); !slices.Equal(n.Near, []string{"x@1.0.0"}) {
		t.Errorf("%+v", n)
	}
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "y* 1.0.0 untrusted")
	s.sound()
}

// A version that two packages have is not removed without naming one, and what is
// left without a default version is said.
func TestUninstallOfAnAmbiguousVersion(t *testing.T) {
	s := newSite(t)
	var notes []string
	s.on.Note = func(text string) { notes = append(notes, text) }
	one, other := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "1.0.0", files: map[string]string{"a": "a"}}
	s.install(one.dir(t))
	s.install(other.dir(t))
	_, err := s.Install(s.ctx, sample{id: "x", version: "0.9.0"}.dir(t), InstallOptions{Default: DefaultKeep})
	must(t, err)
	_, err = s.Uninstall(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	if a := as[*Ambiguous](t, err); len(a.Candidates) != 2 || a.Ref != "x@1.0.0" {
		t.Errorf("%+v", a)
	}
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 0.9.0 untrusted", "x 1.0.0 untrusted")
	_, err = s.Uninstall(s.ctx, Ref{ID: "x", Digest: one.digest(t)})
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 0.9.0 untrusted")
	if len(notes) != 0 {
		t.Errorf("%q", notes)
	}
	removed, err := s.Uninstall(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	if len(removed) != 1 || !slices.Equal(notes, []string{"x has no default version now; still installed: 0.9.0"}) {
		t.Errorf("%+v, %q", removed, notes)
	}
	wantLines(t, s.list(true), "x 0.9.0 untrusted")
	s.sound()
}

func TestUninstallEveryVersion(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	for _, p := range []sample{one, two} {
		s.install(p.archive(t))
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
	}
	s.install(sample{id: "y", version: "1.0.0"}.dir(t))
	removed, err := s.Uninstall(s.ctx, Ref{ID: "x"})
	must(t, err)
	if len(removed) != 2 {
		t.Errorf("%+v", removed)
	}
	wantLines(t, s.list(true), "y* 1.0.0 untrusted")
	s.sound()
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	as[*NotFound](t, err)

	// Trust and grants were forgotten with it.
	s.install(two.archive(t))
	wantLines(t, s.list(true), "x* 2.0.0 untrusted", "y* 1.0.0 untrusted")
	s.sound()
}

func TestUninstallOfWhatRuns(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodHealth})
	must(t, err)
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	if b := as[*Busy](t, err); b.Operation != d.Call.ID {
		t.Errorf("%+v", b)
	}
	wantLines(t, s.list(true), "x* 1.0.0 enabled")
	d.Call.End()
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	must(t, err)
	s.sound()
}

// What was changed below plugins/ is a package of its own: uninstalling the recorded
// one by its digest leaves it, and no record of it.
func TestUninstallOfWhatWasChanged(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	s.install(one.archive(t))
	s.trust("x")
	replaceInSealed(t, filepath.Join(s.pluginPath("x"), "lib/a"), "A")
	wantLines(t, s.list(false), "x* 1.0.0 changed")
	_, err := s.Uninstall(s.ctx, Ref{ID: "x", Digest: one.digest(t)})
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted")
	if i := s.list(true)[0]; i.Recorded != "" {
		t.Errorf("%+v", i)
	}
	_, err = s.Install(s.ctx, one.archive(t), InstallOptions{})
	as[*ForeignDirectory](t, err)
	_, err = s.Uninstall(s.ctx, Ref{ID: "x"})
	must(t, err)
	wantLines(t, s.list(true))
	s.install(one.archive(t))
	s.sound()
}

func TestUninstallOfWhatIsBroken(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.dir(t))
	must(t, os.Chmod(s.pluginPath("x"), 0o755))
	must(t, os.Remove(filepath.Join(s.pluginPath("x"), manifest.FileName)))
	write(t, filepath.Join(s.pluginPath("junk"), "readme"), "no plugin", 0o644)
	for _, id := range []string{"x", "junk"} {
		if got := s.status(id); got != StatusBroken {
			t.Errorf("%s is %s", id, got)
		}
		_, err := s.Uninstall(s.ctx, Ref{ID: id})
		must(t, err)
	}
	wantLines(t, s.list(true))
	s.sound()
	s.install(one.dir(t))
	wantLines(t, s.list(true), "x* 1.0.0 untrusted")
}

func findingOf(t *testing.T, list []Finding, check string) Finding {
	t.Helper()
	i := slices.IndexFunc(list, func(f Finding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("nothing was found out about %q", check)
	}
	return list[i]
}
