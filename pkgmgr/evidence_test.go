//go:build unix

package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// Keys that sign in these tests.
var (
	keyA = "sha256:" + strings.Repeat("a", 64)
	keyB = "sha256:" + strings.Repeat("b", 64)
)

// vouch is a document that the notary reads as a signature by a key over an archive.
func vouch(key, archive string) string { return "signed " + key + " " + archive }

// A notary is a Prover whose bundles are the texts that vouch makes.
type notary struct {
	started, closed atomic.Int64
	known           []string // the keys that it was given; nil: every key
	broken          error    // it dies of every bundle
}

func (n *notary) start(context.Context) (Prover, error) {
	n.started.Add(1)
	return n, nil
}

func (n *notary) Close() { n.closed.Add(1) }

func (n *notary) Bundle(_ context.Context, r verify.BundleRequest) (*verify.Facts, error) {
	refuse := func(code verify.Code) (*verify.Facts, error) {
		return nil, &verify.Refusal{Code: code, Message: "refused with " + string(code)}
	}
	var key, archive string
	if n.broken != nil {
		return nil, n.broken
	}
	if _, err := fmt.Sscanf(string(r.Document), "signed %s %s", &key, &archive); err != nil {
		return refuse(verify.CodeBundleMalformed)
	}
	switch {
	case n.known != nil && !slices.Contains(n.known, key):
		return refuse(verify.CodeKeyUnknown)
	case archive != r.Artifact.Hex():
		return refuse(verify.CodeSignature)
	}
	f := &verify.Facts{Kind: r.Kind, Artifact: r.Artifact, Bundle: digest.Of(r.Document), Signer: verify.Signer{Key: key}}
	if r.Kind == verify.Provenance {
		f.Statement = &verify.Statement{PredicateType: "https://slsa.dev/provenance/v1", Builder: "https://build.example.com/one"}
	}
	return f, nil
}

// assured is a site whose user has a policy, and a notary for a worker.
type assured struct {
	*site
	*Assurance
	notary *notary
}

func newAssured(t testing.TB) *assured {
	t.Helper()
	a := &assured{Assurance: &Assurance{Policy: policy.Default()}, notary: &notary{}}
	a.Start = a.notary.start
	h, err := Open(filepath.Join(scratch(t), "data"), Options{Now: func() time.Time { return time.Now().Add(time.Hour) },
		Assurance: func() (*Assurance, error) { return a.Assurance, nil }})
	must(t, err)
	a.site = &site{Home: h, t: t, ctx: context.Background()}
	return a
}

// publishers names who may publish everything.
func (a *assured) publishers(keys ...string) {
	a.t.Helper()
	all, err := policy.ParseIDPattern("*")
	must(a.t, err)
	a.Policy.Publishers = nil
	for _, k := range keys {
		a.Policy.Publishers = append(a.Policy.Publishers, policy.Publisher{Plugins: []policy.IDPattern{all}, Key: k})
	}
}

// signedArchive makes an archive and the digest that bundles name.
func signedArchive(t testing.TB, id, version string) (path, hex string) {
	t.Helper()
	path = sample{id: id, version: version}.archive(t)
	sum, err := hashFile(path)
	must(t, err)
	return path, sum.Hex()
}

// beside writes a bundle beside an archive; label is "" or begins with a dot.
func beside(t testing.TB, archive, label, document string) {
	t.Helper()
	write(t, archive+label+bundleSuffix, document, 0o644)
}

// verifyOnly verifies the one package that is installed.
func (a *assured) verifyOnly() Verification {
	a.t.Helper()
	list, err := a.Verify(a.ctx, nil, nil)
	must(a.t, err)
	if len(list) != 1 {
		a.t.Fatalf("%d packages", len(list))
	}
	return list[0]
}

func wantSigners(t testing.TB, got []verify.Signer, keys ...string) {
	t.Helper()
	var found []string
	for _, s := range got {
		found = append(found, s.Key)
	}
	slices.Sort(found)
	if !slices.Equal(found, keys) {
		t.Errorf("signed by %q, want %q", found, keys)
	}
}

// TestBundleNames holds which files beside an archive vouch for it.
func TestBundleNames(t *testing.T) {
	for name, want := range map[string]verify.Kind{
		"p.zip.sigstore.json":                                 verify.Signature,
		"p.zip.second.sigstore.json":                          verify.Signature,
		"p.zip.a-1.sigstore.json":                             verify.Signature,
		"p.zip." + strings.Repeat("a", 32) + ".sigstore.json": verify.Signature,
		"p.zip.provenance.sigstore.json":                      verify.Provenance,
		"p.zip." + strings.Repeat("a", 33) + ".sigstore.json": "",
		"p.zip..sigstore.json":                                "",
		"p.zip.a.b.sigstore.json":                             "",
		"p.zip.A.sigstore.json":                               "",
		"p.zip.é.sigstore.json":                               "",
		"p.zip.a b.sigstore.json":                             "",
		"p.zipx.sigstore.json":                                "",
		"p.zip-1.sigstore.json":                               "",
		"p.zip.sigstore.json.bak":                             "",
		"p.zip.sigstore":                                      "",
		"p.zip":                                               "",
		"q.zip.sigstore.json":                                 "",
		"P.zip.sigstore.json":                                 "",
		".sigstore.json":                                      "",
		"xp.zip.sigstore.json":                                "",
	} {
		kind, ok := bundleKind("p.zip", name)
		if kind != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, kind, ok, want)
		}
	}
}

// TestBundlesBeside holds the bounds on what lies beside an archive: what is too much
// or no file is an error, never passed over.
func TestBundlesBeside(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "p.zip")
	write(t, archive, "archive", 0o644)
	read := func() ([]Bundle, error) { return bundlesBeside(archive) }
	if list, err := read(); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for i := range maxBundles {
		beside(t, archive, fmt.Sprintf(".n%d", i), "x")
	}
	if list, err := read(); err != nil || len(list) != maxBundles {
		t.Errorf("%d bundles, %v", len(list), err)
	}
	beside(t, archive, "", "x")
	if _, err := read(); err == nil {
		t.Error("17 bundles are read")
	} else {
		as[*Malformed](t, err)
	}
	for i := range maxBundles {
		must(t, os.Remove(archive+fmt.Sprintf(".n%d", i)+bundleSuffix))
	}
	for name, place := range map[string]func(path string){
		"a directory":   func(path string) { must(t, os.Mkdir(path, 0o755)) },
		"a pipe":        func(path string) { must(t, syscall.Mkfifo(path, 0o644)) },
		"a device":      func(path string) { must(t, os.Symlink("/dev/zero", path)) },
		"5 MiB":         func(path string) { must(t, os.WriteFile(path, make([]byte, 5<<20), 0o644)) },
		"4 MiB and one": func(path string) { must(t, os.WriteFile(path, make([]byte, verify.MaxBundle+1), 0o644)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := archive + ".odd" + bundleSuffix
			place(path)
			defer os.Remove(path)
			_, err := read()
			if m := as[*Malformed](t, err); m.File != filepath.Base(path) {
				t.Errorf("it names %q", m.File)
			}
		})
	}
	t.Run("a link that leads nowhere", func(t *testing.T) {
		path := archive + ".odd" + bundleSuffix
		must(t, os.Symlink("gone", path))
		defer os.Remove(path)
		if _, err := read(); err == nil {
			t.Error("it is passed over")
		}
	})
	t.Run("a link to a bundle", func(t *testing.T) {
		path := archive + ".odd" + bundleSuffix
		must(t, os.Symlink(filepath.Base(archive)+bundleSuffix, path))
		defer os.Remove(path)
		if list, err := read(); err != nil || len(list) != 2 || !bytes.Equal(list[0].Document, list[1].Document) {
			t.Errorf("%v, %v", list, err)
		}
	})
}

// TestEvidenceIsKept holds the life of evidence: proved at install, kept, read back,
// proved again from the store alone, and removed with its archive.
func TestEvidenceIsKept(t *testing.T) {
	a := newAssured(t)
	a.publishers(keyA)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	beside(t, path, ".provenance", vouch(keyA, hex))
	done := a.install(path)
	if done.Report.Verdict != policy.Signed {
		t.Errorf("installed as %s", done.Report.Verdict)
	}
	must(t, os.RemoveAll(filepath.Dir(path)))
	kept, err := a.Evidence(done.Archive)
	must(t, err)
	if !slices.Equal(kept.Kinds(), []verify.Kind{verify.Provenance, verify.Signature}) || kept.Archive != done.Archive {
		t.Errorf("kept: %+v", kept)
	}
	if info, err := os.Stat(a.evidencePath(done.Archive)); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if v := a.verifyOnly(); v.Verdict != Verified || v.Signature != Verified || len(v.Evidence) != 2 {
		t.Errorf("verified: %+v", v)
	}
	if n := a.notary; n.started.Load() != 2 || n.closed.Load() != 2 {
		t.Errorf("%d workers started, %d ended", n.started.Load(), n.closed.Load())
	}

	// Facts are proved again, not believed: the key is not known any more.
	a.notary.known = []string{keyB}
	if v := a.verifyOnly(); v.Verdict == Verified || v.Signature == Verified {
		t.Errorf("with an unknown key: %+v", v)
	}
	a.notary.known = nil

	_, err = a.Uninstall(a.ctx, Ref{ID: "signed"})
	must(t, err)
	removed, err := a.GC(a.ctx, GCOptions{})
	must(t, err)
	if !slices.ContainsFunc(removed, func(r Removed) bool { return r.Path == a.evidencePath(done.Archive) }) {
		t.Errorf("not listed: %+v", removed)
	}
	if names, err := readNames(a.join(archivesDir)); err != nil || len(names) > 0 {
		t.Errorf("left: %q, %v", names, err)
	}
}

// TestEvidenceDamaged holds that evidence which cannot be read, or is about another
// archive, fails a verification; it is never taken for none.
func TestEvidenceDamaged(t *testing.T) {
	a := newAssured(t)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	done := a.install(path)
	place := a.evidencePath(done.Archive)
	good, err := os.ReadFile(place)
	must(t, err)
	other, err := digest.Parse("sha256:" + strings.Repeat("0", 64))
	must(t, err)
	for name, text := range map[string]string{
		"cut short":                string(good[:len(good)/2]),
		"empty":                    "",
		"an unknown member":        `{"trust":true,` + string(good[1:]),
		"a member twice":           `{"archive":"` + string(other) + `",` + string(good[1:]),
		"of another archive":       strings.ReplaceAll(string(good), string(done.Archive), string(other)),
		"more behind it":           string(good) + "{}",
		"a document of other type": "[]",
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.Remove(place))
			write(t, place, text, 0o444)
			_, err := a.Evidence(done.Archive)
			as[*Malformed](t, err)
			if v := a.verifyOnly(); v.Verdict != Failed || v.Signature != Failed || v.Digests != Verified {
				t.Errorf("verified: %+v", v)
			}
		})
	}
	// Facts in the file are not believed: what the bundle proves counts.
	must(t, os.Remove(place))
	write(t, place, strings.ReplaceAll(string(good), keyA, keyB), 0o444)
	if v := a.verifyOnly(); v.Err != nil {
		t.Error(v.Err)
	} else {
		wantSigners(t, v.Signers, keyA)
	}
	// The original archive and its bundle mend it.
	must(t, os.Remove(place))
	write(t, place, "{", 0o444)
	a.install(path)
	if v := a.verifyOnly(); v.Err != nil {
		t.Errorf("after a reinstall: %v", v.Err)
	}
}

// TestInstallRefusedByPolicy holds that a refused install leaves nothing behind.
func TestInstallRefusedByPolicy(t *testing.T) {
	path, hex := signedArchive(t, "signed", "1.0.0")
	for name, c := range map[string]struct {
		document string
		edit     func(*assured)
		code     string
	}{
		"by somebody else":       {vouch(keyB, hex), func(a *assured) {}, policy.CodePublisher},
		"over another archive":   {vouch(keyA, strings.Repeat("0", 64)), func(a *assured) {}, policy.CodeEvidence},
		"garbage":                {"garbage", func(a *assured) {}, policy.CodeEvidence},
		"by an unknown key":      {vouch(keyB, hex), func(a *assured) { a.notary.known = []string{keyA} }, policy.CodePublisher},
		"unsigned":               {"", func(a *assured) { a.Policy.Signature = policy.Required }, policy.CodeSignatureRequired},
		"by one of two that are": {vouch(keyA, hex), func(a *assured) { a.Policy.Threshold = 2 }, policy.CodeThreshold},
		"without an SBOM":        {vouch(keyA, hex), func(a *assured) { a.Policy.SBOM = policy.Required }, policy.CodeSBOM},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssured(t)
			a.publishers(keyA)
			c.edit(a)
			os.Remove(path + bundleSuffix)
			if c.document != "" {
				beside(t, path, "", c.document)
			}
			_, err := a.Install(a.ctx, path, InstallOptions{})
			refusal := as[*policy.Refusal](t, err)
			if failed := refusal.Report.Failed(); !slices.ContainsFunc(failed, func(r policy.Result) bool { return r.Code == c.code }) {
				t.Errorf("failed: %+v, want %s", failed, c.code)
			}
			for _, dir := range []string{storeDir, archivesDir, pluginsDir, stagingDir} {
				names, err := readNames(a.join(dir))
				names = slices.DeleteFunc(names, func(n string) bool { return filepath.Join(dir, n) == filepath.Clean(archivesDir) })
				if err != nil || len(names) > 0 {
					t.Errorf("%s holds %q, %v", dir, names, err)
				}
			}
			wantLines(t, a.list(true))
			if n := a.notary; n.started.Load() != n.closed.Load() {
				t.Errorf("%d workers started, %d ended", n.started.Load(), n.closed.Load())
			}
		})
	}
}

// TestBrokenProver holds that a worker that dies is an error, and no verdict.
func TestBrokenProver(t *testing.T) {
	a := newAssured(t)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	broken := errors.New("it died")
	a.notary.broken = broken
	if _, err := a.Install(a.ctx, path, InstallOptions{}); !errors.Is(err, broken) {
		t.Fatalf("installed with %v", err)
	}
	wantLines(t, a.list(true))
	a.notary.broken = nil
	a.install(path)
	a.notary.broken = broken
	if v := a.verifyOnly(); v.Verdict != Failed || !errors.Is(v.Err, broken) {
		t.Errorf("verified: %+v", v)
	}
}

// TestReinstallAddsEvidence holds that what vouches for an archive is collected, and
// that nothing is lost of it by a reinstall from a place where less lies.
func TestReinstallAddsEvidence(t *testing.T) {
	a := newAssured(t)
	a.publishers(keyA, keyB)
	path, hex := signedArchive(t, "signed", "1.0.0")
	archive := a.install(path).Archive
	if v := a.verifyOnly(); v.Verdict != Unsigned {
		t.Errorf("unsigned: %+v", v)
	}
	beside(t, path, "", vouch(keyA, hex))
	if done := a.install(path); !done.Unchanged {
		t.Errorf("reinstalled: %+v", done)
	}
	v := a.verifyOnly()
	wantSigners(t, v.Signers, keyA)
	beside(t, path, "", vouch(keyB, hex))
	a.install(path)
	v = a.verifyOnly()
	wantSigners(t, v.Signers, keyA, keyB)
	for range 3 { // the same again adds nothing
		a.install(path)
	}
	must(t, os.Remove(path+bundleSuffix))
	a.install(path)
	v = a.verifyOnly()
	wantSigners(t, v.Signers, keyA, keyB)
	kept, err := a.Evidence(archive)
	must(t, err)
	if len(kept.Proofs) != 2 {
		t.Errorf("%d bundles are kept", len(kept.Proofs))
	}
	// No more is kept than may lie beside an archive.
	for i := range maxBundles {
		beside(t, path, fmt.Sprintf(".n%d", i), vouch(keyA, hex)+" "+fmt.Sprint(i))
	}
	a.install(path)
	if kept, err = a.Evidence(kept.Archive); err != nil || len(kept.Proofs) != maxBundles {
		t.Errorf("%d bundles are kept, %v", len(kept.Proofs), err)
	}
}

// TestUnknownSigner holds that a signature by somebody whom no policy names is skipped
// and counted as such: it is neither verified nor a failure.
func TestUnknownSigner(t *testing.T) {
	a := newAssured(t)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	v, err := a.VerifyArchive(a.ctx, path, "", Asked{})
	must(t, err)
	if v.Verdict != Skipped || v.Signature != Skipped || v.Digests != Verified || v.Reason == "" || v.Err != nil {
		t.Errorf("the archive: %+v", v)
	}
	wantSigners(t, v.Signers, keyA)
	if done := a.install(path); done.Report.Verdict != policy.Reviewed {
		t.Errorf("installed as %s", done.Report.Verdict)
	}
	if v := a.verifyOnly(); v.Verdict != Skipped || v.Signature != Skipped {
		t.Errorf("installed: %+v", v)
	}
}

// TestUnknownKey holds that a signature with a key that is not known here is told: its
// package is not one that nobody signed.
func TestUnknownKey(t *testing.T) {
	a := newAssured(t)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	a.notary.known = []string{keyB}
	v, err := a.VerifyArchive(a.ctx, path, "", Asked{})
	must(t, err)
	if v.Verdict != Skipped || v.Signature != Skipped || v.Digests != Verified || v.Reason == "" || v.Err != nil {
		t.Errorf("the archive: %+v", v)
	}
	wantSigners(t, v.Signers)
}

// TestWithoutAssurance holds that whoever opens a Home without somebody who proves
// anything gets no signature checked, told, and no package refused for it.
func TestWithoutAssurance(t *testing.T) {
	s := newSite(t)
	path, hex := signedArchive(t, "signed", "1.0.0")
	beside(t, path, "", vouch(keyA, hex))
	if done := s.install(path); done.Report.Verdict != policy.Reviewed {
		t.Errorf("installed as %s", done.Report.Verdict)
	}
	if v, err := s.VerifyArchive(s.ctx, path, "", Asked{}); err != nil || v.Verdict == Verified || v.Signature == Verified {
		t.Errorf("the archive: %+v, %v", v, err)
	}
	list, err := s.Verify(s.ctx, nil, nil)
	must(t, err)
	if len(list) != 1 || list[0].Verdict == Verified || list[0].Signature == Verified {
		t.Errorf("%+v", list)
	}
}

// TestVerifyCounts holds one verdict for each package, by one worker for all of them.
func TestVerifyCounts(t *testing.T) {
	a := newAssured(t)
	for i := range 6 {
		path, hex := signedArchive(t, fmt.Sprintf("plugin-%d", i), "1.0.0")
		switch i {
		case 0, 1, 2:
			beside(t, path, "", vouch(keyA, hex))
		case 3:
			beside(t, path, "", vouch(keyB, hex))
		}
		a.install(path)
	}
	a.publishers(keyA)
	before := a.notary.started.Load()
	list, err := a.Verify(a.ctx, nil, nil)
	must(t, err)
	counts := map[Verdict]int{}
	for _, v := range list {
		counts[v.Verdict]++
	}
	if counts[Verified] != 3 || counts[Failed] != 1 || counts[Unsigned] != 2 || len(list) != 6 {
		t.Errorf("counted %v", counts)
	}
	if n := a.notary.started.Load() - before; n != 1 || a.notary.closed.Load() != a.notary.started.Load() {
		t.Errorf("%d workers started for one command, %d of %d ended", n, a.notary.closed.Load(), a.notary.started.Load())
	}
}
