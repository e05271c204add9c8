package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// corpus is the conformance suite's bundles, beside the checkout where they are there.
const corpus = "../../../shared/corpora/sigstore/bundle-verify"

// The signer of every bundle of the suite that names no other.
const (
	suiteIdentity = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
	suiteIssuer   = "https://token.actions.githubusercontent.com"
)

// TestConformanceBundles gives every bundle of the suite its expected outcome.
func TestConformanceBundles(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(corpus, "*", "bundle.sigstore.json"))
	if err != nil || len(dirs) == 0 {
		t.Skipf("the conformance suite is not at %s", corpus)
	}
	if len(dirs) < 60 {
		t.Fatalf("only %d bundles", len(dirs))
	}
	codes := map[verify.Code]int{}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			facts, err := suiteCase(t, dir)
			var refusal *verify.Refusal
			switch wantFail := strings.HasSuffix(dir, "_fail"); {
			case !wantFail && err != nil:
				t.Errorf("refused: %v", err)
			case wantFail && err == nil:
				t.Errorf("accepted: %+v", facts)
			case err != nil && !errors.As(err, &refusal):
				t.Errorf("an error without a code: %v", err)
			case err != nil:
				codes[refusal.Code]++
				if refusal.Code == verify.CodeRequestMalformed || refusal.Code == verify.CodeCrashed {
					t.Errorf("%s: %v", refusal.Code, err)
				}
				t.Logf("%s: %v", refusal.Code, err)
			}
		})
	}
	for _, code := range []verify.Code{verify.CodeBundleMalformed, verify.CodeLog, verify.CodeTime, verify.CodeCertificate, verify.CodeSignature} {
		if codes[code] == 0 {
			t.Errorf("no bundle is refused with %s: %v", code, codes)
		}
	}
}

// suiteRequest is the question that the suite's README asks about one bundle.
func suiteRequest(t testing.TB, dir string) verify.BundleRequest {
	t.Helper()
	artifact := filepath.Join(dir, "artifact")
	if _, err := os.Stat(artifact); err != nil {
		artifact = filepath.Join(corpus, "a.txt")
	}
	bytes, err := os.ReadFile(artifact)
	if err != nil {
		t.Fatal(err)
	}
	r := verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(bytes), Path: artifact, Document: suiteFile(dir, "bundle.sigstore.json"),
		TrustedRoot: suiteFile(dir, "trusted_root.json"), Now: time.Now()}
	if strings.Contains(string(r.Document), "dsseEnvelope") {
		r.Kind = verify.Provenance
	}
	if key := suiteFile(dir, "key.pub"); key != nil {
		r.Keys = []string{string(key)}
	}
	return r
}

// suiteFile is a file of a case, nil where the case has none.
func suiteFile(dir, name string) []byte {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return b
}

// suiteCase checks one bundle, identity included.
func suiteCase(t *testing.T, dir string) (*verify.Facts, error) {
	t.Helper()
	r := suiteRequest(t, dir)
	facts, err := checkBundle(r)
	if err != nil || r.Keys != nil {
		return facts, err
	}
	want := verify.Signer{Identity: suiteIdentity, Issuer: suiteIssuer}
	if b := suiteFile(dir, "identity"); b != nil {
		want.Identity = strings.TrimSpace(string(b))
	}
	if b := suiteFile(dir, "issuer"); b != nil {
		want.Issuer = strings.TrimSpace(string(b))
	}
	if facts.Signer != want {
		return facts, refuse(verify.CodeCertificate, "signed by %+v", facts.Signer)
	}
	return facts, nil
}
