//go:build unix

package pkgmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// What was changed in place in a package that came from a directory is listed file
// by file: its archive was made when it was trusted.
func TestReviewOfAChangedDirectoryInstall(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a", "lib/b": "b", "same": "s"}}
	source := one.dir(t)
	s.install(source)
	s.trust("x")
	must(t, os.RemoveAll(source))
	in := s.installed(one.digest(t))
	if in.Archive == "" || !exists(s.archivePath(in.Archive)) {
		t.Fatalf("no archive is kept: %+v", in)
	}
	s.sound()

	tree := s.pluginPath("x")
	damage(t, tree) // in place: the store's file is the same one
	replaceInSealed(t, filepath.Join(tree, "lib/c"), "c")
	must(t, os.Chmod(filepath.Join(tree, "lib"), 0o755))
	must(t, os.Remove(filepath.Join(tree, "lib/b")))
	must(t, os.Chmod(filepath.Join(tree, "lib"), 0o555))
	r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
	must(t, err)
	want := []FileChange{{"bin/tool", "changed"}, {"lib/b", "removed"}, {"lib/c", "added"}}
	if r.Status != StatusChanged || r.Change == nil || r.Change.FilesUnknown || !slices.Equal(r.Change.Files, want) {
		t.Errorf("%+v: %+v", r, r.Change)
	}

	// The changed package is trusted in turn, and the next change is listed against it.
	s.trust("x")
	replaceInSealed(t, filepath.Join(tree, "same"), "S")
	damage(t, s.storePath(r.Package))
	must(t, os.Chmod(filepath.Join(s.storePath(r.Package), "bin/tool"), 0o755))
	must(t, os.WriteFile(filepath.Join(s.storePath(r.Package), "bin/tool"), []byte("#!/bin/sh\n# again\n"), 0o755))
	r, err = s.Review(s.ctx, Ref{ID: "x"}, nil)
	must(t, err)
	want = []FileChange{{"bin/tool", "changed"}, {"same", "changed"}}
	if r.Change == nil || !slices.Equal(r.Change.Files, want) {
		t.Errorf("%+v: %+v", r, r.Change)
	}
}

// Where no archive can be made, trust works, a note says so, and so does the review
// of a later change.
func TestTrustWithoutAnArchive(t *testing.T) {
	s := newSite(t)
	must(t, s.state.Ensure(s.ctx))
	one := sample{id: "x", version: "1.0.0", files: map[string]string{".DS_Store": "left behind"}}
	one.writeTo(t, s.pluginPath("x"))
	var notes []string
	s.on.Note = func(text string) { notes = append(notes, text) }
	if out := s.trust("x"); out.Status != StatusTrusted {
		t.Errorf("%+v", out)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "no archive of x 1.0.0 is kept") {
		t.Errorf("%q", notes)
	}
	if names, _ := readNames(s.join(archivesDir)); len(names) > 0 {
		t.Errorf("%q", names)
	}
	damage(t, s.pluginPath("x"))
	r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
	must(t, err)
	if r.Change == nil || !r.Change.FilesUnknown || !strings.Contains(r.Change.FilesWhy, "no archive of it is kept") {
		t.Errorf("%+v", r.Change)
	}
}

// The archive that a trust or a pin makes is compared with the denials like one that
// was given.
func TestTrustOfADeniedArchive(t *testing.T) {
	one := sample{id: "x", version: "1.0.0"}
	sum, err := hashFile(one.archive(t))
	must(t, err)
	s := newSite(t)
	s.install(one.dir(t))
	_, err = s.Revoke(s.ctx, Denial{Digest: sum, Reason: "r"})
	must(t, err)
	_, err = s.Trust(s.ctx, Ref{ID: "x"}, nil, one.digest(t))
	if r := as[*Revoked](t, err); r.Denial.Digest != sum {
		t.Errorf("%+v", r)
	}
	if names, _ := readNames(s.join(archivesDir)); len(names) > 0 {
		t.Errorf("%q", names)
	}
	wantLines(t, s.list(true), "x* 1.0.0 untrusted")
	s.sound()
}

// An archive that somebody gives stands for the package from then on, instead of the
// one that was packed when it was trusted.
func TestGivenArchiveAfterAPackedOne(t *testing.T) {
	w := newWorkspace(t, "")
	one := sample{id: "x", version: "1.0.0"}
	dir := filepath.Join(w.root, "src")
	one.writeTo(t, dir)
	w.install(dir)
	w.trust("x")
	pin := func() lockfile.Plugin {
		t.Helper()
		_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
		must(t, err)
		return w.entry("x")
	}
	packed := w.installed(one.digest(t)).Archive
	must(t, os.Rename(dir, dir+".away"))
	if e := pin(); e.Source != "" || e.Platforms[lockfile.Any].Archive != packed {
		t.Errorf("%+v", e)
	}
	must(t, os.Rename(dir+".away", dir))

	given := w.built(one, "x.zip")
	sum, err := hashFile(given)
	must(t, err)
	for i := range 2 {
		if out := w.install(given); !out.Unchanged {
			t.Errorf("%+v", out)
		}
		if in := w.installed(one.digest(t)); in.Archive != sum || in.Source != given {
			t.Errorf("%d: %+v", i, in)
		}
	}
	if e := pin(); e.Source != "dist/x.zip" || e.Platforms[lockfile.Any].Archive != sum {
		t.Errorf("%+v", e)
	}
	w.sound()
}

// A lock that names another archive of the same files binds what was installed from
// a directory as before it was trusted.
func TestRunOfADirectoryInstallUnderALock(t *testing.T) {
	w := newWorkspace(t, "")
	one := sample{id: "x", version: "1.0.0", scopes: []manifest.Scope{manifest.ScopeMetadataRead}}
	elsewhere := &workspace{newSite(t), w.root}
	elsewhere.install(w.built(one, "x.zip"))
	elsewhere.trust("x")
	elsewhere.enable("x", manifest.ScopeMetadataRead)
	_, err := elsewhere.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)
	w.install(one.dir(t))
	w.trust("x")
	w.enable("x", manifest.ScopeMetadataRead)
	got, err := w.run(CallRequest{Ref: Ref{ID: "x"}, Lock: w.lock(), Method: MethodHealth})
	if err != nil || got != one.digest(t) {
		t.Error(fmt.Sprint(got), err)
	}
}

// A data directory that is thrown away, as the author's loop has one, keeps no archive
// for a review that never comes.
func TestThrowawayKeepsNoArchive(t *testing.T) {
	h, err := Open(filepath.Join(scratch(t), "data"), Options{Throwaway: true})
	must(t, err)
	s := &site{Home: h, t: t, ctx: t.Context()}
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.dir(t))
	s.trust("x")
	if in := s.installed(one.digest(t)); in.Archive != "" {
		t.Errorf("%+v", in)
	}
	s.sound()
}
