package worker

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// maxProblems bounds how many problems of one kind are named.
const maxProblems = 20

// readSBOM reads an SPDX document in JSON: 2.2, 2.3 or 3.0.1. The library decides
// whether it has the form of one; what the library takes on trust is checked here:
// the JSON itself, identifiers, paths, digests, licence expressions, relationships and
// dates. One fault refuses the document: a list that is wrong in one place is no
// evidence for the others.
func readSBOM(document []byte) (*verify.SBOMFacts, error) {
	if len(document) > verify.MaxSBOM {
		return nil, refuse(verify.CodeSBOMMalformed, "the document has more than %d bytes", verify.MaxSBOM)
	}
	version, err := scanSBOM(document)
	if err != nil {
		return nil, err
	}
	r := &sbomReader{facts: verify.SBOMFacts{Document: digest.Of(document), Version: version,
		Files: []verify.SBOMFile{}, Components: []verify.Component{}, Licences: []string{}, Problems: []string{}}}
	if version == "3.0.1" {
		err = r.readV3(document)
	} else {
		err = r.readV2(document)
	}
	if err != nil {
		return nil, err
	}
	r.finish()
	return &r.facts, nil
}

func invalidSBOM(format string, args ...any) error {
	return refuse(verify.CodeSBOMInvalid, format, args...)
}

// An sbomReader collects what a document says.
type sbomReader struct {
	facts      verify.SBOMFacts
	paths      map[string]bool
	unhashed   []string
	unlicensed bool // some component states no licence
}

// file adds a file. sums are its checksums, by algorithm in capitals, checked.
func (r *sbomReader) file(name string, sums map[string]string) error {
	p, err := sbomPath(name)
	if err != nil {
		return err
	}
	if r.paths == nil {
		r.paths = make(map[string]bool)
	}
	if r.paths[p] {
		return invalidSBOM("the file %q is listed twice", p)
	}
	r.paths[p] = true
	if sums["SHA256"] == "" {
		r.unhashed = append(r.unhashed, p)
	}
	r.facts.Files = append(r.facts.Files, verify.SBOMFile{Path: p, SHA256: sums["SHA256"]})
	return nil
}

// sbomPath returns a file's path below the package's root.
func sbomPath(name string) (string, error) {
	p := strings.TrimPrefix(name, "./")
	switch {
	case p == "" || strings.ContainsRune(p, 0):
		return "", invalidSBOM("the file name %q is none", name)
	case strings.Contains(p, `\`):
		return "", invalidSBOM(`the file name %q holds "\"`, name)
	case path.IsAbs(p) || len(p) > 1 && p[1] == ':':
		return "", invalidSBOM("the file name %q is absolute", name)
	case p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, "/../") || strings.HasSuffix(p, "/.."):
		return "", invalidSBOM(`the file name %q leads outside through ".."`, name)
	case path.Clean(p) != p:
		return "", invalidSBOM("the file name %q is not in its shortest form", name)
	}
	return p, nil
}

// component adds a package with the licences that are stated of it.
func (r *sbomReader) component(c verify.Component) {
	r.facts.Components = append(r.facts.Components, c)
	if !r.licence(c.Declared) && !r.licence(c.Concluded) {
		r.unlicensed = true
	} else {
		r.licence(c.Concluded)
	}
}

// licence adds an expression and reports whether it states a licence.
func (r *sbomReader) licence(expression string) bool {
	switch expression {
	case "", "NONE", "NOASSERTION":
		return false
	}
	r.facts.Licences = append(r.facts.Licences, expression)
	return true
}

// finish sorts what was collected and says what the document leaves open.
func (r *sbomReader) finish() {
	f := &r.facts
	slices.SortFunc(f.Files, func(a, b verify.SBOMFile) int { return strings.Compare(a.Path, b.Path) })
	if r.unlicensed {
		f.Licences = append(f.Licences, "NOASSERTION")
	}
	slices.Sort(f.Licences)
	f.Licences = slices.Compact(f.Licences)
	if len(f.Files) == 0 {
		f.Problems = append(f.Problems, "it lists no files")
	}
	if n := len(r.unhashed); n > 0 {
		slices.Sort(r.unhashed)
		text := "it states no SHA-256 of " + strings.Join(r.unhashed[:min(n, maxProblems)], ", ")
		if n > maxProblems {
			text += fmt.Sprintf(" and %d more", n-maxProblems)
		}
		f.Problems = append(f.Problems, text)
	}
}

// checksums makes a map of what add is called with, refusing what is no checksum.
type checksums map[string]string

// hexDigits returns how many hex digits the checksums of an algorithm of SPDX have; 0
// where that is not fixed, -1 for what is no algorithm.
func hexDigits(algorithm string) int {
	switch algorithm {
	case "SHA1":
		return 40
	case "SHA224", "SHA3-224":
		return 56
	case "SHA256", "SHA3-256", "BLAKE2b-256":
		return 64
	case "SHA384", "SHA3-384", "BLAKE2b-384":
		return 96
	case "SHA512", "SHA3-512", "BLAKE2b-512":
		return 128
	case "MD2", "MD4", "MD5":
		return 32
	case "ADLER32":
		return 8
	case "MD6", "BLAKE3":
		return 0
	}
	return -1
}

func (c checksums) add(what, algorithm, value string) error {
	n := hexDigits(algorithm)
	if n < 0 {
		return invalidSBOM("%s: %q is no checksum algorithm of SPDX", what, algorithm)
	}
	value = strings.ToLower(value)
	if value == "" || n > 0 && len(value) != n || strings.Trim(value, "0123456789abcdef") != "" {
		return invalidSBOM("%s: %q is no %s checksum", what, value, algorithm)
	}
	if before, twice := c[algorithm]; twice && before != value {
		return invalidSBOM("%s: two %s checksums", what, algorithm)
	}
	c[algorithm] = value
	return nil
}

// sbomTime reads the one form of dates that SPDX has.
func sbomTime(what, text string) (time.Time, error) {
	t, err := time.Parse("2006-01-02T15:04:05Z", text)
	if err != nil || len(text) != len("2006-01-02T15:04:05Z") {
		return t, invalidSBOM("%s: %q is no date as 2006-01-02T15:04:05Z", what, text)
	}
	return t, nil
}

// libraryReads calls read, which gives a document to the library. A panic of the
// library refuses the document.
func libraryReads(read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refuse(verify.CodeSBOMMalformed, "it makes the library that reads SPDX fail: %v", p)
		}
	}()
	if err := read(); err != nil {
		return refuse(verify.CodeSBOMMalformed, "%v", err)
	}
	return nil
}
