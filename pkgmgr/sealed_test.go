//go:build unix

package pkgmgr

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// unsealedCases are parts of a package of which others could write, each in the store
// and in the default directory.
func unsealedCases(t *testing.T, do func(t *testing.T, s *site, p sample, source, open string, mode fs.FileMode)) {
	p := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/a": "a", "lib/deep/b": "b"}}
	for _, part := range []string{".", "bin", "lib", "lib/deep", "bin/tool", "lib/a", "plugin.json"} {
		for _, place := range []string{"store", "default"} {
			for _, write := range []fs.FileMode{0o020, 0o002} {
				t.Run(fmt.Sprintf("%s/%s/%03o", part, place, write), func(t *testing.T) {
					s := newSite(t)
					source := p.archive(t)
					s.install(source)
					s.trust("x")
					s.enable("x", manifest.ScopeMetadataRead)
					tree := s.storePath(p.digest(t))
					if place == "default" {
						tree = s.pluginPath("x")
					}
					open := filepath.Join(tree, part)
					info, err := os.Lstat(open)
					must(t, err)
					mode := info.Mode().Perm() | write
					must(t, os.Chmod(open, mode))
					do(t, s, p, source, open, mode)
				})
			}
		}
	}
}

// saysUnsealed checks that an error tells what is wrong, where, and what mends it.
func saysUnsealed(t *testing.T, err error, mode fs.FileMode) {
	t.Helper()
	for _, part := range []string{"writable by group or world", fmt.Sprintf("(mode %04o)", mode.Perm()), string(filepath.Separator)} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// A package of which others could write is refused at a call, says what is wrong as
// often as it is asked, and an install of the same package seals it.
func TestUnsealedPackageIsRefused(t *testing.T) {
	unsealedCases(t, func(t *testing.T, s *site, p sample, source, open string, mode fs.FileMode) {
		for range 2 {
			_, err := s.health("x")
			if n := as[*NeedsDecision](t, err); n.Status != StatusChanged || !strings.Contains(n.Error(), "installing the same package again") {
				t.Errorf("%+v", n)
			}
			saysUnsealed(t, err, mode)
		}
		_, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
		saysUnsealed(t, err, mode)
		as[*Unsealed](t, err)
		_, err = s.Trust(s.ctx, Ref{ID: "x"}, nil, p.digest(t))
		as[*Unsealed](t, err)

		if out := s.install(source); !out.Repaired {
			t.Errorf("%+v", out)
		}
		s.sound()
		if info, err := os.Lstat(open); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
		if got, err := s.health("x"); err != nil || got != p.digest(t) {
			t.Errorf("%s, %v", got, err)
		}
	})
}

// verify and doctor report it, too, and verify takes the grants as a call does.
func TestUnsealedPackageIsReported(t *testing.T) {
	unsealedCases(t, func(t *testing.T, s *site, p sample, source, open string, mode fs.FileMode) {
		f := findingOf(t, Diagnose(s.ctx, s.Path()), "package x 1.0.0")
		if f.OK || !strings.Contains(f.Detail, "installing the same package again") {
			t.Errorf("%+v", f)
		}
		saysUnsealed(t, fmt.Errorf("%s", f.Detail), mode)
		for _, refs := range [][]Ref{nil, {{ID: "x"}}} {
			checks, err := s.Verify(s.ctx, refs, nil)
			must(t, err)
			if len(checks) != 1 || checks[0].Verdict != Failed || checks[0].Digests != Failed {
				t.Fatalf("%+v", checks)
			}
			as[*Unsealed](t, checks[0].Err)
			saysUnsealed(t, checks[0].Err, mode)
		}
		if got := s.status("x"); got != StatusChanged && got != StatusBroken {
			t.Errorf("listed as %s", got)
		}
		s.install(source)
		if f := findingOf(t, Diagnose(s.ctx, s.Path()), "package x 1.0.0"); !f.OK {
			t.Errorf("%+v", f)
		}
	})
}

// A version whose store tree is not sealed cannot become the default, and what is said
// is not that its digest differs from itself.
func TestUseOfAnUnsealedVersion(t *testing.T) {
	for _, part := range []string{"bin/tool", "lib"} {
		s, low, _ := bothInstalled(t)
		open := filepath.Join(s.storePath(low.digest(t)), part)
		must(t, os.Chmod(open, 0o777))
		_, err := s.Use(s.ctx, Ref{ID: "x", Version: "1.0.0"})
		saysUnsealed(t, as[*Malformed](t, err), 0o777)
	}
}

// ci seals what is installed, too.
func TestUnsealedPackageIsSealedByCI(t *testing.T) {
	w, _, p := ready(t)
	must(t, os.Chmod(filepath.Join(w.storePath(p.digest(t)), "bin"), 0o775))
	out, err := w.InstallLocked(w.ctx, w.lock(), w.entry("x"))
	if err != nil || !out.Repaired {
		t.Errorf("%+v, %v", out, err)
	}
	w.sound()
}
