package worker

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/rekor/pkg/generated/client/entries"
	sigsign "github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/switchyard-plugins/switchyard/verify"
)

// times bound how long each service may take; together they are less than
// verify.KeylessTime.
type times struct{ token, fulcio, timestamp, rekor time.Duration }

var serviceTimes = times{token: 10 * time.Second, fulcio: 30 * time.Second, timestamp: 20 * time.Second, rekor: 45 * time.Second}

// maxAnswer bounds an answer of a service, in bytes; a log's entry has a few thousand.
const maxAnswer = 256 << 10

// signKeyless makes a bundle under a certificate: a new key, the certificate for it that
// the token's issuer vouches for, the signature, the times and the entry in the log. What
// the services answered is believed as little as what anybody hands in: the bundle must
// prove itself before it is handed out.
func signKeyless(r verify.KeylessRequest, within times) (*verify.Signed, error) {
	sum, err := hex.DecodeString(r.Artifact.Hex())
	if err != nil || len(sum) != sha256.Size {
		return nil, refuse(verify.CodeRequestMalformed, "artifact %q is no SHA-256 digest", r.Artifact)
	}
	k := &keyless{request: r, within: within}
	signed, err := k.sign(sum)
	if err != nil {
		return nil, k.scrub(err)
	}
	return signed, nil
}

// keyless is one signature under a certificate in the making.
type keyless struct {
	request verify.KeylessRequest
	within  times
	fulcio  *url.URL
	rekor   *url.URL
	stamper *url.URL // nil: none
	token   *identityToken
	secrets []string
}

func (k *keyless) sign(sum []byte) (*verify.Signed, error) {
	if err := k.services(); err != nil {
		return nil, err
	}
	if err := k.identify(); err != nil {
		return nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	public, err := newPublic(private.Public())
	if err != nil {
		return nil, err
	}
	certificate, err := k.certificate(&ephemeral{private, public})
	if err != nil {
		return nil, err
	}
	signature, err := private.Sign(rand.Reader, sum, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	made := &protobundle.Bundle{
		MediaType: bundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: certificate}},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum},
			Signature:     signature,
		}},
	}
	if err := k.stamp(made, signature); err != nil {
		return nil, err
	}
	if err := k.log(made, certificate); err != nil {
		return nil, err
	}
	document, err := protojson.Marshal(made)
	if err != nil {
		return nil, err
	}
	facts, err := checkBundle(verify.BundleRequest{Kind: verify.Signature, Artifact: k.request.Artifact, Document: document,
		TrustedRoot: k.request.TrustedRoot, Now: k.request.Now})
	if err != nil {
		var refusal *verify.Refusal
		if !errors.As(err, &refusal) {
			return nil, err
		}
		return nil, refuse(refusal.Code, "what %s and %s answered does not prove itself under the trusted root: %s", place(k.fulcio), place(k.rekor), refusal.Message)
	}
	stamped := slices.ContainsFunc(facts.Times, func(t verify.TrustedTime) bool { return t.Source == "timestamp-authority" })
	if k.stamper != nil && !stamped {
		return nil, refuse(verify.CodeTime, "what %s answered does not prove itself under the trusted root", place(k.stamper))
	}
	return &verify.Signed{Bundle: document, Signer: facts.Signer, Facts: facts}, nil
}

// services reads the services' URLs, and the trusted root that what they answer is checked
// against: what is logged cannot be taken back. Nothing is opened.
func (k *keyless) services() (err error) {
	if _, _, err := trustedRoot(k.request.TrustedRoot); err != nil {
		return err
	}
	if k.fulcio, err = parseURL(strings.TrimRight(k.request.Fulcio, "/")); err != nil {
		return err
	}
	if k.rekor, err = parseURL(strings.TrimRight(k.request.Rekor, "/")); err != nil {
		return err
	}
	if k.request.Timestamp != "" {
		k.stamper, err = parseURL(k.request.Timestamp)
	}
	return err
}

// identify gets the identity token and looks at it.
func (k *keyless) identify() error {
	text := k.request.Token
	k.hide(text)
	if a := k.request.Ambient; a != nil && text == "" {
		k.hide(a.Token)
		client, err := k.client(k.within.token)
		if err != nil {
			return err
		}
		if text, err = ambientToken(*a, client); err != nil {
			return err
		}
		k.hide(text)
	}
	var err error
	k.token, err = readToken(text, k.request.Now)
	return err
}

// client returns a client whose errors are refusals, that follows no redirect and that
// gives every answer but a good one a code.
func (k *keyless) client(within time.Duration) (*http.Client, error) {
	client, err := newClient(k.request.Network, limits{body: maxAnswer})
	if err != nil {
		return nil, err
	}
	client.Transport, client.Timeout = &good{client.Transport, k}, within
	return client, nil
}

// certificate asks Fulcio for a certificate of the key, as DER.
func (k *keyless) certificate(key *ephemeral) ([]byte, error) {
	client, err := k.client(k.within.fulcio)
	if err != nil {
		return nil, err
	}
	fulcio := sigsign.NewFulcio(&sigsign.FulcioOptions{BaseURL: k.fulcio.String(), Timeout: k.within.fulcio, Transport: client.Transport})
	der, err := fulcio.GetCertificate(context.Background(), key, &sigsign.CertificateProviderOptions{IDToken: k.token.text})
	if err != nil {
		return nil, k.answer(k.fulcio, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, k.answer(k.fulcio, err)
	}
	if !key.private.PublicKey.Equal(certificate.PublicKey) {
		return nil, refuse(verify.CodeCertificate, "%s answers with a certificate for another key", place(k.fulcio))
	}
	return der, nil
}

// stamp adds what the timestamp authority says about the signature.
func (k *keyless) stamp(made *protobundle.Bundle, signature []byte) error {
	if k.stamper == nil {
		return nil
	}
	client, err := k.client(k.within.timestamp)
	if err != nil {
		return err
	}
	authority := sigsign.NewTimestampAuthority(&sigsign.TimestampAuthorityOptions{URL: k.stamper.String(), Timeout: k.within.timestamp, Transport: client.Transport})
	stamp, err := authority.GetTimestamp(context.Background(), signature)
	if err != nil {
		return k.answer(k.stamper, err)
	}
	made.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{
		Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp}}}
	return nil
}

// log enters the signature into the transparency log and adds the entry.
func (k *keyless) log(made *protobundle.Bundle, certificate []byte) error {
	client, err := k.client(k.within.rekor)
	if err != nil {
		return err
	}
	base := k.rekor.Path
	if base == "" {
		base = "/"
	}
	transport := httptransport.NewWithClient(k.rekor.Host, base, []string{k.rekor.Scheme}, client)
	rekor := sigsign.NewRekor(&sigsign.RekorOptions{Timeout: k.within.rekor, Client: &wholeEntries{entries.New(transport, strfmt.Default)}})
	ctx, cancel := context.WithTimeout(context.Background(), k.within.rekor)
	defer cancel()
	err = rekor.GetTransparencyLogEntry(ctx, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), made)
	return k.answer(k.rekor, err)
}

// answer gives what went wrong with a service's answer a code: what no connection is to
// blame for is an answer that cannot be read.
func (k *keyless) answer(u *url.URL, err error) error {
	var (
		refusal *verify.Refusal
		timeout interface{ Timeout() bool }
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return networkError(u, context.DeadlineExceeded)
	}
	return &verify.Refusal{Code: verify.CodeNetworkAnswer, Message: place(u) + " answers what cannot be read: " + err.Error()}
}

// hide keeps a token, and each part of it, out of every message.
func (k *keyless) hide(token string) {
	const short = 8 // bytes that are no secret
	for _, part := range append(strings.Split(token, "."), token) {
		if len(part) > short {
			k.secrets = append(k.secrets, part)
		}
	}
}

// scrub takes the tokens out of what a service or a library says, before it is cut.
func (k *keyless) scrub(err error) error {
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) {
		refusal = &verify.Refusal{Code: verify.CodeNetworkAnswer, Message: err.Error()}
	}
	text := refusal.Message
	for _, secret := range k.secrets {
		text = strings.ReplaceAll(text, secret, "[token]")
	}
	return refuse(refusal.Code, "%s", text)
}

// An ephemeral is a key that makes one signature.
type ephemeral struct {
	private *ecdsa.PrivateKey
	public  publicKey
}

func (e *ephemeral) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

func (e *ephemeral) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

func (e *ephemeral) GetHint() []byte                  { return []byte(e.public.hint()) }
func (e *ephemeral) GetKeyAlgorithm() string          { return "ECDSA" }
func (e *ephemeral) GetPublicKey() crypto.PublicKey   { return e.public.key }
func (e *ephemeral) GetPublicKeyPem() (string, error) { return e.public.pair("").Public, nil }

// SignData signs data and returns its digest, too.
func (e *ephemeral) SignData(_ context.Context, data []byte) ([]byte, []byte, error) {
	sum := sha256.Sum256(data)
	signature, err := e.private.Sign(rand.Reader, sum[:], crypto.SHA256)
	return signature, sum[:], err
}

// wholeEntries refuses an entry in which something is missing: the library takes it for
// given.
type wholeEntries struct{ entries.ClientService }

func (w *wholeEntries) CreateLogEntry(params *entries.CreateLogEntryParams, opts ...entries.ClientOption) (*entries.CreateLogEntryCreated, error) {
	created, err := w.ClientService.CreateLogEntry(params, opts...)
	if err != nil {
		return nil, err
	}
	if len(created.Payload) != 1 {
		return nil, errors.New("it holds not one entry")
	}
	entry, ok := created.Payload[created.ETag]
	if !ok {
		return nil, errors.New("the entry is not the one that its head names")
	}
	if err := entry.Validate(strfmt.Default); err != nil {
		return nil, err
	}
	if entry.Verification == nil || entry.Verification.InclusionProof == nil {
		return nil, errors.New("the entry has no proof of inclusion")
	}
	if _, ok := entry.Body.(string); !ok {
		return nil, errors.New("the entry has no body")
	}
	return created, nil
}

// good gives an answer that is none a code, with what it says about it.
type good struct {
	next http.RoundTripper
	k    *keyless
}

func (g *good) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(r)
	if err != nil || response.StatusCode == http.StatusOK || response.StatusCode == http.StatusCreated {
		return response, err
	}
	defer response.Body.Close()
	const most = 4 << 10
	said, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return nil, err
	}
	// The token is taken out later, of the whole of it.
	message := place(r.URL) + " answers with status " + response.Status
	if text := strings.TrimSpace(string(said)); text != "" {
		message += ": " + text
	}
	code := verify.CodeNetworkStatus
	if r.URL.Host == g.k.fulcio.Host && r.Header.Get("Authorization") != "" && g.k.token != nil &&
		(response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden) {
		code, message = verify.CodeTokenRefused, message+g.k.token.note()
	}
	return nil, &verify.Refusal{Code: code, Message: message}
}
