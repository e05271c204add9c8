package worker

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

const (
	sumA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	sumB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	sha1 = "cccccccccccccccccccccccccccccccccccccccc"
)

// document23 is an SPDX 2.3 document with everything that is checked in it.
const document23 = `{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "demo",
  "documentNamespace": "https://spdx.example.com/demo",
  "creationInfo": {"created": "2024-05-06T07:08:09Z", "creators": ["Tool: some-tool-1.0"]},
  "externalDocumentRefs": [{"externalDocumentId": "DocumentRef-other", "spdxDocument": "https://spdx.example.com/other",
    "checksum": {"algorithm": "SHA1", "checksumValue": "` + sha1 + `"}}],
  "hasExtractedLicensingInfos": [{"licenseId": "LicenseRef-own", "extractedText": "as you like"}],
  "packages": [
    {"name": "demo", "SPDXID": "SPDXRef-Package", "versionInfo": "1.0", "downloadLocation": "NOASSERTION", "filesAnalyzed": true,
     "packageVerificationCode": {"packageVerificationCodeValue": "` + sha1 + `"},
     "licenseDeclared": "MIT AND (Apache-2.0 OR GPL-2.0-or-later WITH Classpath-exception-2.0)", "licenseConcluded": "NOASSERTION", "releaseDate": "2024-05-06T07:08:09Z"},
    {"name": "library", "SPDXID": "SPDXRef-library", "versionInfo": "2", "downloadLocation": "NONE", "filesAnalyzed": false,
     "checksums": [{"algorithm": "SHA512", "checksumValue": "` + sumA + sumB + `"}],
     "licenseDeclared": "NOASSERTION", "licenseConcluded": "NOASSERTION"}],
  "files": [
    {"fileName": "./b/two", "SPDXID": "SPDXRef-two", "checksums": [{"algorithm": "SHA1", "checksumValue": "` + sha1 + `"}], "licenseConcluded": "LicenseRef-own"},
    {"fileName": "one", "SPDXID": "SPDXRef-one", "checksums": [{"algorithm": "SHA1", "checksumValue": "` + sha1 + `"}, {"algorithm": "SHA256", "checksumValue": "` + sumA + `"}],
     "licenseConcluded": "NOASSERTION"}],
  "snippets": [{"SPDXID": "SPDXRef-snippet", "snippetFromFile": "SPDXRef-one", "ranges": [{"startPointer": {"offset": 1, "reference": "SPDXRef-one"}, "endPointer": {"offset": 2, "reference": "SPDXRef-one"}}], "licenseConcluded": "Zlib"}],
  "annotations": [{"annotationDate": "2024-05-06T07:08:10Z", "annotationType": "OTHER", "annotator": "Person: Jane Doe ()", "comment": "none"}],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Package"},
    {"spdxElementId": "SPDXRef-Package", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "DocumentRef-other:SPDXRef-else"},
    {"spdxElementId": "SPDXRef-Package", "relationshipType": "CONTAINS", "relatedSpdxElement": "SPDXRef-one"}]
}`

// document301 says much the same in SPDX 3.0.1.
const document301 = `{
  "@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld",
  "@graph": [
    {"type": "CreationInfo", "@id": "_:created", "specVersion": "3.0.1", "created": "2024-05-06T07:08:09Z", "createdBy": ["https://spdx.example.com/jane"]},
    {"type": "Person", "spdxId": "https://spdx.example.com/jane", "name": "Jane Doe", "creationInfo": "_:created"},
    {"type": "SpdxDocument", "spdxId": "https://spdx.example.com/demo", "creationInfo": "_:created", "rootElement": ["https://spdx.example.com/demo/package"],
     "profileConformance": ["core", "software"]},
    {"type": "software_Package", "spdxId": "https://spdx.example.com/demo/package", "creationInfo": "_:created", "name": "demo", "software_packageVersion": "1.0",
     "verifiedUsing": [{"type": "Hash", "algorithm": "sha3_256", "hashValue": "` + sumB + `"}]},
    {"type": "software_Package", "spdxId": "https://spdx.example.com/demo/library", "creationInfo": "_:created", "name": "library"},
    {"type": "software_File", "spdxId": "https://spdx.example.com/demo/one", "creationInfo": "_:created", "name": "./one", "builtTime": "2024-05-06T07:08:09Z",
     "verifiedUsing": [{"type": "Hash", "algorithm": "sha256", "hashValue": "` + sumA + `"}]},
    {"type": "software_File", "spdxId": "https://spdx.example.com/demo/two", "creationInfo": "_:created", "name": "b/two"},
    {"type": "simplelicensing_LicenseExpression", "spdxId": "https://spdx.example.com/demo/licence", "creationInfo": "_:created",
     "simplelicensing_licenseExpression": "MIT OR Apache-2.0"},
    {"type": "Relationship", "spdxId": "https://spdx.example.com/demo/r1", "creationInfo": "_:created", "from": "https://spdx.example.com/demo/package",
     "relationshipType": "hasDeclaredLicense", "to": ["https://spdx.example.com/demo/licence"]},
    {"type": "Relationship", "spdxId": "https://spdx.example.com/demo/r2", "creationInfo": "_:created", "from": "https://spdx.example.com/demo/package",
     "relationshipType": "contains", "to": ["https://spdx.example.com/demo/one", "https://spdx.example.com/demo/two"]},
    {"type": "Relationship", "spdxId": "https://spdx.example.com/demo/r3", "creationInfo": "_:created", "from": "https://spdx.example.com/demo/package",
     "relationshipType": "dependsOn", "to": ["https://spdx.example.com/demo/library"]}
  ]
}`

func document22() string { return strings.Replace(document23, "SPDX-2.3", "SPDX-2.2", 1) }

func TestReadSBOM(t *testing.T) {
	created := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	files := []verify.SBOMFile{{Path: "b/two"}, {Path: "one", SHA256: sumA}}
	const declared = "MIT AND (Apache-2.0 OR GPL-2.0-or-later WITH Classpath-exception-2.0)"
	v2 := verify.SBOMFacts{Version: "2.3", Created: created, Files: files,
		Components: []verify.Component{{Name: "demo", Version: "1.0", Declared: declared, Concluded: "NOASSERTION"},
			{Name: "library", Version: "2", Declared: "NOASSERTION", Concluded: "NOASSERTION"}},
		Licences: []string{"LicenseRef-own", declared, "NOASSERTION", "Zlib"},
		Problems: []string{"it states no SHA-256 of b/two"}}
	old := v2
	old.Version = "2.2"
	v3 := verify.SBOMFacts{Version: "3.0.1", Created: created, Files: files,
		Components: []verify.Component{{Name: "demo", Version: "1.0", Declared: "MIT OR Apache-2.0"}, {Name: "library"}},
		Licences:   []string{"MIT OR Apache-2.0", "NOASSERTION"},
		Problems:   []string{"it states no SHA-256 of b/two"}}
	for document, want := range map[string]verify.SBOMFacts{document22(): old, document23: v2, document301: v3} {
		want.Document = digest.Of([]byte(document))
		got, err := readSBOM([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", want.Version, err)
		} else if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", want.Version, *got, want)
		}
	}
}

// TestReadSBOMRefuses changes one thing of a valid document. Each change must be there
// to make, and must be refused for its own reason.
func TestReadSBOMRefuses(t *testing.T) {
	const malformed, invalid = verify.CodeSBOMMalformed, verify.CodeSBOMInvalid
	for _, c := range []struct {
		document, old, new string
		code               verify.Code
		why                string
	}{
		{document23, document23, ``, malformed, "EOF"},
		{document23, document23, `[]`, malformed, "not one JSON object"},
		{document23, document23, `"x"`, malformed, "not one JSON object"},
		{document23, document23, `{}`, malformed, "names no version"},
		{document23, document23, document23 + `{}`, malformed, "not one JSON object"},
		{document23, document23, `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, malformed, "deep"},
		{document23, `SPDX-2.3`, `SPDX-2.1`, malformed, "2.2, 2.3 and 3.0.1 are read"},
		{document23, `"spdxVersion"`, `"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "spdxVersion"`, malformed, "are read"},
		{document23, `"name": "demo",`, `"name": "demo", "name": "demo",`, malformed, "duplicate"},
		{document23, `"name": "demo",`, `"name": "demo", "FILES": [],`, malformed, "different cases"},
		{document23, `"name": "demo",`, `"name": "\ud800",`, malformed, "surrogate"},
		{document23, `"packages": [`, `"packages": [null,`, malformed, "null in a list"},
		{document23, `"packages": [`, `"packages": [7,`, malformed, "number"},
		{document23, `CC0-1.0`, `MIT`, invalid, "own licence"},
		{document23, `"SPDXRef-DOCUMENT", "name"`, `"SPDXRef-else", "name"`, invalid, "SPDXRef-DOCUMENT"},
		{document23, `"https://spdx.example.com/demo"`, `"https://spdx.example.com/demo#x"`, invalid, "namespace"},
		{document23, `["Tool: some-tool-1.0"]`, `[]`, invalid, "who created it"},
		{document23, `"created": "2024-05-06T07:08:09Z"`, `"created": "2024-05-06"`, invalid, "no date"},
		{document23, `"created": "2024-05-06T07:08:09Z"`, `"created": "2024-13-06T07:08:09Z"`, invalid, "no date"},
		{document23, `"created": "2024-05-06T07:08:09Z"`, `"created": "2024-05-06T07:08:09+00:00"`, invalid, "no date"},
		{document23, `"releaseDate": "2024-05-06T07:08:09Z"`, `"releaseDate": "soon"`, invalid, "releaseDate"},
		{document23, `07:08:10Z`, `07:08:61Z`, invalid, "annotationDate"},
		{document23, `"fileName": "one"`, `"fileName": "/one"`, invalid, "absolute"},
		{document23, `"fileName": "one"`, `"fileName": "c:/one"`, invalid, "absolute"},
		{document23, `"fileName": "one"`, `"fileName": "../one"`, invalid, `".."`},
		{document23, `"fileName": "one"`, `"fileName": "./b/../../one"`, invalid, `".."`},
		{document23, `"fileName": "one"`, `"fileName": "b//two"`, invalid, "shortest form"},
		{document23, `"fileName": "one"`, `"fileName": "b\\one"`, invalid, `holds "\"`},
		{document23, `"fileName": "one"`, `"fileName": "./"`, invalid, "is none"},
		{document23, `"fileName": "one"`, `"fileName": "b/two"`, invalid, "listed twice"},
		{document23, `"algorithm": "SHA256"`, `"algorithm": "sha256"`, invalid, "no checksum algorithm"},
		{document23, `"algorithm": "SHA256"`, `"algorithm": "SHA1"`, invalid, "no SHA1 checksum"},
		{document23, `"` + sumA + `"}]`, `"` + sumA[1:] + `g"}]`, invalid, "no SHA256 checksum"},
		{document23, `{"algorithm": "SHA256"`, `{"algorithm": "SHA256", "checksumValue": "` + sumB + `"}, {"algorithm": "SHA256"`, invalid, "two SHA256"},
		{document23, `"MIT AND (`, `"MIT AND ((`, invalid, "not closed"},
		{document23, `"MIT AND (`, `"MIT AND NOASSERTION AND (`, invalid, "stands alone"},
		{document23, `"MIT AND (`, `"MIT and or (`, invalid, "licence is missing"},
		{document23, `"MIT AND (`, `"MIT, (`, invalid, "no licence id"},
		{document23, `"MIT AND (`, `"MIT (`, invalid, "nothing may follow"},
		{document23, `WITH Classpath-exception-2.0`, `WITH`, invalid, "exception is missing"},
		{document23, `"MIT AND (`, `"` + strings.Repeat("(", 40) + `MIT` + strings.Repeat(")", 40) + ` AND (`, invalid, "parentheses"},
		{document23, `"licenseConcluded": "LicenseRef-own"`, `"licenseConcluded": "LicenseRef-others"`, invalid, "does not define it"},
		{document23, `"licenseConcluded": "LicenseRef-own"`, `"licenseConcluded": "DocumentRef-other:MIT"`, invalid, "another document"},
		{document23, `"licenseId": "LicenseRef-own"`, `"licenseId": "own"`, invalid, "document defines"},
		{document23, `"SPDXID": "SPDXRef-two"`, `"SPDXID": "SPDXRef-t_wo"`, invalid, "no identifier"},
		{document23, `"SPDXID": "SPDXRef-two"`, `"SPDXID": "two"`, malformed, "ElementID"},
		{document23, `"SPDXID": "SPDXRef-two"`, `"SPDXID": "SPDXRef-one"`, invalid, "given twice"},
		{document23, `"relatedSpdxElement": "SPDXRef-one"`, `"relatedSpdxElement": "SPDXRef-three"`, invalid, "SPDXRef-three, which is not in the document"},
		{document23, `DocumentRef-other:SPDXRef-else`, `DocumentRef-none:SPDXRef-else`, invalid, "not in the document"},
		{document23, `"relationshipType": "CONTAINS"`, `"relationshipType": "contains it"`, invalid, "no kind of relationship"},
		{document23, `"snippetFromFile": "SPDXRef-one"`, `"snippetFromFile": "SPDXRef-none"`, invalid, "SPDXRef-none"},
		{document23, `"filesAnalyzed": true,`, `"files": [{"fileName": "x", "SPDXID": "SPDXRef-x"}],`, invalid, "not in a package"},

		{document301, `3.0.1/spdx-context`, `3.0.0/spdx-context`, malformed, "are read"},
		{document301, `"@graph"`, `"graph"`, malformed, ""},
		{document301, `"specVersion": "3.0.1"`, `"specVersion": "3.0.0"`, invalid, "specVersion"},
		{document301, `"type": "software_File", "spdxId": "https://spdx.example.com/demo/two"`,
			`"type": "https://spdx.org/rdf/3.0.1/terms/Software/File", "spdxId": "https://spdx.example.com/demo/two"`, invalid, "no name of SPDX"},
		{document301, `"spdxId": "https://spdx.example.com/demo/two"`, `"spdxId": "two"`, invalid, "no URI"},
		{document301, `"spdxId": "https://spdx.example.com/demo/two"`, `"spdxId": "https://spdx.example.com/demo/one"`, invalid, "given twice"},
		{document301, `, "https://spdx.example.com/demo/two"]`, `, "https://spdx.example.com/demo/three"]`, invalid, "not in the document"},
		{document301, `"rootElement": ["https://spdx.example.com/demo/package"]`, `"rootElement": ["https://spdx.example.com/none"]`, invalid, "rootElement"},
		{document301, `"created": "2024-05-06T07:08:09Z"`, `"created": "2024-05-06T07:08:09"`, invalid, "no date"},
		{document301, `"builtTime": "2024-05-06T07:08:09Z"`, `"builtTime": "yesterday"`, invalid, "no date"},
		{document301, `"algorithm": "sha256"`, `"algorithm": "sha257"`, invalid, "no checksum algorithm"},
		{document301, `"hashValue": "` + sumA, `"hashValue": "` + sumA[1:], invalid, "no SHA256 checksum"},
		{document301, `"name": "b/two"`, `"name": "b/../../two"`, invalid, `".."`},
		{document301, `"software_packageVersion": "1.0"`, `"software_packageVersion": 1`, malformed, ""},
		{document301, `"name": "b/two"`, `"name": "one"`, invalid, "listed twice"},
		{document301, `"MIT OR Apache-2.0"`, `"MIT OR"`, invalid, "licence is missing"},
		{document301, `"relationshipType": "contains", "to": [`, `"relationshipType": "contains", "to": [{"type": "software_File", "spdxId": "https://spdx.example.com/x", "creationInfo": "_:created", "name": "x"}, `, invalid, "stands inside"},
	} {
		if !strings.Contains(c.document, c.old) {
			t.Errorf("%q is not in the document", c.old)
			continue
		}
		document := strings.Replace(c.document, c.old, c.new, 1)
		_, err := readSBOM([]byte(document))
		var refusal *verify.Refusal
		switch {
		case !errors.As(err, &refusal):
			t.Errorf("%.60q for %.60q: %v", c.new, c.old, err)
		case refusal.Code != c.code || !strings.Contains(refusal.Message, c.why):
			t.Errorf("%.60q for %.60q: %s: %v; want %s: …%s", c.new, c.old, refusal.Code, err, c.code, c.why)
		}
	}
	if _, err := readSBOM(make([]byte, verify.MaxSBOM+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("too large: %v", err)
	}
}

// TestLibraryPanics holds that the library's panics refuse the document, also those that
// our own checks keep from happening.
func TestLibraryPanics(t *testing.T) {
	document := strings.Replace(document23, `"packages": [`, `"packages": [null,`, 1)
	err := (&sbomReader{}).readV2([]byte(document))
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Code != verify.CodeSBOMMalformed || !strings.Contains(refusal.Message, "library") {
		t.Error(err)
	}
}

// FuzzSBOM holds that every document is read or refused with a code, and that what is
// read keeps what its readers rely on.
func FuzzSBOM(f *testing.F) {
	seeds, read := 0, 0
	for _, document := range []string{document22(), document23, document301, `{"spdxVersion":"SPDX-2.3","packages":[null]}`, `{"@context":"` + contextV3 + `","@graph":[{}]}`} {
		f.Add([]byte(document))
		seeds++
		if _, err := readSBOM([]byte(document)); err == nil {
			read++
		}
	}
	if read < 3 {
		f.Fatalf("%d seeds, of which %d are read", seeds, read)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		facts, err := readSBOM(document)
		if err != nil {
			var refusal *verify.Refusal
			if !errors.As(err, &refusal) || refusal.Code != verify.CodeSBOMMalformed && refusal.Code != verify.CodeSBOMInvalid {
				t.Fatalf("an error without its code: %v", err)
			}
			return
		}
		for i, file := range facts.Files {
			if strings.HasPrefix(file.Path, "/") || strings.Contains("/"+file.Path+"/", "/../") || len(file.SHA256) != 0 && len(file.SHA256) != 64 ||
				i > 0 && facts.Files[i-1].Path >= file.Path {
				t.Fatalf("file %+v", file)
			}
		}
	})
}
