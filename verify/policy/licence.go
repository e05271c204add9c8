package policy

import "strings"

// maxLicenceDepth bounds parentheses inside each other.
const maxLicenceDepth = 32

// statesLicence reports whether an expression of an SBOM says anything at all.
func statesLicence(expression string) bool {
	switch strings.TrimSpace(expression) {
	case "", "NONE", "NOASSERTION":
		return false
	}
	return true
}

// deniedLicence returns the denied id because of which an SPDX licence expression
// cannot be accepted, or "". Of alternatives ("OR") all must be denied, of parts that
// hold together ("AND") one is enough. An expression that cannot be read is denied as
// soon as it mentions a denied id. Ids are compared without regard to case; "+" and
// an exception do not make another licence.
func deniedLicence(expression string, denied []string) string {
	r := licenceReader{words: licenceWords(expression), denied: denied}
	found, ok := r.alternatives(0)
	if ok && r.i == len(r.words) {
		return found
	}
	for _, word := range r.words {
		if id := r.deniedID(word); id != "" {
			return id
		}
	}
	return ""
}

// licenceWords cuts an expression into ids, operators and parentheses.
func licenceWords(expression string) []string {
	spaced := strings.NewReplacer("(", " ( ", ")", " ) ").Replace(expression)
	return strings.Fields(spaced)
}

// A licenceReader evaluates an expression: each method returns the denied id of what
// it read, or "", and whether it could read it.
type licenceReader struct {
	words  []string
	i      int
	denied []string
}

func (r *licenceReader) take(operator string) bool {
	if r.i < len(r.words) && strings.EqualFold(r.words[r.i], operator) {
		r.i++
		return true
	}
	return false
}

func (r *licenceReader) alternatives(depth int) (denied string, ok bool) {
	denied, ok = r.parts(depth)
	for ok && r.take("OR") {
		var other string
		if other, ok = r.parts(depth); other == "" {
			denied = ""
		}
	}
	return denied, ok
}

func (r *licenceReader) parts(depth int) (denied string, ok bool) {
	denied, ok = r.licence(depth)
	for ok && r.take("AND") {
		var other string
		if other, ok = r.licence(depth); denied == "" {
			denied = other
		}
	}
	return denied, ok
}

func (r *licenceReader) licence(depth int) (denied string, ok bool) {
	if r.take("(") {
		if depth == maxLicenceDepth {
			return "", false
		}
		denied, ok = r.alternatives(depth + 1)
		return denied, ok && r.take(")")
	}
	word, ok := r.id()
	if !ok {
		return "", false
	}
	if r.take("WITH") {
		_, ok = r.id()
	}
	return r.deniedID(word), ok
}

func (r *licenceReader) id() (string, bool) {
	if r.i == len(r.words) || licenceOperator(r.words[r.i]) {
		return "", false
	}
	r.i++
	return r.words[r.i-1], true
}

func (r *licenceReader) deniedID(word string) string {
	for _, id := range r.denied {
		if strings.EqualFold(strings.TrimSuffix(word, "+"), strings.TrimSuffix(id, "+")) {
			return id
		}
	}
	return ""
}

func licenceOperator(word string) bool {
	switch strings.ToUpper(word) {
	case "AND", "OR", "WITH", "(", ")":
		return true
	}
	return false
}

// licenceID reports whether s can be an SPDX licence id: letters, digits, "-" and
// ".", perhaps a "+" at the end.
func licenceID(s string) bool {
	s = strings.TrimSuffix(s, "+")
	if s == "" || len(s) > 128 || licenceOperator(s) || !statesLicence(s) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
