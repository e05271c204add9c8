package pkgmgr

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// sbomFile is where a package's SBOM stands. It is part of the package, and not of
// its own list.
const sbomFile = "sbom.spdx.json"

// noAssertion is SPDX for "nothing is said about this".
const noAssertion = "NOASSERTION"

// SBOMDiffers says that a package holds an SBOM already, which is another document
// than the one that would be written.
type SBOMDiffers struct{ Dir string }

func (e *SBOMDiffers) Error() string {
	return fmt.Sprintf("%s holds another %s than the one that would be written", e.Dir, sbomFile)
}

// The parts of an SPDX 2.3 document that are written here, in the order in which they
// are written.
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		SPDXID            string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Files             []spdxFile         `json:"files"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name             string          `json:"name"`
		SPDXID           string          `json:"SPDXID"`
		VersionInfo      string          `json:"versionInfo"`
		DownloadLocation string          `json:"downloadLocation"`
		FilesAnalyzed    bool            `json:"filesAnalyzed"`
		VerificationCode spdxCode        `json:"packageVerificationCode"`
		LicenseConcluded string          `json:"licenseConcluded"`
		LicenseFromFiles []string        `json:"licenseInfoFromFiles"`
		LicenseDeclared  string          `json:"licenseDeclared"`
		CopyrightText    string          `json:"copyrightText"`
		ExternalRefs     []spdxReference `json:"externalRefs"`
	}
	spdxCode struct {
		Value    string   `json:"packageVerificationCodeValue"`
		Excluded []string `json:"packageVerificationCodeExcludedFiles"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxFile struct {
		FileName         string         `json:"fileName"`
		SPDXID           string         `json:"SPDXID"`
		Checksums        []spdxChecksum `json:"checksums"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseInFile    []string       `json:"licenseInfoInFiles"`
		CopyrightText    string         `json:"copyrightText"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// SBOM writes an SPDX 2.3 document of a directory or an archive, once every rule that
// an install applies is met: the package, all its files but an SBOM that it holds
// already, and the licences whose texts are in it. created is the time that the document
// bears. Equal packages and times give equal bytes.
func (h *Home) SBOM(ctx context.Context, source string, created time.Time) ([]byte, *Contents, error) {
	s, err := h.readSource(ctx, source, "")
	if err != nil {
		return nil, nil, err
	}
	defer s.discard()
	c, err := s.contents()
	if err != nil {
		return nil, nil, err
	}
	document, err := s.makeSBOM(ctx, c, created)
	return document, c, err
}

// addSBOM writes the SBOM of the staged package into it and returns what the package
// holds then. *SBOMDiffers if there is another one.
func (s *staged) addSBOM(ctx context.Context, c *Contents, created time.Time) (*Contents, error) {
	document, err := s.makeSBOM(ctx, c, created)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.join("tree"))
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	defer root.Close()
	there, err := root.ReadFile(sbomFile)
	switch {
	case err == nil && bytes.Equal(there, document):
		return c, nil
	case err == nil:
		return nil, &SBOMDiffers{Dir: s.source}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("staging: %w", err)
	}
	if err := root.WriteFile(sbomFile, document, 0o644); err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	unmarked := s.tree.NoModes
	if s.tree, err = archive.HashDir(ctx, root); err != nil {
		return nil, err
	}
	s.tree.NoModes = s.tree.NoModes || unmarked
	return s.contents()
}

// makeSBOM describes the staged package.
func (s *staged) makeSBOM(ctx context.Context, c *Contents, created time.Time) ([]byte, error) {
	root, err := os.OpenRoot(s.join("tree"))
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	defer root.Close()
	files := slices.DeleteFunc(slices.Clone(c.Files), func(f digest.File) bool { return f.Path == sbomFile })
	slices.SortFunc(files, func(a, b digest.File) int { return strings.Compare(a.Path, b.Path) })
	described, err := digest.Package(files)
	if err != nil {
		return nil, err
	}
	const document, pkg = "SPDXRef-DOCUMENT", "SPDXRef-Package"
	m := c.Manifest
	doc := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: document, Name: m.ID + "-" + m.Version,
		DocumentNamespace: "https://spdx.org/spdxdocs/" + percent(m.ID) + "-" + percent(m.Version) + "-" + described.Hex(),
		CreationInfo:      spdxCreation{created.UTC().Format("2006-01-02T15:04:05Z"), []string{"Tool: switchyard"}},
		Relationships:     []spdxRelationship{{document, "DESCRIBES", pkg}},
	}
	p := spdxPackage{
		Name: m.ID, SPDXID: pkg, VersionInfo: m.Version, DownloadLocation: noAssertion, FilesAnalyzed: true,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion,
		ExternalRefs: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:generic/" + percent(m.ID) + "@" + percent(m.Version)}},
	}
	var sums, found, declared []string
	for _, f := range files {
		sum, text, err := readForSBOM(ctx, root, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.source, f.Path, err)
		}
		licence := noAssertion
		if isLicenceFile(f.Path) {
			if licence = recogniseLicence(text); licence != noAssertion {
				found = append(found, licence)
			}
			if path.Dir(f.Path) == "." {
				declared = append(declared, licence)
			}
		}
		id := "SPDXRef-File-" + digest.Of([]byte(f.Path)).Hex()
		doc.Files = append(doc.Files, spdxFile{
			FileName: "./" + f.Path, SPDXID: id, Checksums: []spdxChecksum{{"SHA1", sum}, {"SHA256", f.SHA256}},
			LicenseConcluded: noAssertion, LicenseInFile: []string{licence}, CopyrightText: noAssertion,
		})
		doc.Relationships = append(doc.Relationships, spdxRelationship{pkg, "CONTAINS", id})
		sums = append(sums, sum)
	}
	// Several texts may be a choice or hold together: only one is certain.
	if len(declared) == 1 {
		p.LicenseDeclared = declared[0]
	}
	slices.Sort(found)
	if p.LicenseFromFiles = slices.Compact(found); len(found) == 0 {
		p.LicenseFromFiles = []string{noAssertion}
	}
	slices.Sort(sums)
	code := sha1.Sum([]byte(strings.Join(sums, "")))
	p.VerificationCode = spdxCode{hex.EncodeToString(code[:]), []string{"./" + sbomFile}}
	doc.Packages = []spdxPackage{p}
	text, err := json.Marshal(doc, jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// readForSBOM returns the SHA-1 of a file, which SPDX 2.3 demands of every file and
// builds the package's verification code from, and of a small file its text.
func readForSBOM(ctx context.Context, root *os.Root, f digest.File) (sum string, text []byte, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", nil, err
	}
	in, err := root.Open(f.Path)
	if err != nil {
		return "", nil, err
	}
	defer in.Close()
	h := sha1.New()
	if f.Size <= maxLicenceText {
		if text, err = io.ReadAll(io.LimitReader(in, maxLicenceText+1)); err != nil {
			return "", nil, err
		}
		h.Write(text)
	} else if _, err := io.Copy(h, in); err != nil {
		return "", nil, err
	}
	return hex.EncodeToString(h.Sum(nil)), text, nil
}

// percent encodes what a purl and a URI may not hold as it is.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
