package verify

import (
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Protocol is what both programs call the language between them.
const Protocol = "switchyard.verify-worker/v1"

// The bounds of what travels, in bytes.
const (
	MaxBundle      = 4 << 20  // one Sigstore bundle
	MaxTrustedRoot = 4 << 20  // one trusted root
	MaxSBOM        = 32 << 20 // one SPDX document
	MaxLine        = 64 << 20 // one request or answer, as JSON with base64
)

// A Hello is the worker's first line: a program that was built otherwise is not
// asked anything.
type Hello struct {
	Protocol string `json:"protocol"`
	Build    string `json:"build"`
}

// A Request is one job. Exactly one member beside Nonce is set.
type Request struct {
	Nonce  string         `json:"nonce"` // repeated in the answer
	Bundle *BundleRequest `json:"bundle,omitempty"`
	Sign   *SignRequest   `json:"sign,omitempty"`
	NewKey *NewKeyRequest `json:"newKey,omitempty"`
	Key    *KeyRequest    `json:"key,omitempty"`
	SBOM   *SBOMRequest   `json:"sbom,omitempty"`
	Fetch  *FetchRequest  `json:"fetch,omitempty"`
	// Keyless opens connections, to the services that it names.
	Keyless     *KeylessRequest     `json:"keyless,omitempty"`
	TUF         *TUFRequest         `json:"tuf,omitzero"`
	TrustedRoot *TrustedRootRequest `json:"trustedRoot,omitzero"` // may be empty
}

// A BundleRequest asks what a Sigstore bundle proves about an artifact.
type BundleRequest struct {
	Kind     Kind          `json:"kind"` // Signature or Provenance
	Artifact digest.Digest `json:"artifact"`
	// Path is the artifact's file, "" where there is none: only a pure Ed25519
	// signature over the bytes themselves needs it. What is read there counts only if
	// its digest is Artifact.
	Path        string    `json:"path,omitempty"`
	Document    []byte    `json:"document"`              // the bundle
	TrustedRoot []byte    `json:"trustedRoot,omitempty"` // trusted_root.json; absent: the one that is shipped
	Keys        []string  `json:"keys,omitempty"`        // PEM, public keys that may have signed
	Now         time.Time `json:"now"`
}

// A SignRequest asks for a Sigstore bundle over an artifact's bytes.
type SignRequest struct {
	Artifact   digest.Digest `json:"artifact"`
	Path       string        `json:"path"`                 // read for Ed25519 only, and only if its digest is Artifact
	Key        string        `json:"key"`                  // PEM: PKCS8, or cosign's encrypted form
	Passphrase []byte        `json:"passphrase,omitempty"` // of an encrypted key
}

// A NewKeyRequest asks for a new key pair.
type NewKeyRequest struct {
	Algorithm  Algorithm `json:"algorithm"`
	Passphrase []byte    `json:"passphrase,omitempty"` // absent: PKCS8 in the clear
}

// An Algorithm is a kind of signing key.
type Algorithm string

// The kinds of signing keys.
const (
	ECDSA   Algorithm = "ecdsa-p256"
	Ed25519 Algorithm = "ed25519"
)

// A KeyRequest asks what a key is, private or public.
type KeyRequest struct {
	PEM        string `json:"pem"`
	Passphrase []byte `json:"passphrase,omitempty"`
}

// A KeyPair answers a NewKeyRequest and a KeyRequest; Private only the first.
type KeyPair struct {
	ID        string    `json:"id"` // as Signer.Key
	Algorithm Algorithm `json:"algorithm"`
	Public    string    `json:"public"` // PEM, PKIX
	Private   string    `json:"private,omitempty"`
}

// A Signed answers a SignRequest and a KeylessRequest.
type Signed struct {
	Bundle []byte `json:"bundle"`
	Signer Signer `json:"signer"`
	Facts  *Facts `json:"facts,omitempty"` // what the bundle proves, of a KeylessRequest
}

// A Response answers one request: its nonce, and either Error or what was asked. Only a
// fetch has several: chunks come first.
type Response struct {
	Nonce   string     `json:"nonce"`
	Error   *Refusal   `json:"error,omitempty"`
	Facts   *Facts     `json:"facts,omitempty"`
	Signed  *Signed    `json:"signed,omitempty"`
	Key     *KeyPair   `json:"key,omitempty"`
	SBOM    *SBOMFacts `json:"sbom,omitempty"`
	Chunk   []byte     `json:"chunk,omitempty"`
	Fetched *Fetched   `json:"fetched,omitempty"`

	TUF         *TUFAnswer        `json:"tuf,omitempty"`
	TrustedRoot *TrustedRootFacts `json:"trustedRoot,omitempty"`
}

// A Code says at which stage a worker refused.
type Code string

// The codes of refusals.
const (
	CodeBundleMalformed  Code = "bundle.malformed" // not a Sigstore bundle that this version reads
	CodeBundleKind       Code = "bundle.kind"      // a provenance where a signature is asked for, or the other way round
	CodeRootMalformed    Code = "trusted_root.malformed"
	CodeLog              Code = "bundle.log"           // the transparency log does not prove it
	CodeTime             Code = "bundle.time"          // no trusted time, or one outside the validity of certificate or key
	CodeCertificate      Code = "bundle.certificate"   // the certificate chain does not lead to the trusted root
	CodeKeyUnknown       Code = "bundle.key_unknown"   // signed with a key that was not given
	CodeSignature        Code = "bundle.signature"     // the signature is not over this artifact
	CodeSubject          Code = "provenance.subject"   // the statement is about another artifact
	CodeStatement        Code = "provenance.statement" // the statement cannot be read
	CodeSBOMMalformed    Code = "sbom.malformed"       // not an SPDX document that this version reads
	CodeSBOMInvalid      Code = "sbom.invalid"         // an SPDX document that breaks a rule of SPDX
	CodeKeyMalformed     Code = "key.malformed"
	CodeKeyPassphrase    Code = "key.passphrase"   // the passphrase is missing or wrong
	CodeKeyAlgorithm     Code = "key.algorithm"    // neither ECDSA P-256 nor Ed25519
	CodeArtifactNeeded   Code = "artifact.needed"  // a pure Ed25519 signature needs the bytes, and no file was named
	CodeArtifactChanged  Code = "artifact.changed" // the file's digest is another one
	CodeRequestMalformed Code = "request.malformed"
	CodeCrashed          Code = "worker.crashed" // the worker panicked on this request
)

// A Refusal is why a worker does not give what was asked.
type Refusal struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string { return r.Message }
