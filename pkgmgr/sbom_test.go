//go:build unix

package pkgmgr

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// SBOM reads documents that are SBOMFacts as JSON, with unknown members let be, and so
// the list of files in it.
func (n *notary) SBOM(_ context.Context, document []byte) (*verify.SBOMFacts, error) {
	if n.broken != nil {
		return nil, n.broken
	}
	f := &verify.SBOMFacts{}
	if err := json.Unmarshal(document, f); err != nil {
		return nil, &verify.Refusal{Code: verify.CodeSBOMMalformed, Message: "no JSON"}
	}
	f.Document = digest.Of(document)
	return f, nil
}

func (aProver) SBOM(ctx context.Context, document []byte) (*verify.SBOMFacts, error) {
	return (&notary{}).SBOM(ctx, document)
}

func TestCompareSBOM(t *testing.T) {
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	files := []digest.File{{Path: "a", SHA256: one}, {Path: "b", SHA256: two}, {Path: sbomFile, SHA256: one}}
	listed := func(files ...verify.SBOMFile) *verify.SBOMFacts { return &verify.SBOMFacts{Files: files} }
	a, b := verify.SBOMFile{Path: "a", SHA256: one}, verify.SBOMFile{Path: "b", SHA256: two}
	for name, c := range map[string]struct {
		facts    *verify.SBOMFacts
		verdict  Verdict
		problems []string
	}{
		"all":             {listed(a, b), Verified, nil},
		"one missing":     {listed(b), Verified, []string{"it does not list a"}},
		"no checksum":     {listed(a, verify.SBOMFile{Path: "b"}), Verified, nil},
		"another file":    {listed(a, b, verify.SBOMFile{Path: "c", SHA256: one}), Failed, []string{"it lists c, which is not in the package"}},
		"absent unhashed": {listed(a, b, verify.SBOMFile{Path: "c"}), Failed, []string{"it lists c, which is not in the package"}},
		"another sum":     {listed(a, verify.SBOMFile{Path: "b", SHA256: one}), Failed, []string{"of b it says sha256:" + one + ", and that file has sha256:" + two}},
		"itself":          {listed(a, b, verify.SBOMFile{Path: sbomFile, SHA256: one}), Failed, []string{"it lists itself"}},
	} {
		got := compareSBOM(c.facts, files)
		if got.Verdict() != c.verdict || !reflect.DeepEqual(got.Problems(), c.problems) {
			t.Errorf("%s: %s %q; want %s %q", name, got.Verdict(), got.Problems(), c.verdict, c.problems)
		}
	}
}

func TestRecogniseLicence(t *testing.T) {
	apache, err := os.ReadFile("../LICENSE")
	must(t, err)
	const isc = `ISC License

Copyright (c) 2024 The authors

Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby
granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE
INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY
DAMAGES WHATSOEVER ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`
	for _, c := range []struct{ text, want string }{
		{string(apache), "Apache-2.0"},
		{strings.ReplaceAll(string(apache), "\n", "\r\n"), "Apache-2.0"},
		{isc, "ISC"},
		{"", noAssertion},
		{"MIT License", noAssertion},
		{"GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007", noAssertion},
		{string(apache) + isc, noAssertion},
		{"The following conditions come first.\n" + string(apache), noAssertion},
		{isc + "And pay me.", noAssertion},
		{strings.Repeat("Pay me. ", 60) + isc, noAssertion},
	} {
		if got := recogniseLicence([]byte(c.text)); got != c.want {
			t.Errorf("%.40q: %s, want %s", c.text, got, c.want)
		}
	}
}

// sbomOf is a document that the notary reads, which lists files.
func sbomOf(t testing.TB, licence string, files ...verify.SBOMFile) string {
	t.Helper()
	text, err := json.Marshal(verify.SBOMFacts{Version: "2.3", Files: files, Licences: []string{licence},
		Components: []verify.Component{{Name: "x", Declared: licence}}})
	must(t, err)
	return string(text)
}

// TestSBOMOneWorker holds that a signed package with an SBOM costs one worker, and that the
// SBOM is judged wherever a package is judged.
func TestSBOMOneWorker(t *testing.T) {
	a := newAssured(t)
	good := sample{id: "one", version: "1.0.0", files: map[string]string{
		"notes": "x", sbomFile: sbomOf(t, "MIT", verify.SBOMFile{Path: "notes", SHA256: digest.Of([]byte("x")).Hex()})}}
	path := good.archive(t)
	sum, err := hashFile(path)
	must(t, err)
	beside(t, path, "", vouch(keyA, sum.Hex()))
	a.publishers(keyA)
	a.Policy.SBOM = policy.Required
	_, err = a.Install(a.ctx, path, InstallOptions{})
	must(t, err)
	if started, closed := a.notary.started.Load(), a.notary.closed.Load(); started != 1 || closed != 1 {
		t.Errorf("%d workers started, %d ended", started, closed)
	}
	list, err := a.Verify(a.ctx, nil, nil)
	must(t, err)
	if len(list) != 1 || list[0].SBOM != Verified || list[0].Verdict != Verified {
		t.Errorf("%+v", list)
	}
	r, err := a.Review(a.ctx, Ref{ID: "one"}, nil)
	must(t, err)
	if r.SBOMCheck.Verdict() != Verified || len(r.SBOMCheck.Facts.Components) != 1 || !r.Policy.Accepted() {
		t.Errorf("%+v %+v", r.SBOMCheck, r.Policy)
	}

	// The policy that counts is the one of this moment.
	a.Policy.DeniedLicences = []string{"MIT"}
	var refusal *policy.Refusal
	if _, err := a.Trust(a.ctx, Ref{ID: "one"}, nil, r.Package); !errors.As(err, &refusal) || refusal.Report.Failed()[0].Code != policy.CodeLicence {
		t.Errorf("trust: %v", err)
	}
	list, err = a.Verify(a.ctx, nil, nil)
	must(t, err)
	if v := list[0]; v.Verdict != Failed || v.Signature != Verified || v.SBOM != Verified || !errors.As(v.Err, &refusal) {
		t.Errorf("%+v", v)
	}
}

// TestSBOMWithoutWorker holds when an SBOM may go unchecked.
func TestSBOMWithoutWorker(t *testing.T) {
	missing := &verify.Unusable{Path: "switchyard-verify", Reason: "is missing"}
	for name, c := range map[string]struct {
		err     error
		edit    func(*policy.Policy)
		refused bool
	}{
		"nothing asked":   {missing, func(*policy.Policy) {}, false},
		"SBOM asked":      {missing, func(p *policy.Policy) { p.SBOM = policy.Required }, true},
		"licences denied": {missing, func(p *policy.Policy) { p.DeniedLicences = []string{"MIT"} }, true},
		"another build":   {&verify.Broken{Reason: "is another build"}, func(*policy.Policy) {}, true},
	} {
		a := newAssured(t)
		c.edit(a.Policy)
		a.Start = func(context.Context) (Prover, error) { return nil, c.err }
		path := sample{id: "one", version: "1.0.0", files: map[string]string{sbomFile: sbomOf(t, "MIT")}}.archive(t)
		_, err := a.Install(a.ctx, path, InstallOptions{})
		if c.refused != errors.Is(err, c.err) || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.refused {
			continue
		}
		list, err := a.Verify(a.ctx, nil, nil)
		must(t, err)
		if v := list[0]; v.SBOM != Skipped || v.Verdict != Unsigned || !strings.Contains(v.Reason, "is missing") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestAddSBOM holds that the SBOM is in the package, and not in its own list.
func TestAddSBOM(t *testing.T) {
	s := newSite(t)
	dir := sample{id: "one", version: "1.0.0", files: map[string]string{"deep/er/file": "x"}}.dir(t)
	created := time.Unix(1700000000, 0)
	document, plain, err := s.SBOM(s.ctx, dir, created)
	must(t, err)
	r, err := s.Pack(s.ctx, dir, PackOptions{Out: filepath.Join(t.TempDir(), "one.zip"), SBOM: &created})
	must(t, err)
	if len(r.Contents.Files) != len(plain.Files)+1 || r.Contents.Package == plain.Package {
		t.Errorf("%d files, %s", len(r.Contents.Files), r.Contents.Package)
	}
	again, packed, err := s.SBOM(s.ctx, r.Path, created)
	must(t, err)
	if string(again) != string(document) || packed.Package != r.Contents.Package {
		t.Error("the packed package gives another document")
	}
	var d spdxDocument
	must(t, json.Unmarshal(document, &d))
	var listed []verify.SBOMFile
	for _, f := range d.Files {
		listed = append(listed, verify.SBOMFile{Path: strings.TrimPrefix(f.FileName, "./"), SHA256: f.Checksums[1].Value})
	}
	if c := compareSBOM(&verify.SBOMFacts{Files: listed}, packed.Files); c.Verdict() != Verified || len(c.Unlisted) != 0 {
		t.Errorf("%+v", c)
	}
	if len(d.Relationships) != len(d.Files)+1 || d.CreationInfo.Created != "2023-11-14T22:13:20Z" {
		t.Errorf("%d relationships, created %s", len(d.Relationships), d.CreationInfo.Created)
	}
}
