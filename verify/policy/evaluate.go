package policy

import (
	"fmt"
	"slices"
	"time"

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

// evidence: whatever lies beside the archive and claims to vouch for it must do so.
func (e *evaluation) evidence() Result {
	r := Result{Rule: "evidence", Want: "evidence about this archive that verifies"}
	var wrong []string
	for _, f := range e.foreign {
		wrong = append(wrong, fmt.Sprintf("a %s by %s is about %s", f.Kind, signerName(f.Signer), orNone(string(f.Artifact))))
	}
	for _, one := range e.in.Refused {
		if one.Reason != UnknownKey {
			wrong = append(wrong, fmt.Sprintf("a %s does not verify: %s", one.Kind, one.Why))
		}
	}
	switch {
	case len(wrong) > 0:
		return r.failed(CodeEvidence, join(wrong), "a package without evidence is judged without it; one with wrong evidence is not")
	case len(e.in.Facts) == 0 && len(e.in.Refused) == 0:
		return r.notApplicable("none", "no evidence lies beside the package")
	}
	return r.passed(number(len(e.in.Facts), "piece of evidence", "pieces of evidence"), "all evidence that could be checked is about this archive")
}

// publisher: a signature must be of somebody who may publish this id.
func (e *evaluation) publisher() Result {
	r := Result{Rule: "publisher", Want: publisherNames(e.publishers)}
	if len(e.Only) > 0 {
		r.Want = orNone(r.Want) + "; of these the project admits " + setNames(e.Only)
	}
	found := e.signatureNames()
	switch {
	case len(e.signatures) == 0 && e.strangers == 0:
		return r.notApplicable("unsigned", "there is no signature whose signer could be compared")
	case len(e.signers) > 0:
		why := "signed by a publisher whom the policy names for " + e.in.ID
		if others := e.others(); others > 0 {
			why += "; " + number(others, "other signature counts", "other signatures count") + " for nothing"
		}
		return r.passed(found, why)
	case len(e.publishers) > 0 && len(e.named) > 0:
		return r.failed(CodePublisher, found, "the project admits none of the publishers who signed")
	case len(e.publishers) > 0:
		return r.failed(CodePublisher, found, "signed, but by nobody who may publish "+e.in.ID)
	case !slices.ContainsFunc(e.signatures, func(f verify.Facts) bool { return e.filtersAdmit(f.Signer) }) && len(e.Only) > 0:
		return r.failed(CodePublisher, found, "the project admits none of those who signed")
	}
	return r.warned(found, "signed by an unknown signer: the policy names no publisher for "+e.in.ID+", so the signature is not taken as verified")
}

// others counts the signatures that are of nobody whom the policy names.
func (e *evaluation) others() int {
	n := e.strangers
	for _, f := range e.signatures {
		if !slices.Contains(e.signers, f.Signer) {
			n++
		}
	}
	return n
}

// signature: a publisher's signature must be there where one is required.
func (e *evaluation) signature() Result {
	r := Result{Rule: "signature", Want: "allowed"}
	if e.Signature != Allowed {
		r.Want = "required"
	}
	found := e.signatureNames()
	switch {
	case len(e.signers) > 0:
		return r.passed(found, "signed by a publisher whom the policy names")
	case e.Signature == Allowed && len(e.signatures)+e.strangers > 0:
		return r.notApplicable(found, "no signature is required, and the one that is there is of nobody whom the policy names")
	case e.Signature == Allowed:
		return r.notApplicable("unsigned", "no signature is required: what counts is the review of the package's digest")
	case len(e.signatures)+e.strangers == 0:
		return r.failed(CodeSignatureRequired, "unsigned", "a signature is required and there is none")
	case len(e.publishers) == 0:
		return r.failed(CodeSignatureRequired, found, "a signature is required, and the policy names no publisher for "+e.in.ID)
	}
	return r.failed(CodeSignatureRequired, found, "a signature is required, and none is of a publisher who counts here")
}

// threshold: enough different publishers must have signed. More than one makes
// signatures required.
func (e *evaluation) threshold() Result {
	need, have := max(1, e.Threshold), len(e.signers)
	r := Result{Rule: "threshold", Want: number(need, "distinct signer", "distinct signers")}
	found := number(have, "distinct signer", "distinct signers")
	switch {
	case have >= need:
		return r.passed(found, "enough different publishers signed")
	case need == 1:
		return r.notApplicable(found, "one signer is asked for where a signature is required at all")
	}
	return r.failed(CodeThreshold, found, "too few different publishers signed; one who signs twice counts once")
}

// provenance: a publisher must state that one of the builders made the archive.
func (e *evaluation) provenance() Result {
	r := Result{Rule: "provenance", Want: setNames(e.Builders)}
	found := statementNames(e.statements, func(s *verify.Statement) string { return s.Builder })
	if !e.provenanceRequired() {
		return r.notApplicable(found, "no provenance is required")
	}
	if len(e.Builders) == 0 {
		r.Want = "any builder"
	}
	switch {
	case len(e.statements) == 0:
		return r.failed(CodeProvenance, "none", "provenance is required and there is none")
	case len(e.publishers) == 0:
		return r.failed(CodeProvenance, found, "the policy names no publisher for "+e.in.ID+", so nobody's provenance counts")
	case len(e.vouched) == 0:
		return r.failed(CodeProvenance, found, "no provenance is signed by a publisher who counts here")
	case len(e.built()) == 0:
		return r.failed(CodeProvenance, found, "no builder is one that the policy asks for")
	}
	return r.passed(found, "a publisher states a builder that the policy asks for")
}

// source: the same provenance must name one of the sources.
func (e *evaluation) source() Result {
	r := Result{Rule: "source", Want: setNames(e.Sources)}
	found := statementNames(e.statements, func(s *verify.Statement) string { return s.Source })
	if len(e.Sources) == 0 {
		return r.notApplicable(found, "no source is required")
	}
	built := e.built()
	if len(built) == 0 {
		return r.failed(CodeSource, found, "a source is required, and no provenance that counts names one")
	}
	for _, f := range built {
		if matchesAll(e.Sources, f.Statement.Source) {
			return r.passed(f.Statement.Source, "a publisher states a source that the policy asks for")
		}
	}
	return r.failed(CodeSource, found, "no source is one that the policy asks for")
}

func (e *evaluation) provenanceRequired() bool { return len(e.Builders)+len(e.Sources) > 0 }

// built returns the publishers' provenances whose builder is asked for.
func (e *evaluation) built() []verify.Facts {
	var list []verify.Facts
	for _, f := range e.vouched {
		if matchesAll(e.Builders, f.Statement.Builder) {
			list = append(list, f)
		}
	}
	return list
}

// sbom: an SBOM must be there where it is required, and be true wherever it is there.
func (e *evaluation) sbom() Result {
	r := Result{Rule: "sbom", Want: "allowed"}
	if e.SBOM != Allowed {
		r.Want = "required"
	}
	problems := e.in.SBOM.Problems
	switch e.in.SBOM.State {
	case SBOMPresent:
		if len(problems) > 0 {
			return r.warned(join(problems), "the SBOM is true of the files that it lists, and leaves something open")
		}
		return r.passed("present", "the SBOM is valid and true of the files that it lists")
	case SBOMAbsent:
		if e.SBOM == Allowed {
			return r.notApplicable("none", "no SBOM is required")
		}
		return r.failed(CodeSBOM, "none", "an SBOM is required and there is none")
	}
	found := "not checked"
	if len(problems) > 0 {
		found = join(problems)
	}
	return r.failed(CodeSBOM, found, "the SBOM is not valid, not true of the package's files, or could not be checked")
}

// licence: what the SBOM states must hold no denied licence, and it must state
// something: leaving the SBOM out is no way around a denial.
func (e *evaluation) licence() Result {
	stated := slices.DeleteFunc(slices.Clone(e.in.SBOM.Licences), func(s string) bool { return !statesLicence(s) })
	if e.in.SBOM.State != SBOMPresent {
		stated = nil
	}
	r := Result{Rule: "licence"}
	found := "unknown"
	if len(stated) > 0 {
		found = join(stated)
	}
	if len(e.DeniedLicences) == 0 {
		return r.notApplicable(found, "no licence is denied")
	}
	r.Want = "none of " + join(e.DeniedLicences)
	for _, expression := range stated {
		if id := deniedLicence(expression, e.DeniedLicences); id != "" {
			return r.failed(CodeLicence, expression, id+" is denied")
		}
	}
	switch {
	case e.in.SBOM.State != SBOMPresent:
		return r.failed(CodeLicence, found, "licences are denied, and no valid SBOM says which ones the package holds")
	case len(stated) == 0:
		return r.failed(CodeLicence, found, "licences are denied, and the SBOM states none")
	case len(stated) < len(e.in.SBOM.Licences):
		return r.warned(found, "no stated licence is denied, and for some components the SBOM states none")
	}
	return r.passed(found, "no stated licence is denied")
}

// coolDown: a signature must have been seen long enough for others to notice what is
// wrong with it. The filters of projects have no say here: with fewer signatures
// another time, or none, would be the earliest.
func (e *evaluation) coolDown() Result {
	r := Result{Rule: "cool-down"}
	signatures := e.named
	if len(e.publishers) == 0 {
		signatures = e.signatures
	}
	earliest, known := earliestTime(signatures)
	found := "no trusted time"
	if known {
		found = "first seen " + timeName(earliest)
	}
	if e.CoolDown <= 0 {
		return r.notApplicable(found, "no cool-down is asked for")
	}
	r.Want = e.CoolDown.String() + " since the first trusted time"
	switch {
	case !known:
		return r.notApplicable(found, "there is no signature with a trusted time from which to count")
	case e.in.Now.Sub(earliest) < e.CoolDown:
		return r.failed(CodeCoolDown, found, "too fresh; accepted from "+timeName(earliest.Add(e.CoolDown)))
	}
	return r.passed(found, "old enough")
}

func earliestTime(signatures []verify.Facts) (earliest time.Time, known bool) {
	for _, f := range signatures {
		for _, t := range f.Times {
			if !t.At.IsZero() && (!known || t.At.Before(earliest)) {
				earliest, known = t.At, true
			}
		}
	}
	return earliest, known
}

// lists: revocations must be known and fresh. What a list revokes is not decided here.
func (e *evaluation) lists() Result {
	r := Result{Rule: "lists", Want: "fresh revocation lists"}
	if e.MaxListAge > 0 {
		r.Want += ", at most " + e.MaxListAge.String() + " old"
	}
	if len(e.in.Lists) == 0 {
		if e.MaxListAge > 0 {
			return r.warned("none", "an age of revocation lists is asked for, and no issuer of lists is configured")
		}
		return r.notApplicable("none", "no issuer of revocation lists is configured")
	}
	var found, refused, warned []string
	for _, l := range e.in.Lists {
		state, why := e.listState(l)
		found = append(found, fmt.Sprintf("%s version %d: %v", orNone(l.Issuer), l.Version, state))
		switch {
		case state == ListFresh:
		case e.reaction(state) == Refuse:
			refused = append(refused, fmt.Sprintf("%s: %s", orNone(l.Issuer), why))
		default:
			warned = append(warned, fmt.Sprintf("%s: %s", orNone(l.Issuer), why))
		}
	}
	switch {
	case len(refused) > 0:
		return r.failed(CodeListStale, join(found), join(append(refused, warned...)))
	case len(warned) > 0:
		return r.warned(join(found), join(warned))
	}
	return r.passed(join(found), "all lists are fresh")
}

// listState is the state of a list now and under the policy's own age.
func (e *evaluation) listState(l List) (ListState, string) {
	switch l.State {
	case ListFresh:
	case ListStale:
		return ListStale, "the list expired " + timeName(l.ExpiresAt)
	case ListAbsent:
		return ListAbsent, "there is no list"
	case ListFuture:
		return ListFuture, "the list is dated " + timeName(l.IssuedAt) + ", in the future"
	case ListRolledBack:
		return ListRolledBack, "the list is older than one that was seen or locked"
	default:
		return ListInvalid, "the list is not valid"
	}
	age := e.in.Now.Sub(l.IssuedAt)
	switch {
	case e.in.Now.IsZero():
		return ListStale, "the time is not known"
	case !e.in.Now.Before(l.ExpiresAt):
		return ListStale, "the list expired " + timeName(l.ExpiresAt)
	case e.MaxListAge > 0 && age > e.MaxListAge:
		return ListStale, "the list was issued " + timeName(l.IssuedAt) + ", longer ago than the policy allows"
	}
	return ListFresh, ""
}

// reaction is what a state leads to. A list that is invalid or rolled back is no
// matter of age: only a run may be told to go on with a warning.
func (e *evaluation) reaction(s ListState) Reaction {
	if (s == ListInvalid || s == ListRolledBack) && e.in.Operation != Run {
		return Refuse
	}
	return e.ListsStale.of(e.in.Operation)
}

// lock: the evidence must be no weaker than what the lock recorded, whatever else the
// policy asks.
func (e *evaluation) lock() Result {
	r := Result{Rule: "lock"}
	locked := e.in.Lock
	if locked == nil {
		return r.notApplicable("not locked", "no lock records this package")
	}
	found := join(append([]string{e.signatureNames()}, e.kinds()...))
	if locked.Signer == nil && len(locked.Evidence) == 0 {
		return r.passed(found, "the lock records no evidence")
	}
	var want, missing []string
	if s := locked.Signer; s != nil {
		want = append(want, "signed by "+signerName(*s))
		switch {
		case len(e.signatures) == 0:
			missing = append(missing, "the lock records a signature by "+signerName(*s)+", and now there is none")
		case !slices.ContainsFunc(e.signatures, func(f verify.Facts) bool { return f.Signer == *s }):
			missing = append(missing, "the lock records another signer, "+signerName(*s))
		}
	}
	have := e.kinds()
	for _, kind := range locked.Evidence {
		want = append(want, string(kind))
		if !slices.Contains(have, string(kind)) {
			missing = append(missing, fmt.Sprintf("the lock records evidence of the kind %s, and now there is none", kind))
		}
	}
	r.Want = join(want)
	if len(missing) > 0 {
		return r.failed(CodeWeakerThanLock, found, join(missing))
	}
	return r.passed(found, "everything that the lock records is there")
}

// kinds returns the kinds of evidence that count. Where the policy names publishers,
// a provenance of anybody else does not: it would stand in for a publisher's own.
func (e *evaluation) kinds() []string {
	var kinds []string
	if len(e.signatures) > 0 && (len(e.publishers) == 0 || len(e.signers) > 0) {
		kinds = append(kinds, string(verify.Signature))
	}
	if len(e.vouched) > 0 || len(e.publishers) == 0 && len(e.statements) > 0 {
		kinds = append(kinds, string(verify.Provenance))
	}
	if e.in.SBOM.State == SBOMPresent {
		kinds = append(kinds, string(verify.SBOM))
	}
	return kinds
}
