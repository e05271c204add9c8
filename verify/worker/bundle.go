package worker

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	sigverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// maxArtifact bounds a file that is read whole, in bytes: as large as an archive may be.
const maxArtifact = 512 << 20

// statementType is what a provenance's envelope must hold.
const statementType = "application/vnd.in-toto+json"

// checkBundle reports what a bundle proves about an artifact. Nothing of a bundle
// that proves nothing is reported but the reason.
func checkBundle(r verify.BundleRequest) (*verify.Facts, error) {
	if _, err := digest.Parse(string(r.Artifact)); err != nil {
		return nil, refuse(verify.CodeRequestMalformed, "artifact: %v", err)
	}
	if len(r.Document) > verify.MaxBundle {
		return nil, refuse(verify.CodeBundleMalformed, "the bundle has more than %d bytes", verify.MaxBundle)
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(r.Document); err != nil {
		return nil, refuse(verify.CodeBundleMalformed, "%v", err)
	}
	content, err := b.SignatureContent()
	if err != nil {
		return nil, refuse(verify.CodeBundleMalformed, "%v", err)
	}
	material, err := b.VerificationContent()
	if err != nil {
		return nil, refuse(verify.CodeBundleMalformed, "%v", err)
	}
	if err := ofKind(content, r.Kind); err != nil {
		return nil, err
	}
	c := &check{request: r, bundle: &b, content: content}
	if material.Certificate() != nil {
		return c.certificate(material)
	}
	if material.PublicKey() == nil {
		return nil, refuse(verify.CodeBundleMalformed, "the bundle names neither a certificate nor a key")
	}
	return c.keys(material.PublicKey().Hint())
}

// ofKind refuses a bundle of the other kind: a signature over bytes says nothing
// about how they were built, and a statement about an archive is no signature of it.
func ofKind(content sigverify.SignatureContent, kind verify.Kind) error {
	envelope := content.EnvelopeContent()
	switch {
	case kind == verify.Signature && envelope != nil:
		return refuse(verify.CodeBundleKind, "it holds a statement, and a signature over the archive's bytes is wanted")
	case kind == verify.Provenance && envelope == nil:
		return refuse(verify.CodeBundleKind, "it holds a signature over bytes, and a statement about the archive is wanted")
	case kind == verify.Provenance && envelope.RawEnvelope().PayloadType != statementType:
		return refuse(verify.CodeBundleKind, "the statement's type is %q, not %q", envelope.RawEnvelope().PayloadType, statementType)
	case kind != verify.Signature && kind != verify.Provenance:
		return refuse(verify.CodeRequestMalformed, "kind %q", kind)
	}
	return nil
}

// A check is one bundle under examination.
type check struct {
	request verify.BundleRequest
	bundle  *bundle.Bundle
	content sigverify.SignatureContent
}

// certificate checks a bundle that was signed under a certificate: the log and a
// trusted time are required, for without them nobody knows that the certificate
// was valid when it signed.
func (c *check) certificate(material sigverify.VerificationContent) (*verify.Facts, error) {
	trusted, id, err := trustedRoot(c.request.TrustedRoot)
	if err != nil {
		return nil, err
	}
	options := []sigverify.VerifierOption{sigverify.WithTransparencyLog(1), sigverify.WithObserverTimestamps(1)}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, sigverify.WithSignedCertificateTimestamps(1))
	}
	result, err := c.verify(trusted, options, material.Certificate().PublicKey, sigverify.WithoutIdentitiesUnsafe())
	if err != nil {
		return nil, err
	}
	facts, err := c.facts(result, trusted)
	if err != nil {
		return nil, err
	}
	facts.TrustedRoot = id
	summary := result.Signature.Certificate
	facts.Signer = verify.Signer{Identity: summary.SubjectAlternativeName, Issuer: summary.Issuer}
	facts.Chain = []string{material.Certificate().Subject.String(), summary.CertificateIssuer}
	return facts, nil
}

// keys checks a bundle that was signed with one of the keys that were given. A hint
// that names one of them decides which, and one that names another key says that the
// signer is not known here. Any other hint is not believed: every key is tried.
func (c *check) keys(hint string) (*verify.Facts, error) {
	if len(c.request.Keys) == 0 {
		return nil, refuse(verify.CodeKeyUnknown, "it was signed with a key, and no key was given")
	}
	var known []publicKey
	for _, text := range c.request.Keys {
		k, err := parsePublic(text)
		if err != nil {
			return nil, err
		}
		known = append(known, k)
	}
	switch i := slices.IndexFunc(known, func(k publicKey) bool { return k.hint() == hint }); {
	case i >= 0:
		known = known[i : i+1]
	case isKeyHint(hint):
		return nil, refuse(verify.CodeKeyUnknown, "it says that it was signed with the key %s, which was not given", hintID(hint))
	}
	var last error
	for _, k := range known {
		facts, err := c.key(k)
		if err == nil {
			return facts, nil
		}
		last = err
	}
	return nil, last
}

func (c *check) key(k publicKey) (*verify.Facts, error) {
	material := root.TrustedMaterialCollection{root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(k.verifier, time.Time{}, time.Time{}), nil
	})}
	options := []sigverify.VerifierOption{sigverify.WithNoObserverTimestamps()}
	var id digest.Digest
	if c.logged() {
		trusted, digest, err := trustedRoot(c.request.TrustedRoot)
		if err != nil {
			return nil, err
		}
		id, material = digest, append(material, trusted)
		options = []sigverify.VerifierOption{sigverify.WithTransparencyLog(1), sigverify.WithObserverTimestamps(1)}
	}
	result, err := c.verify(material, options, k.key, sigverify.WithKey())
	if err != nil {
		return nil, err
	}
	facts, err := c.facts(result, material)
	if err != nil {
		return nil, err
	}
	facts.TrustedRoot, facts.Signer = id, verify.Signer{Key: k.id()}
	return facts, nil
}

// logged reports whether the bundle holds anything that a log or an authority said.
func (c *check) logged() bool {
	entries, err := c.bundle.TlogEntries()
	if err != nil || len(entries) > 0 {
		return true
	}
	stamps, err := c.bundle.Timestamps()
	return err != nil || len(stamps) > 0
}

// verify runs the library, by digest where the signature is over one that is known
// here, else over the artifact's bytes.
func (c *check) verify(trusted root.TrustedMaterial, options []sigverify.VerifierOption, signer crypto.PublicKey, who sigverify.PolicyOption) (*sigverify.VerificationResult, error) {
	v, err := sigverify.NewVerifier(trusted, options...)
	if err != nil {
		return nil, refuse(verify.CodeRequestMalformed, "%v", err)
	}
	sum, err := hex.DecodeString(c.request.Artifact.Hex())
	if err != nil {
		return nil, refuse(verify.CodeRequestMalformed, "artifact: %v", err)
	}
	artifact := sigverify.WithArtifactDigest("sha256", sum)
	if c.needsBytes(signer) {
		if c.request.Path == "" {
			return nil, refuse(verify.CodeArtifactNeeded, "the signature is over the bytes themselves, and no file was named")
		}
		content, err := readArtifact(c.request.Path, c.request.Artifact)
		if err != nil {
			return nil, err
		}
		artifact = sigverify.WithArtifact(bytes.NewReader(content))
	}
	result, err := v.Verify(c.bundle, sigverify.NewPolicy(artifact, who))
	if err != nil {
		return nil, explain(err)
	}
	return result, nil
}

// needsBytes reports whether the artifact's SHA-256 is not enough: Ed25519 signs the
// bytes themselves or another digest of them, and so may a certificate's larger key.
// Statements name digests, whatever signs them.
func (c *check) needsBytes(signer crypto.PublicKey) bool {
	message := c.content.MessageSignatureContent()
	if message == nil {
		return false
	}
	_, ed := signer.(ed25519.PublicKey)
	return ed || message.DigestAlgorithm() != protocommon.HashAlgorithm_SHA2_256.String()
}

// readArtifact returns a file's bytes, whose digest must be the one that is wanted. It
// reads them once: what is compared is what is used, whatever happens to the file.
func readArtifact(path string, want digest.Digest) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refuse(verify.CodeArtifactNeeded, "%v", err)
	}
	defer f.Close()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil {
		b.Grow(int(min(info.Size(), maxArtifact)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(f, maxArtifact+1))
	switch {
	case err != nil:
		return nil, refuse(verify.CodeArtifactNeeded, "%v", err)
	case n > maxArtifact:
		return nil, refuse(verify.CodeArtifactNeeded, "%s has more than %d bytes", path, maxArtifact)
	}
	if found := digest.Of(b.Bytes()); found != want {
		return nil, refuse(verify.CodeArtifactChanged, "its digest is %s, not %s", found, want)
	}
	return b.Bytes(), nil
}

// facts turns a verified bundle into what is reported. trusted is what it was
// verified under.
func (c *check) facts(result *sigverify.VerificationResult, trusted root.TrustedMaterial) (*verify.Facts, error) {
	f := &verify.Facts{Kind: c.request.Kind, Artifact: c.request.Artifact, Bundle: digest.Of(c.request.Document),
		Times: []verify.TrustedTime{}, Log: []verify.LogEntry{}}
	for _, t := range result.VerifiedTimestamps {
		source := "timestamp-authority"
		if t.Type == "Tlog" {
			source = "transparency-log"
		}
		f.Times = append(f.Times, verify.TrustedTime{Source: source, At: t.Timestamp.UTC()})
	}
	if err := c.future(f.Times); err != nil {
		return nil, err
	}
	entries, err := c.bundle.TlogEntries()
	if err != nil {
		return nil, refuse(verify.CodeLog, "%v", err)
	}
	for _, e := range entries {
		// One proved entry is enough for the library, which passes over those of
		// logs that it does not know.
		if _, err := sigverify.VerifyTlogEntry(oneEntry{c.bundle, e}, trusted, 1, false); err == nil {
			f.Log = append(f.Log, verify.LogEntry{Log: hex.EncodeToString([]byte(e.LogKeyID())), Index: e.LogIndex()})
		}
	}
	if c.request.Kind == verify.Provenance {
		f.Statement, err = statement(c.content.EnvelopeContent().RawEnvelope().Payload)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// oneEntry is a bundle with only one of its log entries.
type oneEntry struct {
	*bundle.Bundle
	entry *tlog.Entry
}

func (e oneEntry) TlogEntries() ([]*tlog.Entry, error) { return []*tlog.Entry{e.entry}, nil }

// future refuses a time that has not come yet: a log or an authority whose clock is
// wrong proves nothing about when something was signed.
func (c *check) future(times []verify.TrustedTime) error {
	const tolerance = 5 * time.Minute
	for _, t := range times {
		if !c.request.Now.IsZero() && t.At.After(c.request.Now.Add(tolerance)) {
			return refuse(verify.CodeTime, "it was signed at %s, which has not come yet", t.At.Format(time.RFC3339))
		}
	}
	return nil
}

// explain gives a refusal of the library a code. Its errors have no types; each
// stage begins with words of its own, which a test holds.
func explain(err error) error {
	text := err.Error()
	code := verify.CodeSignature
	for _, stage := range []struct {
		words string
		code  verify.Code
	}{
		{"integrated time outside", verify.CodeTime},
		{"failed to verify log inclusion", verify.CodeLog},
		{"failed to verify timestamps", verify.CodeTime},
		{"signature time outside", verify.CodeTime},
		{"must provide timestamp", verify.CodeTime},
		{"failed to verify leaf certificate", verify.CodeCertificate},
		{"failed to verify signed certificate timestamp", verify.CodeCertificate},
		{"failed to summarize certificate", verify.CodeCertificate},
		{"unable to extract statement", verify.CodeStatement},
		{"failed to fetch envelope statement", verify.CodeStatement},
		{"could not verify artifact", verify.CodeSubject},
		{"too many subjects", verify.CodeSubject},
		{"provided artifact digest", verify.CodeSubject},
		{"could not verify envelope", verify.CodeSignature},
	} {
		if strings.Contains(text, stage.words) {
			code = stage.code
			break
		}
	}
	return refuse(code, "%v", err)
}

// trustedRoot reads a trusted root, or the one that is shipped, and its digest.
func trustedRoot(document []byte) (*root.TrustedRoot, digest.Digest, error) {
	if document == nil {
		document = publicGood
	}
	if len(document) > verify.MaxTrustedRoot {
		return nil, "", refuse(verify.CodeRootMalformed, "the trusted root has more than %d bytes", verify.MaxTrustedRoot)
	}
	trusted, err := root.NewTrustedRootFromJSON(document)
	if err != nil {
		return nil, "", refuse(verify.CodeRootMalformed, "the trusted root: %v", err)
	}
	return trusted, digest.Of(document), nil
}
