package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// maxListed bounds how many names one text of a Result holds.
const maxListed = 20

func (r Result) is(o Outcome, found, why string) Result {
	r.Outcome, r.Found, r.Why = o, found, why
	return r
}

func (r Result) passed(found, why string) Result        { return r.is(Passed, found, why) }
func (r Result) warned(found, why string) Result        { return r.is(Warned, found, why) }
func (r Result) notApplicable(found, why string) Result { return r.is(NotApplicable, found, why) }

func (r Result) failed(code, found, why string) Result {
	r.Code = code
	return r.is(Failed, found, why)
}

func join(names []string) string {
	if len(names) > maxListed {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxListed)
	}
	return strings.Join(names, ", ")
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func timeName(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// signatureNames names who signed, each once, whether or not they count.
func (e *evaluation) signatureNames() string {
	var names []string
	seen := make(map[verify.Signer]bool)
	for _, f := range e.signatures {
		if !seen[f.Signer] {
			names = append(names, f.Signer.String())
		}
		seen[f.Signer] = true
	}
	if e.strangers > 0 {
		names = append(names, number(e.strangers, "key that nobody named", "keys that nobody named"))
	}
	if len(names) == 0 {
		return "unsigned"
	}
	return "signed by " + join(names)
}

func publisherNames(publishers []Publisher) string {
	names := make([]string, len(publishers))
	for i, p := range publishers {
		names[i] = verify.Signer{Key: p.Key, Identity: string(p.Identity), Issuer: p.Issuer}.String()
	}
	return join(names)
}

// setNames names what must match one of each set.
func setNames[P ~string](sets [][]P) string {
	parts := make([]string, len(sets))
	for i, set := range sets {
		names := make([]string, len(set))
		for j, p := range set {
			names[j] = string(p)
		}
		parts[i] = join(names)
	}
	return strings.Join(parts, "; and of these: ")
}

// statementNames names one member of every provenance.
func statementNames(provenances []verify.Facts, member func(*verify.Statement) string) string {
	if len(provenances) == 0 {
		return "none"
	}
	names := make([]string, len(provenances))
	for i, f := range provenances {
		names[i] = fmt.Sprintf("%s (says %s)", orNone(member(f.Statement)), f.Signer)
	}
	return join(names)
}
