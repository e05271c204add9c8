// Package sigstoretest is an instance of Sigstore for tests: a certificate authority
// (Fulcio), a transparency log (Rekor), a timestamp authority and the trusted root that
// they make up, with keys that live as long as the process.
//
// It speaks the protocols of the public instance and checks what they check: the token's
// signature, audience and end, that the caller has the key which it wants certified, and
// that a signature is one over the digest that is logged. It keeps nothing and must not be
// trusted with anything.
package sigstoretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// An Instance answers as Fulcio, Rekor and a timestamp authority.
type Instance struct {
	log *ca.VirtualSigstore // its log alone is used

	rootCert         *x509.Certificate
	intermediate     *x509.Certificate
	intermediateKey  *ecdsa.PrivateKey
	stamper          *root.SigstoreTimestampingAuthority
	stamperKey       *ecdsa.PrivateKey
	certificateLog   *ecdsa.PrivateKey
	tokenKey         [32]byte // of the tokens' signatures
	entries, serials atomic.Int64
}

// New makes an instance with new keys.
func New() (*Instance, error) {
	log, err := ca.NewVirtualSigstore()
	if err != nil {
		return nil, err
	}
	i := &Instance{log: log}
	rand.Read(i.tokenKey[:])
	i.entries.Store(1000)
	top, topKey, err := ca.GenerateRootCa()
	if err != nil {
		return nil, err
	}
	i.rootCert = top
	if i.intermediate, i.intermediateKey, err = ca.GenerateFulcioIntermediate(top, topKey); err != nil {
		return nil, err
	}
	between, betweenKey, err := ca.GenerateTSAIntermediate(top, topKey)
	if err != nil {
		return nil, err
	}
	if i.stamperKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	leaf, err := ca.GenerateTSALeafCert(time.Now().Add(-time.Minute), i.stamperKey, between, betweenKey)
	if err != nil {
		return nil, err
	}
	i.stamper = &root.SigstoreTimestampingAuthority{URI: "https://tsa.localhost", Root: top, Intermediates: []*x509.Certificate{between}, Leaf: leaf,
		ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour)}
	i.certificateLog, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return i, err
}

// TrustedRoot is the instance's trusted_root.json.
func (i *Instance) TrustedRoot() ([]byte, error) {
	logs := i.log.RekorLogs()
	for id, log := range logs {
		var err error
		if log.ID, err = hex.DecodeString(id); err != nil {
			return nil, err
		}
	}
	certificates := root.FulcioCertificateAuthority{URI: "https://fulcio.localhost", Root: i.rootCert, Intermediates: []*x509.Certificate{i.intermediate},
		ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour)}
	id, err := i.certificateLogID()
	if err != nil {
		return nil, err
	}
	ctLogs := map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {BaseURL: "https://ctfe.localhost", ID: id[:], HashFunc: sigHash, SignatureHashFunc: sigHash,
		PublicKey: i.certificateLog.Public(), ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour)}}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{&certificates}, ctLogs,
		[]root.TimestampingAuthority{i.stamper}, logs)
	if err != nil {
		return nil, err
	}
	return trusted.MarshalJSON()
}

// certificateLogID names the log of certificates: the SHA-256 of its PKIX key.
func (i *Instance) certificateLogID() ([sha256.Size]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(i.certificateLog.Public())
	return sha256.Sum256(der), err
}

// The paths that Handler answers at.
const (
	CertificatePath = "/api/v2/signingCert"
	EntriesPath     = "/api/v1/log/entries"
	TimestampPath   = "/api/v1/timestamp"
)

// Handler answers as all three services.
func (i *Instance) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+CertificatePath, i.certify)
	mux.HandleFunc("POST "+EntriesPath, i.record)
	mux.HandleFunc("POST "+TimestampPath, i.stamp)
	return mux
}

// fail answers with an error as these services do.
func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"code": status, "message": err.Error()})
}
