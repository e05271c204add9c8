package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// Parse reads a policy file, or returns tomlstrict.Faults: every fault with file,
// line and column. name is used in messages only.
func Parse(name string, data []byte) (*Policy, error) {
	doc, err := tomlstrict.Parse(name, data, MaxBytes)
	if err != nil {
		return nil, err
	}
	m := doc.Root.Member("version")
	if m != nil && m.Value.Kind == tomlstrict.Integer && m.Value.Integer != Version {
		doc.FaultCause(m.Value.Start, ErrVersion, "version %d of the policy is not known; this switchyard reads version %d",
			m.Value.Integer, Version)
		return nil, doc.Err()
	}
	p := reader{doc}.policy()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// ParseNarrowing reads the [policy] table of a project's switchyard.toml, which is
// part of doc. It records every fault in doc and returns a Narrowing to be used only
// if doc has none.
func ParseNarrowing(doc *tomlstrict.Document, table *tomlstrict.Node) *Narrowing {
	return reader{doc}.narrowing(table)
}

// reader fills a Policy or a Narrowing and records what does not fit.
type reader struct{ *tomlstrict.Document }

func (r reader) policy() *Policy {
	t := r.Read(r.Root, "the policy")
	t.Required("version", tomlstrict.Integer)
	s := r.shared(t, Default().ListsStale)
	p := &Policy{
		Signature: s.Signature, Threshold: s.Threshold, SBOM: s.SBOM,
		MaxListAge: s.MaxListAge, CoolDown: s.CoolDown, DeniedLicences: s.DeniedLicences, ListsStale: s.ListsStale,
	}
	if s.Builders != nil {
		p.Builders = [][]PrefixPattern{s.Builders}
	}
	if s.Sources != nil {
		p.Sources = [][]PrefixPattern{s.Sources}
	}
	for _, n := range t.Tables("publisher", MaxPublishers) {
		p.Publishers = append(p.Publishers, r.publisher(n))
	}
	t.Close()
	return p
}

func (r reader) narrowing(table *tomlstrict.Node) *Narrowing {
	t := r.Read(table, "[policy]")
	n := r.shared(t, Reactions{Warn, Warn, Warn, Warn})
	n.Publishers = patterns(r, t, "publishers", ParseSignerPattern)
	for _, m := range table.Members {
		reason := widening(m.Name)
		if reason == "" {
			continue
		}
		t.Optional(m.Name, m.Value.Kind) // so that Close does not call it unknown as well
		r.Faultf(m.NameStart, "%s: \"%s\" %s; a project may only narrow its user's policy: write it in your own %s",
			t.Where(), m.Name, reason, FileName)
	}
	t.Close()
	return n
}

// widening says why a project must not have a member, or "".
func widening(name string) string {
	switch strings.ToLower(name) {
	case "publisher":
		return `would add somebody who may publish (to admit fewer of the user's publishers, write "publishers")`
	case "roots":
		return "would add a root of trust"
	case "issuers":
		return "would add somebody who vouches for identities or issues revocations"
	case "proxies":
		return "would send the user's traffic elsewhere"
	}
	return ""
}

// shared reads the members that a policy and a narrowing have in common. What the
// text does not say asks for nothing; reactions is what it then leaves.
func (r reader) shared(t *tomlstrict.TableReader, reactions Reactions) *Narrowing {
	n := &Narrowing{
		Signature:      r.requirement(t, "signature"),
		Threshold:      r.threshold(t),
		SBOM:           r.requirement(t, "sbom"),
		MaxListAge:     r.period(t, "max-list-age"),
		CoolDown:       r.period(t, "cool-down"),
		DeniedLicences: r.licences(t),
		ListsStale:     r.reactions(t, reactions),
	}
	n.Builders, n.Sources = r.provenance(t)
	return n
}

func (r reader) requirement(t *tomlstrict.TableReader, name string) Requirement {
	v, ok := t.Text(name, false)
	switch {
	case !ok, v.Text == "allowed":
		return Allowed
	case v.Text != "required":
		r.Faultf(v.Offset, "%s must be \"%s\" or \"%s\", not \"%s\"", name, "required", "allowed", v.Text)
	}
	return Required
}

func (r reader) threshold(t *tomlstrict.TableReader) int {
	n := t.Optional("threshold", tomlstrict.Integer)
	if n == nil {
		return 1
	}
	if n.Integer < 1 || n.Integer > MaxThreshold {
		r.Faultf(n.Start, "threshold must be from 1 to %d, not %d", MaxThreshold, n.Integer)
		return MaxThreshold
	}
	return int(n.Integer)
}

func (r reader) period(t *tomlstrict.TableReader, name string) time.Duration {
	v, ok := t.Text(name, false)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(v.Text)
	switch {
	case err != nil:
		r.Faultf(v.Offset, "%s: \"%s\" is no period of time; write hours, minutes and seconds, as \"%s\"", name, v.Text, "72h")
	case d < time.Second:
		r.Faultf(v.Offset, "%s: \"%s\" is less than a second; leave it out to have none", name, v.Text)
	case d > MaxPeriod:
		r.Faultf(v.Offset, "%s: \"%s\" is more than ten years", name, v.Text)
	}
	return d
}

func (r reader) licences(t *tomlstrict.TableReader) []string {
	values, _ := t.Texts("denied-licences", false, MaxLicences)
	var ids []string
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		folded := strings.ToLower(v.Text)
		if !licenceID(v.Text) {
			r.Faultf(v.Offset, "denied-licences: \"%s\" is no SPDX licence id, such as \"%s\"", v.Text, "AGPL-3.0-only")
		} else if seen[folded] {
			r.Faultf(v.Offset, "denied-licences: \"%s\" occurs twice", v.Text)
		}
		seen[folded] = true
		ids = append(ids, v.Text)
	}
	return ids
}

func (r reader) reactions(t *tomlstrict.TableReader, reactions Reactions) Reactions {
	n := t.Optional("lists-stale", tomlstrict.Table)
	if n == nil {
		return reactions
	}
	inner := r.Read(n, "lists-stale")
	for _, one := range []struct {
		operation Operation
		reaction  *Reaction
	}{
		{Install, &reactions.Install},
		{Trust, &reactions.Trust},
		{CI, &reactions.CI},
		{Run, &reactions.Run},
	} {
		v, ok := inner.Text(string(one.operation), false)
		switch {
		case !ok:
		case v.Text == "refuse":
			*one.reaction = Refuse
		case v.Text == "warn":
			*one.reaction = Warn
		default:
			r.Faultf(v.Offset, "%s must be \"%s\" or \"%s\", not \"%s\"", one.operation, "refuse", "warn", v.Text)
		}
	}
	inner.Close()
	return reactions
}

func (r reader) provenance(t *tomlstrict.TableReader) (builders, sources []PrefixPattern) {
	n := t.Optional("provenance", tomlstrict.Table)
	if n == nil {
		return nil, nil
	}
	inner := r.Read(n, "[provenance]")
	builders = patterns(r, inner, "builder", ParsePrefixPattern)
	sources = patterns(r, inner, "source", ParsePrefixPattern)
	if !inner.Has("builder") && !inner.Has("source") {
		r.Faultf(n.Start, "[provenance] asks for nothing: name builders or sources, \"%s\" for any", "*")
	}
	inner.Close()
	return builders, sources
}

func (r reader) publisher(n *tomlstrict.Node) Publisher {
	t := r.Read(n, "[[publisher]]")
	if !t.Has("plugins") {
		t.Required("plugins", tomlstrict.Array)
	}
	p := Publisher{Plugins: patterns(r, t, "plugins", ParseIDPattern)}
	if v, ok := t.Text("identity", false); ok {
		identity, err := ParseIdentityPattern(v.Text)
		if err != nil {
			r.Faultf(v.Offset, "identity \"%s\" %v", v.Text, err)
		}
		p.Identity = identity
	}
	if v, ok := t.Text("key", false); ok {
		if !digest.IsCanonical(v.Text) {
			r.Faultf(v.Offset, "key \"%s\" is no key id: \"%s\" and 64 lower-case hex digits", v.Text, digest.Prefix)
		}
		p.Key = v.Text
	}
	if v, ok := t.Text("issuer", false); ok {
		if err := checkIssuer(v.Text); err != nil {
			r.Faultf(v.Offset, "issuer \"%s\" %v", v.Text, err)
		}
		p.Issuer = v.Text
	}
	certificate := t.Has("identity") && t.Has("issuer") && !t.Has("key")
	key := t.Has("key") && !t.Has("identity") && !t.Has("issuer")
	if !certificate && !key {
		r.Faultf(n.Start, "%s: either identity and issuer, or key alone", t.Where())
	}
	t.Close()
	return p
}

func checkIssuer(s string) error {
	if err := checkVisible(s); err != nil {
		return err
	}
	if strings.Contains(s, "*") {
		return fmt.Errorf(`holds a "*"; an issuer is named exactly`)
	}
	return nil
}

// patterns reads an optional array of distinct patterns that must not be empty: an
// empty one would admit nothing, which nobody means.
func patterns[P ~string](r reader, t *tomlstrict.TableReader, name string, parse func(string) (P, error)) []P {
	values, ok := t.Texts(name, false, MaxPatterns)
	if !ok {
		return nil
	}
	if len(t.Node().Member(name).Value.Items) == 0 {
		r.Faultf(t.Node().Member(name).Value.Start, "%s: \"%s\" is empty, so that nothing could match", t.Where(), name)
	}
	list := []P{}
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		p, err := parse(v.Text)
		if err != nil {
			r.Faultf(v.Offset, "%s: \"%s\" %v", name, v.Text, err)
		} else if seen[v.Text] {
			r.Faultf(v.Offset, "%s: \"%s\" occurs twice", name, v.Text)
		}
		seen[v.Text] = true
		list = append(list, p)
	}
	return list
}
