// Package policy judges evidence: it reads the rules of a user and the narrowing of
// a project, and says rule by rule whether what is known about a package satisfies
// them. The file formats and the rules are docs/policy.md.
//
// It is pure. It is given bytes, facts and the time, and returns values: it opens no
// file and no connection, asks no clock, prints nothing and checks no signature. It
// refuses to guess: evidence that is required and absent fails, evidence about other
// bytes counts for nothing, and no project can widen what its user allows.
package policy

import (
	"errors"
	"slices"
	"time"
)

// Version is the only version of the policy file that is known.
const Version = 1

// FileName is the policy file's name in the user's configuration directory.
const FileName = "policy.toml"

// Bounds of a policy file and of a narrowing.
const (
	MaxBytes      = 1 << 20
	MaxPublishers = 1000
	MaxPatterns   = 256 // of one list
	MaxLicences   = 1000
	MaxThreshold  = 16
	MaxPeriod     = 10 * 365 * 24 * time.Hour
)

// ErrVersion is the cause of a fault: the file's version is not Version.
var ErrVersion = errors.New("policy version not supported")

// A Requirement says whether evidence must be there. The zero value requires it.
type Requirement uint8

// The requirements.
const (
	Required Requirement = iota
	Allowed              // checked where it is there, and not missed where it is not
)

// A Reaction is what follows from a revocation list that is not fresh. The zero
// value refuses.
type Reaction uint8

// The reactions.
const (
	Refuse Reaction = iota
	Warn
)

// An Operation is what a package is judged for.
type Operation string

// The operations. Any other value is treated as Install.
const (
	Install Operation = "install"
	Trust   Operation = "trust"
	CI      Operation = "ci"
	Run     Operation = "run"
)

// Reactions holds the Reaction of every Operation.
type Reactions struct{ Install, Trust, CI, Run Reaction }

// of returns the reaction for an operation, which is Refuse for an unknown one.
func (r Reactions) of(op Operation) Reaction {
	switch op {
	case Run:
		return r.Run
	case CI:
		return r.CI
	case Trust:
		return r.Trust
	case Install:
		return r.Install
	}
	return Refuse
}

// A Publisher is a party that may publish the plugins of the given ids: whoever has
// Key, or whoever Issuer vouches for under an identity that Identity matches.
type Publisher struct {
	Plugins  []IDPattern
	Key      string // a key id, as verify.Signer.Key; or "" and
	Identity IdentityPattern
	Issuer   string // exact
}

// A Policy is what a user asks of every package. The zero Policy asks for everything
// that needs no value of its own. Policies are values that Narrow never changes.
type Policy struct {
	Signature      Requirement
	Threshold      int // distinct signers; below 1 means 1
	SBOM           Requirement
	MaxListAge     time.Duration // of a revocation list since its issuedAt; 0: until its own expiry
	CoolDown       time.Duration // since the earliest trusted time; 0: none
	DeniedLicences []string      // SPDX licence ids
	ListsStale     Reactions

	Publishers []Publisher
	// Only are filters that projects put before Publishers: a signer counts only if it
	// matches one pattern of each filter.
	Only [][]SignerPattern

	// Builders and Sources are what a provenance must name: a value that matches one
	// pattern of each set. Any set at all makes provenance required.
	Builders, Sources [][]PrefixPattern
}

// Default is the policy of a user without a policy file, and what a policy file
// says with nothing but its version.
func Default() *Policy {
	return &Policy{Signature: Allowed, Threshold: 1, SBOM: Allowed, ListsStale: Reactions{Run: Warn}}
}

// A Narrowing is what a project asks beyond its user's policy. It has no members
// that could add anything. The zero Narrowing requires what can be required;
// ParseNarrowing leaves what the project does not say as it is.
type Narrowing struct {
	Signature      Requirement
	Threshold      int
	SBOM           Requirement
	MaxListAge     time.Duration // 0: as it is
	CoolDown       time.Duration
	DeniedLicences []string
	ListsStale     Reactions // Warn: as it is

	Publishers        []SignerPattern // nil: as it is
	Builders, Sources []PrefixPattern // nil: as it is
}

// Narrow returns the policy that asks what p and n ask. Whatever it accepts, p
// accepts. A nil n changes nothing. p stays as it is and shares no list that grows.
func (p *Policy) Narrow(n *Narrowing) *Policy {
	q := *p
	q.DeniedLicences = slices.Clone(p.DeniedLicences)
	q.Publishers = slices.Clone(p.Publishers)
	q.Only = slices.Clone(p.Only)
	q.Builders = slices.Clone(p.Builders)
	q.Sources = slices.Clone(p.Sources)
	if n == nil {
		return &q
	}
	q.Signature = min(p.Signature, n.Signature)
	q.Threshold = max(p.Threshold, n.Threshold)
	q.SBOM = min(p.SBOM, n.SBOM)
	q.CoolDown = max(p.CoolDown, n.CoolDown)
	if n.MaxListAge > 0 && (p.MaxListAge <= 0 || n.MaxListAge < p.MaxListAge) {
		q.MaxListAge = n.MaxListAge
	}
	for _, id := range n.DeniedLicences {
		if !slices.Contains(q.DeniedLicences, id) {
			q.DeniedLicences = append(q.DeniedLicences, id)
		}
	}
	q.ListsStale = Reactions{
		Install: min(p.ListsStale.Install, n.ListsStale.Install),
		Trust:   min(p.ListsStale.Trust, n.ListsStale.Trust),
		CI:      min(p.ListsStale.CI, n.ListsStale.CI),
		Run:     min(p.ListsStale.Run, n.ListsStale.Run),
	}
	if n.Publishers != nil {
		q.Only = append(q.Only, slices.Clone(n.Publishers))
	}
	if n.Builders != nil {
		q.Builders = append(q.Builders, slices.Clone(n.Builders))
	}
	if n.Sources != nil {
		q.Sources = append(q.Sources, slices.Clone(n.Sources))
	}
	return &q
}
