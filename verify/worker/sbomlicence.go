package worker

import "strings"

// maxLicenceDepth bounds parentheses inside each other, and maxLicenceBytes an expression.
const (
	maxLicenceDepth = 32
	maxLicenceBytes = 16 << 10
)

// checkLicence refuses what is no SPDX licence expression. refs are the licences that the
// document itself defines ("LicenseRef-…"); a nil map takes any.
func checkLicence(what, expression string, refs map[string]bool) error {
	switch expression {
	case "", "NONE", "NOASSERTION":
		return nil
	}
	if len(expression) > maxLicenceBytes {
		return invalidSBOM("%s: a licence expression of more than %d bytes", what, maxLicenceBytes)
	}
	r := licenceReader{words: strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(expression)), refs: refs}
	if why := r.expression(0); why != "" || r.i < len(r.words) {
		if why == "" {
			why = "nothing may follow there"
		}
		at := "its end"
		if r.i < len(r.words) {
			at = r.words[r.i]
		}
		return invalidSBOM("%s: %q is no licence expression: at %q: %s", what, expression, at, why)
	}
	return nil
}

// A licenceReader reads words; each method returns why it cannot go on, or "".
type licenceReader struct {
	words []string
	i     int
	refs  map[string]bool
}

// expression reads licences that AND and OR join, whose precedence does not matter here.
func (r *licenceReader) expression(depth int) string {
	for {
		if why := r.one(depth); why != "" {
			return why
		}
		if !r.take("AND") && !r.take("OR") {
			return ""
		}
	}
}

func (r *licenceReader) take(word string) bool {
	if r.i < len(r.words) && (r.words[r.i] == word || r.words[r.i] == strings.ToLower(word)) {
		r.i++
		return true
	}
	return false
}

func (r *licenceReader) one(depth int) string {
	if r.take("(") {
		if depth == maxLicenceDepth {
			return "too many parentheses inside each other"
		}
		if why := r.expression(depth + 1); why != "" {
			return why
		}
		if !r.take(")") {
			return "a parenthesis is not closed"
		}
		return ""
	}
	if why := r.id(); why != "" {
		return why
	}
	if r.take("WITH") {
		return r.exception()
	}
	return ""
}

func (r *licenceReader) id() string {
	if r.i == len(r.words) {
		return "a licence is missing"
	}
	word := r.words[r.i]
	if document, ref, external := strings.Cut(word, ":"); external {
		if !strings.HasPrefix(document, "DocumentRef-") || !idString(document) || !strings.HasPrefix(ref, "LicenseRef-") || !idString(ref) {
			return "no licence of another document"
		}
		r.i++
		return ""
	}
	if strings.HasPrefix(word, "LicenseRef-") {
		switch {
		case !idString(word) || word == "LicenseRef-":
			return "no licence id"
		case r.refs != nil && !r.refs[word]:
			return "the document does not define it"
		}
		r.i++
		return ""
	}
	id := strings.TrimSuffix(word, "+")
	switch strings.ToUpper(id) {
	case "AND", "OR", "WITH", "(", ")":
		return "a licence is missing"
	case "NONE", "NOASSERTION":
		return "it stands alone or not at all"
	}
	if !idString(id) || strings.HasPrefix(id, "DocumentRef-") {
		return "no licence id"
	}
	r.i++
	return ""
}

func (r *licenceReader) exception() string {
	if r.i == len(r.words) || !idString(r.words[r.i]) {
		return "an exception is missing"
	}
	switch strings.ToUpper(r.words[r.i]) {
	case "AND", "OR", "WITH":
		return "an exception is missing"
	}
	r.i++
	return ""
}

// idString reports whether s is letters, digits, "-" and ".", as SPDX ids are.
func idString(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}
