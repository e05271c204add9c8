package worker

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

var digestOfNothing = digest.Of(nil)

// A keySigned is an artifact that was signed with a key.
type keySigned struct {
	*verify.KeyPair
	artifact []byte
	path     string
	document []byte
}

func signWith(t testing.TB, key *verify.KeyPair, artifact string) *keySigned {
	t.Helper()
	s := &keySigned{KeyPair: key, artifact: []byte(artifact), path: artifactFile(t, []byte(artifact))}
	out, err := sign(verify.SignRequest{Artifact: digest.Of(s.artifact), Path: s.path, Key: key.Private})
	if err != nil {
		t.Fatal(err)
	}
	if want := (verify.Signer{Key: key.ID}); out.Signer != want {
		t.Fatalf("signed by %+v, want %+v", out.Signer, want)
	}
	s.document = out.Bundle
	return s
}

// asks is the question whether the bundle proves anything, with the key and the file.
func (s *keySigned) asks() verify.BundleRequest {
	return verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(s.artifact), Path: s.path, Document: s.document, Keys: []string{s.Public}}
}

// edited is the bundle after a change to it.
func (s *keySigned) edited(t testing.TB, edit func(*protobundle.Bundle)) []byte {
	t.Helper()
	var b protobundle.Bundle
	if err := protojson.Unmarshal(s.document, &b); err != nil {
		t.Fatal(err)
	}
	edit(&b)
	text, err := protojson.Marshal(&b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSignAndCheck holds that what one key signs, that key proves, by digest where the
// algorithm can and by the file.
func TestSignAndCheck(t *testing.T) {
	for _, algorithm := range algorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			s := signWith(t, pair(t, algorithm), "an archive")
			other := pair(t, verify.ECDSA)
			check := func(name string, edit func(*verify.BundleRequest), code verify.Code) {
				t.Run(name, func(t *testing.T) {
					r := s.asks()
					edit(&r)
					facts, err := checkBundle(r)
					if code != "" {
						refused(t, err, code)
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if want := (verify.Signer{Key: s.ID}); facts.Signer != want || facts.Artifact != r.Artifact || facts.Bundle != digest.Of(s.document) {
						t.Errorf("facts %+v", facts)
					}
					if facts.TrustedRoot != "" || len(facts.Times)+len(facts.Log) > 0 {
						t.Errorf("a key alone proves no time: %+v", facts)
					}
				})
			}
			without := verify.Code("")
			if algorithm == verify.Ed25519 {
				without = verify.CodeArtifactNeeded
			}
			check("with the file", func(*verify.BundleRequest) {}, "")
			check("by digest", func(r *verify.BundleRequest) { r.Path = "" }, without)
			check("a file that is not there", func(r *verify.BundleRequest) { r.Path += ".gone" }, without)
			check("among others", func(r *verify.BundleRequest) {
				r.Keys = []string{other.Public, s.Public, pair(t, verify.Ed25519).Public}
			}, "")
			check("another key", func(r *verify.BundleRequest) { r.Keys = []string{other.Public} }, verify.CodeKeyUnknown)
			check("no key", func(r *verify.BundleRequest) { r.Keys = nil }, verify.CodeKeyUnknown)
			check("a broken key", func(r *verify.BundleRequest) { r.Keys = []string{"x", s.Public} }, verify.CodeKeyMalformed)
			check("as a provenance", func(r *verify.BundleRequest) { r.Kind = verify.Provenance }, verify.CodeBundleKind)
			check("as an SBOM", func(r *verify.BundleRequest) { r.Kind = verify.SBOM }, verify.CodeRequestMalformed)
			check("no digest", func(r *verify.BundleRequest) { r.Artifact = "sha256:12" }, verify.CodeRequestMalformed)
		})
	}
}

// TestTampered holds that nothing of what was signed can be changed or exchanged.
func TestTampered(t *testing.T) {
	for _, algorithm := range algorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			key, other := pair(t, algorithm), pair(t, algorithm)
			s, second, foreign := signWith(t, key, "an archive"), signWith(t, key, "another"), signWith(t, other, "an archive")
			check := func(name string, code verify.Code, edit func(*verify.BundleRequest)) {
				t.Run(name, func(t *testing.T) {
					r := s.asks()
					edit(&r)
					facts, err := checkBundle(r)
					refused(t, err, code)
					if facts != nil {
						t.Errorf("facts beside the refusal: %+v", facts)
					}
				})
			}
			hint := func(b *protobundle.Bundle, hint string) { b.VerificationMaterial.GetPublicKey().Hint = hint }
			check("the archive was changed, and its digest is asked about", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Artifact, r.Path = digest.Of([]byte("an archivf")), artifactFile(t, []byte("an archivf"))
			})
			check("the bundle of another archive", verify.CodeSignature, func(r *verify.BundleRequest) { r.Document = second.document })
			check("the signature of another archive", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Document = s.edited(t, func(b *protobundle.Bundle) {
					b.GetMessageSignature().Signature = signatureOf(t, second.document)
				})
			})
			check("another key's bundle", verify.CodeKeyUnknown, func(r *verify.BundleRequest) { r.Document = foreign.document })
			check("another key's bundle that claims this one", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Document = foreign.edited(t, func(b *protobundle.Bundle) { hint(b, hintOf(t, s.document)) })
			})
			check("another key's bundle that claims none", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Document = foreign.edited(t, func(b *protobundle.Bundle) { hint(b, "") })
			})
			check("a signature that was changed", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Document = s.edited(t, func(b *protobundle.Bundle) { b.GetMessageSignature().Signature[8] ^= 1 })
			})
			check("no signature", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Document = s.edited(t, func(b *protobundle.Bundle) { b.GetMessageSignature().Signature = nil })
			})
			check("the bundle says another digest", verify.CodeSignature, func(r *verify.BundleRequest) {
				r.Document = s.edited(t, func(b *protobundle.Bundle) { b.GetMessageSignature().MessageDigest.Digest[0] ^= 1 })
			})
			check("the bundle says no digest", verify.CodeBundleMalformed, func(r *verify.BundleRequest) {
				r.Document = s.edited(t, func(b *protobundle.Bundle) { b.GetMessageSignature().MessageDigest = nil })
			})
			check("cut short", verify.CodeBundleMalformed, func(r *verify.BundleRequest) { r.Document = s.document[:len(s.document)/2] })
			check("empty", verify.CodeBundleMalformed, func(r *verify.BundleRequest) { r.Document = nil })
			check("an unknown member", verify.CodeBundleMalformed, func(r *verify.BundleRequest) {
				r.Document = append([]byte(`{"x":1,`), s.document[1:]...)
			})
			check("a version to come", verify.CodeBundleMalformed, func(r *verify.BundleRequest) {
				r.Document = replaced(t, s.document, ".v0.3+json", ".v0.4+json")
			})
			check("huge", verify.CodeBundleMalformed, func(r *verify.BundleRequest) {
				r.Document = append(s.document, make([]byte, verify.MaxBundle)...)
			})

			// A hint is a hint: what it says does not decide, if it names no key.
			r := s.asks()
			r.Document = s.edited(t, func(b *protobundle.Bundle) { hint(b, "the release key") })
			if _, err := checkBundle(r); err != nil {
				t.Errorf("a hint of another form: %v", err)
			}
		})
	}
}

// TestChangedArtifact holds that a pure Ed25519 signature is checked and made over
// exactly the bytes whose digest was compared.
func TestChangedArtifact(t *testing.T) {
	s := signWith(t, pair(t, verify.Ed25519), "an archive")
	if err := os.WriteFile(s.path, []byte("an archivf"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := checkBundle(s.asks())
	refused(t, err, verify.CodeArtifactChanged)
	_, err = sign(verify.SignRequest{Artifact: digest.Of(s.artifact), Path: s.path, Key: s.Private})
	refused(t, err, verify.CodeArtifactChanged)
	_, err = sign(verify.SignRequest{Artifact: digest.Of(s.artifact), Path: s.path + ".gone", Key: s.Private})
	refused(t, err, verify.CodeArtifactNeeded)
	_, err = sign(verify.SignRequest{Artifact: digest.Of(s.artifact), Path: filepath.Dir(s.path), Key: s.Private})
	refused(t, err, verify.CodeArtifactNeeded)
	_, err = sign(verify.SignRequest{Artifact: "sha256:12", Path: s.path, Key: s.Private})
	refused(t, err, verify.CodeRequestMalformed)
}

// signatureOf and hintOf are what a bundle with a key holds.
func signatureOf(t testing.TB, document []byte) []byte {
	t.Helper()
	var b protobundle.Bundle
	if err := protojson.Unmarshal(document, &b); err != nil {
		t.Fatal(err)
	}
	return b.GetMessageSignature().Signature
}

func hintOf(t testing.TB, document []byte) string {
	t.Helper()
	var b protobundle.Bundle
	if err := protojson.Unmarshal(document, &b); err != nil {
		t.Fatal(err)
	}
	hint := b.VerificationMaterial.GetPublicKey().GetHint()
	if _, err := base64.StdEncoding.DecodeString(hint); err != nil || strings.TrimSpace(hint) == "" {
		t.Fatalf("hint %q: %v", hint, err)
	}
	return hint
}
