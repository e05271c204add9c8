//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

func TestDataDir(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	wd, err := os.Getwd()
	must(t, err)
	cases := []struct {
		flag, want string
		env        func(string) string
	}{
		{"/a/b", "/a/b", env(EnvDataDir, "/x", "HOME", "/h")},
		{"rel", filepath.Join(wd, "rel"), env("HOME", "/h")},
		{"", "/x y/ü", env(EnvDataDir, "/x y/ü", "HOME", "/h")},
		{"", filepath.Join(wd, "r"), env(EnvDataDir, "r")},
	}
	if runtime.GOOS != "darwin" {
		cases = append(cases, []struct {
			flag, want string
			env        func(string) string
		}{
			{"", "/d/switchyard", env("XDG_DATA_HOME", "/d", "HOME", "/h")},
			{"", "/h/.local/share/switchyard", env("HOME", "/h")},
			{"", "/h/.local/share/switchyard", env("XDG_DATA_HOME", "relative", "HOME", "/h")},
		}...)
	}
	for _, c := range cases {
		if got, err := DataDir(c.flag, c.env); err != nil || got != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
	// HOME unset or unusable: the user database, else an error.
	for _, e := range []func(string) string{env(), env("HOME", ""), env("HOME", "relative")} {
		got, err := DataDir("", e)
		if err == nil && !filepath.IsAbs(got) || err != nil && !errorsIs(err, ErrNoHome) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestDataDirectoryRules(t *testing.T) {
	root := os.Geteuid() == 0
	inside := func(t *testing.T) string { return filepath.Join(scratch(t), "data") }
	mkdir := func(t *testing.T, path string, mode os.FileMode) {
		must(t, os.MkdirAll(path, 0o700))
		must(t, os.Chmod(path, mode))
	}
	for name, c := range map[string]struct {
		rooted bool
		make   func(t *testing.T) (path, blamed string)
	}{
		"group may read":          {make: func(t *testing.T) (string, string) { p := inside(t); mkdir(t, p, 0o740); return p, p }},
		"group may pass":          {make: func(t *testing.T) (string, string) { p := inside(t); mkdir(t, p, 0o710); return p, p }},
		"world may pass":          {make: func(t *testing.T) (string, string) { p := inside(t); mkdir(t, p, 0o701); return p, p }},
		"world may write":         {make: func(t *testing.T) (string, string) { p := inside(t); mkdir(t, p, 0o777); return p, p }},
		"world may write, sticky": {make: func(t *testing.T) (string, string) { p := inside(t); mkdir(t, p, 0o777|os.ModeSticky); return p, p }},
		"a file":                  {make: func(t *testing.T) (string, string) { p := inside(t); write(t, p, "", 0o600); return p, p }},
		"ancestor of all": {make: func(t *testing.T) (string, string) {
			p := scratch(t)
			mkdir(t, filepath.Join(p, "open"), 0o777)
			return filepath.Join(p, "open", "a", "data"), filepath.Join(p, "open")
		}},
		"foreign owner": {rooted: true, make: func(t *testing.T) (string, string) {
			p := inside(t)
			mkdir(t, p, 0o700)
			must(t, os.Chown(p, 12345, 12345))
			return p, p
		}},
		"foreign ancestor": {rooted: true, make: func(t *testing.T) (string, string) {
			p := filepath.Join(scratch(t), "theirs")
			mkdir(t, p, 0o755)
			must(t, os.Chown(p, 12345, 12345))
			return filepath.Join(p, "data"), p
		}},
		"ancestor of a group": {rooted: true, make: func(t *testing.T) (string, string) {
			p := filepath.Join(scratch(t), "ours")
			mkdir(t, p, 0o775)
			must(t, os.Chown(p, 0, 50))
			return filepath.Join(p, "data"), p
		}},
		"link through an open directory": {make: func(t *testing.T) (string, string) {
			p := scratch(t)
			mkdir(t, filepath.Join(p, "open"), 0o777)
			mkdir(t, filepath.Join(p, "mine"), 0o700)
			must(t, os.Symlink(filepath.Join(p, "mine"), filepath.Join(p, "open", "way")))
			return filepath.Join(p, "open", "way", "data"), filepath.Join(p, "open")
		}},
		"link to an open directory": {make: func(t *testing.T) (string, string) {
			p := scratch(t)
			mkdir(t, filepath.Join(p, "open"), 0o777)
			must(t, os.Symlink("open/../open", filepath.Join(p, "way")))
			return filepath.Join(p, "way", "data"), filepath.Join(p, "open")
		}},
		"foreign link": {rooted: true, make: func(t *testing.T) (string, string) {
			p := scratch(t)
			mkdir(t, filepath.Join(p, "sticky"), 0o777|os.ModeSticky)
			mkdir(t, filepath.Join(p, "mine"), 0o700)
			link := filepath.Join(p, "sticky", "way")
			must(t, os.Symlink(filepath.Join(p, "mine"), link))
			must(t, os.Lchown(link, 12345, 12345))
			return filepath.Join(link, "data"), link
		}},
		"links in a circle": {make: func(t *testing.T) (string, string) {
			p := scratch(t)
			must(t, os.Symlink("b", filepath.Join(p, "a")))
			must(t, os.Symlink("a", filepath.Join(p, "b")))
			return filepath.Join(p, "a", "data"), ""
		}},
		"store is a link": {make: func(t *testing.T) (string, string) {
			p := inside(t)
			mkdir(t, p, 0o700)
			must(t, os.Symlink(t.TempDir(), filepath.Join(p, storeDir)))
			return p, filepath.Join(p, storeDir)
		}},
		"archives is a link": {make: func(t *testing.T) (string, string) {
			p := inside(t)
			mkdir(t, filepath.Join(p, storeDir), 0o700)
			must(t, os.Symlink(t.TempDir(), filepath.Join(p, archivesDir)))
			return p, filepath.Join(p, archivesDir)
		}},
		"plugins is a file": {make: func(t *testing.T) (string, string) {
			p := inside(t)
			write(t, filepath.Join(p, pluginsDir), "", 0o600)
			must(t, os.Chmod(p, 0o700))
			return p, filepath.Join(p, pluginsDir)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rooted && !root {
				t.Skip("files of other users can only be made as root")
			}
			path, blamed := c.make(t)
			_, err := Open(path, Options{})
			if blamed == "" {
				mustNot(t, err)
				return
			}
			if u := as[*UnsafeDirectory](t, err); u.Path != blamed || u.Reason == "" {
				t.Errorf("%+v, want %s", u, blamed)
			}
			_, err = Repair(t.Context(), path, Options{})
			as[*UnsafeDirectory](t, err)
			if f := Diagnose(t.Context(), path); f[0].OK || !strings.Contains(f[0].Detail, blamed) {
				t.Errorf("%+v", f[0])
			}
		})
	}
	for name, create := range map[string]func(t *testing.T) string{
		"nothing yet": inside,
		"deep":        func(t *testing.T) string { return filepath.Join(inside(t), "a", "b", "c") },
		"private":     func(t *testing.T) string { p := inside(t); mkdir(t, p, 0o700); return p },
		"read-only":   func(t *testing.T) string { p := inside(t); mkdir(t, p, 0o500); return p },
		"below a sticky directory": func(t *testing.T) string {
			p := filepath.Join(scratch(t), "sticky")
			mkdir(t, p, 0o777|os.ModeSticky)
			return filepath.Join(p, "data")
		},
		"own link": func(t *testing.T) string {
			p := scratch(t)
			mkdir(t, filepath.Join(p, "real"), 0o700)
			must(t, os.Symlink("real", filepath.Join(p, "link")))
			return filepath.Join(p, "link")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := create(t)
			_, err := Open(path, Options{})
			must(t, err)
			if name == "read-only" {
				return
			}
			s := siteAt(t, path)
			s.install(sample{id: "x", version: "1.0.0"}.dir(t))
			s.sound()
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// Somebody creates the directory between the look at it and its creation.
func TestDataDirectoryOfAQuickerUser(t *testing.T) {
	for name, change := range map[string]func(s *site) error{
		"install": func(s *site) error {
			_, err := s.Install(s.ctx, sample{id: "x", version: "1.0.0"}.dir(t), InstallOptions{})
			return err
		},
		"project trust": func(s *site) error { _, _, err := s.TrustProject(s.ctx, "/p"); return err },
		"revoke": func(s *site) error {
			_, err := s.Revoke(s.ctx, Denial{PluginID: "x", Reason: "r"})
			return err
		},
	} {
		s := newSite(t)
		must(t, os.Mkdir(s.Path(), 0o700))
		must(t, os.Chmod(s.Path(), 0o777))
		if u := as[*UnsafeDirectory](t, change(s)); u.Path != s.Path() {
			t.Errorf("%s: %+v", name, u)
		}
		if names, _ := readNames(s.Path()); len(names) > 0 {
			t.Errorf("%s: it was written to: %q", name, names)
		}
	}
}

func TestLostDatabase(t *testing.T) {
	for name, lose := range map[string]func(s *site){
		"missing": func(s *site) { must(t, os.Remove(s.state.Path())) },
		"damaged": func(s *site) { must(t, os.WriteFile(s.state.Path(), []byte(strings.Repeat("x", 70000)), 0o600)) },
		"empty":   func(s *site) { must(t, os.WriteFile(s.state.Path(), nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
			for _, p := range []sample{one, two} {
				s.install(p.archive(t))
				s.trust("x")
				s.enable("x", manifest.ScopeMetadataRead)
			}
			s.install(sample{id: "bad", version: "1.0.0"}.dir(t))
			s.install(sample{id: "z", version: "1.0.0"}.dir(t))
			_, err := s.Revoke(s.ctx, Denial{PluginID: "bad", Reason: "r"})
			must(t, err)
			sample{id: "mine", version: "1.0.0"}.writeTo(t, s.pluginPath("mine"))
			damage(t, s.storePath(sample{id: "z", version: "1.0.0"}.digest(t)))
			lose(s)
			for what, do := range map[string]func() error{
				"list":    func() error { _, err := s.List(s.ctx, nil, false); return err },
				"run":     func() error { _, err := s.health("x"); return err },
				"install": func() error { _, err := s.Install(s.ctx, one.dir(t), InstallOptions{}); return err },
				"trust":   func() error { _, _, err := s.TrustProject(s.ctx, "/p"); return err },
			} {
				if err := do(); !errorsIs(err, state.ErrMissing) && !errorsIs(err, state.ErrCorrupt) {
					t.Errorf("%s: %v", what, err)
				}
			}
			var found Finding
			for _, f := range Diagnose(s.ctx, s.Path()) {
				if f.Check == "database" {
					found = f
				}
			}
			if found.OK || !found.Repairable {
				t.Errorf("%+v", found)
			}
			r, err := Repair(s.ctx, s.Path(), Options{})
			must(t, err)
			if len(r.Recorded) != 2 || (r.DatabaseAside == "") != (name == "missing") {
				t.Errorf("%+v", r)
			}
			// Nothing is trusted, denials stand, and what was altered is no install.
			wantLines(t, s.list(true), "bad 1.0.0 revoked", "mine* 1.0.0 untrusted", "x* 2.0.0 untrusted", "x 1.0.0 untrusted", "z* 1.0.0 untrusted")
			s.sound()
			if again, err := Repair(s.ctx, s.Path(), Options{}); err != nil || len(again.Recorded) != 0 || again.DatabaseAside != "" {
				t.Errorf("%+v, %v", again, err)
			}
			for _, f := range Diagnose(s.ctx, s.Path()) {
				if !f.OK {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestVerify(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	s.install(one.archive(t))
	s.install(two.archive(t))
	s.install(sample{id: "bad", version: "1.0.0"}.dir(t))
	s.install(sample{id: "gone", version: "1.0.0"}.dir(t))
	_, err := s.Revoke(s.ctx, Denial{PluginID: "bad", Reason: "r"})
	must(t, err)
	sample{id: "mine", version: "3.0.0"}.writeTo(t, s.pluginPath("mine"))
	must(t, s.writeDenials([]Denial{{PluginID: "bad", Reason: "r"}, {PluginID: "x", Range: "1.0.0", Reason: "late"}}))
	damage(t, s.storePath(two.digest(t)))
	must(t, removeTree(s.storePath(sample{id: "gone", version: "1.0.0"}.digest(t))))
	must(t, removeTree(s.pluginPath("gone")))
	checks, err := s.Verify(s.ctx, nil, nil)
	must(t, err)
	got := map[string]Verification{}
	for _, v := range checks {
		got[v.ID+" "+v.Version] = v
	}
	if len(got) != 4 {
		t.Errorf("%+v", checks)
	}
	if v := got["mine 3.0.0"]; v.Verdict != Skipped || v.Reason == "" || v.Err != nil {
		t.Errorf("%+v", v)
	}
	if v := got["x 1.0.0"]; v.Verdict != Failed || v.Digests != Verified || v.Revocation != Failed || as[*Revoked](t, v.Err).Denial.Reason != "late" {
		t.Errorf("%+v", v)
	}
	if v := got["x 2.0.0"]; v.Verdict != Failed || v.Digests != Failed || as[*Integrity](t, v.Err).Expected != two.digest(t) {
		t.Errorf("%+v", v)
	}
	if v := got["gone 1.0.0"]; v.Verdict != Failed || as[*Integrity](t, v.Err).Found != "" {
		t.Errorf("%+v", v)
	}
	checks, err = s.Verify(s.ctx, []Ref{{ID: "mine"}}, nil)
	if err != nil || len(checks) != 1 || checks[0].Verdict != Skipped {
		t.Errorf("%+v, %v", checks, err)
	}
	_, err = s.Verify(s.ctx, []Ref{{ID: "none"}}, nil)
	as[*NotFound](t, err)

	v, err := s.VerifyArchive(s.ctx, two.archive(t), "", Asked{})
	if err != nil || v.Verdict != Unsigned || v.Package != two.digest(t) {
		t.Errorf("%+v, %v", v, err)
	}
	v, err = s.VerifyArchive(s.ctx, two.archive(t), two.digest(t), Asked{})
	if err != nil || v.Verdict != Failed || as[*Integrity](t, v.Err).What != "archive digest" {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = s.VerifyArchive(s.ctx, "/nonexistent", "", Asked{})
	as[*NotFound](t, err)
}
