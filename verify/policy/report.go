package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// Input is everything that Evaluate looks at beside the policy. Its zero value is
// refused: what the caller does not say is taken at its worst.
type Input struct {
	Operation             Operation
	ID, Version, Platform string        // of the package, as its manifest says and the caller has checked
	Archive               digest.Digest // of the bytes that facts must be about; "" where there is no archive
	Facts                 []verify.Facts
	Refused               []Refused // evidence that lies beside the archive and proved nothing
	SBOM                  SBOM
	Lock                  *Locked // nil where no lock names the package
	Lists                 []List  // one for each issuer that the user has configured
	Now                   time.Time
}

// Refused is evidence that was presented and not accepted by the verify worker.
type Refused struct {
	Kind   verify.Kind
	Bundle digest.Digest
	Reason Reason
	Why    string
}

// A Reason tells evidence that is wrong from evidence by a stranger. The zero value
// is the worse one.
type Reason uint8

// The reasons.
const (
	Invalid    Reason = iota // malformed, about other bytes, expired, or not signed as it says
	UnknownKey               // signed with a key that nobody named
)

// SBOM is what is known about the SBOM of the package.
type SBOM struct {
	State    SBOMState
	Licences []string // SPDX expressions as the document states them
	Problems []string // what failed, or what a sound document leaves open, as files that it does not list
}

// An SBOMState says what came of the check. The zero value is a failure.
type SBOMState uint8

// The states of an SBOM.
const (
	SBOMFailed    SBOMState = iota // not valid, not true of the files, or not checked
	SBOMAbsent                     // the package has none
	SBOMPresent                    // valid and true of the files that it lists
	SBOMUnchecked                  // there is one, and nobody could check it
)

// Locked is what the lock recorded about the evidence of a package. Empty, it says
// that the package was locked unsigned.
type Locked struct {
	Signer   *verify.Signer
	Evidence []verify.Kind
}

// List is the state of the revocation list of one issuer.
type List struct {
	Issuer    string
	Version   int64
	IssuedAt  time.Time
	ExpiresAt time.Time
	State     ListState
}

// A ListState is what reading a revocation list found. The zero value is the worst.
type ListState uint8

// The states of a list.
const (
	ListInvalid    ListState = iota // malformed, truncated, too large, or not signed by its root's keys
	ListRolledBack                  // older than a version that was seen or locked
	ListFuture                      // issued later than now
	ListAbsent                      // its issuer is configured and there is none
	ListStale                       // past its own expiry
	ListFresh
)

func (s ListState) String() string {
	switch s {
	case ListRolledBack:
		return "rolled back"
	case ListFuture:
		return "dated in the future"
	case ListAbsent:
		return "absent"
	case ListStale:
		return "stale"
	case ListFresh:
		return "fresh"
	}
	return "invalid"
}

// An Outcome is what one rule says.
type Outcome string

// The outcomes.
const (
	Passed        Outcome = "passed"
	Failed        Outcome = "failed"
	NotApplicable Outcome = "not_applicable"
	Warned        Outcome = "warned" // accepted, and to be shown
)

// A Verdict is what all rules say together. The zero value accepts nothing.
type Verdict string

// The verdicts.
const (
	RefusedByPolicy Verdict = "refused"
	Signed          Verdict = "signed"   // by publishers whom the policy names
	Reviewed        Verdict = "reviewed" // nobody whom the policy names vouches for it: what counts is the review of its digest
)

// The codes of failed rules. They are stable.
const (
	CodeEvidence          = "policy.evidence"
	CodePublisher         = "policy.publisher"
	CodeSignatureRequired = "policy.signature_required"
	CodeThreshold         = "policy.threshold"
	CodeProvenance        = "policy.provenance"
	CodeSource            = "policy.source"
	CodeSBOM              = "policy.sbom"
	CodeLicence           = "policy.licence"
	CodeCoolDown          = "policy.cool_down"
	CodeListStale         = "policy.list_stale"
	CodeWeakerThanLock    = "policy.weaker_than_lock"
)

// A Result is what one rule found. Its texts may quote what a package, a certificate
// or a list says, unescaped.
type Result struct {
	Rule    string // as "signature"
	Outcome Outcome
	Code    string // of a failed rule, else ""
	Why     string
	Want    string // what the policy asks; "" where it asks nothing
	Found   string
}

// A Report says rule by rule how a package stands under a policy.
type Report struct {
	ID, Version, Platform string
	Operation             Operation
	Verdict               Verdict
	Signers               []verify.Signer // distinct, whom the policy names, in the order of the facts
	Results               []Result        // one of each rule, always in the same order
}

// Accepted reports whether no rule failed.
func (r Report) Accepted() bool { return r.Verdict == Signed || r.Verdict == Reviewed }

// Err returns nil for an accepted package and *Refusal otherwise.
func (r Report) Err() error {
	if r.Accepted() {
		return nil
	}
	return &Refusal{Report: r}
}

// Failed returns the results of the failed rules.
func (r Report) Failed() []Result { return r.with(Failed) }

// Warned returns the results that are to be shown though the package is accepted.
func (r Report) Warned() []Result { return r.with(Warned) }

func (r Report) with(o Outcome) []Result {
	var list []Result
	for _, one := range r.Results {
		if one.Outcome == o {
			list = append(list, one)
		}
	}
	return list
}

// A Refusal is the error of a package that a policy does not accept.
type Refusal struct{ Report Report }

func (e *Refusal) Error() string {
	failed := e.Report.Failed()
	parts := make([]string, len(failed))
	for i, f := range failed {
		parts[i] = f.Code + ": " + f.Why
	}
	return fmt.Sprintf("policy refuses %s %s: %s", e.Report.ID, e.Report.Version, strings.Join(parts, "; "))
}
