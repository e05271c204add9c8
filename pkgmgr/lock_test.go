//go:build unix

package pkgmgr

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// elf is a program for linux on an architecture, as far as its head goes.
func elf(machine byte) string {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01\x00")
	b[18] = machine
	return string(b)
}

const (
	amd64 = 62
	arm64 = 183
)

// hostMachine is this machine's, otherMachine another one's, with its platform.
func machines() (host, other byte, otherPlatform string) {
	if strings.HasSuffix(HostPlatform(), "/arm64") {
		return arm64, amd64, "linux/amd64"
	}
	return amd64, arm64, "linux/arm64"
}

// A workspace is a site with a project.
type workspace struct {
	*site
	root string
}

func newWorkspace(t *testing.T, config string) *workspace {
	t.Helper()
	if !strings.HasPrefix(HostPlatform(), "linux/") {
		t.Skip("the sample programs are for linux")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	if config != "" {
		write(t, filepath.Join(root, project.ConfigName), config, 0o644)
	}
	return &workspace{newSite(t), root}
}

func (w *workspace) project() *project.Project {
	w.t.Helper()
	p, err := project.Find(w.root)
	if errors.Is(err, project.ErrNone) {
		p, err = project.New(w.root)
	}
	must(w.t, err)
	return p
}

func (w *workspace) lock() *Lock {
	w.t.Helper()
	l, err := ReadLock(w.root)
	must(w.t, err)
	return l
}

func (w *workspace) relock(mode LockMode, platforms ...string) (*LockReport, error) {
	return w.Relock(w.ctx, w.project(), platforms, mode)
}

// built puts a build of the sample into dist/, and returns its path.
func (w *workspace) built(p sample, name string) string {
	w.t.Helper()
	out := filepath.Join(w.root, "dist", name)
	packInto(w.t, p.dir(w.t), out)
	return out
}

func (w *workspace) entry(id string) lockfile.Plugin {
	w.t.Helper()
	e, ok := w.lock().File.Plugin(id)
	if !ok {
		w.t.Fatalf("%s is not locked", id)
	}
	return e
}

const toml = `version = 1
platforms = ["linux/amd64", "linux/arm64"]
[plugins.x]
source = "./dist/x-{version}-{os}-{arch}.tar.zst"
version = "1.0.0"
scopes = ["project.metadata.read"]
`

func programs() (here, there sample, thereName string) {
	host, other, otherPlatform := machines()
	here = sample{id: "x", version: "1.0.0", script: elf(host)}
	there = sample{id: "x", version: "1.0.0", script: elf(other)}
	return here, there, strings.ReplaceAll(otherPlatform, "/", "-")
}

func hostName() string { return strings.ReplaceAll(HostPlatform(), "/", "-") }

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

// ready locks x for this machine and returns another data directory beside it.
func ready(t *testing.T) (*workspace, *workspace, sample) {
	w := newWorkspace(t, "")
	here, _, _ := programs()
	w.install(w.built(here, "x.tar.zst"))
	w.trust("x")
	w.enable("x", manifest.ScopeMetadataRead, manifest.ScopeOperate)
	_, err := w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)
	return w, &workspace{newSite(t), w.root}, here
}

// approveByLock is what `ci --trust-lock` does with one entry.
func (w *workspace) approveByLock(id string, given digest.Digest) error {
	lock := w.lock()
	if err := w.MayTrustLock(w.ctx, lock, given); err != nil {
		return err
	}
	d, err := w.ConsiderLock(w.ctx, lock, w.entry(id))
	if err != nil {
		return err
	}
	defer d.Call.End()
	a, err := d.approve(w.ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	_, err = w.RecordLockApproval(w.ctx, a, lock, state.Health{Package: a.Package, Status: state.HealthHealthy, At: w.now()})
	return err
}

func (w *workspace) runLocked(m Method) (grants []manifest.Scope, err error) {
	req := CallRequest{Ref: Ref{ID: "x"}, Lock: w.lock(), Method: m}
	if m != MethodHealth {
		req.Project = w.root
	}
	d, err := w.Consider(w.ctx, req)
	if err != nil {
		return nil, err
	}
	defer d.Call.End()
	a, err := d.approve(w.ctx)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Grants, nil
}

func TestInstallLocked(t *testing.T) {
	w, fresh, here := ready(t)
	// In an empty data directory, from the source.
	out, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	if out.Unchanged || out.Package != here.digest(t) || !out.Default {
		t.Errorf("%+v", out)
	}
	fresh.sound()
	if out, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x")); err != nil || !out.Unchanged {
		t.Errorf("%+v, %v", out, err)
	}
	// Without the source, from the store's archive; also where the tree is damaged.
	must(t, os.Rename(filepath.Join(w.root, "dist"), filepath.Join(w.root, "away")))
	for _, alter := range []func(){
		func() { damage(t, fresh.storePath(here.digest(t))) },
		func() { replaceInSealed(t, fresh.pluginPath("x")+"/bin/tool", "x") },
		func() {
			_, err := fresh.Uninstall(w.ctx, Ref{ID: "x"})
			must(t, err)
		},
	} {
		alter()
		out, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
		if err != nil || out.Unchanged {
			t.Errorf("%+v, %v", out, err)
		}
		fresh.sound()
	}
	// A damaged archive in the store is no way in, and not the end where there is
	// a source.
	_, err = fresh.Uninstall(w.ctx, Ref{ID: "x"})
	must(t, err)
	must(t, os.WriteFile(fresh.archivePath(w.entry("x").Platforms[HostPlatform()].Archive), []byte("junk"), 0o600))
	_, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	if i := as[*Integrity](t, err); i.What != "archive digest" {
		t.Errorf("%+v", i)
	}
	must(t, os.Rename(filepath.Join(w.root, "away"), filepath.Join(w.root, "dist")))
	_, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	fresh.sound()

	// Another project's default version stays.
	two := sample{id: "x", version: "2.0.0"}
	fresh.install(two.dir(t))
	_, err = fresh.Uninstall(w.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	out, err = fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	if err != nil || out.Default || out.Unchanged {
		t.Errorf("%+v, %v", out, err)
	}
	list, err := fresh.List(w.ctx, w.lock(), false)
	must(t, err)
	wantLines(t, list, "x* 2.0.0 untrusted", "x 1.0.0 untrusted")
	if !list[1].Locked || list[0].Locked {
		t.Errorf("%+v", list)
	}
}

func TestInstallLockedRefuses(t *testing.T) {
	w, fresh, _ := ready(t)
	wrong := digest.Of([]byte("wrong"))
	for name, c := range map[string]struct {
		edit  func(e *lockfile.Plugin, p *lockfile.Platform)
		check func(t *testing.T, err error)
	}{
		"archive":     {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Archive = wrong }, integrityOf("archive digest")},
		"package":     {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Package = wrong }, integrityOf("package digest")},
		"manifest":    {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Manifest = wrong }, integrityOf("manifest digest")},
		"fingerprint": {func(e *lockfile.Plugin, p *lockfile.Platform) { p.Fingerprint = wrong }, integrityOf("fingerprint")},
		"version":     {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Version = "1.0.1" }, func(t *testing.T, err error) { as[*WrongPackage](t, err) }},
		"source gone": {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Source = "dist/none.tar.zst" }, func(t *testing.T, err error) { as[*NotFound](t, err) }},
		"no source":   {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Source = "" }, func(t *testing.T, err error) { as[*NoSource](t, err) }},
		"remote":      {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Source = "https://example.com/x.tar.zst" }, func(t *testing.T, err error) { as[*RemoteSource](t, err) }},
		"grants":      {func(e *lockfile.Plugin, p *lockfile.Platform) { e.Grants = append(e.Grants, "no.such") }, driftOf(DriftGrants)},
		"platform": {func(e *lockfile.Plugin, p *lockfile.Platform) {
			e.Platforms = map[string]lockfile.Platform{"windows/386": *p}
		}, func(t *testing.T, err error) {
			if d := as[*Drift](t, err); d.What != DriftPlatform {
				t.Errorf("%+v", d)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := w.entry("x")
			p := e.Platforms[HostPlatform()]
			e.Platforms = map[string]lockfile.Platform{}
			c.edit(&e, &p)
			if len(e.Platforms) == 0 {
				e.Platforms[HostPlatform()] = p
			}
			_, err := fresh.InstallLocked(w.ctx, w.lock(), e)
			c.check(t, err)
			wantLines(t, fresh.list(true))
			if name == "package" || name == "source gone" || name == "no source" || name == "remote" {
				return
			}
			// Also where it is installed already.
			if _, err := w.InstallLocked(w.ctx, w.lock(), e); err == nil {
				t.Error("an installed package was taken for it")
			}
		})
	}
}

// A package that came from a directory, or from another packing, is the locked one
// only once the locked archive was read.
func TestInstallLockedReadsTheArchive(t *testing.T) {
	w, _, here := ready(t)
	for name, source := range map[string]string{"directory": here.dir(t), "another packing": w.built(here, "other.zip")} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.install(source)
			dist := filepath.Join(w.root, "dist")
			must(t, os.Rename(dist, dist+".away"))
			_, err := s.InstallLocked(w.ctx, w.lock(), w.entry("x"))
			driftOf(DriftArchive)(t, err)
			must(t, os.Rename(dist+".away", dist))
			locked := w.entry("x").Platforms[HostPlatform()].Archive
			wrong := w.entry("x")
			p := wrong.Platforms[HostPlatform()]
			p.Archive = digest.Of([]byte("wrong"))
			wrong.Platforms = map[string]lockfile.Platform{HostPlatform(): p}
			_, err = s.InstallLocked(w.ctx, w.lock(), wrong)
			integrityOf("archive digest")(t, err)
			if out, err := s.InstallLocked(w.ctx, w.lock(), w.entry("x")); err != nil || !out.Unchanged || !exists(s.archivePath(locked)) {
				t.Errorf("%+v, %v", out, err)
			}
			_, err = s.run(CallRequest{Ref: Ref{ID: "x"}, Lock: w.lock(), Method: MethodHealth})
			as[*NeedsDecision](t, err)
			s.sound()
		})
	}
}

// Every digest of the lock's entry counts at every call, not only the one by which
// the package is found.
func TestRunComparesTheWholeEntry(t *testing.T) {
	w, _, _ := ready(t)
	w.enable("x", manifest.Scopes...)
	if _, err := w.runLocked(MethodHealth); err != nil {
		t.Fatal(err)
	}
	good := w.entry("x").Platforms[HostPlatform()]
	wrong := digest.Of([]byte("wrong"))
	for what, edit := range map[string]func(p *lockfile.Platform){
		DriftArchive:     func(p *lockfile.Platform) { p.Archive = wrong },
		DriftManifest:    func(p *lockfile.Platform) { p.Manifest = wrong },
		DriftFingerprint: func(p *lockfile.Platform) { p.Fingerprint = wrong },
	} {
		p := good
		edit(&p)
		_, err := lockfile.Edit(w.project().LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
			return f.WithPlatform("x", HostPlatform(), p)
		})
		must(t, err)
		_, err = w.runLocked(MethodHealth)
		driftOf(what)(t, err)
		if _, err := w.Disable(w.ctx, Ref{ID: "x"}, w.lock()); err != nil {
			t.Errorf("%s: a lock stands in the way of disable: %v", what, err)
		}
	}
}

// What the lock alone approves is no trust: nothing is started to enable it.
func TestEnableOfWhatOnlyALockApproves(t *testing.T) {
	w, s, _ := ready(t)
	_, err := s.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	must(t, s.approveByLock("x", w.lock().Digest))
	if _, err := s.runLocked(MethodHealth); err != nil {
		t.Fatal(err)
	}
	d, err := s.ConsiderEnable(w.ctx, Ref{ID: "x"}, w.lock(), nil)
	must(t, err)
	defer d.Call.End()
	a, err := d.approve(w.ctx)
	if n := as[*NeedsDecision](t, err); n.Status != StatusUntrusted || !strings.Contains(n.Detail, "approved by the lock only") || a != nil {
		t.Errorf("%+v", n)
	}
	// With a person's trust it goes.
	s.trust("x")
	s.enable("x")
}

func driftOf(what string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		t.Helper()
		if d := as[*Drift](t, err); d.What != what {
			t.Errorf("%+v", d)
		}
	}
}

func integrityOf(what string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		t.Helper()
		if i := as[*Integrity](t, err); i.What != what {
			t.Errorf("%+v", i)
		}
	}
}

// Under a lock only what it names runs, in its version, with at most its grants.
func TestRunUnderALock(t *testing.T) {
	w, _, here := ready(t)
	_, _, err := w.TrustProject(w.ctx, w.root)
	must(t, err)
	if grants, err := w.runLocked(MethodOperate); err != nil || len(grants) != 2 {
		t.Errorf("%v, %v", grants, err)
	}
	w.enable("x", manifest.Scopes...)
	if grants, err := w.runLocked(MethodHealth); err != nil || len(grants) != 2 {
		t.Errorf("the lock is no ceiling: %v, %v", grants, err)
	}
	w.enable("x", manifest.ScopeMetadataRead)
	if grants, err := w.runLocked(MethodHealth); err != nil || len(grants) != 1 {
		t.Errorf("the lock is no grant: %v, %v", grants, err)
	}
	_, err = w.runLocked(MethodOperate)
	if d := as[*Denied](t, err); d.ByLock != "" {
		t.Errorf("%+v", d)
	}

	// The lock lacks a scope.
	w.enable("x", manifest.Scopes...)
	_, err = lockfile.Edit(w.project().LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
		e, _ := f.Plugin("x")
		e.Grants = []string{"project.metadata.read"}
		return f.With(e), nil
	})
	must(t, err)
	_, err = w.runLocked(MethodOperate)
	if d := as[*Denied](t, err); d.ByLock != w.lock().Path || d.Scope != manifest.ScopeOperate {
		t.Errorf("%+v", d)
	}

	// Another version is the default: the locked one runs.
	two := sample{id: "x", version: "2.0.0"}
	w.install(two.dir(t))
	if _, err := w.runLocked(MethodInspect); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		ref  Ref
		what string
	}{{Ref{ID: "x", Version: "2.0.0"}, DriftVersion}, {Ref{ID: "x", Digest: two.digest(t)}, DriftVersion}, {Ref{ID: "y"}, DriftNotLocked}} {
		_, err := w.run(CallRequest{Ref: c.ref, Lock: w.lock(), Method: MethodHealth})
		if d := as[*Drift](t, err); d.What != c.what || d.Lock != w.lock().Path || d.ID != c.ref.ID {
			t.Errorf("%+v", d)
		}
	}
	// What the lock names is not here.
	_, err = w.Uninstall(w.ctx, Ref{ID: "x", Digest: here.digest(t)})
	must(t, err)
	_, err = w.runLocked(MethodHealth)
	if d := as[*Drift](t, err); d.What != DriftNotInstalled {
		t.Errorf("%+v", d)
	}
	// The lock names a package of another id.
	y := sample{id: "y", version: "1.0.0"}
	w.install(y.dir(t))
	w.trust("y")
	w.enable("y", manifest.Scopes...)
	_, err = lockfile.Edit(w.project().LockPath(), func(f *lockfile.File) (*lockfile.File, error) {
		return f.WithPlatform("x", HostPlatform(), lockfile.Platform{Archive: y.digest(t), Package: y.digest(t), Manifest: y.digest(t), Fingerprint: y.digest(t)})
	})
	must(t, err)
	_, err = w.runLocked(MethodHealth)
	if d := as[*Drift](t, err); d.What != DriftNotInstalled {
		t.Errorf("%+v", d)
	}
}

func TestTrustLock(t *testing.T) {
	w, fresh, here := ready(t)
	_, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)

	// Neither a trusted project nor the lock's digest: no.
	if d := as[*Denied](t, fresh.approveByLock("x", "")); d.Project != w.root {
		t.Errorf("%+v", d)
	}
	if i := as[*Integrity](t, fresh.approveByLock("x", digest.Of(nil))); i.What != "lockfile digest" {
		t.Errorf("%+v", i)
	}
	must(t, fresh.approveByLock("x", w.lock().Digest))
	if grants, err := fresh.runLocked(MethodHealth); err != nil || len(grants) != 2 {
		t.Errorf("%v, %v", grants, err)
	}
	list, err := fresh.List(w.ctx, w.lock(), false)
	must(t, err)
	if i := list[0]; i.Status != StatusEnabled || !i.ByLock || !i.Locked || len(i.Granted) != 2 {
		t.Errorf("%+v", i)
	}
	// For that project only.
	if _, err := fresh.health("x"); as[*NeedsDecision](t, err).Status != StatusUntrusted {
		t.Error(err)
	}
	// The project itself is another matter.
	_, err = fresh.runLocked(MethodInspect)
	as[*Denied](t, err)
	_, _, err = fresh.TrustProject(w.ctx, w.root)
	must(t, err)
	if _, err := fresh.runLocked(MethodInspect); err != nil {
		t.Error(err)
	}
	events, err := fresh.History(w.ctx, "x", 0)
	must(t, err)
	if i := slices.IndexFunc(events, func(e state.Event) bool { return e.Kind == EventLockApproval }); i < 0 || events[i].Project != w.root || events[i].Detail["lock"] != string(w.lock().Digest) {
		t.Errorf("%+v", events)
	}
	// It goes with the project's trust.
	must(t, fresh.UntrustProject(w.ctx, w.root))
	_, err = fresh.runLocked(MethodHealth)
	as[*NeedsDecision](t, err)
	_ = here
}

// An approval by a lock never overrides an untrust, a disable, a change or a
// revocation, made before or after it.
func TestTrustLockOverridesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(w *workspace, pkg digest.Digest)
		status Status
	}{
		"untrust": {func(w *workspace, _ digest.Digest) {
			_, err := w.Untrust(w.ctx, Ref{ID: "x"}, nil)
			must(w.t, err)
		}, StatusUntrusted},
		"disable": {func(w *workspace, _ digest.Digest) {
			_, err := w.Disable(w.ctx, Ref{ID: "x"}, nil)
			must(w.t, err)
		}, StatusUntrusted},
		"change": {func(w *workspace, pkg digest.Digest) {
			if w.status("x") == StatusUntrusted { // somebody must have decided for it
				w.trust("x")
			}
			damage(w.t, w.pluginPath("x"))
			w.list(false)
			_, err := w.InstallLocked(w.ctx, w.lock(), w.entry("x"))
			must(w.t, err)
		}, StatusChanged},
		"revoke": {func(w *workspace, pkg digest.Digest) {
			_, err := w.Revoke(w.ctx, Denial{Digest: pkg, Reason: "r"})
			must(w.t, err)
		}, StatusRevoked},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+" "+when, func(t *testing.T) {
				w, fresh, here := ready(t)
				fresh.t = t
				_, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
				must(t, err)
				if when == "after" {
					must(t, fresh.approveByLock("x", w.lock().Digest))
				}
				c.do(fresh, here.digest(t))
				for what, err := range map[string]error{
					"run":          func() error { _, err := fresh.runLocked(MethodHealth); return err }(),
					"approve":      fresh.approveByLock("x", w.lock().Digest),
					"run again":    func() error { _, err := fresh.runLocked(MethodHealth); return err }(),
					"install":      func() error { _, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x")); return err }(),
					"lock --check": nil,
				} {
					var needs *NeedsDecision
					switch {
					case name == "revoke" && what != "lock --check":
						as[*Revoked](t, err)
					case what == "install" || what == "lock --check":
						must(t, err)
					default:
						if !errors.As(err, &needs) {
							t.Errorf("%s: %v", what, err)
						}
					}
				}
				if name == "revoke" {
					_, err := fresh.Unrevoke(w.ctx, string(here.digest(t)))
					must(t, err)
					_, err = fresh.runLocked(MethodHealth)
					as[*NeedsDecision](t, err) // it came back untrusted, for the project too
					return
				}
				// The person decides again.
				fresh.trust("x")
				fresh.enable("x", manifest.ScopeMetadataRead)
				if _, err := fresh.runLocked(MethodHealth); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Every kind of drift between the project's files is named, each for itself.
func TestCheckProject(t *testing.T) {
	host, _, other := machines()
	_ = host
	p := lockfile.Platform{Archive: digest.Of(nil), Package: digest.Of(nil), Manifest: digest.Of(nil), Fingerprint: digest.Of(nil)}
	entry := lockfile.Plugin{ID: "x", Version: "1.2.0", Source: "dist/x.tar.zst", Grants: []string{"project.metadata.read"},
		Platforms: map[string]lockfile.Platform{HostPlatform(): p}}
	const base = "version = 1\n[plugins.x]\nsource = \"./dist/x.tar.zst\"\nversion = \"^1.0.0\"\nscopes = [\"project.metadata.read\"]\n"
	for name, c := range map[string]struct {
		config string
		edit   func(e *lockfile.Plugin)
		want   []string
	}{
		"nothing":     {config: base},
		"no config":   {},
		"not wanted":  {config: "version = 1\n", want: []string{DriftNotWanted}},
		"not locked":  {config: base + "[plugins.y]\nsource = \"y.tar.zst\"\n", want: []string{DriftUnlocked}},
		"range":       {config: strings.ReplaceAll(base, "^1.0.0", "^2.0.0"), want: []string{DriftRange}},
		"source":      {config: strings.ReplaceAll(base, "./dist", "out"), want: []string{DriftSource}},
		"scopes":      {config: strings.ReplaceAll(base, "metadata", "files"), want: []string{DriftScopes}},
		"no scopes":   {config: strings.ReplaceAll(base, `"project.metadata.read"`, ""), want: []string{DriftScopes}},
		"any scopes":  {config: strings.ReplaceAll(base, `scopes = ["project.metadata.read"]`, "")},
		"platforms":   {config: strings.Replace(base, "\n", "\nplatforms = [\""+HostPlatform()+"\", \""+other+"\"]\n", 1), want: []string{DriftPlatforms}},
		"no platform": {edit: func(e *lockfile.Plugin) { e.Platforms = map[string]lockfile.Platform{other: p} }, want: []string{DriftPlatform}},
		"any platform": {config: strings.Replace(base, "\n", "\nplatforms = [\""+HostPlatform()+"\", \""+other+"\"]\n", 1),
			edit: func(e *lockfile.Plugin) { e.Platforms = map[string]lockfile.Platform{lockfile.Any: p} }},
		"several": {config: "version = 1\n[plugins.x]\nsource = \"out/x.tar.zst\"\nversion = \"2.0.0\"\nscopes = []\n[plugins.y]\nsource = \"y.tar.zst\"\n",
			want: []string{DriftRange, DriftSource, DriftScopes, DriftUnlocked}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, c.config)
			e := entry
			if c.edit != nil {
				c.edit(&e)
			}
			must(t, lockfile.Write(filepath.Join(w.root, lockfile.FileName), (&lockfile.File{}).With(e)))
			drifts, err := CheckProject(w.project(), w.lock())
			must(t, err)
			var got []string
			if drifts != nil {
				for _, d := range drifts.Items {
					got = append(got, d.What)
					if d.ID == "" || d.Lock == "" || d.Wanted == "" && d.Found == "" && d.What != DriftScopes {
						t.Errorf("%+v", d)
					}
				}
				if drifts.Error() == "" {
					t.Error("no message")
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestGC(t *testing.T) {
	w, fresh, here := ready(t)
	_, err := fresh.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	must(t, err)
	two := sample{id: "x", version: "2.0.0"}
	fresh.install(two.archive(t))
	running := sample{id: "x", version: "3.0.0"}
	_, err = fresh.Install(w.ctx, running.archive(t), InstallOptions{Default: DefaultKeep})
	must(t, err)
	fresh.trust("x@3.0.0")
	fresh.enable("x@3.0.0")
	call, err := fresh.Consider(w.ctx, CallRequest{Ref: Ref{ID: "x", Version: "3.0.0"}, Method: MethodHealth})
	must(t, err)
	archived := func() int { names, _ := readNames(fresh.join(archivesDir)); return len(names) }

	// The lock of the directory that one stands in, and of a known project.
	removed, err := fresh.GC(w.ctx, GCOptions{Locks: []*Lock{w.lock(), nil}, DryRun: true})
	if err != nil || len(removed) != 0 {
		t.Errorf("%+v, %v", removed, err)
	}
	_, _, err = fresh.TrustProject(w.ctx, w.root)
	must(t, err)
	removed, err = fresh.GC(w.ctx, GCOptions{})
	if err != nil || len(removed) != 0 || archived() != 3 {
		t.Errorf("%+v, %v", removed, err)
	}
	call.Call.End()
	for _, dry := range []bool{true, false} {
		removed, err = fresh.GC(w.ctx, GCOptions{DryRun: dry})
		must(t, err)
		if len(removed) != 2 || removed[0].Package != running.digest(t) || removed[0].Version != "3.0.0" || removed[0].Bytes == 0 || removed[1].ID != "" {
			t.Errorf("%+v", removed)
		}
		if exists(removed[0].Path) != dry || exists(removed[1].Path) != dry {
			t.Errorf("dry %v: %+v", dry, removed)
		}
	}
	fresh.sound()

	// A lock that cannot be read keeps everything.
	must(t, os.WriteFile(w.project().LockPath(), []byte("<<<<<<< ours\n"), 0o644))
	_, err = fresh.GC(w.ctx, GCOptions{})
	if !errors.Is(err, lockfile.ErrConflict) {
		t.Error(err)
	}
	if !exists(fresh.storePath(here.digest(t))) {
		t.Error("a locked version was removed")
	}
	must(t, os.Remove(w.project().LockPath()))
	removed, err = fresh.GC(w.ctx, GCOptions{})
	if err != nil || len(removed) != 2 || removed[0].Package != here.digest(t) {
		t.Errorf("%+v, %v", removed, err)
	}
	fresh.sound()

	// Quarantine is left alone.
	_, err = fresh.Revoke(w.ctx, Denial{PluginID: "x", Reason: "r"})
	must(t, err)
	removed, err = fresh.GC(w.ctx, GCOptions{})
	if err != nil || len(removed) != 0 {
		t.Errorf("%+v, %v", removed, err)
	}
	_, err = fresh.Unrevoke(w.ctx, "x")
	must(t, err)
	fresh.sound()
}

func TestPack(t *testing.T) {
	w := newWorkspace(t, "")
	here, _, thereName := programs()
	for _, p := range []sample{here, {id: "x", version: "1.0.0"}} {
		dir := p.dir(t)
		t.Chdir(dir)
		want := "x-1.0.0-" + hostName() + ".tar.zst"
		if p.script == "" {
			want = "x-1.0.0.tar.zst"
		}
		var first digest.Digest
		for i := range 3 {
			t.Chdir(t.TempDir())
			r, err := w.Pack(w.ctx, dir, "", "")
			must(t, err)
			if i == 0 {
				first = r.Archive
			}
			if r.Path != want || r.Archive != first || r.Contents.Package != p.digest(t) {
				t.Errorf("%+v", r)
			}
			if sum, err := hashFile(r.Path); err != nil || sum != r.Archive {
				t.Errorf("%s, %v", sum, err)
			}
		}
		// In the directory itself it would be part of the next package.
		t.Chdir(dir)
		for _, out := range []string{"", "other.tar.gz", filepath.Join(dir, "bin", "other.zip")} {
			_, err := w.Pack(w.ctx, dir, out, "")
			as[*InsidePackage](t, err)
		}
		if name, inside, err := PackName("."); name != want || !inside || err != nil {
			t.Errorf("%q, %v, %v", name, inside, err)
		}
		must(t, os.WriteFile(".switchyardignore", []byte("*.tar.zst\nout/\n"), 0o644))
		must(t, os.Mkdir("out", 0o755))
		for _, out := range []string{"", "out/x.zip"} {
			r, err := w.Pack(w.ctx, ".", out, "")
			must(t, err)
			if r.Contents.Package != p.digest(t) {
				t.Errorf("%q: %+v", out, r.Contents.Files)
			}
		}
		if _, inside, err := PackName("."); inside || err != nil {
			t.Errorf("%v, %v", inside, err)
		}
	}
	dir := here.dir(t)
	for out, check := range map[string]func(err error){
		"x.rar":          func(err error) { mustNot(t, err) },
		"no/where.zip":   func(err error) { mustNot(t, err) },
		"x-1.0.0.tar.gz": func(err error) { must(t, err) },
	} {
		_, err := w.Pack(w.ctx, dir, filepath.Join(t.TempDir(), out), "")
		check(err)
	}
	_, err := w.Pack(w.ctx, dir, "", strings.ReplaceAll(thereName, "-", "/"))
	as[*WrongPlatform](t, err)
	_, err = w.Pack(w.ctx, filepath.Join(dir, "none"), "", "")
	as[*NotFound](t, err)
	_, err = w.Pack(w.ctx, here.archive(t), "", "")
	as[*Malformed](t, err)
	_, err = w.Pack(w.ctx, sample{id: "x", version: "a/b"}.dir(t), "", "")
	as[*Unnamable](t, err)
	bad := here.dir(t)
	must(t, os.Remove(filepath.Join(bad, "bin/tool")))
	_, err = w.Pack(w.ctx, bad, filepath.Join(t.TempDir(), "x.zip"), "")
	as[*Malformed](t, err)
	if names, _ := readNames(w.join(stagingDir)); len(names) > 0 {
		t.Errorf("staging holds %q", names)
	}
	err = filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".switchyard-") {
			t.Errorf("%s is left", p)
		}
		return err
	})
	must(t, err)
}

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
	}
}

func TestHeads(t *testing.T) {
	pe := make([]byte, 256)
	copy(pe, "MZ")
	pe[60] = 128
	copy(pe[128:], "PE\x00\x00\x64\x86")
	far := slices.Clone(pe)
	far[63] = 0x7f
	for text, want := range map[string]executableHead{
		elf(amd64):                             {Platform: "linux/amd64"},
		elf(arm64):                             {Platform: "linux/arm64"},
		elf(1):                                 {},
		"\x7fELF":                              {},
		"#!/usr/bin/env python3\nprint()":      {Platform: lockfile.Any, Interpreter: "/usr/bin/env python3"},
		"#!":                                   {Platform: lockfile.Any},
		"":                                     {},
		"MZ":                                   {},
		string(pe):                             {Platform: "windows/amd64"},
		string(far):                            {},
		"\xcf\xfa\xed\xfe\x0c\x00\x00\x01":     {Platform: "darwin/arm64"},
		"\xcf\xfa\xed\xfe\x07\x00\x00\x01rest": {Platform: "darwin/amd64"},
		"\xcf\xfa\xed\xfe\x00\x00\x00\x00":     {},
		"\xfe\xed\xfa\xcf\x01\x00\x00\x07":     {},
		strings.Repeat("a", 1024):              {},
	} {
		if got := parseHead([]byte(text)); got != want {
			t.Errorf("%q: %+v, want %+v", text[:min(len(text), 20)], got, want)
		}
	}
}
