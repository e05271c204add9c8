package policy

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

const (
	archive = digest.Digest("sha256:5c7e9a1b3d5f7e9c0a2b4d6f8e1c3a5b7d9f0e2c4a6b8d1f3e5c7a9b0d2f4e6c")
	other   = digest.Digest("sha256:9e0c2a4b6d8f1e3c5a7b9d0f2e4c6a8b1d3f5e7c9a0b2d4f6e8c1a3b5d7f9e0c")
	github  = "https://token.actions.githubusercontent.com"
	release = "https://github.com/example/plugins/.github/workflows/release.yml@refs/tags/v1"
)

var (
	now   = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	alice = verify.Signer{Key: keyA}
	bob   = verify.Signer{Key: keyB}
	robot = verify.Signer{Identity: release, Issuer: github}
)

func signed(s verify.Signer, times ...time.Time) verify.Facts {
	f := verify.Facts{Kind: verify.Signature, Artifact: archive, Signer: s}
	for _, at := range times {
		f.Times = append(f.Times, verify.TrustedTime{Source: "transparency-log", At: at})
	}
	return f
}

func stated(s verify.Signer, builder, source string) verify.Facts {
	return verify.Facts{
		Kind: verify.Provenance, Artifact: archive, Signer: s,
		Statement: &verify.Statement{Builder: builder, Source: source},
	}
}

// unsigned is the input of a package beside which nothing lies.
func unsigned() Input {
	return Input{
		Operation: Install, ID: "repo-facts", Version: "1.0.0", Platform: "linux/amd64",
		Archive: archive, SBOM: SBOM{State: SBOMAbsent}, Now: now,
	}
}

func with(facts ...verify.Facts) Input {
	in := unsigned()
	in.Facts = facts
	return in
}

// naming is the default policy with publishers of repo-facts.
func naming(signers ...verify.Signer) *Policy {
	p := Default()
	for _, s := range signers {
		p.Publishers = append(p.Publishers, Publisher{
			Plugins: []IDPattern{"repo-facts"}, Key: s.Key, Identity: IdentityPattern(s.Identity), Issuer: s.Issuer,
		})
	}
	return p
}

func change(p *Policy, f func(*Policy)) *Policy { f(p); return p }

func input(in Input, f func(*Input)) Input { f(&in); return in }

func (r Report) result(t *testing.T, rule string) Result {
	t.Helper()
	for _, one := range r.Results {
		if one.Rule == rule {
			return one
		}
	}
	t.Fatalf("no rule %q in %+v", rule, r.Results)
	return Result{}
}

const (
	builder = "https://github.com/actions/runner/github-hosted"
	source  = "git+https://github.com/example/plugins@refs/tags/v1"
)

func proving(p *Policy) *Policy {
	p.Builders = [][]PrefixPattern{{builder}}
	p.Sources = [][]PrefixPattern{{"git+https://github.com/example/*"}}
	return p
}

func listed(op Operation, l List) Input {
	return input(unsigned(), func(in *Input) { in.Operation, in.Lists = op, []List{l} })
}

func freshList() List {
	return List{Issuer: "security.example.com", Version: 7, IssuedAt: now.Add(-time.Hour), ExpiresAt: now.Add(time.Hour), State: ListFresh}
}

func listIn(s ListState) List { l := freshList(); l.State = s; return l }

// TestRules: each rule in each of its outcomes. code is "" unless the rule fails;
// verdict is that of the whole report.
func TestRules(t *testing.T) {
	required := func(p *Policy) { p.Signature = Required }
	two := func(p *Policy) { p.Threshold = 2 }
	threeDays := func(p *Policy) { p.CoolDown = 72 * time.Hour }
	present := func(licences ...string) Input {
		return input(unsigned(), func(in *Input) { in.SBOM = SBOM{State: SBOMPresent, Licences: licences} })
	}
	noAGPL := change(Default(), func(p *Policy) { p.DeniedLicences = []string{"AGPL-3.0-only"} })
	locked := func(in Input, s *verify.Signer, kinds ...verify.Kind) Input {
		in.Lock = &Locked{Signer: s, Evidence: kinds}
		return in
	}
	for _, c := range []struct {
		what    string
		p       *Policy
		in      Input
		rule    string
		outcome Outcome
		code    string
		verdict Verdict
	}{
		{"nothing there", Default(), unsigned(), "evidence", NotApplicable, "", Reviewed},
		{"about this archive", naming(alice), with(signed(alice)), "evidence", Passed, "", Signed},
		{"about another archive", naming(alice), with(input(with(signed(alice)), func(in *Input) { in.Facts[0].Artifact = other }).Facts...),
			"evidence", Failed, CodeEvidence, RefusedByPolicy},
		{"about nothing, for a package without archive", naming(alice),
			input(with(verify.Facts{Kind: verify.Signature, Signer: alice}), func(in *Input) { in.Archive = "" }),
			"evidence", Failed, CodeEvidence, RefusedByPolicy},
		{"does not verify beside one that does", naming(alice),
			input(with(signed(alice)), func(in *Input) { in.Refused = []Refused{{Kind: verify.Signature, Why: "expired"}} }),
			"evidence", Failed, CodeEvidence, RefusedByPolicy},
		{"signed with an unknown key", Default(),
			input(unsigned(), func(in *Input) { in.Refused = []Refused{{Kind: verify.Signature, Reason: UnknownKey}} }),
			"evidence", Passed, "", Reviewed},

		{"unsigned", naming(alice), unsigned(), "publisher", NotApplicable, "", Reviewed},
		{"a named key", naming(alice), with(signed(alice)), "publisher", Passed, "", Signed},
		{"a named identity", naming(robot), with(signed(robot)), "publisher", Passed, "", Signed},
		{"somebody else", naming(alice), with(signed(bob)), "publisher", Failed, CodePublisher, RefusedByPolicy},
		{"the identity from another issuer", naming(robot), with(signed(verify.Signer{Identity: release, Issuer: "https://issuer.evil.example"})),
			"publisher", Failed, CodePublisher, RefusedByPolicy},
		{"an identity that contains the named one", naming(robot), with(signed(verify.Signer{Identity: "https://evil.example/" + release, Issuer: github})),
			"publisher", Failed, CodePublisher, RefusedByPolicy},
		{"a publisher of another id", change(naming(alice), func(p *Policy) { p.Publishers[0].Plugins = []IDPattern{"other"} }), with(signed(alice)),
			"publisher", Warned, "", Reviewed},
		{"a publisher of another id where this one has its own", change(naming(alice, bob), func(p *Policy) { p.Publishers[0].Plugins = []IDPattern{"other"} }), with(signed(alice)),
			"publisher", Failed, CodePublisher, RefusedByPolicy},
		{"a stranger beside the publisher", naming(alice), with(signed(bob), signed(alice)), "publisher", Passed, "", Signed},
		{"a key that nobody named where publishers are", naming(alice),
			input(unsigned(), func(in *Input) { in.Refused = []Refused{{Kind: verify.Signature, Reason: UnknownKey}} }),
			"publisher", Failed, CodePublisher, RefusedByPolicy},
		{"a key that nobody named where no publishers are", Default(),
			input(unsigned(), func(in *Input) { in.Refused = []Refused{{Kind: verify.Signature, Reason: UnknownKey}} }),
			"publisher", Warned, "", Reviewed},
		{"nobody is named", Default(), with(signed(alice)), "publisher", Warned, "", Reviewed},
		{"admitted by the project", change(naming(alice), func(p *Policy) { p.Only = [][]SignerPattern{{keyA}} }), with(signed(alice)), "publisher", Passed, "", Signed},
		{"not admitted by the project", change(naming(alice), func(p *Policy) { p.Only = [][]SignerPattern{{keyB}} }), with(signed(alice)),
			"publisher", Failed, CodePublisher, RefusedByPolicy},
		{"admitted by the project and named by nobody", change(Default(), func(p *Policy) { p.Only = [][]SignerPattern{{keyA}} }), with(signed(alice)),
			"publisher", Warned, "", Reviewed},
		{"neither admitted nor named", change(Default(), func(p *Policy) { p.Only = [][]SignerPattern{{keyB}} }), with(signed(alice)),
			"publisher", Failed, CodePublisher, RefusedByPolicy},

		{"required and there", change(naming(alice), required), with(signed(alice)), "signature", Passed, "", Signed},
		{"required and absent", change(naming(alice), required), unsigned(), "signature", Failed, CodeSignatureRequired, RefusedByPolicy},
		{"required, by a stranger", change(naming(alice), required), with(signed(bob)), "signature", Failed, CodeSignatureRequired, RefusedByPolicy},
		{"required, nobody named", change(Default(), required), with(signed(alice)), "signature", Failed, CodeSignatureRequired, RefusedByPolicy},
		{"required, only provenance", change(naming(alice), required), with(stated(alice, builder, source)), "signature", Failed, CodeSignatureRequired, RefusedByPolicy},
		{"required, about another archive", change(naming(alice), required), with(verify.Facts{Kind: verify.Signature, Artifact: other, Signer: alice}),
			"signature", Failed, CodeSignatureRequired, RefusedByPolicy},
		{"allowed and absent", Default(), unsigned(), "signature", NotApplicable, "", Reviewed},
		{"allowed, by a stranger", Default(), with(signed(alice)), "signature", NotApplicable, "", Reviewed},

		{"one of one", naming(alice), with(signed(alice)), "threshold", Passed, "", Signed},
		{"none of one", naming(alice), unsigned(), "threshold", NotApplicable, "", Reviewed},
		{"two of two", change(naming(alice, bob), two), with(signed(alice), signed(bob)), "threshold", Passed, "", Signed},
		{"the same one twice", change(naming(alice, bob), two), with(signed(alice), signed(alice, now)), "threshold", Failed, CodeThreshold, RefusedByPolicy},
		{"the same one by two rules", change(naming(alice, alice), two), with(signed(alice)), "threshold", Failed, CodeThreshold, RefusedByPolicy},
		{"a publisher and a stranger", change(naming(alice), two), with(signed(alice), signed(bob)), "threshold", Failed, CodeThreshold, RefusedByPolicy},
		{"two asked for and none there", change(naming(alice, bob), two), unsigned(), "threshold", Failed, CodeThreshold, RefusedByPolicy},

		{"none required", naming(alice), with(stated(bob, "x", "y")), "provenance", NotApplicable, "", Reviewed},
		{"required and there", proving(naming(alice)), with(signed(alice), stated(alice, builder, source)), "provenance", Passed, "", Signed},
		{"without a signature", proving(naming(alice)), with(stated(alice, builder, source)), "provenance", Passed, "", Reviewed},
		{"required and absent", proving(naming(alice)), with(signed(alice)), "provenance", Failed, CodeProvenance, RefusedByPolicy},
		{"by a stranger", proving(naming(alice)), with(signed(alice), stated(bob, builder, source)), "provenance", Failed, CodeProvenance, RefusedByPolicy},
		{"nobody named", proving(Default()), with(stated(alice, builder, source)), "provenance", Failed, CodeProvenance, RefusedByPolicy},
		{"another builder", proving(naming(alice)), with(stated(alice, builder+"2", source)), "provenance", Failed, CodeProvenance, RefusedByPolicy},
		{"no builder", proving(naming(alice)), with(stated(alice, "", source)), "provenance", Failed, CodeProvenance, RefusedByPolicy},
		{"no statement", proving(naming(alice)), with(verify.Facts{Kind: verify.Provenance, Artifact: archive, Signer: alice}), "provenance", Failed, CodeProvenance, RefusedByPolicy},
		{"only a source asked for", change(proving(naming(alice)), func(p *Policy) { p.Builders = nil }), with(stated(alice, "", source)), "provenance", Passed, "", Reviewed},
		{"only a source asked for, none there", change(proving(naming(alice)), func(p *Policy) { p.Builders = nil }), unsigned(), "provenance", Failed, CodeProvenance, RefusedByPolicy},

		{"none required", naming(alice), with(stated(alice, "x", "y")), "source", NotApplicable, "", Reviewed},
		{"the source", proving(naming(alice)), with(stated(alice, builder, source)), "source", Passed, "", Reviewed},
		{"another source", proving(naming(alice)), with(stated(alice, builder, "git+https://github.com/example-evil/plugins")), "source", Failed, CodeSource, RefusedByPolicy},
		{"no source", proving(naming(alice)), with(stated(alice, builder, "")), "source", Failed, CodeSource, RefusedByPolicy},
		{"builder and source of two statements", proving(naming(alice)), with(stated(alice, builder, "x"), stated(alice, "x", source)), "source", Failed, CodeSource, RefusedByPolicy},
		{"by a stranger", proving(naming(alice)), with(stated(bob, builder, source)), "source", Failed, CodeSource, RefusedByPolicy},
		{"no provenance", proving(naming(alice)), unsigned(), "source", Failed, CodeSource, RefusedByPolicy},

		{"allowed and absent", Default(), unsigned(), "sbom", NotApplicable, "", Reviewed},
		{"required and absent", change(Default(), func(p *Policy) { p.SBOM = Required }), unsigned(), "sbom", Failed, CodeSBOM, RefusedByPolicy},
		{"required and there", change(Default(), func(p *Policy) { p.SBOM = Required }), present("MIT"), "sbom", Passed, "", Reviewed},
		{"wrong, though only allowed", Default(), input(unsigned(), func(in *Input) { in.SBOM = SBOM{State: SBOMFailed, Problems: []string{"x: another checksum"}} }),
			"sbom", Failed, CodeSBOM, RefusedByPolicy},
		{"not checked", Default(), input(unsigned(), func(in *Input) { in.SBOM = SBOM{State: SBOMUnchecked} }), "sbom", Warned, "", Reviewed},
		{"required and not checked", change(Default(), func(p *Policy) { p.SBOM = Required }), input(unsigned(), func(in *Input) { in.SBOM = SBOM{State: SBOMUnchecked} }),
			"sbom", Failed, CodeSBOM, RefusedByPolicy},
		{"not said", Default(), input(unsigned(), func(in *Input) { in.SBOM = SBOM{} }), "sbom", Failed, CodeSBOM, RefusedByPolicy},
		{"with open ends", Default(), input(present("MIT"), func(in *Input) { in.SBOM.Problems = []string{"y is not listed"} }), "sbom", Warned, "", Reviewed},

		{"none denied", Default(), present("AGPL-3.0-only"), "licence", NotApplicable, "", Reviewed},
		{"denied", noAGPL, present("MIT", "MIT AND AGPL-3.0-only"), "licence", Failed, CodeLicence, RefusedByPolicy},
		{"not denied", noAGPL, present("MIT", "Apache-2.0 OR AGPL-3.0-only"), "licence", Passed, "", Reviewed},
		{"no SBOM", noAGPL, unsigned(), "licence", Failed, CodeLicence, RefusedByPolicy},
		{"wrong SBOM", noAGPL, input(present("MIT"), func(in *Input) { in.SBOM.State = SBOMFailed }), "licence", Failed, CodeLicence, RefusedByPolicy},
		{"SBOM not checked", noAGPL, input(present("MIT"), func(in *Input) { in.SBOM.State = SBOMUnchecked }), "licence", Failed, CodeLicence, RefusedByPolicy},
		{"states none", noAGPL, present("NOASSERTION", "NONE", ""), "licence", Failed, CodeLicence, RefusedByPolicy},
		{"states some", noAGPL, present("NOASSERTION", "MIT"), "licence", Warned, "", Reviewed},

		{"none asked for", naming(alice), with(signed(alice, now)), "cool-down", NotApplicable, "", Signed},
		{"too fresh", change(naming(alice), threeDays), with(signed(alice, now.Add(-72*time.Hour+time.Second))), "cool-down", Failed, CodeCoolDown, RefusedByPolicy},
		{"just old enough", change(naming(alice), threeDays), with(signed(alice, now.Add(-72*time.Hour))), "cool-down", Passed, "", Signed},
		{"the earliest counts", change(naming(alice), threeDays), with(signed(alice, now, now.Add(-100*time.Hour))), "cool-down", Passed, "", Signed},
		{"the earliest of a stranger does not", change(naming(alice), threeDays), with(signed(alice, now), signed(bob, now.Add(-100*time.Hour))), "cool-down", Failed, CodeCoolDown, RefusedByPolicy},
		{"a project's filter does not hide a fresh signature", change(change(naming(alice, bob), threeDays), func(p *Policy) { p.Only = [][]SignerPattern{{keyB}} }),
			with(signed(alice, now), signed(bob)), "cool-down", Failed, CodeCoolDown, RefusedByPolicy},
		{"nobody named", change(Default(), threeDays), with(signed(bob, now)), "cool-down", Failed, CodeCoolDown, RefusedByPolicy},
		{"in the future", change(naming(alice), threeDays), with(signed(alice, now.Add(time.Hour))), "cool-down", Failed, CodeCoolDown, RefusedByPolicy},
		{"no time known", change(naming(alice), threeDays), with(signed(alice)), "cool-down", NotApplicable, "", Signed},
		{"the zero time is none", change(naming(alice), threeDays), with(signed(alice, time.Time{})), "cool-down", NotApplicable, "", Signed},
		{"unsigned", change(naming(alice), threeDays), unsigned(), "cool-down", NotApplicable, "", Reviewed},

		{"no issuer", Default(), unsigned(), "lists", NotApplicable, "", Reviewed},
		{"no issuer, an age asked for", change(Default(), func(p *Policy) { p.MaxListAge = time.Hour }), unsigned(), "lists", Warned, "", Reviewed},
		{"fresh", Default(), listed(Install, freshList()), "lists", Passed, "", Reviewed},
		{"expires now", Default(), listed(Install, relist(func(l *List) { l.ExpiresAt = now })), "lists", Failed, CodeListStale, RefusedByPolicy},
		{"no expiry", Default(), listed(Install, relist(func(l *List) { l.ExpiresAt = time.Time{} })), "lists", Failed, CodeListStale, RefusedByPolicy},
		{"just young enough", change(Default(), func(p *Policy) { p.MaxListAge = time.Hour }), listed(Install, freshList()), "lists", Passed, "", Reviewed},
		{"older than the policy allows", change(Default(), func(p *Policy) { p.MaxListAge = time.Hour - 1 }), listed(Install, freshList()), "lists", Failed, CodeListStale, RefusedByPolicy},
		{"one of two is absent", Default(), input(listed(Install, freshList()), func(in *Input) { in.Lists = append(in.Lists, listIn(ListAbsent)) }),
			"lists", Failed, CodeListStale, RefusedByPolicy},

		{"no lock", naming(alice), with(signed(alice)), "lock", NotApplicable, "", Signed},
		{"locked unsigned", naming(alice), locked(with(signed(alice)), nil), "lock", Passed, "", Signed},
		{"the same signer", naming(alice), locked(with(signed(alice)), &alice, verify.Signature), "lock", Passed, "", Signed},
		{"another signer", naming(alice, bob), locked(with(signed(bob)), &alice, verify.Signature), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"no signer any more", Default(), locked(unsigned(), &alice, verify.Signature), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"the signer signed another archive", naming(alice), locked(with(verify.Facts{Kind: verify.Signature, Artifact: other, Signer: alice}), &alice), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"the same identity from another issuer", naming(robot), locked(with(signed(robot)), &verify.Signer{Identity: release, Issuer: "https://x.example"}), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"no provenance any more", naming(alice), locked(with(signed(alice)), &alice, verify.Signature, verify.Provenance), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"provenance by a stranger now", naming(alice), locked(with(signed(alice), stated(bob, builder, source)), &alice, verify.Provenance), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"provenance still there", naming(alice), locked(with(signed(alice), stated(alice, builder, source)), &alice, verify.Provenance), "lock", Passed, "", Signed},
		{"no SBOM any more", Default(), locked(unsigned(), nil, verify.SBOM), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
		{"SBOM still there", Default(), locked(present("MIT"), nil, verify.SBOM), "lock", Passed, "", Reviewed},
		{"a kind that is not known here", Default(), locked(present("MIT"), nil, "notarised"), "lock", Failed, CodeWeakerThanLock, RefusedByPolicy},
	} {
		t.Run(c.rule+"/"+c.what, func(t *testing.T) {
			report := Evaluate(c.p, c.in)
			got := report.result(t, c.rule)
			if got.Outcome != c.outcome || got.Code != c.code || report.Verdict != c.verdict {
				t.Errorf("%s %q, verdict %s; want %s %q, verdict %s\n%+v", got.Outcome, got.Code, report.Verdict, c.outcome, c.code, c.verdict, report)
			}
		})
	}
}

func relist(f func(*List)) List { l := freshList(); f(&l); return l }

// TestListOutcomes: what each state of a list leads to, by operation and by setting.
func TestListOutcomes(t *testing.T) {
	lenient := change(Default(), func(p *Policy) { p.ListsStale = Reactions{Warn, Warn, Warn, Warn} })
	strict := change(Default(), func(p *Policy) { p.ListsStale = Reactions{} })
	for state := ListInvalid; state <= ListFresh; state++ {
		for _, op := range []Operation{Install, Trust, CI, Run, "", "unheard-of"} {
			known := slices.Contains([]Operation{Install, Trust, CI, Run}, op)
			attack := state == ListInvalid || state == ListRolledBack
			for _, c := range []struct {
				name   string
				policy *Policy
				refuse bool
			}{
				{"default", Default(), op != Run},
				{"lenient", lenient, !known || attack && op != Run},
				{"strict", strict, true},
			} {
				want := Warned
				switch {
				case state == ListFresh:
					want = Passed
				case c.refuse:
					want = Failed
				}
				if got := Evaluate(c.policy, listed(op, listIn(state))).result(t, "lists"); got.Outcome != want {
					t.Errorf("%v, %q, %s: %s, want %s", state, op, c.name, got.Outcome, want)
				}
			}
		}
	}
}

func TestZeroValuesRefuse(t *testing.T) {
	if r := Evaluate(nil, unsigned()); r.Accepted() {
		t.Errorf("no policy: %+v", r)
	}
	if r := Evaluate(&Policy{}, unsigned()); r.Accepted() {
		t.Errorf("zero policy: %+v", r)
	}
	if r := Evaluate(Default(), Input{}); r.Accepted() {
		t.Errorf("zero input: %+v", r)
	}
	if r := Evaluate(Default(), input(listed(Install, freshList()), func(in *Input) { in.Now = time.Time{} })); r.Accepted() {
		t.Errorf("no time: %+v", r)
	}
	if r := Evaluate(Default(), input(unsigned(), func(in *Input) { in.Lists = []List{{}} })); r.Accepted() {
		t.Errorf("zero list: %+v", r)
	}
	if (Report{}).Accepted() || (Report{}).Err() == nil {
		t.Error("the zero report accepts")
	}
	if p := Default().Narrow(&Narrowing{}); p.Signature != Required || p.SBOM != Required || p.ListsStale != (Reactions{}) {
		t.Errorf("zero narrowing: %+v", p)
	}
}

// TestReport: every report has every rule once and in the same order, and says why.
func TestReport(t *testing.T) {
	order := []string{"evidence", "publisher", "signature", "threshold", "provenance", "source", "sbom", "licence", "cool-down", "lists", "lock"}
	for seed := range uint64(500) {
		r := newRandom(seed)
		report := Evaluate(r.policy(), r.input())
		var rules []string
		for _, one := range report.Results {
			rules = append(rules, one.Rule)
			if one.Why == "" || one.Found == "" || (one.Code != "") != (one.Outcome == Failed) {
				t.Errorf("%+v", one)
			}
			if one.Want == "" && one.Outcome == Failed && one.Rule != "publisher" {
				t.Errorf("refused, and nothing is wanted: %+v", one)
			}
		}
		if !slices.Equal(rules, order) {
			t.Fatalf("%v", rules)
		}
		if report.Accepted() != (len(report.Failed()) == 0) || (report.Verdict == Signed) != (len(report.Signers) > 0 && report.Accepted()) {
			t.Errorf("%+v", report)
		}
	}
}

func TestErr(t *testing.T) {
	if err := Evaluate(naming(alice), with(signed(alice))).Err(); err != nil {
		t.Error(err)
	}
	err := Evaluate(change(Default(), func(p *Policy) { p.Signature, p.SBOM = Required, Required }), unsigned()).Err()
	var refusal *Refusal
	if !errors.As(err, &refusal) || len(refusal.Report.Failed()) != 2 {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"repo-facts 1.0.0", CodeSignatureRequired, CodeSBOM} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if got := Evaluate(Default(), with(signed(alice))).Warned(); len(got) != 1 || got[0].Rule != "publisher" || !strings.Contains(got[0].Why, "unknown signer") {
		t.Errorf("%+v", got)
	}
}

// TestMostSpecificFirst: all publishers whose patterns match count, and are named
// from the most specific pattern to the least.
func TestMostSpecificFirst(t *testing.T) {
	p := Default()
	p.Publishers = []Publisher{
		{Plugins: []IDPattern{"*"}, Key: keyA},
		{Plugins: []IDPattern{"com.*"}, Key: keyB},
		{Plugins: []IDPattern{"*", "com.example.a"}, Identity: "ops@example.com", Issuer: github},
		{Plugins: []IDPattern{"org.*"}, Identity: "other@example.com", Issuer: github},
	}
	got := p.publishersOf("com.example.a")
	if want := []Publisher{p.Publishers[2], p.Publishers[1], p.Publishers[0]}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	in := with(signed(alice), signed(bob))
	in.ID = "com.example.a"
	if r := Evaluate(p, in); len(r.Signers) != 2 || r.Verdict != Signed {
		t.Errorf("%+v", r)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	in := unsigned()
	for range 100 {
		in.Refused = append(in.Refused, Refused{Why: "broken"})
	}
	if got := Evaluate(Default(), in).result(t, "evidence").Found; strings.Count(got, "broken") != maxListed || !strings.Contains(got, "80 more") {
		t.Error(got)
	}
}

// TestJudgeLists: the rule alone says what it says among the others.
func TestJudgeLists(t *testing.T) {
	outcomes := map[Outcome]int{}
	for seed := range uint64(5000) {
		r := newRandom(seed)
		p, in := r.policy(), r.input()
		alone := JudgeLists(p, in.Operation, in.Lists, in.Now)
		outcomes[alone.Outcome]++
		if i := slices.Index(Evaluate(p, in).Results, alone); i < 0 {
			t.Fatalf("seed %d: alone it says %+v", seed, alone)
		}
	}
	for _, o := range []Outcome{Passed, Failed, Warned, NotApplicable} {
		if outcomes[o] < 50 {
			t.Errorf("%v came out %d times", o, outcomes[o])
		}
	}
	if r := JudgeLists(nil, Run, []List{{State: ListAbsent}}, now); r.Outcome != Failed {
		t.Errorf("without a policy: %+v", r)
	}
}
