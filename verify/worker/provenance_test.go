package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

const (
	slsa02 = "https://slsa.dev/provenance/v0.2"
	slsa1  = "https://slsa.dev/provenance/v1"
)

// inToto is a statement about one artifact.
func inToto(artifact []byte, predicateType, predicate string) string {
	return fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"p.tar.zst","digest":{"sha256":%q}}],"predicateType":%q,"predicate":%s}`,
		digest.Of(artifact).Hex(), predicateType, predicate)
}

const (
	predicate02 = `{"builder":{"id":"https://build.example.com/one"},"buildType":"https://build.example.com/make",
		"invocation":{"configSource":{"uri":"git+https://example.com/p@refs/tags/v1","digest":{"sha1":"aa"}}},
		"materials":[{"uri":"git+https://example.com/other","digest":{"sha1":"bb"}}]}`
	predicate1 = `{"buildDefinition":{"buildType":"https://build.example.com/make",
		"resolvedDependencies":[{"uri":"git+https://example.com/p@refs/tags/v1","digest":{"gitCommit":"aa"}},{"uri":"git+https://example.com/other"}]},
		"runDetails":{"builder":{"id":"https://build.example.com/one"}}}`
)

// TestProvenance holds what is told of statements under a certificate.
func TestProvenance(t *testing.T) {
	a := newAuthority(t)
	artifact := []byte("an archive")
	for name, c := range map[string]struct {
		statement string
		want      verify.Statement
	}{
		"SLSA 0.2": {inToto(artifact, slsa02, predicate02), verify.Statement{PredicateType: slsa02, Builder: "https://build.example.com/one",
			BuildType: "https://build.example.com/make", Source: "git+https://example.com/p@refs/tags/v1", SourceDigest: "sha1:aa"}},
		"SLSA 0.2 by its materials": {inToto(artifact, slsa02, `{"builder":{"id":"b"},"materials":[{"uri":"git+x","digest":{"sha1":"bb"}}]}`),
			verify.Statement{PredicateType: slsa02, Builder: "b", Source: "git+x", SourceDigest: "sha1:bb"}},
		"SLSA 1": {inToto(artifact, slsa1, predicate1), verify.Statement{PredicateType: slsa1, Builder: "https://build.example.com/one",
			BuildType: "https://build.example.com/make", Source: "git+https://example.com/p@refs/tags/v1", SourceDigest: "gitCommit:aa"}},
		"SLSA 1 that says nothing": {inToto(artifact, slsa1, `{}`), verify.Statement{PredicateType: slsa1}},
		"an unknown predicate": {inToto(artifact, "https://example.com/tested/v1", `{"builder":"anybody","buildType":[]}`),
			verify.Statement{PredicateType: "https://example.com/tested/v1"}},
		"members in another case": {inToto(artifact, slsa1, `{"runDetails":{"builder":{"ID":"evil"},"Builder":{"id":"evil"}}}`),
			verify.Statement{PredicateType: slsa1}},
	} {
		t.Run(name, func(t *testing.T) {
			signed := a.attests(c.statement, a.now.Add(time.Minute))
			facts, err := checkBundle(a.asks(verify.Provenance, artifact, a.document(signed)))
			if err != nil {
				t.Fatal(err)
			}
			if facts.Statement == nil || *facts.Statement != c.want {
				t.Errorf("got %+v, want %+v", facts.Statement, c.want)
			}
			if want := (verify.Signer{Identity: somebody, Issuer: vouching}); facts.Signer != want {
				t.Errorf("signed by %+v, want %+v", facts.Signer, want)
			}
			if facts.Kind != verify.Provenance || facts.Artifact != digest.Of(artifact) || facts.TrustedRoot != digest.Of(a.root) || len(facts.Log) != 1 {
				t.Errorf("facts %+v", facts)
			}
			if len(facts.Times) != 1 || facts.Times[0].Source != "transparency-log" || !facts.Times[0].At.Equal(a.now.Add(time.Minute).Truncate(time.Second)) {
				t.Errorf("times %+v", facts.Times)
			}
		})
	}
}

// TestProvenanceRefused holds which statements prove nothing, and why.
func TestProvenanceRefused(t *testing.T) {
	a := newAuthority(t)
	artifact := []byte("an archive")
	soon := a.now.Add(time.Minute)
	good := inToto(artifact, slsa1, predicate1)
	ask := func(s signing) verify.BundleRequest { return a.asks(verify.Provenance, artifact, a.document(s)) }
	subject := digest.Of(artifact).Hex()
	for name, c := range map[string]struct {
		request verify.BundleRequest
		code    verify.Code
	}{
		"the subject is another artifact":         {ask(a.attests(inToto([]byte("another"), slsa1, predicate1), soon)), verify.CodeSubject},
		"it has no subject":                       {ask(a.attests(strings.Replace(good, `{"name":"p.tar.zst","digest":{"sha256":"`+subject+`"}}`, "", 1), soon)), verify.CodeSubject},
		"the subject's digest is of another kind": {ask(a.attests(strings.Replace(good, `"sha256"`, `"sha512"`, 1), soon)), verify.CodeSubject},
		"a member stands twice": {ask(a.attests(inToto(artifact, slsa1,
			`{"runDetails":{"builder":{"id":"https://build.example.com/one","id":"evil"}}}`), soon)), verify.CodeStatement},
		"a builder that is no object": {ask(a.attests(inToto(artifact, slsa1, `{"runDetails":{"builder":"one"}}`), soon)), verify.CodeStatement},
		"another payload type": {ask(func() signing {
			s := a.attests(good, soon)
			s.edit = func(b *protobundle.Bundle) { b.GetDsseEnvelope().PayloadType = "text/plain" }
			return s
		}()), verify.CodeBundleKind},
		"a payload that was changed": {ask(func() signing {
			s := a.attests(good, soon)
			s.edit = func(b *protobundle.Bundle) {
				b.GetDsseEnvelope().Payload = []byte(strings.Replace(good, "build.example.com/one", "build.example.com/two", 1))
			}
			return s
		}()), verify.CodeLog}, // the log holds the digest of another payload
		"two signatures in one envelope": {ask(func() signing {
			s := a.attests(good, soon)
			s.edit = func(b *protobundle.Bundle) {
				e := b.GetDsseEnvelope()
				e.Signatures = append(e.Signatures, e.Signatures[0])
			}
			return s
		}()), verify.CodeSignature},
		"where a signature is wanted": {a.asks(verify.Signature, artifact, a.document(a.attests(good, soon))), verify.CodeBundleKind},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := checkBundle(c.request)
			refused(t, err, c.code)
			if facts != nil {
				t.Errorf("facts beside the refusal: %+v", facts)
			}
		})
	}
}

// TestTrustedTimes holds that a certificate counts only with a time at which it was
// valid and that somebody else than the signer states.
func TestTrustedTimes(t *testing.T) {
	a := newAuthority(t)
	artifact := []byte("an archive")
	good := inToto(artifact, slsa1, predicate1)
	soon := a.now.Add(time.Minute)
	second := func(at time.Time) signing { // by a log that states no time
		entity, err := a.AttestAtTimeHashedRekordV2(somebody, vouching, []byte(good), at)
		a.check(err)
		return signing{entity: entity}
	}
	stamped := func(s signing) signing { s.stamp = true; return s }
	for name, c := range map[string]struct {
		signed  signing
		code    verify.Code
		sources []string
	}{
		"by the log":                      {signed: a.attests(good, soon), sources: []string{"transparency-log"}},
		"by log and timestamp authority":  {signed: stamped(a.attests(good, soon)), sources: []string{"transparency-log", "timestamp-authority"}},
		"by the timestamp authority only": {signed: stamped(second(soon)), sources: []string{"timestamp-authority"}},
		"by nobody":                       {signed: second(soon), code: verify.CodeTime},
		"not in any log":                  {signed: func() signing { s := stamped(a.attests(good, soon)); s.silent = true; return s }(), code: verify.CodeLog},
		"neither log nor time":            {signed: func() signing { s := a.attests(good, soon); s.silent = true; return s }(), code: verify.CodeLog},
		"after the certificate expired":   {signed: a.attests(good, a.now.Add(20*time.Minute)), code: verify.CodeTime},
		"before it was valid":             {signed: a.attests(good, a.now.Add(-20*time.Minute)), code: verify.CodeTime},
		"one of two times is outside":     {signed: stamped(a.attests(good, a.now.Add(20*time.Minute))), code: verify.CodeTime},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := checkBundle(a.asks(verify.Provenance, artifact, a.document(c.signed)))
			if c.code != "" {
				refused(t, err, c.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var sources []string
			for _, at := range facts.Times {
				sources = append(sources, at.Source)
			}
			if strings.Join(sources, " ") != strings.Join(c.sources, " ") {
				t.Errorf("times by %q, want %q", sources, c.sources)
			}
		})
	}
	t.Run("a clock that the log is ahead of", func(t *testing.T) {
		r := a.asks(verify.Provenance, artifact, a.document(a.attests(good, soon)))
		r.Now = soon.Add(-time.Hour)
		facts, err := checkBundle(r)
		refused(t, err, verify.CodeTime)
		if facts != nil {
			t.Errorf("facts beside the refusal: %+v", facts)
		}
		r.Now = soon.Add(-time.Minute) // clocks differ a little
		if _, err := checkBundle(r); err != nil {
			t.Error(err)
		}
	})
}

// TestSignatureUnderCertificate holds identity and issuer of a signature, and that
// nothing else than its own authority makes it count.
func TestSignatureUnderCertificate(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	artifact := []byte("an archive")
	signed := a.signs(artifact, a.now.Add(time.Minute))
	document := a.document(signed)
	facts, err := checkBundle(a.asks(verify.Signature, artifact, document))
	if err != nil {
		t.Fatal(err)
	}
	if want := (verify.Signer{Identity: somebody, Issuer: vouching}); facts.Signer != want || facts.Bundle != digest.Of(document) || len(facts.Chain) != 2 {
		t.Errorf("facts %+v", facts)
	}
	expect := func(name string, code verify.Code, edit func(*verify.BundleRequest)) {
		t.Run(name, func(t *testing.T) {
			r := a.asks(verify.Signature, artifact, document)
			edit(&r)
			_, err := checkBundle(r)
			refused(t, err, code)
		})
	}
	expect("another artifact", verify.CodeSignature, func(r *verify.BundleRequest) { r.Artifact = digest.Of([]byte("another")) })
	expect("another authority's root", verify.CodeLog, func(r *verify.BundleRequest) { r.TrustedRoot = other.root })
	expect("the root that is shipped", verify.CodeLog, func(r *verify.BundleRequest) { r.TrustedRoot = nil })
	expect("a root that is none", verify.CodeRootMalformed, func(r *verify.BundleRequest) { r.TrustedRoot = []byte("{}") })
	expect("a huge root", verify.CodeRootMalformed, func(r *verify.BundleRequest) { r.TrustedRoot = make([]byte, verify.MaxTrustedRoot+1) })
	expect("where a provenance is wanted", verify.CodeBundleKind, func(r *verify.BundleRequest) { r.Kind = verify.Provenance })
	expect("keys do not make up for it", verify.CodeLog, func(r *verify.BundleRequest) {
		r.TrustedRoot, r.Keys = other.root, []string{pair(t, verify.ECDSA).Public}
	})
	expect("certificate of another authority", verify.CodeLog, func(r *verify.BundleRequest) {
		foreign := other.signs(artifact, other.now.Add(time.Minute))
		r.Document = other.document(foreign)
	})
	expect("a certificate that another authority made, in our log", verify.CodeCertificate, func(r *verify.BundleRequest) {
		foreign := other.signs(artifact, a.now.Add(time.Minute))
		foreign.edit = func(b *protobundle.Bundle) {
			a.adopt(b.VerificationMaterial.TlogEntries[0])
		}
		r.Document = other.document(foreign)
	})
}

// TestUnprovedLogEntriesAreNotTold holds that an entry of a log that nobody knows here
// is not reported beside a proved one.
func TestUnprovedLogEntriesAreNotTold(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	artifact := []byte("an archive")
	foreign, err := other.SignAtTime(somebody, vouching, artifact, other.now)
	a.check(err)
	entries, err := foreign.TlogEntries()
	a.check(err)
	signed := a.signs(artifact, a.now.Add(time.Minute))
	signed.edit = func(b *protobundle.Bundle) {
		b.VerificationMaterial.TlogEntries = append(b.VerificationMaterial.TlogEntries, other.entry(entries[0]))
	}
	facts, err := checkBundle(a.asks(verify.Signature, artifact, a.document(signed)))
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.RekorLogID()
	a.check(err)
	if len(facts.Log) != 1 || facts.Log[0].Log != id {
		t.Errorf("told: %+v, want the one of %s", facts.Log, id)
	}
}
