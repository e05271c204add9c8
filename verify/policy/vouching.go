package policy

import (
	"fmt"
	"slices"

	"github.com/switchyard-plugins/switchyard/verify"
)

// The rules about who vouches for a package.

// evidence: whatever lies beside the archive and claims to vouch for it must do so.
func (e *evaluation) evidence() Result {
	r := Result{Rule: "evidence", Want: "evidence about this archive that verifies"}
	var wrong []string
	for _, f := range e.foreign {
		wrong = append(wrong, fmt.Sprintf("a %s by %s is about %s", f.Kind, f.Signer, orNone(string(f.Artifact))))
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
		want = append(want, "signed by "+s.String())
		switch {
		case len(e.signatures) == 0:
			missing = append(missing, "the lock records a signature by "+s.String()+", and now there is none")
		case !slices.ContainsFunc(e.signatures, func(f verify.Facts) bool { return f.Signer == *s }):
			missing = append(missing, "the lock records another signer, "+s.String())
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
