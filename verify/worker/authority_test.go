package worker

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// Who signs in tests. The authority writes identities as addresses.
const (
	somebody = "release@example.com"
	vouching = "https://accounts.example.com"
)

// An authority signs as a public instance of Sigstore does: certificates, a
// transparency log and a timestamp authority, each with keys of its own.
type authority struct {
	*ca.VirtualSigstore
	t    testing.TB
	root []byte // its trusted root
	now  time.Time
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	vs, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	logs := vs.RekorLogs()
	for id, log := range logs {
		if log.ID, err = hex.DecodeString(id); err != nil {
			t.Fatal(err)
		}
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, vs.FulcioCertificateAuthorities(), nil, vs.TimestampingAuthorities(), logs)
	if err != nil {
		t.Fatal(err)
	}
	text, err := trusted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return &authority{vs, t, text, time.Now()}
}

// A signing is a signature under a certificate, before it becomes a bundle.
type signing struct {
	entity *ca.TestEntity
	stamp  bool // with what the timestamp authority said
	silent bool // without what the log said
	edit   func(*protobundle.Bundle)
}

// document is the bundle.
func (a *authority) document(s signing) []byte {
	a.t.Helper()
	content, err := s.entity.VerificationContent()
	a.check(err)
	b := &protobundle.Bundle{MediaType: bundleType, VerificationMaterial: &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw}},
	}}
	signature, err := s.entity.SignatureContent()
	a.check(err)
	if e := signature.EnvelopeContent(); e != nil {
		payload, err := base64.StdEncoding.DecodeString(e.RawEnvelope().Payload)
		a.check(err)
		b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: e.RawEnvelope().PayloadType, Signatures: []*protodsse.Signature{{Sig: signature.Signature()}}}}
	} else {
		b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: signature.MessageSignatureContent().Digest()},
			Signature:     signature.Signature()}}
	}
	if !s.silent {
		entries, err := s.entity.TlogEntries()
		a.check(err)
		for _, e := range entries {
			b.VerificationMaterial.TlogEntries = append(b.VerificationMaterial.TlogEntries, a.entry(e))
		}
	}
	if s.stamp {
		stamps, err := s.entity.Timestamps()
		a.check(err)
		b.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{}
		for _, stamp := range stamps {
			b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps = append(
				b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
		}
	}
	if s.edit != nil {
		s.edit(b)
	}
	text, err := protojson.Marshal(b)
	a.check(err)
	return text
}

// entry is a log entry as bundles hold it.
func (a *authority) entry(e *tlog.Entry) *protorekor.TransparencyLogEntry {
	a.t.Helper()
	out := e.TransparencyLogEntry()
	if !e.IsRekorV2() {
		a.adopt(out)
	}
	return out
}

// adopt makes an entry one of this authority's log, with its promise and its proof.
func (a *authority) adopt(out *protorekor.TransparencyLogEntry) {
	a.t.Helper()
	id, err := a.RekorLogID()
	a.check(err)
	out.LogId.KeyId, err = hex.DecodeString(id)
	a.check(err)
	var kind struct{ Kind, APIVersion string }
	a.check(json.Unmarshal(out.CanonicalizedBody, &kind))
	out.KindVersion = &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion}
	promise, err := a.RekorSignPayload(tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(out.CanonicalizedBody),
		IntegratedTime: out.IntegratedTime, LogIndex: out.LogIndex, LogID: id})
	a.check(err)
	out.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	proof, err := a.GetInclusionProof(out.CanonicalizedBody)
	a.check(err)
	rootHash, err := hex.DecodeString(*proof.RootHash)
	a.check(err)
	out.InclusionProof = &protorekor.InclusionProof{LogIndex: *proof.LogIndex, TreeSize: *proof.TreeSize, RootHash: rootHash,
		Checkpoint: &protorekor.Checkpoint{Envelope: *proof.Checkpoint}}
}

func (a *authority) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// attests makes a statement at a time that the log states.
func (a *authority) attests(statement string, at time.Time) signing {
	a.t.Helper()
	entity, err := a.AttestAtTime(somebody, vouching, []byte(statement), at, false)
	a.check(err)
	return signing{entity: entity}
}

// signs signs an artifact under a certificate.
func (a *authority) signs(artifact []byte, at time.Time) signing {
	a.t.Helper()
	entity, err := a.SignAtTime(somebody, vouching, artifact, at)
	a.check(err)
	return signing{entity: entity}
}

// asks is the question whether a bundle proves anything about an artifact, a while
// after it was signed.
func (a *authority) asks(kind verify.Kind, artifact, document []byte) verify.BundleRequest {
	return verify.BundleRequest{Kind: kind, Artifact: digest.Of(artifact), Document: document, TrustedRoot: a.root, Now: a.now.Add(time.Hour)}
}

// refused fails the test unless err is a refusal with the code.
func refused(t *testing.T, err error, code verify.Code) {
	t.Helper()
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("got %v (%+v), want a refusal with %s", err, refusal, code)
	}
}

// artifactFile writes an artifact.
func artifactFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.tar.zst")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// replaced is a document with every occurrence of a part replaced; there must be one.
func replaced(t testing.TB, document []byte, old, with string) []byte {
	t.Helper()
	if !bytes.Contains(document, []byte(old)) {
		t.Fatalf("%q does not stand in %s", old, document)
	}
	return bytes.ReplaceAll(document, []byte(old), []byte(with))
}
