package sigstoretest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Audience is whom the instance's tokens are for, as those of the public instance.
const Audience = "sigstore"

// sigHash is the hash of every signature here.
const sigHash = crypto.SHA256

// Claims are what a token says.
type Claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Email    string `json:"email,omitempty"`
	Verified bool   `json:"email_verified,omitempty"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"` // Unix time
}

// Token makes an identity token that the instance accepts as long as it has not expired
// and is for it.
func (i *Instance) Token(c Claims) (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(text)
	return body + "." + base64.RawURLEncoding.EncodeToString(i.tokenMAC(body)), nil
}

func (i *Instance) tokenMAC(body string) []byte {
	mac := hmac.New(sha256.New, i.tokenKey[:])
	mac.Write([]byte(body))
	return mac.Sum(nil)
}

// claims checks a token and returns what it says.
func (i *Instance) claims(token string) (*Claims, error) {
	end := strings.LastIndexByte(token, '.')
	if end < 0 {
		return nil, errors.New("the token is none")
	}
	body, text := token[:end], token[end+1:]
	mac, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !hmac.Equal(mac, i.tokenMAC(body)) {
		return nil, errors.New("the token's signature is wrong")
	}
	_, text, _ = strings.Cut(body, ".")
	said, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	var c Claims
	if err := json.Unmarshal(said, &c); err != nil {
		return nil, err
	}
	switch {
	case c.Audience != Audience:
		return nil, fmt.Errorf("the token is for %q", c.Audience)
	case time.Now().Unix() > c.Expires:
		return nil, errors.New("the token has expired")
	case c.Email != "" && !c.Verified:
		return nil, errors.New("the address is not verified")
	}
	return &c, nil
}

// identity is what the certificate says of a token's subject.
func (c *Claims) identity() string {
	if c.Email != "" {
		return c.Email
	}
	return c.Subject
}

// certify answers as Fulcio's second API: a certificate for the key whose owner signed the
// token's subject with it.
func (i *Instance) certify(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var request struct {
		Credentials struct {
			Token string `json:"oidcIdentityToken"`
		} `json:"credentials"`
		PublicKeyRequest struct {
			PublicKey struct {
				Algorithm string `json:"algorithm"`
				Content   string `json:"content"`
			} `json:"publicKey"`
			Proof []byte `json:"proofOfPossession"`
		} `json:"publicKeyRequest"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&request); err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	if token == "" {
		token = request.Credentials.Token
	}
	c, err := i.claims(token)
	if err != nil {
		fail(w, http.StatusUnauthorized, fmt.Errorf("there was an error processing the identity token: %w", err))
		return
	}
	block, _ := pem.Decode([]byte(request.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		fail(w, http.StatusBadRequest, errors.New("the public key is not PEM"))
		return
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	public, ok := key.(*ecdsa.PublicKey)
	sum := sha256.Sum256([]byte(c.identity()))
	if !ok || !ecdsa.VerifyASN1(public, sum[:], request.PublicKeyRequest.Proof) {
		fail(w, http.StatusBadRequest, errors.New("the signature supplied in the request could not be verified"))
		return
	}
	chain, err := i.Certify(public, *c)
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, Certificates(chain))
}

// Certificates is Fulcio's answer with a chain, the leaf first.
func Certificates(chain []*x509.Certificate) any {
	var texts []string
	for _, c := range chain {
		texts = append(texts, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})))
	}
	return map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{"certificates": texts}}}
}

// The object identifiers of Fulcio's issuer, in both forms, and of certificates'
// timestamps.
var (
	oidIssuer     = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
	oidIssuerV2   = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
	oidTimestamps = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}
)

// Certify makes a certificate for a key, valid for ten minutes, with the timestamp of the
// log of certificates, and returns its chain.
func (i *Instance) Certify(key crypto.PublicKey, c Claims) ([]*x509.Certificate, error) {
	issuer, err := asn1.MarshalWithParams(c.Issuer, "utf8")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(i.serials.Add(1)), NotBefore: now, NotAfter: now.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: oidIssuer, Value: []byte(c.Issuer)}, {Id: oidIssuerV2, Value: issuer}}}
	if c.Email != "" {
		template.EmailAddresses = []string{c.Email}
	} else if u, err := url.Parse(c.Subject); err == nil && u.Scheme != "" {
		template.URIs = []*url.URL{u}
	} else {
		return nil, fmt.Errorf("the subject %q is no URI", c.Subject)
	}
	before, err := x509.CreateCertificate(rand.Reader, template, i.intermediate, key, i.intermediateKey)
	if err != nil {
		return nil, err
	}
	draft, err := x509.ParseCertificate(before)
	if err != nil {
		return nil, err
	}
	stamp, err := i.certificateTimestamp(draft.RawTBSCertificate, now)
	if err != nil {
		return nil, err
	}
	template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oidTimestamps, Value: stamp})
	der, err := x509.CreateCertificate(rand.Reader, template, i.intermediate, key, i.intermediateKey)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{leaf, i.intermediate, i.rootCert}, nil
}

// certificateTimestamp is the extension in which the log of certificates promises to hold
// one, whose signed part without it is draft (RFC 6962, sections 3.2 and 3.3).
func (i *Instance) certificateTimestamp(draft []byte, now time.Time) ([]byte, error) {
	id, err := i.certificateLogID()
	if err != nil {
		return nil, err
	}
	issuer := sha256.Sum256(i.intermediate.RawSubjectPublicKeyInfo)
	at := uint64(now.UnixMilli())
	signed := []byte{0, 0} // version 1, a certificate's timestamp
	signed = binary.BigEndian.AppendUint64(signed, at)
	signed = binary.BigEndian.AppendUint16(signed, 1) // of a certificate before it is issued
	signed = append(signed, issuer[:]...)
	signed = append(signed, byte(len(draft)>>16), byte(len(draft)>>8), byte(len(draft)))
	signed = append(signed, draft...)
	signed = binary.BigEndian.AppendUint16(signed, 0) // no extensions
	sum := sha256.Sum256(signed)
	signature, err := ecdsa.SignASN1(rand.Reader, i.certificateLog, sum[:])
	if err != nil {
		return nil, err
	}
	sct := append([]byte{0}, id[:]...)
	sct = binary.BigEndian.AppendUint64(sct, at)
	sct = binary.BigEndian.AppendUint16(sct, 0)
	sct = append(sct, 4, 3) // SHA-256, ECDSA
	sct = binary.BigEndian.AppendUint16(sct, uint16(len(signature)))
	sct = append(sct, signature...)
	list := binary.BigEndian.AppendUint16(nil, uint16(len(sct)+2))
	list = binary.BigEndian.AppendUint16(list, uint16(len(sct)))
	return asn1.Marshal(append(list, sct...))
}

func writeJSON(w io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only what stands in this package is written
	}
	_, _ = w.Write(text)
}
