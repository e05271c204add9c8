package revlist

import (
	"strings"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// A Kind says what an entry is about.
type Kind string

// The kinds of entries, in their order in a list.
const (
	Archive   Kind = "archive"   // the archive with this digest
	Manifest  Kind = "manifest"  // every package with this manifest digest
	Package   Kind = "package"   // the package with this digest
	Publisher Kind = "publisher" // this publisher's plugin with this manifest digest
	Signer    Kind = "signer"    // everything that this signer signed
	Version   Kind = "version"   // the versions of this plugin id that a range covers
)

// A Reason is why something was revoked.
type Reason string

// The reasons.
const (
	Compromised Reason = "compromised" // a key or a release process was taken over
	Malicious   Reason = "malicious"   // made to do harm
	Superseded  Reason = "superseded"  // there is a better one
	Vulnerable  Reason = "vulnerable"  // has a known weakness
	Withdrawn   Reason = "withdrawn"   // taken back by its publisher
)

// An Action is what an entry demands.
type Action string

// The actions.
const (
	Block Action = "block" // refuse
	Warn  Action = "warn"  // say so each time
)

// An Entry revokes one subject. Which of the members Digest to Signer it has
// depends on its Kind; the last three are optional.
type Entry struct {
	Kind        Kind          `json:"kind"`
	Digest      digest.Digest `json:"digest,omitempty"` // archive, manifest, package; the manifest digest of publisher
	PublisherID string        `json:"publisherId,omitempty"`
	PluginID    string        `json:"pluginId,omitempty"` // publisher, version
	Range       string        `json:"range,omitempty"`    // version
	Signer      verify.Signer `json:"signer,omitzero"`    // signer
	Action      Action        `json:"action"`
	Reason      Reason        `json:"reason"`
	Text        string        `json:"text,omitempty"`        // one line for people
	Advisory    string        `json:"advisory,omitempty"`    // an https address
	Replacement string        `json:"replacement,omitempty"` // "id@version" or a digest
}

// Ranges reads a range of versions and returns which versions a denial of that
// range concerns. It should err towards yes.
type Ranges func(text string) (covers func(version string) bool, err error)

// A Key is what a lookup asks for. All entries with one key lie beside each other
// in a list.
type Key struct {
	Kind    Kind
	Subject string
}

// DigestKey asks for entries about an archive, a manifest or a package.
func DigestKey(k Kind, d digest.Digest) Key { return Key{k, string(d)} }

// PublisherKey asks for entries about one publisher's plugin with this manifest.
func PublisherKey(publisherID, pluginID string, manifest digest.Digest) Key {
	return Key{Publisher, tuple(publisherID, pluginID, string(manifest))}
}

// VersionKey asks for all entries with a range of versions of a plugin.
func VersionKey(pluginID string) Key { return Key{Version, pluginID} }

// SignerKey asks for entries about a signer.
func SignerKey(s verify.Signer) Key { return Key{Signer, signerSubject(s)} }

// tuple joins parts that hold no control characters so that the byte order of the
// results is the order of the parts.
func tuple(parts ...string) string { return strings.Join(parts, "\x00") }

func signerSubject(s verify.Signer) string { return tuple(s.Key, s.Identity, s.Issuer) }

// Key returns the key under which a lookup finds the entry.
func (e Entry) Key() Key {
	if e.Kind == Version {
		return VersionKey(e.PluginID)
	}
	return Key{e.Kind, e.Subject()}
}

// Subject returns what the entry is about: one text for each subject of a kind. A
// list is sorted by kind and subject in byte order and holds no pair of them twice.
func (e Entry) Subject() string {
	switch e.Kind {
	case Publisher:
		return tuple(e.PublisherID, e.PluginID, string(e.Digest))
	case Version:
		return tuple(e.PluginID, e.Range)
	case Signer:
		return signerSubject(e.Signer)
	}
	return string(e.Digest)
}

// Covering returns those of the entries that concern a package of this version:
// all but the entries whose range does not cover it.
func Covering(entries []Entry, version string, ranges Ranges) ([]Entry, error) {
	var out []Entry
	for i, e := range entries {
		if e.Kind == Version {
			covers, p := e.covers(ranges)
			if p != nil {
				return nil, p.in(listKind, i+1)
			}
			if !covers(version) {
				continue
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// The bounds of an entry's texts, in bytes.
const (
	MaxID          = 128 // a plugin id, a publisher id, an issuer
	MaxRange       = 256
	MaxSignerText  = 1024 // an identity or its issuer
	MaxText        = 1024
	MaxAdvisory    = 1024
	MaxReplacement = 256
)

// checkEntry returns the first rule that e breaks, except for its range.
func checkEntry(e Entry) *problem {
	var p *problem
	switch e.Kind {
	case Archive, Manifest, Package:
		p = e.only(e.Digest != "", e.PublisherID == "" && e.PluginID == "" && e.Range == "" && e.Signer == verify.Signer{}, "digest")
	case Publisher:
		p = e.only(e.PublisherID != "" && e.PluginID != "" && e.Digest != "", e.Range == "" && e.Signer == verify.Signer{}, "publisherId, pluginId and digest")
	case Signer:
		p = e.only(e.Signer != verify.Signer{}, e.Digest == "" && e.PublisherID == "" && e.PluginID == "" && e.Range == "", "signer")
		if p == nil {
			p = checkSigner(e.Signer)
		}
	case Version:
		p = e.only(e.PluginID != "" && e.Range != "", e.Digest == "" && e.PublisherID == "" && e.Signer == verify.Signer{}, "pluginId and range")
	default:
		return broken("kind is %s", shown(string(e.Kind)))
	}
	switch {
	case p != nil:
		return p
	case e.Digest != "" && !digest.IsCanonical(string(e.Digest)):
		return broken("digest is not \"sha256:\" and 64 lower-case hex digits")
	case e.PublisherID != "" && !isID(e.PublisherID):
		return broken("publisherId is not a publisher id")
	case e.PluginID != "" && !isID(e.PluginID):
		return broken("pluginId is not a plugin id")
	case e.Action != Block && e.Action != Warn:
		return broken("action is %s", shown(string(e.Action)))
	case !knownReason(e.Reason):
		return broken("reason is %s", shown(string(e.Reason)))
	case e.Advisory != "" && !isHTTPS(e.Advisory):
		return broken("advisory is not an https address in ASCII")
	case e.Replacement != "" && !isReplacement(e.Replacement):
		return broken("replacement is neither id@version nor a digest")
	}
	if p := checkText("range", e.Range, MaxRange); p != nil {
		return p
	}
	if p := checkText("replacement", e.Replacement, MaxReplacement); p != nil {
		return p
	}
	return checkText("text", e.Text, MaxText)
}

// only demands the members that the entry's kind has, and no others.
func (e Entry) only(has, hasNoOther bool, members string) *problem {
	if has && hasNoOther {
		return nil
	}
	return broken("an entry of kind %q has %s and no other subject", e.Kind, members)
}

// covers reads the range of an entry of kind Version.
func (e Entry) covers(ranges Ranges) (func(string) bool, *problem) {
	if ranges == nil {
		return nil, broken("range cannot be judged: no reader of version ranges was given")
	}
	covers, err := ranges(e.Range)
	if err != nil {
		return nil, &problem{reason: badValue, message: "range " + shown(e.Range) + " is not a range of versions", cause: err}
	}
	return covers, nil
}

// checkWhole is checkEntry and the entry's range.
func checkWhole(e Entry, ranges Ranges) *problem {
	p := checkEntry(e)
	if p == nil && e.Kind == Version {
		_, p = e.covers(ranges)
	}
	return p
}

func knownReason(r Reason) bool {
	switch r {
	case Compromised, Malicious, Superseded, Vulnerable, Withdrawn:
		return true
	}
	return false
}

// checkText demands one line of text.
func checkText(member, s string, most int) *problem {
	if len(s) > most {
		return &problem{reason: tooLong, message: member + " is too long"}
	}
	if !utf8.ValidString(s) {
		return &problem{reason: invalidUnicode, message: member + " is not UTF-8"}
	}
	for _, r := range s {
		switch {
		case r < 0x20 || 0x7F <= r && r < 0xA0:
			return broken("%s holds a control character", member)
		case r&0xFFFE == 0xFFFE || 0xFDD0 <= r && r <= 0xFDEF:
			return &problem{reason: invalidUnicode, message: member + " holds a noncharacter"}
		}
	}
	return nil
}

// isID reports whether s is a plugin or publisher id: lower-case letters, digits,
// '.' and '-', a letter or digit at both ends.
func isID(s string) bool {
	if s == "" || len(s) > MaxID || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && s[i] != '.' && s[i] != '-' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// isIssuer reports whether s can name an issuer, and so its directory on every
// system.
func isIssuer(s string) bool {
	stem, _, _ := strings.Cut(s, ".")
	if len(stem) <= manifest.MaxID && stem != "" && stem[0] >= 'a' && manifest.CheckID(stem) != nil {
		return false
	}
	return isID(s) && !strings.Contains(s, "..")
}

func isHTTPS(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok || len(s) > MaxAdvisory {
		return false
	}
	for i := range len(rest) {
		if c := rest[i]; c <= ' ' || c >= 0x7F || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' || c == '{' || c == '|' || c == '}' {
			return false
		}
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest != "" && !strings.Contains(rest, "@")
}

func isReplacement(s string) bool {
	if digest.IsCanonical(s) {
		return true
	}
	id, version, ok := strings.Cut(s, "@")
	return ok && isID(id) && version != "" && !strings.ContainsAny(version, " @")
}
