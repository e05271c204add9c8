//go:build unix

package pkgmgr

import (
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// TestExecutableIsCleaned: the protocol allows a path that is inside the package once
// it is cleaned. What is reviewed, recorded, compared and packed is the cleaned one.
func TestExecutableIsCleaned(t *testing.T) {
	for _, spelled := range []string{"./bin/tool", "sub/../bin/tool", "bin//tool", "bin/./tool", "bin/none/../tool"} {
		s := newSite(t)
		p := sample{id: "x", version: "1.0.0", edit: func(m map[string]any) { m["executable"] = spelled }}
		dir := p.dir(t)
		r, err := s.ReviewArchive(s.ctx, dir)
		must(t, err)
		if r.Manifest.Executable != "bin/tool" {
			t.Errorf("%s: the review says %q", spelled, r.Manifest.Executable)
		}
		in := s.install(dir)
		if in.Executable != "bin/tool" {
			t.Errorf("%s: %q is recorded", spelled, in.Executable)
		}
		if in.Package != p.contents(t).Package {
			t.Errorf("%s: another package digest", spelled)
		}
		s.trust("x")
		s.enable("x", manifest.ScopeMetadataRead)
		if _, err := s.health("x"); err != nil {
			t.Errorf("%s: %v", spelled, err)
		}
		// Trust packed it; a review of the same id by another spelling moves nothing.
		plain := sample{id: "x", version: "1.0.1"}
		s.install(plain.dir(t))
		again, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
		must(t, err)
		if again.Change == nil || again.Change.ExecutableMoved {
			t.Errorf("%s: moved: %+v", spelled, again.Change)
		}
	}
}
