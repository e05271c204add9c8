package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// The rules about what a package holds, how old it is, and what is known about
// revocations.

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
	case SBOMUnchecked:
		if e.SBOM == Allowed {
			return r.warned("not checked", "there is an SBOM, and nobody could check it; none is required")
		}
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

// JudgeLists is Evaluate for the rule "lists" alone: what a call asks of revocation
// lists, whatever package it is of. A nil policy is the zero Policy.
func JudgeLists(p *Policy, op Operation, lists []List, now time.Time) Result {
	if p == nil {
		p = &Policy{}
	}
	e := &evaluation{Policy: p, in: Input{Operation: op, Lists: lists, Now: now}}
	return e.lists()
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
