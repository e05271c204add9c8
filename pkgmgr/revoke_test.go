//go:build unix

package pkgmgr

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Each kind of denial: by what it names a package, and that it holds at every place
// where a package could come in or run, also after the database and the list are
// gone, until it is lifted.
// TestTooManyDenials holds that a list which could not be read back is not written.
func TestTooManyDenials(t *testing.T) {
	s := newSite(t)
	few := []Denial{{PluginID: "x", Reason: "test"}}
	must(t, s.writeDenials(few))
	many := make([]Denial, 60_000)
	for i := range many {
		many[i] = Denial{Digest: digest.Of([]byte(strconv.Itoa(i))), Reason: "r"}
	}
	if err := s.writeDenials(many); err == nil || !strings.Contains(err.Error(), "a list of 60000") {
		t.Errorf("%v", err)
	}
	if got, err := s.readDenials(); err != nil || len(got) != 1 {
		t.Errorf("%d denials, %v", len(got), err)
	}
}

func TestRevoke(t *testing.T) {
	one := sample{id: "x", version: "1.2.0", files: map[string]string{"lib/a": "a"}}
	source := one.archive(t)
	archiveDigest, err := hashFile(source)
	must(t, err)
	c := one.contents(t)
	for name, d := range map[string]Denial{
		"archive":     {Digest: archiveDigest},
		"package":     {Digest: c.Package},
		"manifest":    {Digest: c.ManifestDigest},
		"fingerprint": {Digest: c.Fingerprint},
		"id":          {PluginID: "x"},
		"range":       {PluginID: "x", Range: ">=1.0.0 <2.0.0"},
	} {
		d.Reason = "it steals"
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.install(source)
			s.install(sample{id: "y", version: "1.0.0"}.dir(t))
			s.trust("x")
			s.enable("x", manifest.ScopeMetadataRead)
			call, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodHealth})
			must(t, err)
			defer call.Call.End()
			other, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "y"}, Method: MethodHealth})
			must(t, err)
			defer other.Call.End()

			r, err := s.Revoke(s.ctx, d)
			must(t, err)
			if r.Already || r.Stopped != 1 || len(r.Quarantined) != 1 || r.Quarantined[0].Package != c.Package || !exists(r.Quarantined[0].Path) {
				t.Errorf("%+v", r)
			}
			if why, asked := call.Call.StopRequested(); !asked || why != StopRevoked {
				t.Errorf("the running call was not told: %v %v", why, asked)
			}
			if why, asked := other.Call.StopRequested(); asked {
				t.Errorf("another call was told to stop: %v", why)
			}
			if exists(s.storePath(c.Package)) || exists(s.pluginPath("x")) {
				t.Error("it is still in its place")
			}
			denied := func(when string) {
				t.Helper()
				list := s.list(false)
				i := slices.IndexFunc(list, func(i Info) bool { return i.ID == "x" })
				if i < 0 || list[i].Status != StatusRevoked || list[i].Denial.Reason == "" || len(list[i].Granted) > 0 {
					t.Errorf("%s: listed as %+v", when, list)
				}
				for what, do := range map[string]func() error{
					"install":   func() error { _, err := s.Install(s.ctx, source, InstallOptions{}); return err },
					"dry run":   func() error { _, err := s.Install(s.ctx, source, InstallOptions{DryRun: true}); return err },
					"review":    func() error { _, err := s.Review(s.ctx, Ref{ID: "x"}, nil); return err },
					"trust":     func() error { _, err := s.Trust(s.ctx, Ref{ID: "x"}, nil, c.Package); return err },
					"enable":    func() error { _, err := s.ConsiderEnable(s.ctx, Ref{ID: "x"}, nil, nil); return err },
					"run":       func() error { _, err := s.health("x"); return err },
					"use":       func() error { _, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.2.0"}); return err },
					"uninstall": func() error { _, err := s.Uninstall(s.ctx, Ref{ID: "x"}); return err },
				} {
					if err := do(); err == nil || as[*Revoked](t, err).ID != "x" {
						t.Errorf("%s: %s: %v", when, what, err)
					}
				}
				v, err := s.VerifyArchive(s.ctx, source, "", Asked{})
				if err != nil || v.Verdict != Failed || as[*Revoked](t, v.Err) == nil {
					t.Errorf("%s: %+v, %v", when, v, err)
				}
				rv, err := s.ReviewArchive(s.ctx, source)
				if err != nil || rv.Status != StatusRevoked || rv.Denial == nil {
					t.Errorf("%s: %+v, %v", when, rv, err)
				}
			}
			denied("at once")
			again, err := s.Revoke(s.ctx, d)
			if err != nil || !again.Already || len(again.Quarantined) != 0 {
				t.Errorf("%+v, %v", again, err)
			}

			// The tree in quarantine is a denial by itself.
			must(t, os.Remove(s.join(revokedDir, denialsFile)))
			denied("without the list")
			must(t, os.Remove(s.state.Path()))
			_, err = Repair(s.ctx, s.Path(), Options{})
			must(t, err)
			denied("without list and database")

			// It is lifted as it was made, and comes back untrusted.
			u, err := s.Unrevoke(s.ctx, d.Subject())
			must(t, err)
			if len(u.Quarantined) != 1 || u.Denial.Subject() != d.Subject() || u.Denial.Reason != "it steals" && name != "package" {
				t.Errorf("%+v", u)
			}
			if got := s.status("x"); got != StatusUntrusted {
				t.Errorf("it came back %s", got)
			}
			s.sound()
			s.install(source)
			if names, _ := readNames(s.join(quarantineDir)); len(names) > 0 {
				t.Errorf("quarantine holds %q", names)
			}
		})
	}
}

func TestRevokeAndUnrevoke(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	for _, p := range []sample{one, two} {
		s.install(p.archive(t))
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
	}
	r, err := s.Revoke(s.ctx, Denial{PluginID: "x", Range: "<2.0.0", Reason: "old"})
	must(t, err)
	if len(r.Quarantined) != 1 || r.Quarantined[0].Version != "1.0.0" {
		t.Errorf("%+v", r)
	}
	wantLines(t, s.list(true), "x* 2.0.0 enabled", "x 1.0.0 revoked")
	s.sound()
	if got, err := s.health("x"); err != nil || got != two.digest(t) {
		t.Errorf("%s, %v", got, err)
	}
	_, err = s.health("x@1.0.0")
	as[*Revoked](t, err)

	// A second denial that covers it keeps it there.
	_, err = s.Revoke(s.ctx, Denial{Digest: one.digest(t), Reason: "bytes"})
	must(t, err)
	u, err := s.Unrevoke(s.ctx, "x@<2.0.0")
	must(t, err)
	if len(u.Quarantined) != 0 || len(u.StillDenied) != 1 || u.StillDenied[0].Reason != "bytes" {
		t.Errorf("%+v", u)
	}
	_, err = s.Unrevoke(s.ctx, "x@<2.0.0")
	if n := as[*NotFound](t, err); !slices.Equal(n.Near, []string{string(one.digest(t))}) {
		t.Errorf("%+v", n)
	}
	u, err = s.Unrevoke(s.ctx, one.digest(t).Hex()) // either spelling of a digest
	must(t, err)
	if len(u.Quarantined) != 1 {
		t.Errorf("%+v", u)
	}
	wantLines(t, s.list(true), "x* 2.0.0 enabled", "x 1.0.0 untrusted")
	s.sound()

	// Where the default version is revoked, the other stays what it is.
	_, err = s.Revoke(s.ctx, Denial{PluginID: "x", Range: ">=2.0.0", Reason: "new"})
	must(t, err)
	wantLines(t, s.list(true), "x 1.0.0 untrusted", "x 2.0.0 revoked")
	_, err = s.health("x")
	as[*Revoked](t, err)
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 2.0.0 revoked")
	_, err = s.Unrevoke(s.ctx, "x@>=2.0.0")
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 2.0.0 untrusted")
	s.sound()

	// A lower version may take the place of a revoked one without being asked twice.
	_, err = s.Use(s.ctx, Ref{ID: "x", Version: "2.0.0"})
	must(t, err)
	_, err = s.Revoke(s.ctx, Denial{PluginID: "x", Range: ">=2.0.0", Reason: "new"})
	must(t, err)
	if i := s.install(one.archive(t)); !i.Default {
		t.Errorf("%+v", i)
	}
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 2.0.0 revoked")
	s.sound()
}

// A denial holds for what is not here yet, and takes the trust of what is not here
// any more.
// What was the default version before a revocation is it again afterwards, and else
// the highest version that comes back.
func TestUnrevokeBringsTheDefaultBack(t *testing.T) {
	versions := []string{"1.10.0", "1.2.0", "1.9.0", "1.1.0", "1.0.0"}
	for _, was := range versions {
		t.Run(was, func(t *testing.T) {
			s := newSite(t)
			for _, v := range versions {
				_, err := s.Install(s.ctx, sample{id: "x", version: v}.dir(t), InstallOptions{Default: DefaultReplace})
				must(t, err)
			}
			_, err := s.Use(s.ctx, Ref{ID: "x", Version: was})
			must(t, err)
			deny := func(rng string) Denial {
				d := Denial{PluginID: "x", Range: rng, Reason: "r"}
				_, err := s.Revoke(s.ctx, d)
				must(t, err)
				return d
			}
			lift := func(d Denial, want string) {
				t.Helper()
				_, err := s.Unrevoke(s.ctx, d.Subject())
				must(t, err)
				found := ""
				for _, i := range s.list(false) {
					if i.Default {
						found += i.Version
					}
				}
				if found != want {
					t.Errorf("the default is %q, not %s", found, want)
				}
				s.sound()
			}
			lift(deny(""), was)
			// A denial that is lifted while another one holds changes nothing.
			all, one := deny(""), deny("="+was)
			lift(one, "")
			lift(all, was)

			// The one that was it stays away.
			deny("=" + was)
			all = deny("")
			highest := "1.10.0"
			if was == highest {
				highest = "1.9.0"
			}
			lift(all, highest)
		})
	}
}

func TestRevokeOfWhatIsNotHere(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.archive(t))
	s.trust("x")
	s.enable("x")
	s.install(two.archive(t))
	_, err := s.GC(s.ctx, GCOptions{})
	must(t, err)
	r, err := s.Revoke(s.ctx, Denial{PluginID: "x", Range: "1.0.0", Reason: "r"})
	must(t, err)
	if len(r.Quarantined) != 0 || r.Already {
		t.Errorf("%+v", r)
	}
	_, err = s.Install(s.ctx, one.archive(t), InstallOptions{Default: DefaultReplace})
	as[*Revoked](t, err)
	_, err = s.Unrevoke(s.ctx, "x@1.0.0")
	must(t, err)
	_, err = s.Install(s.ctx, one.archive(t), InstallOptions{Default: DefaultReplace})
	must(t, err)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted", "x 2.0.0 untrusted")
}

func TestChangedInQuarantine(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.archive(t))
	s.install(two.archive(t))
	_, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
	must(t, err)
	damage(t, s.quarantinePath(one.digest(t)))
	u, err := s.Unrevoke(s.ctx, "x")
	if i := as[*Integrity](t, err); i.Expected != one.digest(t) || i.Where != s.quarantinePath(one.digest(t)) {
		t.Errorf("%+v", i)
	}
	if len(u.Quarantined) != 1 || u.Quarantined[0].Package != two.digest(t) {
		t.Errorf("%+v", u)
	}
	wantLines(t, s.list(true), "x* 2.0.0 untrusted", "x 1.0.0 revoked")
	_, err = s.Install(s.ctx, one.archive(t), InstallOptions{Default: DefaultKeep})
	as[*Revoked](t, err)
}

// A changed package, and one that was put there by hand, go to quarantine as what
// they are now.
func TestRevokeOfChangedAndForeignPackages(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a"}}
	s.install(one.archive(t))
	s.trust("x")
	replaceInSealed(t, s.pluginPath("x")+"/lib/a", "A")
	changed := s.list(false)[0].Package
	sample{id: "y", version: "1.0.0"}.writeTo(t, s.pluginPath("mine"))
	r, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
	must(t, err)
	var moved []digest.Digest
	for _, m := range r.Quarantined {
		moved = append(moved, m.Package)
	}
	slices.Sort(moved)
	want := []digest.Digest{one.digest(t), changed}
	slices.Sort(want)
	if !slices.Equal(moved, want) {
		t.Errorf("%q, want %q", moved, want)
	}
	_, err = s.Revoke(s.ctx, Denial{PluginID: "y", Reason: "r"})
	must(t, err)
	if names, _ := readNames(s.join(pluginsDir)); len(names) > 0 {
		t.Errorf("plugins holds %q", names)
	}
	_, err = s.Unrevoke(s.ctx, "y")
	must(t, err)
	if got := s.status("y"); got != StatusUntrusted {
		t.Error(got)
	}
}

// Somebody else's directory has the id meanwhile: the package comes back to the
// store only.
func TestUnrevokeBesideAForeignDirectory(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	s.install(one.archive(t))
	_, err := s.Revoke(s.ctx, Denial{Digest: one.digest(t), Reason: "r"})
	must(t, err)
	sample{id: "x", version: "3.0.0"}.writeTo(t, s.pluginPath("x"))
	_, err = s.Unrevoke(s.ctx, string(one.digest(t)))
	must(t, err)
	wantLines(t, s.list(true), "x* 3.0.0 untrusted", "x 1.0.0 untrusted")
}

func TestParseDenial(t *testing.T) {
	d := digest.Of([]byte("x"))
	for text, want := range map[string]Denial{
		string(d):                   {Digest: d},
		d.Hex():                     {Digest: d},
		strings.ToUpper(d.Hex()):    {Digest: d},
		"x":                         {PluginID: "x"},
		"x@<1.2.0":                  {PluginID: "x", Range: "<1.2.0"},
		"a.b-c@>=1.0.0 <2 || 3.1.4": {PluginID: "a.b-c", Range: ">=1.0.0 <2 || 3.1.4"},
	} {
		want.Reason = "r"
		got, err := ParseDenial(text, "r")
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, c := range [][2]string{{"x", ""}, {"x", " \t"}, {"", "r"}, {"X", "r"}, {"x@", "r"}, {"x@??", "r"}, {"sha256:12", "r"}, {d.Hex()[:63], "r"}} {
		if got, err := ParseDenial(c[0], c[1]); err == nil {
			t.Errorf("%q: %+v", c, got)
		}
	}
}

func TestCovers(t *testing.T) {
	s := subject{ID: "x", Version: "1.2.3", Package: digest.Of([]byte("p")), Archive: digest.Of([]byte("a")),
		Manifest: digest.Of([]byte("m")), Fingerprint: digest.Of([]byte("f"))}
	with := func(version string) subject { c := s; c.Version = version; return c }
	for _, c := range []struct {
		d    Denial
		s    subject
		want bool
	}{
		{Denial{Digest: s.Package}, s, true}, {Denial{Digest: s.Archive}, s, true}, {Denial{Digest: s.Manifest}, s, true},
		{Denial{Digest: s.Fingerprint}, s, true}, {Denial{Digest: digest.Of(nil)}, s, false}, {Denial{Digest: digest.Of(nil)}, subject{}, false},
		{Denial{PluginID: "x"}, s, true}, {Denial{PluginID: "y"}, s, false}, {Denial{PluginID: "x", Range: "<1.2.3"}, s, false},
		{Denial{PluginID: "x", Range: "<=1.2.3"}, s, true}, {Denial{PluginID: "x", Range: "??"}, s, true},
		{Denial{PluginID: "x", Range: "<1.0.0"}, with("nightly"), true}, {Denial{PluginID: "x", Range: "<1.0.0"}, with(""), true},
		{Denial{PluginID: "x", Range: "<1.0.0"}, with("1.0.0-rc.1"), true},
	} {
		if got := c.d.covers(c.s); got != c.want {
			t.Errorf("%s covers %s %s: %v", c.d.Subject(), c.s.ID, c.s.Version, got)
		}
	}
}

// A call that starts while its package is being revoked either sees the denial or
// is told to stop.
func TestRevokeAgainstRun(t *testing.T) {
	s := newSite(t)
	one := sample{id: "x", version: "1.0.0"}
	source := one.dir(t)
	for range 20 {
		s.install(source)
		s.trust("x")
		s.enable("x")
		revoked := make(chan error, 1)
		go func() {
			_, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
			revoked <- err
		}()
		var calls []*Decision
		for range 50 {
			d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodHealth})
			if err != nil {
				as[*Revoked](t, err)
				continue
			}
			if d.NotRevoked() == nil {
				calls = append(calls, d)
			} else {
				d.Call.End()
			}
		}
		must(t, <-revoked)
		for _, d := range calls {
			if why, asked := d.Call.StopRequested(); !asked || why != StopRevoked {
				t.Fatal("a call saw no denial and was not told to stop")
			}
			d.Call.End()
		}
		_, err := s.Unrevoke(s.ctx, "x")
		must(t, err)
		s.removeStaleStops()
		if names, _ := readNames(s.join(runningDir)); len(names) > 0 {
			t.Fatalf("running holds %q", names)
		}
	}
}

func TestOperations(t *testing.T) {
	s := newSite(t)
	s.install(sample{id: "x", version: "1.0.0"}.dir(t))
	s.trust("x")
	s.enable("x", manifest.ScopeOperate)
	root, err := ResolveProject(t.TempDir())
	must(t, err)
	_, _, err = s.TrustProject(s.ctx, root)
	must(t, err)
	approve := func() *Approval {
		d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodOperate, Project: root})
		must(t, err)
		a, err := d.approve(s.ctx)
		must(t, err)
		return a
	}
	req := OperationRequest{Action: "write", Input: []byte(`{"b":1,"a":2}`), IdempotencyKey: "k"}
	a := approve()
	if replay, err := s.StartOperation(s.ctx, a, req); err != nil || replay != nil {
		t.Fatalf("%+v, %v", replay, err)
	}
	second := approve()
	_, err = s.StartOperation(s.ctx, second, req)
	if b := as[*Busy](t, err); b.Operation != a.Call.ID {
		t.Errorf("%+v", b)
	}
	for _, bad := range []string{"", "{", `{"a":1,"a":2}`, "{} {}", `{"a":1e999}`} {
		_, err := s.StartOperation(s.ctx, second, OperationRequest{Action: "write", Input: []byte(bad)})
		if b := as[*BadInput](t, err); b.Action != "write" {
			t.Errorf("%q: %+v", bad, b)
		}
	}

	// Cancelled from another process: the supervisor is told.
	op, err := s.CancelOperation(s.ctx, a.Call.ID, "me")
	if err != nil || op.ID != a.Call.ID {
		t.Errorf("%+v, %v", op, err)
	}
	if why, asked := a.Call.StopRequested(); !asked || why != StopCancelled {
		t.Errorf("%v, %v", why, asked)
	}
	must(t, s.RecordCall(s.ctx, a, CallRecord{Method: MethodOperate, Action: "write", Operation: &state.Outcome{
		State: state.PartiallySucceeded, EffectState: state.EffectPartial, FinishedAt: s.now(), Result: []byte(`{"n":1}`)}}))
	a.Close()
	a.Call.End()
	_, err = s.CancelOperation(s.ctx, a.Call.ID, "me")
	as[*Outcome](t, err)
	_, err = s.CancelOperation(s.ctx, "nonsense", "me")
	as[*NotFound](t, err)

	// The answer stands, for the same input and project only.
	replay, err := s.StartOperation(s.ctx, second, OperationRequest{Action: "write", Input: []byte(` {"a":2, "b":1} `), IdempotencyKey: "k"})
	if err != nil || replay == nil || replay.ID != a.Call.ID || string(replay.Result) != `{"n":1}` {
		t.Errorf("%+v, %v", replay, err)
	}
	_, err = s.StartOperation(s.ctx, second, OperationRequest{Action: "write", Input: []byte(`{}`), IdempotencyKey: "k"})
	as[*Outcome](t, err)

	// A dead supervisor's operation is abandoned, and never run again by itself.
	if _, err := s.StartOperation(s.ctx, second, OperationRequest{Action: "write", Input: []byte(`{}`), IdempotencyKey: "k2"}); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if dead := s.DeadCalls(); len(dead) != 0 {
		t.Errorf("%q", dead)
	}
	second.Call.lock.Unlock() // as the kernel does for a process that died
	if dead := s.DeadCalls(); !slices.Equal(dead, []string{second.Call.ID}) {
		t.Errorf("%q", dead)
	}
	must(t, s.Bury(s.ctx, second.Call.ID, nil))
	must(t, s.Bury(s.ctx, second.Call.ID, nil))
	if got, err := s.Operation(s.ctx, second.Call.ID); err != nil || got.State != state.Abandoned || got.EffectState != state.EffectUnknown {
		t.Errorf("%+v, %v", got, err)
	}
	third := approve()
	defer third.Call.End()
	defer third.Close()
	_, err = s.StartOperation(s.ctx, third, OperationRequest{Action: "write", Input: []byte(`{}`), IdempotencyKey: "k2"})
	if o := as[*Outcome](t, err); o.State != string(state.Abandoned) {
		t.Errorf("%+v", o)
	}
	if len(s.DeadCalls()) != 0 {
		t.Error("the marker was not removed")
	}
}

// A marker between its creation and its lock is not taken away from its owner.
func TestMarkersAndSweepers(t *testing.T) {
	s := newSite(t)
	must(t, s.ensure(runningDir))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, id := range s.DeadCalls() {
				s.removeMarker(id)
			}
		}
	}()
	for range 500 {
		c, err := s.beginCall(callMarker{PluginID: "x"})
		if err != nil {
			if errors.Is(err, os.ErrExist) {
				continue // eight times in a row: refused, and nothing started
			}
			t.Fatal(err)
		}
		if !s.callAlive(c.ID) || !exists(filepath.Join(s.join(runningDir), c.ID)) {
			t.Fatal("a live call was taken for a dead one")
		}
		c.End()
	}
	close(stop)
	<-done
	if names, _ := readNames(s.join(runningDir)); len(names) > 0 {
		t.Errorf("running holds %q", names)
	}
}
