//go:build unix

package pkgmgr

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// TestMain plays a part in another process where a test asks for one.
func TestMain(m *testing.M) {
	if part := os.Getenv(partEnv); part != "" {
		if err := play(part, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A sample is a package to be made. The zero value of a member is a plain choice.
type sample struct {
	id, version string
	exe         string            // "" is bin/tool
	script      string            // the executable's content
	files       map[string]string // more files
	scopes      []manifest.Scope  // nil is every scope
	edit        func(m map[string]any)
}

func (p sample) manifest() []byte {
	scopes := p.scopes
	if scopes == nil {
		scopes = manifest.Scopes
	}
	var caps []manifest.Capability
	for _, c := range manifest.Capabilities {
		if slices.Contains(scopes, c.Requires()) {
			caps = append(caps, c)
		}
	}
	m := map[string]any{
		"schemaVersion": manifest.SchemaVersion, "id": p.id, "name": "Sample " + p.id, "version": p.version,
		"protocolVersion": manifest.Protocol, "executable": p.path(), "arguments": []string{},
		"capabilities": caps, "requestedScopes": scopes,
	}
	if p.edit != nil {
		p.edit(m)
	}
	raw, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return raw
}

func (p sample) path() string {
	if p.exe == "" {
		return "bin/tool"
	}
	return p.exe
}

// dir writes the package as a directory.
func (p sample) dir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), p.id)
	p.writeTo(t, dir)
	return dir
}

func (p sample) writeTo(t testing.TB, dir string) {
	t.Helper()
	script := p.script
	if script == "" {
		script = "#!/bin/sh\n# " + p.id + " " + p.version + "\nexit 0\n"
	}
	write(t, filepath.Join(dir, manifest.FileName), string(p.manifest()), 0o644)
	write(t, filepath.Join(dir, p.path()), script, 0o755)
	for name, content := range p.files {
		write(t, filepath.Join(dir, name), content, 0o644)
	}
}

// archive writes the package as an archive.
func (p sample) archive(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), p.id+"-"+strings.ReplaceAll(p.version, "/", "_")+".tar.zst")
	packInto(t, p.dir(t), out)
	return out
}

func packInto(t testing.TB, dir, out string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	format, err := archive.FormatOf(out)
	must(t, err)
	var b bytes.Buffer
	_, err = archive.Pack(context.Background(), root, &b, format, archive.Options{})
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(out), 0o755))
	must(t, os.WriteFile(out, b.Bytes(), 0o644))
}

// digest is the package digest.
func (p sample) digest(t testing.TB) digest.Digest {
	t.Helper()
	return p.contents(t).Package
}

func (p sample) contents(t testing.TB) *Contents {
	t.Helper()
	c, err := readTree(context.Background(), p.dir(t))
	must(t, err)
	return c
}

func write(t testing.TB, path, content string, mode fs.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), mode))
	must(t, os.Chmod(path, mode))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A bench is a data directory with what a test does to it.
type site struct {
	*Home
	t   testing.TB
	ctx context.Context
}

// newSite opens a new data directory. Its clock is an hour ahead, so that files
// written a moment ago count as settled.
func newSite(t testing.TB) *site {
	t.Helper()
	return siteAt(t, filepath.Join(scratch(t), "data"))
}

func siteAt(t testing.TB, path string) *site {
	t.Helper()
	h, err := Open(path, Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	must(t, err)
	return &site{Home: h, t: t, ctx: context.Background()}
}

// scratch is t.TempDir for trees of read-only directories, in memory where that is
// possible: these tests make thousands of calls of fsync.
func scratch(t testing.TB) string {
	t.Helper()
	parent := "/dev/shm"
	if probe, err := os.MkdirTemp(parent, "probe-"); err != nil {
		parent = ""
	} else {
		os.Remove(probe)
	}
	dir, err := os.MkdirTemp(parent, "pkgmgr-test-")
	must(t, err)
	t.Cleanup(func() { removeTree(dir) })
	return dir
}

func (s *site) install(source string) *Installed {
	s.t.Helper()
	out, err := s.Install(s.ctx, source, InstallOptions{})
	must(s.t, err)
	return out
}

// trust reviews and trusts what stands there.
func (s *site) trust(name string) *Trusted {
	s.t.Helper()
	ref, err := ParseRef(name)
	must(s.t, err)
	r, err := s.Review(s.ctx, ref, nil)
	must(s.t, err)
	out, err := s.Trust(s.ctx, ref, nil, r.Package)
	must(s.t, err)
	return out
}

// enable grants scopes as a good exchange would let it.
func (s *site) enable(name string, scopes ...manifest.Scope) *Enabled {
	s.t.Helper()
	ref, err := ParseRef(name)
	must(s.t, err)
	d, err := s.ConsiderEnable(s.ctx, ref, nil, scopes)
	must(s.t, err)
	defer d.Call.End()
	a, err := d.approve(s.ctx)
	must(s.t, err)
	defer a.Close()
	out, err := s.RecordEnable(s.ctx, a, state.Health{Package: a.Package, Status: state.HealthHealthy, At: s.now()})
	must(s.t, err)
	return out
}

// healthy is what a good exchange records.
func healthy(a *Approval) state.Health {
	return state.Health{Package: a.Package, Status: state.HealthHealthy, At: a.decision.home.now()}
}

// approve makes every check in the order in which the host does.
func (d *Decision) approve(ctx context.Context) (*Approval, error) {
	for _, check := range []func() error{d.NotRevoked, d.Trusted, d.Granted, d.ProjectTrusted} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return d.Rehash(ctx)
}

// run decides about a call and returns what it would run.
func (s *site) run(req CallRequest) (digest.Digest, error) {
	d, err := s.Consider(s.ctx, req)
	if err != nil {
		return "", err
	}
	defer d.Call.End()
	a, err := d.approve(s.ctx)
	if err != nil {
		return "", err
	}
	defer a.Close()
	return a.Package, nil
}

func (s *site) health(name string) (digest.Digest, error) {
	ref, err := ParseRef(name)
	must(s.t, err)
	return s.run(CallRequest{Ref: ref, Method: MethodHealth})
}

func (s *site) list(all bool) []Info {
	s.t.Helper()
	list, err := s.List(s.ctx, nil, all)
	must(s.t, err)
	return list
}

// status returns what a listing says about the default version of an id, or "".
func (s *site) status(id string) Status {
	s.t.Helper()
	for _, i := range s.list(false) {
		if i.ID == id && i.Default {
			return i.Status
		}
	}
	return ""
}

// lines is a listing in short: "id version status".
func lines(list []Info) []string {
	out := []string{}
	for _, i := range list {
		mark := ""
		if i.Default {
			mark = "*"
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s%s %s %s", i.ID, mark, i.Version, i.Status)))
	}
	return out
}

func wantLines(t testing.TB, list []Info, want ...string) {
	t.Helper()
	if got := lines(list); !slices.Equal(got, want) {
		t.Errorf("listing:\n got %q\nwant %q", got, want)
	}
}

// sound checks what must hold in every data directory at rest: nothing in staging,
// every recorded tree of the store has the digest of its name and is read-only,
// every default directory mirrors its recorded package.
func (s *site) sound() {
	s.t.Helper()
	if names, _ := readNames(s.join(stagingDir)); len(names) > 0 {
		s.t.Errorf("staging is not empty: %q", names)
	}
	must(s.t, s.state.View(s.ctx, func(tx *state.Tx) error {
		installs, err := tx.Installs()
		for _, in := range installs {
			tree := s.storePath(in.Package)
			if exists(s.quarantinePath(in.Package)) {
				tree = s.quarantinePath(in.Package)
			}
			if found, err := hashPath(s.ctx, tree); err != nil || found != in.Package {
				s.t.Errorf("%s: %s, %v", tree, found, err)
				continue
			}
			sealed(s.t, tree)
		}
		return err
	}))
	archives, err := readNames(s.join(archivesDir))
	must(s.t, err)
	for _, name := range archives {
		if found, err := hashFile(s.join(archivesDir, name)); err != nil || found.Hex() != name {
			s.t.Errorf("archive %s: %s, %v", name, found, err)
		}
	}
	for _, i := range s.list(true) {
		switch i.Status {
		case StatusBroken:
			s.t.Errorf("%s %s is broken: %v", i.ID, i.Version, i.Err)
		case StatusChanged:
			if i.Recorded == i.Package {
				break // it was changed once, and is not reviewed again
			}
			s.t.Errorf("%s %s is changed: recorded %s, found %s", i.ID, i.Version, i.Recorded, i.Package)
		}
		if i.Dir != "" && i.Recorded != "" && !sameInodes(s.storePath(i.Recorded), i.Path) {
			s.t.Errorf("plugins/%s does not mirror the store", i.Dir)
		}
	}
}

// sealed checks that nothing of an installed tree can be written.
func sealed(t testing.TB, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	must(t, err)
}

// as returns err as a *T, or fails the test.
func as[T error](t testing.TB, err error) T {
	t.Helper()
	var want T
	if !errorsAs(err, &want) {
		t.Fatalf("got error %v (%T), want a %T", err, err, want)
	}
	return want
}
