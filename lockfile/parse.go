package lockfile

import (
	"fmt"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// Parse reads a lock, or returns Faults: every fault with its position. Any order
// of tables and members is read; the name is used in messages only. Line ends may
// be LF or CRLF.
func Parse(name string, data []byte) (*File, error) {
	doc, err := tomlstrict.Parse(name, data, MaxBytes)
	if err != nil {
		return nil, err
	}
	if !versionKnown(doc) {
		return nil, doc.Err()
	}
	r := reader{Document: doc}
	f := r.file()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return f.canonical(), nil
}

// versionKnown looks at lockVersion before anything else: in another version
// every other member may be new.
func versionKnown(doc *tomlstrict.Document) bool {
	m := doc.Root.Member("lockVersion")
	if m == nil || m.Value.Kind != tomlstrict.Integer || m.Value.Integer == Version {
		return true
	}
	if v := m.Value.Integer; v > Version {
		doc.FaultCause(m.Value.Start, ErrVersion, "lockVersion %d comes from a newer switchyard; this one reads %d: "+
			"use a newer switchyard, or go back to the last lock with lockVersion %d", v, Version, Version)
	} else {
		doc.FaultCause(m.Value.Start, ErrVersion, "lockVersion %d does not exist; this switchyard reads %d: "+
			"write the lock anew", v, Version)
	}
	return false
}

// reader fills a File from the tree and records what does not fit.
type reader struct{ *tomlstrict.Document }

func (r reader) file() *File {
	t := r.Read(r.Root, "the lock")
	t.Required("lockVersion", tomlstrict.Integer)
	f := &File{}
	lines := make(map[string]int)
	for _, n := range t.Tables("plugin", MaxPlugins) {
		p, at := r.plugin(n)
		if p.ID == "" {
			continue
		}
		if first, again := lines[p.ID]; again {
			r.Faultf(at, "plugin \"%s\" is already locked in line %d; one version of an id can be locked", p.ID, first)
			continue
		}
		lines[p.ID] = r.Line(at)
		f.Plugins = append(f.Plugins, p)
	}
	issuers := make(map[string]int)
	for _, n := range t.Tables("revocations", MaxFloors) {
		floor, at := r.floor(n)
		if first, again := issuers[floor.Issuer]; again && floor.Issuer != "" {
			r.Faultf(at, "issuer \"%s\" already has a floor in line %d", floor.Issuer, first)
			continue
		}
		issuers[floor.Issuer] = r.Line(at)
		f.Revocations = append(f.Revocations, floor)
	}
	t.Close()
	return f
}

// plugin reads one [[plugin]] and says where its id stands.
func (r reader) plugin(n *tomlstrict.Node) (p Plugin, at int) {
	t := r.Read(n, "[[plugin]]")
	at = n.Start
	if v, ok := t.Text("id", true); ok {
		at = v.Offset
		if err := manifest.CheckID(v.Text); err != nil {
			r.Faultf(v.Offset, "id \"%s\" %v", v.Text, err)
		} else {
			p.ID = v.Text
			t.Rename(fmt.Sprintf("plugin \"%s\"", p.ID))
		}
	}
	p.Version = r.line(t, "version", true, manifest.MaxVersion)
	if v, ok := t.Text("source", false); ok {
		if err := CheckSource(v.Text); err != nil {
			r.Faultf(v.Offset, "source %v", err)
		}
		p.Source = v.Text
	}
	p.Grants = r.tokens(t, "grants", true, MaxGrants)
	if s := t.Optional("signer", tomlstrict.Table); s != nil {
		p.Signer = r.signer(s, t.Where())
	}
	p.Platforms = r.platforms(t)
	t.Close()
	return p, at
}

func (r reader) signer(n *tomlstrict.Node, where string) *Signer {
	t := r.Read(n, where+", signer")
	s := &Signer{
		Identity: r.line(t, "identity", false, 512),
		Issuer:   r.line(t, "issuer", false, 512),
		Key:      r.line(t, "key", false, 512),
	}
	certificate := t.Has("identity") && t.Has("issuer") && !t.Has("key")
	key := t.Has("key") && !t.Has("identity") && !t.Has("issuer")
	if !certificate && !key {
		r.Faultf(n.Start, "%s: either identity and issuer, or key alone", t.Where())
	}
	t.Close()
	return s
}

func (r reader) platforms(plugin *tomlstrict.TableReader) map[string]Platform {
	n := plugin.Required("platform", tomlstrict.Table)
	if n == nil {
		return nil
	}
	switch {
	case len(n.Members) == 0:
		r.Faultf(n.Start, "%s: no platform", plugin.Where())
	case len(n.Members) > MaxPlatforms:
		r.FaultCause(n.Start, tomlstrict.ErrTooLarge, "%s: %d platforms; at most %d are allowed",
			plugin.Where(), len(n.Members), MaxPlatforms)
		return nil
	}
	platforms := make(map[string]Platform, len(n.Members))
	for _, m := range n.Members {
		if err := CheckPlatform(m.Name); err != nil {
			r.Faultf(m.NameStart, "%s: %v", plugin.Where(), err)
		}
		if m.Name == Any && len(n.Members) > 1 {
			r.Faultf(m.NameStart, "%s: platform \"%s\" stands alone, without single platforms", plugin.Where(), Any)
		}
		if m.Value.Kind != tomlstrict.Table {
			r.Faultf(m.Value.Start, "%s: platform \"%s\" must be a table, not %v", plugin.Where(), m.Name, m.Value.Kind)
			continue
		}
		platforms[m.Name] = r.platform(m.Value, fmt.Sprintf("%s, platform \"%s\"", plugin.Where(), m.Name))
	}
	return platforms
}

func (r reader) platform(n *tomlstrict.Node, where string) Platform {
	t := r.Read(n, where)
	e := Platform{
		Archive:     r.digest(t, "archive"),
		Package:     r.digest(t, "package"),
		Manifest:    r.digest(t, "manifest"),
		Fingerprint: r.digest(t, "fingerprint"),
		Evidence:    r.tokens(t, "evidence", false, MaxEvidence),
	}
	t.Close()
	return e
}

func (r reader) digest(t *tomlstrict.TableReader, name string) digest.Digest {
	v, ok := t.Text(name, true)
	if ok && !digest.IsCanonical(v.Text) {
		r.Faultf(v.Offset, "\"%s\" must be \"%s\" and 64 lower-case hex digits, not \"%s\"", name, digest.Prefix, v.Text)
	}
	return digest.Digest(v.Text)
}

func (r reader) floor(n *tomlstrict.Node) (f Floor, at int) {
	t := r.Read(n, "[[revocations]]")
	at = n.Start
	f.Issuer = r.line(t, "issuer", true, 512)
	if v := t.Required("version", tomlstrict.Integer); v != nil {
		if f.Version = v.Integer; f.Version < 1 {
			r.Faultf(v.Start, "version must be 1 or more, not %d", f.Version)
		}
	}
	t.Close()
	return f, at
}

// line reads a string of 1 to limit characters.
func (r reader) line(t *tomlstrict.TableReader, name string, required bool, limit int) string {
	v, ok := t.Text(name, required)
	if !ok {
		return ""
	}
	if err := checkLine(v.Text, limit); err != nil {
		r.Faultf(v.Offset, "%s %v", name, err)
	}
	return v.Text
}

// tokens reads an array of distinct names.
func (r reader) tokens(t *tomlstrict.TableReader, name string, required bool, limit int) []string {
	values, _ := t.Texts(name, required, limit)
	var words []string
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		if err := CheckToken(v.Text); err != nil {
			r.Faultf(v.Offset, "%s: %v", name, err)
		}
		if seen[v.Text] {
			r.Faultf(v.Offset, "%s: \"%s\" occurs twice", name, v.Text)
		}
		seen[v.Text] = true
		words = append(words, v.Text)
	}
	return words
}
