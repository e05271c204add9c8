package policy

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict/tomltest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// random makes policies, narrowings and inputs from few values, so that rules meet
// both outcomes.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 11))} }

func (r random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r random, values ...T) T { return values[r.IntN(len(values))] }

// some returns up to n of the values, nil as often as not.
func some[T any](r random, n int, values ...T) []T {
	if r.chance(50) {
		return nil
	}
	list := []T{}
	for range 1 + r.IntN(n) {
		list = append(list, pick(r, values...))
	}
	return list
}

func (r random) signer() verify.Signer {
	return pick(r, alice, bob, robot, verify.Signer{Identity: "ops@example.com", Issuer: github}, verify.Signer{Identity: release, Issuer: "https://x.example"})
}

func (r random) prefixes() []PrefixPattern {
	return some(r, 3, PrefixPattern("*"), builder, source, "https://github.com/*", "git+https://github.com/example/*")
}

func (r random) sets() [][]PrefixPattern {
	var sets [][]PrefixPattern
	for range max(0, r.IntN(6)-3) {
		if set := r.prefixes(); set != nil {
			sets = append(sets, set)
		}
	}
	return sets
}

func (r random) filter() []SignerPattern {
	return some(r, 4, SignerPattern(keyA), keyB, "*@example.com", workflow, "https://github.com/*")
}

func (r random) requirement() Requirement {
	return pick(r, Allowed, Allowed, Allowed, Allowed, Allowed, Allowed, Required)
}

func (r random) reactions() Reactions {
	one := func() Reaction { return pick(r, Warn, Warn, Refuse) }
	return Reactions{one(), one(), one(), one()}
}

func (r random) period() time.Duration {
	return pick(r, 0, 0, 0, 0, 0, time.Hour, 24*time.Hour, 72*time.Hour)
}

func (r random) licences() []string {
	if r.chance(70) {
		return nil
	}
	return some(r, 2, "MIT", "AGPL-3.0-only", "SSPL-1.0")
}

func (r random) policy() *Policy {
	p := &Policy{
		Signature: r.requirement(), Threshold: pick(r, 0, 1, 1, 1, 1, 1, 1, 2, 3), SBOM: r.requirement(),
		MaxListAge: r.period(), CoolDown: r.period(), DeniedLicences: r.licences(), ListsStale: r.reactions(),
		Builders: r.sets(), Sources: r.sets(),
	}
	for range r.IntN(4) {
		one := Publisher{Plugins: []IDPattern{pick(r, IDPattern("*"), "repo-facts", "com.example.*")}}
		if s := r.signer(); s.Key != "" {
			one.Key = s.Key
		} else {
			one.Issuer = s.Issuer
			one.Identity = pick(r, IdentityPattern(s.Identity), "*@example.com", workflow)
		}
		p.Publishers = append(p.Publishers, one)
	}
	if filter := r.filter(); filter != nil && r.chance(30) {
		p.Only = append(p.Only, filter)
	}
	return p
}

func (r random) narrowing() *Narrowing {
	n := &Narrowing{
		Signature: r.requirement(), Threshold: pick(r, 0, 1, 1, 1, 1, 1, 2), SBOM: r.requirement(),
		MaxListAge: r.period(), CoolDown: r.period(), DeniedLicences: r.licences(), ListsStale: r.reactions(),
	}
	if r.chance(40) {
		n.Publishers = r.filter()
	}
	if r.chance(30) {
		n.Builders = r.prefixes()
	}
	if r.chance(30) {
		n.Sources = r.prefixes()
	}
	return n
}

func (r random) time() time.Time {
	return now.Add(-time.Duration(r.IntN(100)-2) * time.Hour)
}

func (r random) input() Input {
	in := unsigned()
	in.Operation = pick(r, Install, Trust, CI, Run, "")
	in.ID = pick(r, "repo-facts", "repo-facts", "com.example.a", "other")
	for range r.IntN(4) {
		f := signed(r.signer())
		for range r.IntN(3) {
			f.Times = append(f.Times, verify.TrustedTime{Source: "timestamp-authority", At: r.time()})
		}
		if r.chance(40) {
			f.Kind = verify.Provenance
			f.Statement = &verify.Statement{Builder: pick(r, builder, "https://x.example/b", ""), Source: pick(r, source, "git+https://x.example/s", "")}
		}
		if r.chance(2) {
			f.Artifact = other
		}
		in.Facts = append(in.Facts, f)
	}
	if r.chance(10) {
		in.Refused = append(in.Refused, Refused{Kind: verify.Signature, Reason: pick(r, UnknownKey, UnknownKey, Invalid), Why: "x"})
	}
	in.SBOM.State = pick(r, SBOMPresent, SBOMPresent, SBOMPresent, SBOMPresent, SBOMPresent, SBOMAbsent, SBOMAbsent, SBOMFailed, SBOMUnchecked)
	if in.SBOM.State == SBOMPresent {
		in.SBOM.Licences = some(r, 3, "MIT", "AGPL-3.0-only", "MIT OR SSPL-1.0", "Apache-2.0", "NOASSERTION", "MIT AND (")
	}
	for range max(0, r.IntN(5)-3) {
		in.Lists = append(in.Lists, List{
			Issuer: "security.example.com", IssuedAt: r.time(), ExpiresAt: now.Add(time.Duration(r.IntN(20)-2) * time.Hour),
			State: pick(r, ListFresh, ListFresh, ListFresh, ListStale, ListAbsent, ListFuture, ListRolledBack, ListInvalid),
		})
	}
	if r.chance(20) {
		lock := &Locked{Evidence: some(r, 2, verify.Signature, verify.Provenance, verify.SBOM)}
		if r.chance(50) && len(in.Facts) > 0 {
			s := pick(r, in.Facts...).Signer
			lock.Signer = &s
		}
		in.Lock = lock
	}
	return in
}

// TestNarrowNeverWidens: whatever a narrowed policy accepts, the policy accepts; and
// nothing gets the better verdict by narrowing alone.
func TestNarrowNeverWidens(t *testing.T) {
	var both, neither, narrowed, signedBoth int
	for seed := range uint64(60_000) {
		r := newRandom(seed)
		p, n, m := r.policy(), r.narrowing(), r.narrowing()
		q := p.Narrow(n)
		if r.chance(30) {
			q = q.Narrow(m)
		}
		in := r.input()
		wide, narrow := Evaluate(p, in), Evaluate(q, in)
		switch {
		case narrow.Accepted() && !wide.Accepted():
			t.Fatalf("seed %d: narrowed by %+v\n%+v\naccepts what it refuses itself\n%+v", seed, n, narrow, wide)
		case narrow.Verdict == Signed && wide.Verdict != Signed:
			t.Fatalf("seed %d: narrowed by %+v it calls signed what it does not itself", seed, n)
		case narrow.Verdict == Signed:
			signedBoth++
			both++
		case narrow.Accepted():
			both++
		case wide.Accepted():
			narrowed++
		default:
			neither++
		}
	}
	t.Logf("accepted by both %d (as signed %d), by neither %d, only before narrowing %d", both, signedBoth, neither, narrowed)
	if both < 3000 || signedBoth < 500 || neither < 3000 || narrowed < 3000 {
		t.Errorf("too one-sided: both %d (signed %d), neither %d, narrowed %d", both, signedBoth, neither, narrowed)
	}
}

// TestNarrowLeavesItsPolicy: narrowing is repeatable, changes neither argument, and a
// narrowing that says nothing changes no judgement.
func TestNarrowLeavesItsPolicy(t *testing.T) {
	for seed := range uint64(2000) {
		p, same := newRandom(seed).policy(), newRandom(seed).policy()
		r := newRandom(seed + 1)
		n, in := r.narrowing(), r.input()
		q := p.Narrow(n)
		q.Narrow(r.narrowing())
		q.Publishers = append(q.Publishers, Publisher{Key: keyA})
		q.DeniedLicences = append(q.DeniedLicences, "MIT")
		if !reflect.DeepEqual(p, same) {
			t.Fatalf("seed %d: the policy changed", seed)
		}
		if !reflect.DeepEqual(Evaluate(p, in), Evaluate(p.Narrow(nil), in)) {
			t.Fatalf("seed %d: nil narrows", seed)
		}
		if a, b := Evaluate(p, in), Evaluate(p.Narrow(neutral()), in); !reflect.DeepEqual(a.Results, b.Results) && p.Threshold > 0 {
			t.Fatalf("seed %d: a narrowing that says nothing narrows:\n%+v\n%+v", seed, a, b)
		}
	}
}

// TestNarrowedPoliciesShareNothing: two projects of one user do not meet in spare
// room behind the user's lists.
func TestNarrowedPoliciesShareNothing(t *testing.T) {
	p := Default()
	p.Builders = append(make([][]PrefixPattern, 0, 8), []PrefixPattern{"*"})
	p.Sources = append(make([][]PrefixPattern, 0, 8), []PrefixPattern{"*"})
	p.Only = append(make([][]SignerPattern, 0, 8), []SignerPattern{keyA})
	p.DeniedLicences = append(make([]string, 0, 8), "SSPL-1.0")
	project := func(word string) *Narrowing {
		n := neutral()
		n.Builders, n.Sources = []PrefixPattern{PrefixPattern(word)}, []PrefixPattern{PrefixPattern(word)}
		n.Publishers, n.DeniedLicences = []SignerPattern{SignerPattern(word)}, []string{word}
		return n
	}
	one := p.Narrow(project("one"))
	before := Default()
	*before = *one
	before.Builders, before.Sources = slices.Clone(one.Builders), slices.Clone(one.Sources)
	before.Only, before.DeniedLicences = slices.Clone(one.Only), slices.Clone(one.DeniedLicences)
	p.Narrow(project("two"))
	if !reflect.DeepEqual(one, before) || len(one.Builders) != 2 || len(one.Sources) != 2 || len(one.Only) != 2 || len(one.DeniedLicences) != 2 {
		t.Errorf("%+v\n%+v", one, before)
	}
}

// TestNarrowMembers: how each member combines.
func TestNarrowMembers(t *testing.T) {
	p, err := Parse("policy.toml", read(t, tomltest.Files(t, "testdata/policy/valid/full.toml")[0]))
	if err != nil {
		t.Fatal(err)
	}
	n, err := parseNarrowing("switchyard.toml", read(t, tomltest.Files(t, "testdata/narrowing/valid/full.toml")[0]))
	if err != nil {
		t.Fatal(err)
	}
	want := fullPolicy()
	want.MaxListAge = 24 * time.Hour
	want.Only = [][]SignerPattern{{"https://github.com/example/plugins/*", keyA}}
	want.Sources = [][]PrefixPattern{{"git+https://github.com/example/*"}, {"git+https://github.com/example/plugins@*"}}
	if got := p.Narrow(n); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}

	d := Default().Narrow(n)
	if d.Signature != Required || d.Threshold != 2 || d.SBOM != Required || d.MaxListAge != 24*time.Hour || d.CoolDown != 24*time.Hour ||
		!reflect.DeepEqual(d.DeniedLicences, []string{"SSPL-1.0"}) || d.ListsStale != (Reactions{}) || len(d.Publishers) != 0 || d.Builders != nil {
		t.Errorf("%+v", d)
	}
	loose := neutral()
	loose.MaxListAge, loose.CoolDown = 1000*time.Hour, time.Hour
	if got := p.Narrow(loose); !reflect.DeepEqual(got, fullPolicy()) {
		t.Errorf("a looser project changed the policy: %+v", got)
	}
}
