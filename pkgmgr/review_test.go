//go:build unix

package pkgmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestReview(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{
		"LICENSE": "Apache", "docs/COPYING.txt": "c", "sbom.spdx.json": "{}", "lib/a": "a"}}
	dir := one.dir(t)
	must(t, os.Chmod(filepath.Join(dir, "lib/a"), 0o755))
	archived := filepath.Join(t.TempDir(), "x.tar.gz")
	packInto(t, dir, archived)
	sum, err := hashFile(archived)
	must(t, err)

	// Before it is installed: no status, nothing to compare with, nothing left.
	r, err := s.ReviewArchive(s.ctx, archived)
	must(t, err)
	if r.Status != "" || r.Archive != sum || r.Where != archived || r.Change != nil || r.Files != 6 || r.FingerprintSuffices || r.Platform != lockfile.Any {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(r.LicenceFiles, []string{"LICENSE", "docs/COPYING.txt"}) || r.SBOM != "sbom.spdx.json" || !slices.Equal(r.ScriptsAndPrograms, []string{"lib/a"}) {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(r.ExecutableKind, "/bin/sh") || r.Signature == "" || r.Manifest.ID != "x" {
		t.Errorf("%+v", r)
	}
	if list := s.list(true); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	inDir, err := s.ReviewArchive(s.ctx, dir)
	if err != nil || inDir.Package != r.Package || inDir.Archive != "" {
		t.Errorf("%+v, %v", inDir, err)
	}

	s.install(archived)
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	for _, look := range []func() (*Review, error){
		func() (*Review, error) { return s.Review(s.ctx, Ref{ID: "x"}, nil) },
		func() (*Review, error) { return s.ReviewArchive(s.ctx, archived) },
	} {
		r, err := look()
		must(t, err)
		if r.Status != StatusEnabled || len(r.Granted) != 1 || r.Archive != sum || r.Source != archived || r.InstalledAt.IsZero() || r.Change == nil || !r.Change.SameDigest {
			t.Errorf("%+v, %+v", r, r.Change)
		}
	}
	_, err = s.ReviewArchive(s.ctx, "/nonexistent")
	as[*NotFound](t, err)
}

// What a new version changes against the one that was trusted last.
func TestReviewShowsTheDifference(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "2.0.0", scopes: []manifest.Scope{manifest.ScopeMetadataRead, manifest.ScopeFilesRead},
		files: map[string]string{"same": "s", "lib/gone": "g", "lib/other": "o"}}
	two := sample{id: "x", version: "1.0.0", exe: "bin/new", scopes: []manifest.Scope{manifest.ScopeMetadataRead, manifest.ScopeOperate},
		files: map[string]string{"same": "s", "lib/other": "O", "lib/added": "a"},
		edit:  func(m map[string]any) { m["arguments"] = []string{"--all", "a b"}; m["name"] = "Other" }}
	s.install(one.archive(t))
	s.trust("x")
	want := &Change{From: one.digest(t), Version: "2.0.0", VersionLowered: true, ExecutableMoved: true,
		ScopesAdded: []manifest.Scope{manifest.ScopeOperate}, ScopesDropped: []manifest.Scope{manifest.ScopeFilesRead},
		Members: []MemberChange{
			{"name", "Sample x", "Other"}, {"version", "2.0.0", "1.0.0"}, {"executable", "bin/tool", "bin/new"},
			{"arguments", "", `--all "a b"`},
			{"capabilities", "project.inspect", "project.inspect project.operate"},
			{"requestedScopes", "project.metadata.read project.files.read", "project.metadata.read project.operate"},
		},
		Files: []FileChange{{"bin/new", "added"}, {"bin/tool", "removed"}, {"lib/added", "added"}, {"lib/gone", "removed"},
			{"lib/other", "changed"}, {"plugin.json", "changed"}},
	}
	compare := func(when string, look func() (*Review, error)) {
		t.Helper()
		r, err := look()
		must(t, err)
		if r.Change == nil {
			t.Fatalf("%s: no difference", when)
		}
		got := *r.Change
		if got.TrustedAt.IsZero() {
			t.Errorf("%s: %+v", when, got)
		}
		got.TrustedAt = want.TrustedAt
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", when, got, *want)
		}
	}
	path := two.archive(t)
	compare("archive", func() (*Review, error) { return s.ReviewArchive(s.ctx, path) })
	_, err := s.Install(s.ctx, path, InstallOptions{Default: DefaultReplace})
	must(t, err)
	compare("installed", func() (*Review, error) { return s.Review(s.ctx, Ref{ID: "x"}, nil) })

	// The trusted tree is damaged: its files are known from the archive.
	damage(t, s.storePath(one.digest(t)))
	compare("from the archive", func() (*Review, error) { return s.Review(s.ctx, Ref{ID: "x"}, nil) })
	must(t, os.WriteFile(s.archivePath(s.installed(one.digest(t)).Archive), []byte("x"), 0o600))
	want.Files, want.FilesUnknown, want.FilesWhy = nil, true, "its installed files were altered, and so was its archive in the store"
	compare("nothing left", func() (*Review, error) { return s.Review(s.ctx, Ref{ID: "x"}, nil) })
	_, err = s.GC(s.ctx, GCOptions{})
	must(t, err)
	want.FilesWhy = "it is no longer installed"
	want.Members, want.ScopesAdded, want.ScopesDropped, want.ExecutableMoved = nil, nil, nil, false
	compare("collected", func() (*Review, error) { return s.Review(s.ctx, Ref{ID: "x"}, nil) })
}

// installed returns the record of a package.
func (s *site) installed(pkg digest.Digest) (in state.Install) {
	s.t.Helper()
	must(s.t, s.state.View(s.ctx, func(tx *state.Tx) (err error) {
		in, err = tx.Install(pkg)
		return err
	}))
	return in
}

// Every refusal tells its facts in one line, without a capital letter or a full stop.
func TestErrorsTellTheirFacts(t *testing.T) {
	d, e := digest.Of([]byte("d")), digest.Of([]byte("e"))
	for _, c := range []struct {
		err  error
		says []string
	}{
		{&NotFound{Kind: "plugin", Name: "x"}, []string{"plugin", `"x"`}},
		{&Ambiguous{Ref: "x@1", Candidates: []digest.Digest{d, e}}, []string{"x@1", "2"}},
		{&Integrity{What: "archive digest", Expected: d, Found: e, Where: "/p"}, []string{"archive digest", string(d), string(e), "/p"}},
		{&Malformed{Where: "/p", File: "plugin.json", Err: errNotDirectory}, []string{"/p", "plugin.json", "not a directory"}},
		{&Claimed{ID: "x", Dirs: []string{"/a", "/b"}}, []string{`"x"`, "/a", "/b"}},
		{&NeedsDecision{ID: "x", Version: "1", Status: StatusChanged, Detail: "why"}, []string{"x 1", "changed", "why"}},
		{&NeedsDecision{ID: "x", Status: StatusTrusted}, []string{"x is trusted but not enabled"}},
		{&Downgrade{"x", "2", "1"}, []string{"x 2", "1 is older"}},
		{&Revoked{ID: "x", Version: "1", Denial: Denial{PluginID: "x", Range: "<2", Reason: "why"}}, []string{"x 1", "x@<2", "why"}},
		{&Denied{ID: "x", Scope: manifest.ScopeOperate}, []string{"x", "project.operate"}},
		{&Denied{ID: "x", Scope: manifest.ScopeOperate, ByLock: "/l"}, []string{"x", "project.operate", "/l"}},
		{&Denied{ID: "x", Project: "/p"}, []string{"/p"}},
		{&Denied{ID: "x", Detail: "why"}, []string{"why"}},
		{&NotRequested{ID: "x", Scope: "s"}, []string{"x", `"s"`}},
		{&NotOffered{ID: "x", Capability: manifest.CapabilityInspect}, []string{"x", "project.inspect"}},
		{&Busy{What: "the lock"}, []string{"the lock"}},
		{&Outcome{Operation: "o", Key: "k", State: "failed", Reason: "why"}, []string{"o", `"k"`, "failed", "why"}},
		{&BadInput{Action: "a", Err: errNotDirectory}, []string{"a", "not a directory"}},
		{&UnsafeDirectory{"/p", "is a file"}, []string{"/p is a file"}},
		{&ReadOnly{"/p"}, []string{"/p", "read-only"}},
		{&WrongPackage{"/p", "x", "1", "y", "2"}, []string{"/p", "x 1", "y 2"}},
		{&ForeignDirectory{"/p", "x"}, []string{"/p", `"x"`}},
		{&PartialFingerprint{"x", 3, d}, []string{"x", "2 of its 3"}},
		{&Superseded{"x"}, []string{"x"}},
		{&NoSource{"x", "1", d}, []string{"x 1", string(d)}},
		{&RemoteSource{"https://h/p"}, []string{"https://h/p"}},
		{&WrongPlatform{"/p", "linux/amd64", "linux/arm64"}, []string{"/p", "linux/amd64", "linux/arm64"}},
		{&Unnamable{"a/b"}, []string{`"a/b"`}},
		{&NotArchive{"/p"}, []string{"/p"}},
		{&Stale{Lock: "/l"}, []string{"/l"}},
		{&Drift{Lock: "/l", ID: "x", What: DriftVersion, Wanted: "1", Found: "2"}, []string{"/l", "x", DriftVersion, "1", "2"}},
		{&Drifts{"/l", []Drift{{ID: "x", What: DriftRange}}}, []string{"/l", "x", DriftRange}},
	} {
		msg := c.err.Error()
		for _, s := range c.says {
			if !strings.Contains(msg, s) {
				t.Errorf("%T: %q does not say %q", c.err, msg, s)
			}
		}
		if strings.ContainsAny(msg, "\n") || strings.HasSuffix(msg, ".") || strings.Contains(msg, "  ") || msg[0] >= 'A' && msg[0] <= 'Z' {
			t.Errorf("%T: %q", c.err, msg)
		}
	}
}

// switchyard.toml alone, with a lock, and with one that it does not accept any more.
// A version that a project asks for stands beside a higher default version, and is no
// downgrade; a higher one becomes the default.
func TestInstallProjectBesideTheDefault(t *testing.T) {
	config := "version = 1\n[plugins.x]\nsource = \"dist/x-{version}.tar.zst\"\nversion = \"%s\"\n"
	for _, c := range []struct{ asked, before, after string }{
		{"1.0.0", "1.1.0", "1.1.0"}, {"1.1.0", "1.0.0", "1.1.0"},
	} {
		w := newWorkspace(t, fmt.Sprintf(config, c.asked))
		w.built(sample{id: "x", version: c.asked}, "x-"+c.asked+".tar.zst")
		w.install(sample{id: "x", version: c.before}.archive(t))
		for i := range 2 {
			out, err := w.InstallProject(w.ctx, w.project(), nil, InstallOptions{})
			must(t, err)
			if len(out) != 1 || out[0].Version != c.asked || out[0].Unchanged != (i == 1) {
				t.Errorf("%+v", out[0])
			}
			for _, p := range w.list(true) {
				if p.Default != (p.Version == c.after) {
					t.Errorf("%s: default %t", p.Version, p.Default)
				}
			}
		}
		w.sound()
	}
}

func TestInstallProject(t *testing.T) {
	w := newWorkspace(t, "version = 1\n[plugins.x]\nsource = \"dist/x.tar.zst\"\nversion = \"^1.0.0\"\n[plugins.y]\nsource = \"src/y\"\n")
	one := sample{id: "x", version: "1.0.0"}
	w.built(one, "x.tar.zst")
	_, err := w.InstallProject(w.ctx, w.project(), nil, InstallOptions{})
	as[*NotFound](t, err) // y is not there
	sample{id: "y", version: "0.1.0"}.writeTo(t, filepath.Join(w.root, "src", "y"))
	out, err := w.InstallProject(w.ctx, w.project(), nil, InstallOptions{})
	must(t, err)
	if len(out) != 2 || !out[0].Unchanged || out[1].ID != "y" {
		t.Errorf("%+v", out)
	}
	w.trust("x")
	_, err = w.Pin(w.ctx, w.project(), []Ref{{ID: "x"}})
	must(t, err)

	// The lock's version, not the one that stands at the source by now.
	newer := sample{id: "x", version: "1.2.0"}
	w.built(newer, "x.tar.zst")
	fresh := &workspace{newSite(t), w.root}
	_, err = fresh.InstallProject(w.ctx, w.project(), w.lock(), InstallOptions{})
	integrityOf("archive digest")(t, err)
	w.built(one, "x.tar.zst")
	_, err = fresh.InstallProject(w.ctx, w.project(), w.lock(), InstallOptions{})
	must(t, err)
	wantLines(t, fresh.list(true), "x* 1.0.0 untrusted", "y* 0.1.0 untrusted")

	// switchyard.toml asks for another version: the lock does not stand in its way.
	write(t, w.project().ConfigPath(), "version = 1\n[plugins.x]\nsource = \"dist/x.tar.zst\"\nversion = \"^1.2.0\"\n", 0o644)
	_, err = fresh.InstallProject(w.ctx, w.project(), w.lock(), InstallOptions{})
	if e := as[*WrongPackage](t, err); e.WantVersion != "^1.2.0" || e.Version != "1.0.0" {
		t.Errorf("%+v", e)
	}
	w.built(newer, "x.tar.zst")
	out, err = fresh.InstallProject(w.ctx, w.project(), w.lock(), InstallOptions{})
	must(t, err)
	if len(out) != 1 || out[0].Version != "1.2.0" || !out[0].Default {
		t.Errorf("%+v", out)
	}
}

func TestMayRunAgain(t *testing.T) {
	input, other := digest.Of([]byte("a")), digest.Of([]byte("b"))
	op := state.Operation{InputDigest: input, ProjectRoot: "/p"}
	result := []byte(`{}`)
	for name, c := range map[string]struct {
		earlier state.Operation
		again   bool
		refused bool
	}{
		"running":                     {state.Operation{State: state.Running}, false, true},
		"succeeded":                   {state.Operation{State: state.Succeeded, ResultBytes: 2, Result: result}, false, false},
		"partially":                   {state.Operation{State: state.PartiallySucceeded, ResultBytes: 2, Result: result}, false, false},
		"answered failed":             {state.Operation{State: state.Failed, EffectState: state.EffectUnknown, ResultBytes: 2, Result: result}, false, false},
		"answer not kept":             {state.Operation{State: state.Succeeded, ResultBytes: 2}, false, true},
		"failed, no effect":           {state.Operation{State: state.Failed, EffectState: state.EffectNone}, true, false},
		"cancelled, no effect":        {state.Operation{State: state.Cancelled, EffectState: state.EffectNone}, true, false},
		"failed, effect unknown":      {state.Operation{State: state.Failed, EffectState: state.EffectUnknown}, false, true},
		"cancelled, effect unknown":   {state.Operation{State: state.Cancelled, EffectState: state.EffectUnknown}, false, true},
		"abandoned":                   {state.Operation{State: state.Abandoned, EffectState: state.EffectUnknown}, false, true},
		"other input":                 {state.Operation{State: state.Failed, EffectState: state.EffectNone, InputDigest: other}, false, true},
		"other project":               {state.Operation{State: state.Failed, EffectState: state.EffectNone, ProjectRoot: "/q"}, false, true},
		"other input, answered":       {state.Operation{State: state.Succeeded, ResultBytes: 2, Result: result, InputDigest: other}, false, true},
		"running, with another input": {state.Operation{State: state.Running, InputDigest: other}, false, true},
	} {
		if c.earlier.InputDigest == "" {
			c.earlier.InputDigest = input
		}
		if c.earlier.ProjectRoot == "" {
			c.earlier.ProjectRoot = "/p"
		}
		again, err := mayRunAgain(c.earlier, op)
		if again != c.again || (err != nil) != c.refused {
			t.Errorf("%s: %v, %v", name, again, err)
		}
	}
}

func TestDeadCallsAreTakenOnce(t *testing.T) {
	s := newSite(t)
	alive, err := s.beginCall(callMarker{PluginID: "x"})
	must(t, err)
	defer alive.End()
	left, err := s.beginCall(callMarker{PluginID: "x"})
	must(t, err)
	_, err = s.requestStop(left.ID, StopRevoked)
	must(t, err)
	left.Leave()
	left.Leave()
	left.End()
	taken := s.TakeDeadCalls()
	if len(taken) != 1 || taken[0].ID != left.ID {
		t.Fatalf("%+v", taken)
	}
	if again := s.TakeDeadCalls(); len(again) != 0 {
		t.Errorf("taken twice: %+v", again)
	}
	must(t, taken[0].Abandon(s.ctx, nil)) // it was no operation
	taken[0].Release()
	if again := s.TakeDeadCalls(); len(again) != 1 {
		t.Fatal("a call that was released is gone")
	} else {
		must(t, again[0].Remove())
		must(t, again[0].Remove())
		again[0].Release()
	}
	if names, _ := readNames(s.join(runningDir)); !slices.Equal(names, []string{alive.ID}) {
		t.Errorf("%q", names)
	}
}
