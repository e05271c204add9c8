package worker

import (
	"bytes"
	"strings"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/switchyard-plugins/switchyard/verify"
)

// readV2 reads SPDX 2.2 and 2.3, which the library makes the same of.
func (r *sbomReader) readV2(document []byte) error {
	var d v2_3.Document
	if err := libraryReads(func() error { return spdxjson.ReadInto(bytes.NewReader(document), &d) }); err != nil {
		return err
	}
	v := v2Reader{sbomReader: r, document: &d, elements: map[common.ElementID]bool{}, others: map[common.DocumentID]bool{}, licences: map[string]bool{}}
	for _, step := range []func() error{v.head, v.extracted, v.packages, v.files, v.snippets, v.annotations, v.relationships} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type v2Reader struct {
	*sbomReader
	document *v2_3.Document
	elements map[common.ElementID]bool
	others   map[common.DocumentID]bool // external documents
	licences map[string]bool            // that the document defines
}

func (v *v2Reader) element(id common.ElementID, what string) error {
	if !idString(string(id)) {
		return invalidSBOM(`%s: "SPDXRef-%s" is no identifier: letters, digits, "." and "-"`, what, id)
	}
	if v.elements[id] {
		return invalidSBOM("%s: the identifier SPDXRef-%s is given twice", what, id)
	}
	v.elements[id] = true
	return nil
}

func (v *v2Reader) head() (err error) {
	d := v.document
	switch {
	case d.DataLicense != v2_3.DataLicense:
		return invalidSBOM("the document's own licence is %q, not %s", d.DataLicense, v2_3.DataLicense)
	case d.SPDXIdentifier != "DOCUMENT":
		return invalidSBOM("the document's identifier is SPDXRef-%s, not SPDXRef-DOCUMENT", d.SPDXIdentifier)
	case d.DocumentName == "":
		return invalidSBOM("the document has no name")
	case !strings.Contains(d.DocumentNamespace, ":") || strings.ContainsAny(d.DocumentNamespace, "# \t\r\n"):
		return invalidSBOM("the document's namespace %q is no URI without a fragment", d.DocumentNamespace)
	case d.CreationInfo == nil || len(d.CreationInfo.Creators) == 0:
		return invalidSBOM("the document does not say who created it")
	}
	if v.facts.Created, err = sbomTime("created", d.CreationInfo.Created); err != nil {
		return err
	}
	for _, other := range d.ExternalDocumentReferences {
		if !strings.Contains(other.URI, ":") {
			return invalidSBOM("the external document DocumentRef-%s has no URI", other.DocumentRefID)
		}
		if err := (checksums{}).add("DocumentRef-"+string(other.DocumentRefID), string(other.Checksum.Algorithm), other.Checksum.Value); err != nil {
			return err
		}
		if v.others[other.DocumentRefID] {
			return invalidSBOM("DocumentRef-%s is given twice", other.DocumentRefID)
		}
		v.others[other.DocumentRefID] = true
	}
	return v.element(d.SPDXIdentifier, "document")
}

// extracted collects the licences that the document defines.
func (v *v2Reader) extracted() error {
	for _, l := range v.document.OtherLicenses {
		id := l.LicenseIdentifier
		if !strings.HasPrefix(id, "LicenseRef-") || id == "LicenseRef-" || !idString(id) {
			return invalidSBOM("%q is no identifier of a licence that a document defines", id)
		}
		if v.licences[id] {
			return invalidSBOM("the licence %s is defined twice", id)
		}
		v.licences[id] = true
	}
	return nil
}

func (v *v2Reader) packages() error {
	for _, p := range v.document.Packages {
		what := "package " + p.PackageName
		if p.PackageName == "" {
			return invalidSBOM("a package has no name")
		}
		if err := v.element(p.PackageSPDXIdentifier, what); err != nil {
			return err
		}
		if len(p.Files) > 0 {
			return invalidSBOM("%s: files stand in the document, not in a package", what)
		}
		sums := checksums{}
		for _, c := range p.PackageChecksums {
			if err := sums.add(what, string(c.Algorithm), c.Value); err != nil {
				return err
			}
		}
		if c := p.PackageVerificationCode; c != nil && c.Value != "" {
			if err := (checksums{}).add(what+": verification code", "SHA1", c.Value); err != nil {
				return err
			}
		}
		for _, e := range append([]string{p.PackageLicenseDeclared, p.PackageLicenseConcluded}, p.PackageLicenseInfoFromFiles...) {
			if err := checkLicence(what, e, v.licences); err != nil {
				return err
			}
		}
		for name, text := range map[string]string{"releaseDate": p.ReleaseDate, "builtDate": p.BuiltDate, "validUntilDate": p.ValidUntilDate} {
			if text == "" {
				continue
			}
			if _, err := sbomTime(what+": "+name, text); err != nil {
				return err
			}
		}
		if err := v.annotated(what, p.Annotations); err != nil {
			return err
		}
		for _, e := range p.PackageLicenseInfoFromFiles {
			v.licence(e)
		}
		v.component(verify.Component{Name: p.PackageName, Version: p.PackageVersion, Declared: p.PackageLicenseDeclared, Concluded: p.PackageLicenseConcluded})
	}
	return nil
}

func (v *v2Reader) files() error {
	for _, f := range v.document.Files {
		what := "file " + f.FileName
		if err := v.element(f.FileSPDXIdentifier, what); err != nil {
			return err
		}
		sums := checksums{}
		for _, c := range f.Checksums {
			if err := sums.add(what, string(c.Algorithm), c.Value); err != nil {
				return err
			}
		}
		for _, e := range append([]string{f.LicenseConcluded}, f.LicenseInfoInFiles...) {
			if err := checkLicence(what, e, v.licences); err != nil {
				return err
			}
			v.licence(e)
		}
		if err := v.annotated(what, f.Annotations); err != nil {
			return err
		}
		if err := v.file(f.FileName, sums); err != nil {
			return err
		}
	}
	return nil
}

func (v *v2Reader) snippets() error {
	for _, s := range v.document.Snippets {
		what := "snippet " + s.SnippetName
		if err := v.element(s.SnippetSPDXIdentifier, what); err != nil {
			return err
		}
		if !v.elements[s.SnippetFromFileSPDXIdentifier] {
			return invalidSBOM("%s is of SPDXRef-%s, which is not in the document", what, s.SnippetFromFileSPDXIdentifier)
		}
		for _, e := range append([]string{s.SnippetLicenseConcluded}, s.LicenseInfoInSnippet...) {
			if err := checkLicence(what, e, v.licences); err != nil {
				return err
			}
			v.licence(e)
		}
	}
	return nil
}

func (v *v2Reader) annotations() error {
	for _, a := range v.document.Annotations {
		if _, err := sbomTime("annotationDate", a.AnnotationDate); err != nil {
			return err
		}
	}
	return nil
}

func (v *v2Reader) annotated(what string, list []v2_3.Annotation) error {
	for _, a := range list {
		if _, err := sbomTime(what+": annotationDate", a.AnnotationDate); err != nil {
			return err
		}
	}
	return nil
}

// relationships refuses those to or from what is not there, and a document that
// describes nothing of what it holds.
func (v *v2Reader) relationships() error {
	described := false
	for _, r := range v.document.Relationships {
		if r.Relationship == "" || strings.Trim(r.Relationship, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
			return invalidSBOM("%q is no kind of relationship", r.Relationship)
		}
		for _, end := range []common.DocElementID{r.RefA, r.RefB} {
			if !v.known(end) {
				return invalidSBOM("a %s relationship names %s, which is not in the document", r.Relationship, common.RenderDocElementID(end))
			}
		}
		if r.RefA.SpecialID != "" {
			return invalidSBOM("a %s relationship is of %s", r.Relationship, r.RefA.SpecialID)
		}
		described = described ||
			r.Relationship == common.TypeRelationshipDescribe && r.RefA.ElementRefID == "DOCUMENT" && r.RefA.DocumentRefID == "" ||
			r.Relationship == common.TypeRelationshipDescribeBy && r.RefB.ElementRefID == "DOCUMENT" && r.RefB.DocumentRefID == ""
	}
	if !described {
		v.facts.Problems = append(v.facts.Problems, "it does not say what it describes")
	}
	return nil
}

func (v *v2Reader) known(id common.DocElementID) bool {
	switch {
	case id.SpecialID != "":
		return true
	case id.DocumentRefID != "":
		return v.others[id.DocumentRefID]
	}
	return v.elements[id.ElementRefID]
}
