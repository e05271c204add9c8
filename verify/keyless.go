package verify

import (
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A KeylessRequest asks for a Sigstore bundle over an artifact's bytes, under a certificate
// that is made out for an identity token. The key lives for this one signature.
type KeylessRequest struct {
	Artifact digest.Digest `json:"artifact"`
	// Token is the identity token, a JWT; "" where Ambient says how to get one.
	Token   string        `json:"token,omitempty"`
	Ambient *AmbientToken `json:"ambient,omitempty"`
	// The services' URLs. Timestamp is the whole address of a timestamp authority, "": none
	// is asked.
	Fulcio    string `json:"fulcio"`
	Rekor     string `json:"rekor"`
	Timestamp string `json:"timestamp,omitempty"`
	// TrustedRoot is what the bundle must prove itself under before it is handed out;
	// absent: the one that is shipped.
	TrustedRoot []byte    `json:"trustedRoot,omitempty"`
	Now         time.Time `json:"now"`
	Network     Network   `json:"network"`
}

// An AmbientToken is where a job of GitHub Actions gets its identity token.
type AmbientToken struct {
	URL   string `json:"url"`
	Token string `json:"token"` // the bearer token that the request needs
}

// MaxToken bounds an identity token, in bytes.
const MaxToken = 64 << 10

// KeylessTime bounds the answer to a KeylessRequest: several services are asked, and a
// transparency log answers when the entry is in its tree.
const KeylessTime = 2 * time.Minute

// The codes of refusals of identity tokens.
const (
	CodeTokenMalformed Code = "token.malformed" // no identity token
	CodeTokenExpired   Code = "token.expired"
	CodeTokenRefused   Code = "token.refused" // the certificate authority does not accept it
)
