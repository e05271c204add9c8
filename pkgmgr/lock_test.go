//go:build unix

package pkgmgr

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

func TestRelock(t *testing.T) {
	w := newWorkspace(t, toml)
	here, there, thereName := programs()
	hereArchive := w.built(here, "x-1.0.0-"+hostName()+".tar.zst")

	thereArchive := w.built(there, "x-1.0.0-"+thereName+".tar.zst")
	// This machine's package is not reviewed.
	_, err := w.relock(LockWrite)
	if n := as[*NeedsDecision](t, err); n.Status != StatusUntrusted || n.Package != here.digest(t) {
		t.Errorf("%+v", n)
	}
	w.install(hereArchive)
	w.trust("x")
	// One archive is absent: nothing is written, and it is named.
	must(t, os.Remove(thereArchive))
	_, err = w.relock(LockWrite)
	if n := as[*NotFound](t, err); n.Kind != "source" || n.Name != thereArchive {
		t.Errorf("%+v", n)
	}
	if w.lock() != nil {
		t.Fatal("a lock was written")
	}
	w.built(there, filepath.Base(thereArchive))
	_, err = w.relock(LockCheck)
	if s := as[*Stale](t, err); len(s.Changes) != 1 || s.Changes[0].Kind != lockfile.Added {
		t.Errorf("%+v", s)
	}
	r, err := w.relock(LockWrite)
	must(t, err)
	if !r.Written || len(r.Unreviewed) != 1 {
		t.Errorf("%+v", r)
	}
	e := w.entry("x")
	if len(e.Platforms) != 2 || e.Version != "1.0.0" || !slices.Equal(e.Grants, []string{"project.metadata.read"}) || strings.HasPrefix(e.Source, "./") {
		t.Errorf("%+v", e)
	}
	if p := e.Platforms[HostPlatform()]; p.Package != here.digest(t) {
		t.Errorf("%+v", p)
	}
	before, err := os.ReadFile(w.project().LockPath())
	must(t, err)

	// Again, also without the archives: nothing changes, no byte.
	for _, away := range [][]string{nil, {thereArchive}, {hereArchive, thereArchive}} {
		for _, path := range away {
			must(t, os.Rename(path, path+".away"))
		}
		if r, err := w.relock(LockWrite); err != nil || r.Written {
			t.Errorf("%+v, %v", r, err)
		}
		_, err := w.relock(LockCheck)
		must(t, err)
		for _, path := range away {
			must(t, os.Rename(path+".away", path))
		}
	}
	if after, _ := os.ReadFile(w.project().LockPath()); !bytes.Equal(before, after) {
		t.Error("the lock churns")
	}

	// CRLF means the same.
	must(t, os.WriteFile(w.project().LockPath(), bytes.ReplaceAll(before, []byte("\n"), []byte("\r\n")), 0o644))
	if _, err := w.relock(LockCheck); err != nil {
		t.Error(err)
	}
	must(t, os.WriteFile(w.project().LockPath(), before, 0o644))

	// The other machine's archive changes; this one's stays.
	changed := there
	changed.files = map[string]string{"more": "m"}
	packInto(t, changed.dir(t), thereArchive)
	_, err = w.relock(LockCheck)
	if s := as[*Stale](t, err); len(s.Changes) != 2 || s.Changes[0].Kind != lockfile.ArchiveDiffers || s.Changes[1].Kind != lockfile.PackageDiffers {
		t.Errorf("%+v", s.Changes)
	}
	_, err = w.relock(LockWrite)
	must(t, err)
	if got := w.entry("x").Platforms[HostPlatform()]; got.Archive != e.Platforms[HostPlatform()].Archive || got.Package != here.digest(t) {
		t.Errorf("%+v", got)
	}
}

func TestRelockRefuses(t *testing.T) {
	here, there, thereName := programs()
	for name, c := range map[string]struct {
		config string
		make   func(w *workspace)
		check  func(t *testing.T, err error)
	}{
		"program of another platform": {toml, func(w *workspace) {
			w.built(there, "x-1.0.0-"+hostName()+".tar.zst")
			w.built(here, "x-1.0.0-"+thereName+".tar.zst")
		}, func(t *testing.T, err error) { as[*WrongPlatform](t, err) }},
		"other id": {strings.ReplaceAll(toml, "plugins.x", "plugins.z"), func(w *workspace) {
			w.built(here, "x-1.0.0-"+hostName()+".tar.zst")
			w.built(there, "x-1.0.0-"+thereName+".tar.zst")
		}, func(t *testing.T, err error) { as[*WrongPackage](t, err) }},
		"other version": {strings.ReplaceAll(toml, "x-{version}", "x"), func(w *workspace) {
			p := here
			p.version = "1.0.1"
			w.built(p, "x-"+hostName()+".tar.zst")
			w.built(there, "x-"+thereName+".tar.zst")
			w.install(filepath.Join(w.root, "dist", "x-"+hostName()+".tar.zst"))
			w.trust("x")
		}, func(t *testing.T, err error) { as[*WrongPackage](t, err) }},
		"scope that is not requested": {strings.ReplaceAll(toml, "metadata.read", "files.read"), func(w *workspace) {
			p, q := here, there
			p.scopes = []manifest.Scope{manifest.ScopeMetadataRead}
			q.scopes = p.scopes
			w.install(w.built(p, "x-1.0.0-"+hostName()+".tar.zst"))
			w.trust("x")
			w.built(q, "x-1.0.0-"+thereName+".tar.zst")
		}, driftOf(DriftGrants)},
		"a directory": {"version = 1\n[plugins.x]\nsource = \"src\"\n", func(w *workspace) {
			here.writeTo(w.t, filepath.Join(w.root, "src"))
		}, func(t *testing.T, err error) { as[*NotArchive](t, err) }},
		"a URL": {"version = 1\n[plugins.x]\nsource = \"https://example.com/x.tar.zst\"\n", func(w *workspace) {},
			func(t *testing.T, err error) { as[*RemoteSource](t, err) }},
		"revoked": {"version = 1\n[plugins.x]\nsource = \"dist/x.tar.zst\"\n", func(w *workspace) {
			w.built(here, "x.tar.zst")
			_, err := w.Revoke(w.ctx, Denial{PluginID: "x", Reason: "r"})
			must(w.t, err)
		}, func(t *testing.T, err error) { as[*Revoked](t, err) }},
		"unknown platform": {strings.ReplaceAll(toml, "linux/arm64", "linux/sparc"), func(w *workspace) {},
			func(t *testing.T, err error) {
				var f lockfile.Faults
				if !errors.As(err, &f) {
					t.Error(err)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, c.config)
			c.make(w)
			_, err := w.relock(LockWrite)
			c.check(t, err)
			if w.lock() != nil {
				t.Error("a lock was written")
			}
		})
	}
}

// What is locked is refused once it is revoked, although its archive is unchanged
// or away.
func TestRelockOfRevoked(t *testing.T) {
	w := newWorkspace(t, "version = 1\n[plugins.x]\nsource = \"dist/x.tar.zst\"\n")
	path := w.built(sample{id: "x", version: "1.0.0"}, "x.tar.zst")
	w.install(path)
	w.trust("x")
	_, err := w.relock(LockWrite)
	must(t, err)
	sum, err := hashFile(path)
	must(t, err)
	_, err = w.Revoke(w.ctx, Denial{Digest: sum, Reason: "r"})
	must(t, err)
	for range 2 {
		for _, mode := range []LockMode{LockCheck, LockWrite} {
			_, err := w.relock(mode)
			as[*Revoked](t, err)
		}
		os.Remove(path)
	}
}

// Who signed the archive that would be locked counts, whoever else is known of it.
func TestRelockOfRevokedSigner(t *testing.T) {
	w := newWorkspace(t, "version = 1\n[plugins.x]\nsource = \"dist/x.tar.zst\"\n")
	f := newFleet(t)
	w.site = f.site
	f.deny(revlist.Entry{Kind: revlist.Signer, Signer: keyOfTest("compromised"), Reason: revlist.Compromised})
	f.follow()
	path := w.built(sample{id: "x", version: "1.0.0"}, "x.tar.zst")
	sum, err := hashFile(path)
	must(t, err)
	w.install(path)
	w.trust("x")
	beside(t, path, "", "compromised "+string(sum))
	_, err = w.relock(LockWrite)
	as[*Revoked](t, err)
	beside(t, path, "", "honest "+string(sum))
	_, err = w.relock(LockWrite)
	must(t, err)
}

// A script is locked for every platform at once.
func TestRelockOfScript(t *testing.T) {
	w := newWorkspace(t, strings.ReplaceAll(toml, "-{os}-{arch}", ""))
	w.install(w.built(sample{id: "x", version: "1.0.0"}, "x-1.0.0.tar.zst"))
	w.trust("x")
	for range 2 {
		_, err := w.relock(LockWrite)
		must(t, err)
		if e := w.entry("x"); len(e.Platforms) != 1 || e.Platforms[lockfile.Any].Archive == "" {
			t.Errorf("%+v", e)
		}
	}
	out, err := w.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	if err != nil || !out.Unchanged {
		t.Errorf("%+v, %v", out, err)
	}
}

// A script whose source is another file for each platform is locked like a program:
// by platform, each from its own archive.
func TestRelockOfScriptPerPlatform(t *testing.T) {
	config := strings.ReplaceAll(toml, "platforms = [\"linux/amd64\", \"linux/arm64\"]\n", "")
	w := newWorkspace(t, config)
	_, _, otherName := programs()
	other := strings.ReplaceAll(otherName, "-", "/")
	here := sample{id: "x", version: "1.0.0"}
	there := sample{id: "x", version: "1.0.0", files: map[string]string{"there": "t"}}
	hereArchive := w.built(here, "x-1.0.0-"+hostName()+".tar.zst")
	thereArchive := filepath.Join(w.root, "dist", "x-1.0.0-"+otherName+".tar.zst")
	w.install(hereArchive)
	w.trust("x")
	w.enable("x", manifest.ScopeMetadataRead)
	agreed := func(keys ...string) {
		t.Helper()
		if _, err := w.relock(LockCheck); err != nil {
			t.Error(err)
		}
		e := w.entry("x")
		if len(e.Platforms) != len(keys) {
			t.Errorf("%+v", e.Platforms)
		}
		for _, key := range keys {
			want := here
			if key == other {
				want = there
			}
			sum, err := hashFile(filepath.Join(w.root, "dist", "x-1.0.0-"+strings.ReplaceAll(key, "/", "-")+".tar.zst"))
			must(t, err)
			if p := e.Platforms[key]; p.Archive != sum || p.Package != want.digest(t) {
				t.Errorf("%s: %+v", key, p)
			}
		}
	}
	_, err := w.relock(LockWrite)
	must(t, err)
	agreed(HostPlatform())

	// A platform whose file is missing, then the same one with it.
	for _, mode := range []LockMode{LockCheck, LockWrite} {
		_, err = w.relock(mode, other)
		if n := as[*NotFound](t, err); n.Name != thereArchive {
			t.Errorf("%+v", n)
		}
	}
	agreed(HostPlatform())
	w.built(there, filepath.Base(thereArchive))
	r, err := w.relock(LockWrite, other)
	must(t, err)
	if !r.Written || !slices.Equal(r.Unreviewed, []string{"x " + other}) {
		t.Errorf("%+v", r)
	}
	agreed(HostPlatform(), other)

	// A pin keeps the other platform, and so does a lock that names the first one.
	_, err = w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)
	agreed(HostPlatform(), other)
	if r, err := w.relock(LockWrite, HostPlatform()); err != nil || r.Written {
		t.Errorf("%+v, %v", r, err)
	}

	// What switchyard.toml declares is locked at once.
	must(t, os.Remove(w.project().LockPath()))
	write(t, w.project().ConfigPath(), toml, 0o644)
	_, err = w.relock(LockWrite)
	must(t, err)
	agreed(HostPlatform(), other)

	// A lock in which one of the archives stands for all is out of date.
	for _, config := range []string{toml, config} {
		write(t, w.project().ConfigPath(), config, 0o644)
		f := w.lock().File
		e, _ := f.Plugin("x")
		e.Platforms = map[string]lockfile.Platform{lockfile.Any: e.Platforms[HostPlatform()]}
		must(t, lockfile.Write(w.project().LockPath(), f.With(e)))
		_, err = w.relock(LockCheck)
		as[*Stale](t, err)
		_, err = w.relock(LockWrite)
		must(t, err)
		if config == toml {
			agreed(HostPlatform(), other)
		} else {
			agreed(HostPlatform())
		}
	}

	// So it is with a pin from a directory, which has no source of its own.
	must(t, os.Remove(w.project().ConfigPath()))
	z := newWorkspace(t, "")
	z.install(here.dir(t))
	z.trust("x")
	f := w.lock().File
	must(t, lockfile.Write(filepath.Join(z.root, lockfile.FileName), f))
	_, err = z.Pin(z.ctx, z.project(), []Ref{{ID: "x"}})
	must(t, err)
	if p := z.entry("x").Platforms; len(p) != 1 || p[HostPlatform()].Package != here.digest(t) {
		t.Errorf("%+v", p)
	}
}

func TestPin(t *testing.T) {
	w := newWorkspace(t, "")
	here, _, _ := programs()
	path := w.built(here, "x.tar.zst")
	w.install(path)
	_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	if n := as[*NeedsDecision](t, err); n.Status != StatusUntrusted {
		t.Errorf("%+v", n)
	}
	w.trust("x")
	w.enable("x", manifest.ScopeMetadataRead, manifest.ScopeFilesRead)
	entries, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)
	e := w.entry("x")
	if len(entries) != 1 || e.Source != "dist/x.tar.zst" || !slices.Equal(e.Grants, []string{"project.files.read", "project.metadata.read"}) {
		t.Errorf("%+v", e)
	}
	sum, err := hashFile(path)
	must(t, err)
	c := here.contents(t)
	want := lockfile.Platform{Archive: sum, Package: c.Package, Manifest: c.ManifestDigest, Fingerprint: c.Fingerprint}
	if got := e.Platforms[HostPlatform()]; got.Archive != want.Archive || got.Package != want.Package || got.Manifest != want.Manifest || got.Fingerprint != want.Fingerprint {
		t.Errorf("%+v, want %+v", got, want)
	}

	// What was installed from a directory is packed into the store.
	dir := sample{id: "y", version: "1.0.0", files: map[string]string{"a": "a"}}
	w.install(dir.dir(t))
	w.trust("y")
	_, err = w.Pin(w.ctx, w.project(), []Ref{{ID: "y"}})
	must(t, err)
	y := w.entry("y")
	if y.Source != "" || !exists(w.archivePath(y.Platforms[lockfile.Any].Archive)) {
		t.Errorf("%+v", y)
	}
	w.sound()

	must(t, w.Unpin(w.project(), []string{"x"}))
	if _, ok := w.lock().File.Plugin("x"); ok {
		t.Error("x is still locked")
	}
	if n := as[*NotFound](t, w.Unpin(w.project(), []string{"y", "x"})); n.Name != "x" {
		t.Errorf("%+v", n)
	}
	if _, ok := w.lock().File.Plugin("y"); !ok {
		t.Error("y was unpinned although x could not be")
	}

	// An altered or revoked package cannot be pinned.
	damage(t, w.pluginPath("y"))
	_, err = w.Pin(w.ctx, w.project(), []Ref{{ID: "y"}})
	if n := as[*NeedsDecision](t, err); n.Status != StatusChanged {
		t.Errorf("%+v", n)
	}
	_, err = w.Revoke(w.ctx, Denial{PluginID: "x", Reason: "r"})
	must(t, err)
	_, err = w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	as[*Revoked](t, err)
}

// Pins of several processes at once lose nothing.
func TestPinsAtOnce(t *testing.T) {
	w := newWorkspace(t, "")
	var ids []string
	for i := range 8 {
		id := fmt.Sprintf("p%d", i)
		ids = append(ids, id)
		w.install(w.built(sample{id: id, version: "1.0.0"}, id+".tar.zst"))
		w.trust(id)
	}
	p := w.project()
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			if _, err := w.Pin(w.ctx, p, []Ref{{ID: id}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		w.entry(id)
	}
}

// switchyard.toml rules: what is locked and not named by it is drift, which lock
// removes and reports; naming it takes the drift away as well. Without a
// switchyard.toml the lock's own entries are what is wanted.
func TestLockedButNotDeclared(t *testing.T) {
	w := newWorkspace(t, "")
	for _, id := range []string{"x", "y"} {
		w.install(w.built(sample{id: id, version: "1.0.0"}, id+".tar.zst"))
		w.trust(id)
		_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: id}})
		must(t, err)
	}
	config := w.project().ConfigPath()
	declare := func(ids ...string) {
		text := "version = 1\n"
		for _, id := range ids {
			text += fmt.Sprintf("[plugins.%s]\nsource = \"dist/%s.tar.zst\"\n", id, id)
		}
		write(t, config, text, 0o644)
	}
	drift := func() []string {
		t.Helper()
		d, err := CheckProject(w.project(), w.lock())
		must(t, err)
		if d == nil {
			return nil
		}
		var list []string
		for _, i := range d.Items {
			list = append(list, i.ID+": "+i.What)
		}
		return list
	}
	if r, err := w.relock(LockWrite); err != nil || r.Written || drift() != nil {
		t.Errorf("%+v, %v, %q", r, err, drift())
	}
	declare("x", "y")
	if r, err := w.relock(LockWrite); err != nil || r.Written || drift() != nil {
		t.Errorf("%+v, %v, %q", r, err, drift())
	}
	declare("x")
	if got := drift(); !slices.Equal(got, []string{"y: " + DriftNotWanted}) {
		t.Errorf("%q", got)
	}
	gone := []lockfile.Change{{Kind: lockfile.Removed, ID: "y", Was: "1.0.0"}}
	_, err := w.relock(LockCheck)
	if s := as[*Stale](t, err); !slices.Equal(s.Changes, gone) {
		t.Errorf("%+v", s.Changes)
	}
	w.entry("y")
	r, err := w.relock(LockWrite)
	must(t, err)
	if !r.Written || !slices.Equal(r.Changes, gone) || drift() != nil {
		t.Errorf("%+v, %q", r, drift())
	}
	if _, ok := w.lock().File.Plugin("y"); ok {
		t.Error("y is still locked")
	}
	// A pin of it is drift again.
	_, err = w.Pin(w.ctx, w.project(), []Ref{{ID: "y"}})
	must(t, err)
	if got := drift(); !slices.Equal(got, []string{"y: " + DriftNotWanted}) {
		t.Errorf("%q", got)
	}
}
