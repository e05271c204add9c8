package worker

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// mustRefuse fails unless err, if there is one, is a refusal.
func mustRefuse(t *testing.T, err error) {
	t.Helper()
	var refusal *verify.Refusal
	if err != nil && (!errors.As(err, &refusal) || refusal.Code == "" || refusal.Message == "") {
		t.Fatalf("no refusal with a code: %v", err)
	}
}

// FuzzBundle holds that whatever stands in a bundle, nothing panics, and nothing is
// told that was not asked about.
func FuzzBundle(f *testing.F) {
	s := signWith(f, pair(f, verify.ECDSA), "an archive")
	a := newAuthority(f)
	now := a.now
	seeds := [][]byte{s.document, signWith(f, pair(f, verify.Ed25519), "an archive").document, a.document(a.signs(s.artifact, now)),
		a.document(a.attests(inToto(s.artifact, slsa1, predicate1), now)), []byte(`{}`), []byte(`null`),
		[]byte(`{"mediaType":"` + bundleType + `","verificationMaterial":{},"messageSignature":{}}`),
		[]byte(`{"mediaType":"` + bundleType + `","verificationMaterial":{"publicKey":{},"tlogEntries":[{}],"timestampVerificationData":{"rfc3161Timestamps":[{}]}},"messageSignature":{"messageDigest":{}}}`),
		[]byte(`{"mediaType":"` + bundleType + `","verificationMaterial":{"certificate":{"rawBytes":""}},"dsseEnvelope":{"signatures":[{}]}}`)}
	files, err := filepath.Glob(filepath.Join(corpus, "*", "bundle.sigstore.json"))
	if err != nil {
		f.Fatal(err)
	}
	if len(files) == 0 {
		f.Logf("the conformance suite is not at %s", corpus)
	} else if len(files) < 60 {
		f.Fatalf("only %d bundles in the suite", len(files))
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, document)
	}
	about := func(document []byte, provenance bool) verify.BundleRequest {
		r := verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(s.artifact), Path: s.path, Document: document,
			TrustedRoot: a.root, Keys: []string{s.Public}, Now: now}
		if provenance {
			r.Kind = verify.Provenance
		}
		return r
	}
	proved := map[bool]int{}
	for _, seed := range seeds {
		for _, provenance := range []bool{false, true} {
			f.Add(seed, provenance)
			if _, err := checkBundle(about(seed, provenance)); err == nil {
				proved[provenance]++
			}
		}
	}
	if proved[false] < 2 || proved[true] < 1 {
		f.Fatalf("%d seeds prove a signature, %d a provenance", proved[false], proved[true])
	}
	f.Fuzz(func(t *testing.T, document []byte, provenance bool) {
		r := about(document, provenance)
		facts, err := checkBundle(r)
		mustRefuse(t, err)
		switch {
		case (facts == nil) == (err == nil):
			t.Fatalf("%+v and %v", facts, err)
		case err == nil && (facts.Kind != r.Kind || facts.Artifact != r.Artifact || facts.Bundle != digest.Of(document) || facts.Signer == verify.Signer{}):
			t.Fatalf("facts %+v", facts)
		case err == nil && (facts.Statement != nil) != provenance:
			t.Fatalf("statement %+v", facts.Statement)
		}
	})
}

// FuzzTrustedRoot holds that no trusted root panics.
func FuzzTrustedRoot(f *testing.F) {
	a := newAuthority(f)
	seeds := [][]byte{a.root, publicGood, []byte(`{}`), []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[{}],"certificateAuthorities":[{}],"ctlogs":[{}],"timestampAuthorities":[{}]}`)}
	for _, seed := range seeds {
		f.Add(seed)
	}
	if len(seeds) < 4 {
		f.Fatal("no seeds")
	}
	artifact := []byte("an archive")
	request := a.asks(verify.Provenance, artifact, a.document(a.attests(inToto(artifact, slsa1, predicate1), a.now)))
	if _, err := checkBundle(request); err != nil {
		f.Fatalf("the seed is refused: %v", err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := request
		r.TrustedRoot = text
		facts, err := checkBundle(r)
		mustRefuse(t, err)
		if (facts == nil) == (err == nil) {
			t.Fatalf("%+v and %v", facts, err)
		}
	})
}

// FuzzKey holds that a key is read as one kind, with one id, or refused.
func FuzzKey(f *testing.F) {
	var seeds []string
	for _, algorithm := range algorithms {
		p := pair(f, algorithm)
		sealed, err := newKey(verify.NewKeyRequest{Algorithm: algorithm, Passphrase: []byte("words")})
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, p.Private, p.Public, sealed.Private, p.Private+p.Private)
	}
	seeds = append(seeds, "", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", "-----BEGIN EC PRIVATE KEY-----\nMQ==\n-----END EC PRIVATE KEY-----\n")
	for _, seed := range seeds {
		f.Add(seed, []byte("words"))
	}
	if len(seeds) < 10 {
		f.Fatalf("%d seeds", len(seeds))
	}
	f.Fuzz(func(t *testing.T, text string, passphrase []byte) {
		read, err := readKey(verify.KeyRequest{PEM: text, Passphrase: passphrase})
		mustRefuse(t, err)
		if err != nil {
			return
		}
		again, err := readKey(verify.KeyRequest{PEM: read.Public})
		if err != nil || *again != *read || read.Private != "" {
			t.Fatalf("%+v, then %+v, %v", read, again, err)
		}
		if id, err := verify.KeyID(read.Public); err != nil || id != read.ID {
			t.Fatalf("id %s, %v, want %s", id, err, read.ID)
		}
	})
}

// FuzzStatement holds that a statement is told or refused.
func FuzzStatement(f *testing.F) {
	artifact := []byte("an archive")
	seeds := []string{inToto(artifact, slsa02, predicate02), inToto(artifact, slsa1, predicate1), inToto(artifact, "x", `[]`), inToto(artifact, slsa1, `null`), `{}`, ``, `{"predicateType":"` + slsa1 + `"}`}
	told := 0
	for _, seed := range seeds {
		f.Add(seed)
		if _, err := statement(base64.StdEncoding.EncodeToString([]byte(seed))); err == nil {
			told++
		}
	}
	if len(seeds) < 5 || told < 2 {
		f.Fatalf("%d seeds, of which %d are told", len(seeds), told)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := statement(base64.StdEncoding.EncodeToString([]byte(text)))
		mustRefuse(t, err)
		if (s == nil) == (err == nil) {
			t.Fatalf("%+v and %v", s, err)
		}
	})
}
