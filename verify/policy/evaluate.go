package policy

import (
	"slices"

	"github.com/switchyard-plugins/switchyard/verify"
)

// Evaluate judges one package. A nil policy is the zero Policy. It reads nothing but
// its arguments and gives equal reports for equal ones.
func Evaluate(p *Policy, in Input) Report {
	if p == nil {
		p = &Policy{}
	}
	e := gather(p, in)
	results := []Result{
		e.evidence(),
		e.publisher(),
		e.signature(),
		e.threshold(),
		e.provenance(),
		e.source(),
		e.sbom(),
		e.licence(),
		e.coolDown(),
		e.lists(),
		e.lock(),
	}
	report := Report{
		ID: in.ID, Version: in.Version, Platform: in.Platform, Operation: in.Operation,
		Verdict: Reviewed, Signers: e.signers, Results: results,
	}
	if len(e.signers) > 0 {
		report.Verdict = Signed
	}
	if slices.ContainsFunc(results, func(r Result) bool { return r.Outcome == Failed }) {
		report.Verdict = RefusedByPolicy
	}
	return report
}

// An evaluation is the input in the order in which the rules ask for it. Only facts
// about the package's own archive are in it, except foreign.
type evaluation struct {
	*Policy
	in Input

	foreign    []verify.Facts // about other bytes
	publishers []Publisher    // that the policy names for the id, the most specific first
	signatures []verify.Facts
	strangers  int             // signatures by keys that nobody named
	named      []verify.Facts  // signatures of publishers before the filters of projects
	signers    []verify.Signer // distinct, of publishers behind the filters
	statements []verify.Facts  // provenances
	vouched    []verify.Facts  // provenances of publishers behind the filters
}

func gather(p *Policy, in Input) *evaluation {
	e := &evaluation{Policy: p, in: in, publishers: p.publishersOf(in.ID)}
	for _, f := range in.Facts {
		named := slices.ContainsFunc(e.publishers, func(one Publisher) bool { return one.allows(f.Signer) })
		counts := named && p.filtersAdmit(f.Signer)
		switch {
		case in.Archive == "" || f.Artifact != in.Archive:
			e.foreign = append(e.foreign, f)
		case f.Kind == verify.Signature:
			e.signatures = append(e.signatures, f)
			if named {
				e.named = append(e.named, f)
			}
			if counts && !slices.Contains(e.signers, f.Signer) {
				e.signers = append(e.signers, f.Signer)
			}
		case f.Kind == verify.Provenance && f.Statement != nil:
			e.statements = append(e.statements, f)
			if counts {
				e.vouched = append(e.vouched, f)
			}
		}
	}
	for _, r := range in.Refused {
		if r.Reason == UnknownKey && r.Kind == verify.Signature {
			e.strangers++
		}
	}
	return e
}

// publishersOf returns the publishers whose patterns match an id, those with the most
// specific pattern first. All of them count.
func (p *Policy) publishersOf(id string) []Publisher {
	type match struct {
		publisher Publisher
		pattern   IDPattern
	}
	var matches []match
	for _, one := range p.Publishers {
		best, found := IDPattern("*"), false
		for _, pattern := range one.Plugins {
			if pattern.Match(id) && (!found || pattern.compare(best) < 0) {
				best, found = pattern, true
			}
		}
		if found {
			matches = append(matches, match{one, best})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int { return a.pattern.compare(b.pattern) })
	list := make([]Publisher, len(matches))
	for i, m := range matches {
		list[i] = m.publisher
	}
	return list
}

// filtersAdmit reports whether a signer passes the filter of every project.
func (p *Policy) filtersAdmit(s verify.Signer) bool {
	for _, filter := range p.Only {
		if !slices.ContainsFunc(filter, func(one SignerPattern) bool { return one.Match(s) }) {
			return false
		}
	}
	return true
}
