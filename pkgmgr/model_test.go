//go:build unix

package pkgmgr

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A model says what people should find after any order of commands. It knows the
// rules and nothing of files.
type model struct {
	packages []*modelled // sorted by digest
	defaults map[string]*modelled
	denials  map[string]Denial
}

type modelled struct {
	sample
	pkg         digest.Digest
	archive     string
	stored      bool
	quarantined bool
	trusted     bool
	enabled     bool
	changed     bool
	wasDefault  bool // when it was revoked
}

func (m *model) covers(d Denial, p *modelled) bool {
	return d.Digest == p.pkg || d.PluginID == p.id && inRange(p.version, d.Range)
}

func (m *model) denied(p *modelled) bool {
	for _, d := range m.denials {
		if m.covers(d, p) {
			return true
		}
	}
	return p.quarantined
}

func (m *model) status(p *modelled) Status {
	switch {
	case p.quarantined:
		return StatusRevoked
	case p.changed:
		return StatusChanged
	case p.trusted && p.enabled:
		return StatusEnabled
	case p.trusted:
		return StatusTrusted
	}
	return StatusUntrusted
}

// lines is the listing of everything, in the form of the function lines.
func (m *model) lines() []string {
	var list []Info
	for _, p := range m.packages {
		if p.stored || p.quarantined {
			list = append(list, Info{ID: p.id, Version: p.version, Status: m.status(p), Default: m.defaults[p.id] == p, Path: string(p.pkg)})
		}
	}
	out := lines(list)
	slices.Sort(out)
	return out
}

// kind names the refusal that a command should meet; "" for none.
func kind(err error) string {
	for _, k := range []struct {
		name string
		is   func(error) bool
	}{
		{"revoked", func(err error) bool { var e *Revoked; return errorsAs(err, &e) }},
		{"downgrade", func(err error) bool { var e *Downgrade; return errorsAs(err, &e) }},
		{"not found", func(err error) bool { var e *NotFound; return errorsAs(err, &e) }},
		{"needs decision", func(err error) bool { var e *NeedsDecision; return errorsAs(err, &e) }},
	} {
		if err != nil && k.is(err) {
			return k.name
		}
	}
	if err != nil {
		return "unexpected: " + err.Error()
	}
	return ""
}

// absent is the refusal of a package that is not in its place. Of one that is not
// here at all the version may be unknown, so that a denial of any range may cover it.
func (m *model) absent(p *modelled) string {
	answer := "not found"
	for _, d := range m.denials {
		switch {
		case m.covers(d, p) && p.quarantined, d.Digest == p.pkg:
			return "revoked"
		case d.PluginID == p.id:
			answer = "not found or revoked"
		}
	}
	return answer
}

// meets reports whether a refusal is the one that should be met.
func meets(got, want string) bool {
	if want == "not found or revoked" {
		return got == "not found" || got == "revoked"
	}
	return got == want
}

// do makes one random command, on the data directory and on the model, and returns
// what it was.
func (m *model) do(t *testing.T, s *site, r *rand.Rand) string {
	p := m.packages[r.IntN(len(m.packages))]
	ref := Ref{ID: p.id, Digest: p.pkg}
	what, want, got := "", "", ""
	switch n := r.IntN(20); {
	case n < 5:
		rule := DefaultRule(r.IntN(3))
		_, err := s.Install(s.ctx, p.archive, InstallOptions{Default: rule})
		what, want, got = fmt.Sprintf("install rule %d", rule), m.install(p, rule), kind(err)
	case n < 7:
		_, err := s.Use(s.ctx, ref)
		what, got = "use", kind(err)
		if !p.stored {
			want = m.absent(p)
		} else {
			m.defaults[p.id] = p
		}
	case n < 9:
		_, err := s.Uninstall(s.ctx, ref)
		what, got = "uninstall", kind(err)
		if !p.stored {
			want = "not found"
			if p.quarantined {
				want = "revoked"
			}
			break
		}
		p.stored, p.trusted, p.enabled = false, false, false
		m.dropDefault(p)
	case n < 11:
		_, err := s.Trust(s.ctx, ref, nil, p.pkg)
		what, got = "trust", kind(err)
		if !p.stored {
			want = m.absent(p)
			break
		}
		if p.changed || !p.trusted {
			p.enabled = false
		}
		p.trusted, p.changed = true, false
	case n < 13:
		what, got, want = "enable", kind(s.tryEnable(ref)), ""
		switch {
		case !p.stored:
			want = m.absent(p)
		case p.changed || !p.trusted:
			want = "needs decision"
		default:
			p.enabled = true
		}
	case n < 14:
		_, err := s.Disable(s.ctx, ref, nil)
		what, got = "disable", kind(err)
		if !p.stored {
			want = m.absent(p)
			break
		}
		p.enabled = false
	case n < 15:
		_, err := s.Untrust(s.ctx, ref, nil)
		what, got = "untrust", kind(err)
		if !p.stored {
			want = m.absent(p)
			break
		}
		p.enabled, p.trusted = false, false
	case n < 16:
		d := Denial{PluginID: p.id, Reason: "r"}
		switch r.IntN(3) {
		case 0:
			d = Denial{Digest: p.pkg, Reason: "r"}
		case 1:
			d.Range = "<=" + p.version
		}
		_, err := s.Revoke(s.ctx, d)
		what, got = "revoke "+d.Subject(), kind(err)
		m.revoke(d)
	case n < 18:
		subjects := []string{"none"}
		for k := range m.denials {
			subjects = append(subjects, k)
		}
		slices.Sort(subjects)
		k := subjects[r.IntN(len(subjects))]
		_, err := s.Unrevoke(s.ctx, k)
		what, got, want = "unrevoke "+k, kind(err), m.unrevoke(k)
	case n < 19:
		_, err := s.GC(s.ctx, GCOptions{})
		what, got = "gc", kind(err)
		for _, q := range m.packages {
			q.stored = q.stored && m.defaults[q.id] == q
		}
	default:
		what = "alter"
		if m.defaults[p.id] == p {
			damage(t, s.pluginPath(p.id))
			s.list(false)
			if p.trusted || p.enabled {
				p.changed, p.enabled = true, false
			}
			_, err := s.Install(s.ctx, p.archive, InstallOptions{Default: DefaultReplace})
			got = kind(err)
		}
	}
	what += fmt.Sprintf(" %s %s %s", p.id, p.version, p.pkg[:12])
	if !meets(got, want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
	return what
}

func (s *site) tryEnable(ref Ref) error {
	d, err := s.ConsiderEnable(s.ctx, ref, nil, []manifest.Scope{manifest.ScopeMetadataRead})
	if err != nil {
		return err
	}
	defer d.Call.End()
	a, err := d.approve(s.ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	_, err = s.RecordEnable(s.ctx, a, healthy(a))
	return err
}

func (m *model) install(p *modelled, rule DefaultRule) string {
	if m.denied(p) {
		return "revoked"
	}
	now := m.defaults[p.id]
	switch {
	case now == nil, now == p, rule == DefaultReplace:
		m.defaults[p.id] = p
	case rule == DefaultUpgrade:
		if versionrange.Compare(p.version, now.version) < 0 {
			return "downgrade"
		}
		m.defaults[p.id] = p
	}
	p.stored = true
	return ""
}

func (m *model) dropDefault(p *modelled) {
	if m.defaults[p.id] == p {
		delete(m.defaults, p.id)
	}
}

func (m *model) revoke(d Denial) {
	m.denials[d.Subject()] = d
	for _, p := range m.packages {
		if !m.covers(d, p) {
			continue
		}
		p.trusted, p.enabled = false, false
		if p.stored {
			p.stored, p.quarantined, p.wasDefault = false, true, m.defaults[p.id] == p
			m.dropDefault(p)
		}
	}
}

func (m *model) unrevoke(k string) string {
	lifted, ok := m.denials[k]
	if !ok {
		return "not found"
	}
	delete(m.denials, k)
	var back []*modelled
	for _, p := range m.packages {
		if !p.quarantined || !m.covers(lifted, p) {
			continue
		}
		p.quarantined = false
		if m.denied(p) {
			p.quarantined = true
			continue
		}
		p.stored = true
		back = append(back, p)
	}
	// What was the default version is it again, else the highest that came back.
	slices.SortFunc(back, func(a, b *modelled) int {
		switch {
		case a.wasDefault != b.wasDefault && a.wasDefault:
			return -1
		case a.wasDefault != b.wasDefault:
			return 1
		}
		return cmp.Or(versionrange.Compare(b.version, a.version), strings.Compare(string(a.pkg), string(b.pkg)))
	})
	for _, p := range back {
		if m.defaults[p.id] == nil {
			m.defaults[p.id] = p
		}
	}
	return ""
}

// TestAgainstTheModel makes random commands and compares what people see with what
// the rules say, after each of them.
func TestAgainstTheModel(t *testing.T) {
	samples := []sample{
		{id: "x", version: "1.0.0"}, {id: "x", version: "1.5.0", files: map[string]string{"a": "a"}}, {id: "x", version: "2.0.0"},
		{id: "x", version: "2.0.0", files: map[string]string{"other": "build"}}, {id: "y", version: "1.0.0"},
	}
	steps := 60
	if os.Getenv("SWITCHYARD_TEST_LONG") != "" {
		steps = 1000
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newSite(t)
			m := &model{defaults: map[string]*modelled{}, denials: map[string]Denial{}}
			for _, p := range samples {
				m.packages = append(m.packages, &modelled{sample: p, pkg: p.digest(t), archive: p.archive(t)})
			}
			slices.SortFunc(m.packages, func(a, b *modelled) int { return strings.Compare(string(a.pkg), string(b.pkg)) })
			r := rand.New(rand.NewPCG(seed, 1))
			var done []string
			for range steps {
				done = append(done, m.do(t, s, r))
				got := lines(s.list(true))
				slices.Sort(got)
				if want := m.lines(); !slices.Equal(got, want) {
					t.Fatalf("after\n%s\ngot  %q\nwant %q", strings.Join(done, "\n"), got, want)
				}
				for _, p := range m.packages {
					_, err := s.run(CallRequest{Ref: Ref{ID: p.id, Digest: p.pkg}, Method: MethodHealth})
					want := ""
					switch {
					case !p.stored:
						want = m.absent(p)
					case m.status(p) != StatusEnabled:
						want = "needs decision"
					}
					if got := kind(err); !meets(got, want) {
						t.Fatalf("after\n%s\nrun of %s %s: %q, want %q", strings.Join(done, "\n"), p.id, p.version, got, want)
					}
				}
			}
			s.sound()
		})
	}
}
