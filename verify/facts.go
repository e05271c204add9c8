// Package verify holds what is known about who vouches for a package: the evidence
// types that travel between the program and its verify worker, and the client of
// that worker.
//
// It checks no signature itself and decides nothing: the worker reports facts that
// are bound to the digest it was asked about, and a policy judges them. It links
// neither sigstore-go nor anything that opens a connection.
package verify

import (
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A Kind is a kind of evidence.
type Kind string

// The kinds of evidence.
const (
	Signature  Kind = "signature"  // a Sigstore bundle over the archive's bytes
	Provenance Kind = "provenance" // a DSSE in-toto statement about the archive
	SBOM       Kind = "sbom"       // an SPDX document inside the package
)

// A Signer is who made a signature: a key, or an identity that an issuer vouched
// for. Two evidences have the same signer if these values are equal.
type Signer struct {
	Key      string `json:"key,omitempty"`      // "sha256:" and the hex SHA-256 of the PKIX public key
	Identity string `json:"identity,omitempty"` // the certificate's subject alternative name
	Issuer   string `json:"issuer,omitempty"`   // the OIDC issuer that vouched for the identity
}

// String is who it is, for people.
func (s Signer) String() string {
	switch {
	case s.Identity != "":
		issuer := s.Issuer
		if issuer == "" {
			issuer = "nobody"
		}
		return s.Identity + " (vouched for by " + issuer + ")"
	case s.Key != "":
		return "the key " + s.Key
	}
	return "nobody"
}

// A TrustedTime is a time that somebody else than the signer states.
type TrustedTime struct {
	Source string    `json:"source"` // "transparency-log" or "timestamp-authority"
	At     time.Time `json:"at"`
}

// A LogEntry is an entry of a transparency log, its inclusion proved.
type LogEntry struct {
	Log   string `json:"log"` // hex id of the log's key
	Index int64  `json:"index"`
}

// A Statement is what a provenance says about the archive.
type Statement struct {
	PredicateType string `json:"predicateType"`
	Builder       string `json:"builder,omitempty"`
	BuildType     string `json:"buildType,omitempty"`
	Source        string `json:"source,omitempty"`       // as "git+https://example.com/repository@refs/tags/v1"
	SourceDigest  string `json:"sourceDigest,omitempty"` // as "sha1:…", of the revision
}

// Facts are what one bundle proves about one artifact, under the trusted root or
// the keys that were given.
type Facts struct {
	Kind        Kind          `json:"kind"`
	Artifact    digest.Digest `json:"artifact"`
	Bundle      digest.Digest `json:"bundle"` // of the bundle's bytes
	Signer      Signer        `json:"signer"`
	Times       []TrustedTime `json:"times"`
	Log         []LogEntry    `json:"log"`
	Chain       []string      `json:"chain,omitempty"`       // subjects of the certificate chain, the leaf first
	TrustedRoot digest.Digest `json:"trustedRoot,omitempty"` // "" where a key alone was used
	Statement   *Statement    `json:"statement,omitempty"`   // of a provenance
}
