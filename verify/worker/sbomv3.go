package worker

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spdx/tools-golang/spdx/v3/v3_0"

	"github.com/switchyard-plugins/switchyard/verify"
)

// What stands before the names of the licences of SPDX, and of elements that SPDX itself
// defines.
const (
	licenceList = "https://spdx.org/licenses/"
	individuals = "https://spdx.org/rdf/3.0.1/terms/"
)

// readV3 reads SPDX 3.0.1 in the form that its specification prescribes: one list of
// elements, with the names of its context. What it says is taken from the elements
// themselves; the library must read it, too, which refuses references to elements of
// other documents.
func (r *sbomReader) readV3(document []byte) error {
	var d struct {
		Context string    `json:"@context"`
		Graph   []element `json:"@graph"`
	}
	if err := json.Unmarshal(document, &d, json.RejectUnknownMembers(true)); err != nil {
		return refuse(verify.CodeSBOMMalformed, "%v", err)
	}
	v := v3Reader{sbomReader: r, elements: make(map[string]element, len(d.Graph))}
	for _, e := range d.Graph {
		if err := v.add(e); err != nil {
			return err
		}
	}
	for _, e := range d.Graph {
		if err := v.read(e); err != nil {
			return err
		}
	}
	switch {
	case v.documents != 1:
		return invalidSBOM("it holds %d documents, not one", v.documents)
	case v.facts.Created.IsZero():
		return invalidSBOM("it does not say when it was created")
	}
	if err := v.licences(); err != nil {
		return err
	}
	return libraryReads(func() error { return new(v3_0.Document).UnmarshalJSON(document) })
}

// An element is one object of the graph, as JSON.
type element map[string]any

func (e element) text(name string) string {
	s, _ := e[name].(string)
	return s
}

func (e element) kind() string { return e.text("type") }

func (e element) id() string {
	if id := e.text("spdxId"); id != "" {
		return id
	}
	return e.text("@id")
}

// refs returns the ids in a member that holds one or several.
func (e element) refs(name string) []string {
	switch v := e[name].(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, one := range v {
			if s, ok := one.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

type v3Reader struct {
	*sbomReader
	elements  map[string]element
	documents int
	packages  []element
	declared  map[string][]string // licences of elements, by the elements' ids
	concluded map[string][]string
}

// add makes an element known.
func (v *v3Reader) add(e element) error {
	id, kind := e.id(), e.kind()
	switch {
	case kind == "" || strings.Trim(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return invalidSBOM("an element is of the type %q, which is no name of SPDX 3.0.1", kind)
	case e["spdxId"] != nil && e["@id"] != nil || e["@type"] != nil:
		return invalidSBOM("a %s is named in two ways", kind)
	case id == "":
		return invalidSBOM("a %s has no id", kind)
	case !strings.Contains(id, ":") || strings.ContainsAny(id, " \t\r\n"):
		return invalidSBOM("the id %q is no URI", id)
	case v.elements[id] != nil:
		return invalidSBOM("the id %s is given twice", id)
	}
	v.elements[id] = e
	if kind == "SpdxDocument" {
		v.documents++
	}
	return nil
}

// known reports whether an id names an element, or something that SPDX itself defines.
func (v *v3Reader) known(id string) bool {
	return v.elements[id] != nil || strings.HasPrefix(id, individuals)
}

func (v *v3Reader) read(e element) error {
	kind, id := e.kind(), e.id()
	for _, name := range []string{"from", "to", "rootElement", "element", "creationInfo", "createdBy", "createdUsing", "originatedBy", "suppliedBy", "subject"} {
		for _, ref := range e.refs(name) {
			if !v.known(ref) {
				return invalidSBOM("%s of the %s %s names %s, which is not in the document", name, kind, id, ref)
			}
		}
	}
	for _, name := range []string{"created", "builtTime", "releaseTime", "validUntilTime", "startTime", "endTime"} {
		if e[name] == nil {
			continue
		}
		at, err := sbomTime(kind+": "+name, e.text(name))
		if err != nil {
			return err
		}
		if kind == "CreationInfo" && at.After(v.facts.Created) {
			v.facts.Created = at
		}
	}
	if inline(map[string]any(e), 0) {
		return invalidSBOM("an element stands inside of the %s %s, and not in the list of elements", kind, id)
	}
	switch kind {
	case "CreationInfo":
		if e.text("specVersion") != "3.0.1" {
			return invalidSBOM("specVersion is %q, not 3.0.1", e.text("specVersion"))
		}
	case "software_File":
		if strings.TrimPrefix(e.text("software_fileKind"), "software_") == "directory" {
			return nil
		}
		sums, err := v.hashes(e, "file "+e.text("name"))
		if err != nil {
			return err
		}
		return v.file(e.text("name"), sums)
	case "software_Package":
		if e.text("name") == "" {
			return invalidSBOM("a package has no name")
		}
		if _, err := v.hashes(e, "package "+e.text("name")); err != nil {
			return err
		}
		v.packages = append(v.packages, e)
	case "simplelicensing_LicenseExpression":
		return checkLicence(id, e.text("simplelicensing_licenseExpression"), nil)
	case "Relationship", "LifecycleScopedRelationship":
		return v.relationship(e)
	}
	return nil
}

// inline reports whether an object that is an element of its own stands inside another.
func inline(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		if depth > 0 && v["spdxId"] != nil {
			return true
		}
		for _, one := range v {
			if inline(one, depth+1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return inline(one, depth+1) })
	}
	return false
}

// hashes returns the checksums of a file or package, by the names of SPDX 2.
func (v *v3Reader) hashes(e element, what string) (checksums, error) {
	sums := checksums{}
	list, ok := e["verifiedUsing"].([]any)
	if !ok && e["verifiedUsing"] != nil {
		return nil, invalidSBOM("%s: verifiedUsing is no list", what)
	}
	for _, one := range list {
		var h element
		switch one := one.(type) {
		case string:
			if h = v.elements[one]; h == nil {
				return nil, invalidSBOM("%s: verifiedUsing names %s, which is not in the document", what, one)
			}
		case map[string]any:
			h = one
		}
		switch h.kind() {
		case "Hash":
			if err := sums.add(what, algorithmV3(h.text("algorithm")), h.text("hashValue")); err != nil {
				return nil, err
			}
		case "PackageVerificationCode", "software_ContentIdentifier":
		default:
			return nil, invalidSBOM("%s: verifiedUsing holds a %q", what, h.kind())
		}
	}
	return sums, nil
}

// algorithmV3 returns SPDX 2's name of an algorithm of SPDX 3; what has none stays.
func algorithmV3(name string) string {
	switch name {
	case "sha1", "sha224", "sha256", "sha384", "sha512", "md2", "md4", "md5", "md6", "adler32", "blake3":
		return strings.ToUpper(name)
	case "sha3_224", "sha3_256", "sha3_384", "sha3_512":
		return strings.ReplaceAll(strings.ToUpper(name), "_", "-")
	case "blake2b256", "blake2b384", "blake2b512":
		return "BLAKE2b-" + name[len("blake2b"):]
	}
	return name
}

// relationship checks one and keeps those that state licences.
func (v *v3Reader) relationship(e element) error {
	from, to, kind := e.text("from"), e.refs("to"), e.text("relationshipType")
	if from == "" || len(to) == 0 || !idString(kind) {
		return invalidSBOM("the relationship %s lacks from, to or a type of SPDX 3.0.1", e.id())
	}
	var into *map[string][]string
	switch kind {
	case "hasDeclaredLicense":
		into = &v.declared
	case "hasConcludedLicense":
		into = &v.concluded
	default:
		return nil
	}
	if *into == nil {
		*into = make(map[string][]string)
	}
	(*into)[from] = append((*into)[from], to...)
	return nil
}

// licences says of every component which licences are stated, and adds those of files.
func (v *v3Reader) licences() error {
	for _, p := range v.packages {
		c := verify.Component{Name: p.text("name"), Version: p.text("software_packageVersion")}
		var err error
		if c.Declared, err = v.joined(v.declared[p.id()]); err != nil {
			return err
		}
		if c.Concluded, err = v.joined(v.concluded[p.id()]); err != nil {
			return err
		}
		v.component(c)
	}
	for _, stated := range []map[string][]string{v.declared, v.concluded} {
		for from, to := range stated {
			if v.elements[from].kind() == "software_Package" {
				continue
			}
			text, err := v.joined(to)
			if err != nil {
				return err
			}
			v.licence(text)
		}
	}
	return nil
}

// joined is the expression of licences that hold together.
func (v *v3Reader) joined(ids []string) (string, error) {
	var parts []string
	for _, id := range ids {
		text, err := v.expression(id, 0)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	return joinLicences(parts, "AND"), nil
}

// joinLicences joins expressions; NONE and NOASSERTION, which are none, stay out.
func joinLicences(parts []string, operator string) string {
	none := ""
	parts = slices.DeleteFunc(parts, func(p string) bool {
		if p == "NONE" || p == "NOASSERTION" {
			none = p
			return true
		}
		return false
	})
	switch len(parts) {
	case 0:
		return none
	case 1:
		return parts[0]
	}
	for i, p := range parts {
		if strings.Contains(p, " ") {
			parts[i] = "(" + p + ")"
		}
	}
	return strings.Join(parts, " "+operator+" ")
}

// expression is what the licence element with an id says.
func (v *v3Reader) expression(id string, depth int) (string, error) {
	if depth > maxLicenceDepth {
		return "", invalidSBOM("licences are more than %d deep inside each other", maxLicenceDepth)
	}
	if id == individuals+"ExpandedLicensing/NoneLicense" {
		return "NONE", nil
	}
	e := v.elements[id]
	switch e.kind() {
	case "simplelicensing_LicenseExpression":
		text := e.text("simplelicensing_licenseExpression")
		if text == "" {
			return "", invalidSBOM("the licence expression %s is empty", id)
		}
		return text, nil
	case "expandedlicensing_ListedLicense":
		listed := strings.TrimPrefix(id, licenceList)
		return listed, checkLicence(id, listed, nil)
	case "expandedlicensing_ConjunctiveLicenseSet", "expandedlicensing_DisjunctiveLicenseSet":
		return v.set(e, depth)
	}
	// Another kind says something that is no expression of ids: of an own text, or with
	// an exception. Nothing is asserted of it here.
	return "NOASSERTION", nil
}

func (v *v3Reader) set(e element, depth int) (string, error) {
	var parts []string
	for _, id := range e.refs("expandedlicensing_member") {
		text, err := v.expression(id, depth+1)
		if err != nil {
			return "", err
		}
		if text == "NOASSERTION" || text == "NONE" {
			return "NOASSERTION", nil // the rest alone would say something else
		}
		parts = append(parts, text)
	}
	if len(parts) < 2 {
		return "", invalidSBOM("the licence set %s has fewer than two members", e.id())
	}
	if e.kind() == "expandedlicensing_DisjunctiveLicenseSet" {
		return joinLicences(parts, "OR"), nil
	}
	return joinLicences(parts, "AND"), nil
}
