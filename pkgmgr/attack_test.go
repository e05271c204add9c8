//go:build unix

package pkgmgr

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project/versionrange"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// offer makes an archive that the notary takes for signed by a key.
func offer(t testing.TB, p sample, key string) string {
	t.Helper()
	path := p.archive(t)
	sum, err := hashFile(path)
	must(t, err)
	beside(t, path, "", vouch(key, sum.Hex()))
	return path
}

// The right publisher's signature does not make another plugin, or an older version, the
// one that was asked for.
func TestSubstitutedPackage(t *testing.T) {
	asked := sample{id: "com.example.asked", version: "1.1.0"}
	r, err := versionrange.Parse("^1.1.0")
	must(t, err)
	wanted := &Expectation{ID: asked.id, Accepts: r.Covers, Range: "^1.1.0"}
	locked := &Expectation{ID: asked.id, Version: asked.version, Package: asked.digest(t)}
	for name, other := range map[string]sample{
		"an older version": {id: asked.id, version: "1.0.0"},
		"another plugin":   {id: "com.example.other", version: asked.version},
	} {
		path := offer(t, other, keyA)
		for where, expect := range map[string]*Expectation{"switchyard.toml": wanted, "the lock": locked} {
			a := newAssured(t)
			a.publishers(keyA)
			_, err := a.Install(a.ctx, path, InstallOptions{Expect: expect})
			if where == "the lock" {
				as[*Integrity](t, err)
			} else if e := as[*WrongPackage](t, err); e.WantID != asked.id || e.ID != other.id || e.Version != other.version {
				t.Errorf("%s in place of what %s asks for: %+v", name, where, e)
			}
			wantLines(t, a.list(true))
			if v, err := a.Install(a.ctx, path, InstallOptions{}); err != nil || v.Report.Verdict != policy.Signed {
				t.Fatalf("%s is no well signed package: %v", name, err)
			}
		}
	}
	// Nobody asked by name: the older version does not become the default again.
	a := newAssured(t)
	a.publishers(keyA)
	a.install(offer(t, asked, keyA))
	_, err = a.Install(a.ctx, offer(t, sample{id: asked.id, version: "1.0.0"}, keyA), InstallOptions{})
	as[*Downgrade](t, err)
	wantLines(t, a.list(true), asked.id+"* 1.1.0 untrusted")
	// And a publisher speaks for its own plugins.
	own, err := policy.ParseIDPattern("com.example.*")
	must(t, err)
	a.Policy.Publishers = []policy.Publisher{{Plugins: []policy.IDPattern{own}, Key: keyA}, {Plugins: []policy.IDPattern{mustPattern(t, "org.*")}, Key: keyB}}
	_, err = a.Install(a.ctx, offer(t, sample{id: "org.other", version: "1.0.0"}, keyA), InstallOptions{})
	wantFailed(t, err, policy.CodePublisher)
}

func mustPattern(t testing.TB, text string) policy.IDPattern {
	t.Helper()
	p, err := policy.ParseIDPattern(text)
	must(t, err)
	return p
}

// wantFailed demands that the policy refused, with a code among the rules that failed.
func wantFailed(t testing.TB, err error, code string) {
	t.Helper()
	if failed := as[*policy.Refusal](t, err).Report.Failed(); !slices.ContainsFunc(failed, func(r policy.Result) bool { return r.Code == code }) {
		t.Errorf("failed: %+v, want %s", failed, code)
	}
}

// An SBOM that was exchanged after the signature, one that was signed and is not true of
// the files, and one that is changed in the store.
func TestTamperedSBOM(t *testing.T) {
	listing := sbomOf(t, "MIT", verify.SBOMFile{Path: "a.txt", SHA256: digest.Of([]byte("a")).Hex()})
	p := sample{id: "x", version: "1.0.0", files: map[string]string{"a.txt": "a", sbomFile: listing}}
	good := offer(t, p, keyA)
	bundle, err := os.ReadFile(good + bundleSuffix)
	must(t, err)
	a := newAssured(t)
	a.publishers(keyA)

	p.files = map[string]string{"a.txt": "a", sbomFile: sbomOf(t, "MIT")}
	exchanged := p.archive(t)
	beside(t, exchanged, "", string(bundle))
	_, err = a.Install(a.ctx, exchanged, InstallOptions{})
	wantFailed(t, err, policy.CodeEvidence)

	p.files = map[string]string{"a.txt": "b", sbomFile: listing}
	_, err = a.Install(a.ctx, offer(t, p, keyA), InstallOptions{})
	wantFailed(t, err, policy.CodeSBOM)
	wantLines(t, a.list(true))

	done := a.install(good)
	if v := a.verifyOnly(); v.SBOM != Verified || v.Verdict != Verified {
		t.Errorf("%+v", v)
	}
	path := filepath.Join(a.storePath(done.Package), sbomFile)
	must(t, os.Chmod(filepath.Dir(path), 0o755))
	must(t, os.Chmod(path, 0o644))
	must(t, os.WriteFile(path, []byte(sbomOf(t, "MIT")), 0o644))
	if v := a.verifyOnly(); v.Verdict != Failed || v.Digests != Failed {
		t.Errorf("%+v", v)
	}
}

// A good signature does not cover up for a bad one beside it, and two signatures by one
// signer are one.
func TestTwoSignatures(t *testing.T) {
	path, hex := signedArchive(t, "signed", "1.0.0")
	zeros := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		second string
		known  []string
		two    bool // signers that the policy asks for
		code   string
	}{
		"the second is over another archive": {vouch(keyB, zeros), nil, false, policy.CodeEvidence},
		"the second is no bundle":            {"garbage", nil, false, policy.CodeEvidence},
		"the second is by an unknown key":    {vouch(keyB, hex), []string{keyA}, true, policy.CodeThreshold},
		"the second is by the same signer":   {vouch(keyA, hex), nil, true, policy.CodeThreshold},
		"both count":                         {vouch(keyB, hex), nil, true, ""},
	} {
		a := newAssured(t)
		a.publishers(keyA, keyB)
		a.notary.known = c.known
		if c.two {
			a.Policy.Threshold = 2
		}
		beside(t, path, "", vouch(keyA, hex))
		beside(t, path, ".second", c.second)
		_, err := a.Install(a.ctx, path, InstallOptions{})
		if c.code == "" {
			must(t, err)
			continue
		}
		if wantFailed(t, err, c.code); t.Failed() {
			t.Error(name)
		}
		wantLines(t, a.list(true))
	}
}

// What a revoked signer vouched for is refused: what is offered, whoever else signed it
// too, and what was installed before.
func TestRevokedSigner(t *testing.T) {
	f := newFleet(t)
	f.follow()
	named := func(id string, bundles map[string]string) string {
		path := sample{id: id, version: "1.0.0"}.archive(t)
		sum, err := hashFile(path)
		must(t, err)
		for label, name := range bundles {
			beside(t, path, label, name+" "+string(sum))
		}
		return path
	}
	before := named("before", map[string]string{"": "compromised"})
	proved := named("proved", map[string]string{"": "honest", ".provenance": "compromised"})
	for _, path := range []string{before, proved} {
		f.install(path)
	}
	for _, id := range []string{"before", "proved"} {
		f.trust(id)
		f.enable(id, manifest.ScopeMetadataRead)
		_, err := f.health(id)
		must(t, err)
	}
	f.now = f.now.Add(1)
	f.deny(revlist.Entry{Kind: revlist.Signer, Signer: keyOfTest("compromised"), Reason: revlist.Compromised})
	f.follow()
	for _, id := range []string{"before", "proved"} {
		_, err := f.health(id)
		as[*Revoked](t, err)
	}
	for _, path := range []string{before, proved, named("alone", map[string]string{"": "compromised"}),
		named("second", map[string]string{"": "honest", ".second": "compromised"}),
		named("provenance", map[string]string{"": "honest", ".provenance": "compromised"})} {
		v, err := f.VerifyArchive(f.ctx, path, "", Asked{})
		must(t, err)
		as[*Revoked](t, v.Err)
		if v.Revocation != Failed {
			t.Errorf("%s: revocation %s", path, v.Revocation)
		}
		review, err := f.ReviewArchive(f.ctx, path)
		must(t, err)
		if review.Status != StatusRevoked {
			t.Errorf("%s: reviewed as %s", path, review.Status)
		}
		_, err = f.Install(f.ctx, path, InstallOptions{})
		if r := as[*Revoked](t, err); r.Denial.List == nil || r.Denial.List.Entry.Signer != (verify.Signer{Key: keyOfTest("compromised").Key}) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	f.install(named("honest", map[string]string{"": "honest"}))
}
