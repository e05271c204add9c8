package lockfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Kind names one kind of difference between two locks.
type Kind string

// The kinds of difference. Added and Removed stand for a whole plugin; its
// members are then not listed.
const (
	Added              Kind = "added"
	Removed            Kind = "removed"
	VersionChanged     Kind = "version"
	SourceChanged      Kind = "source"
	GrantsChanged      Kind = "grants"
	SignerChanged      Kind = "signer"
	PlatformAdded      Kind = "platform-added"
	PlatformMissing    Kind = "platform-missing"
	ArchiveDiffers     Kind = "archive"
	PackageDiffers     Kind = "package"
	ManifestDiffers    Kind = "manifest"
	FingerprintDiffers Kind = "fingerprint"
	EvidenceChanged    Kind = "evidence"
	FloorChanged       Kind = "revocation-floor"
)

// A Change is one difference. Was and Now are the two values as text, "" for
// none; lists are joined by ", ".
type Change struct {
	Kind     Kind
	ID       string // plugin id; the issuer for FloorChanged
	Platform string // for platforms and what belongs to one; else ""
	Was, Now string
}

// String says the change in one line. The strings come from the two locks.
func (c Change) String() string {
	what := string(c.Kind)
	if c.Platform != "" && c.Kind != PlatformAdded && c.Kind != PlatformMissing {
		what = c.Platform + " " + what
	}
	switch c.Kind {
	case Added:
		return fmt.Sprintf("%s: added at version %s", c.ID, c.Now)
	case Removed:
		return fmt.Sprintf("%s: removed, was version %s", c.ID, c.Was)
	case PlatformAdded:
		return fmt.Sprintf("%s: platform %s added", c.ID, c.Platform)
	case PlatformMissing:
		return fmt.Sprintf("%s: platform %s missing", c.ID, c.Platform)
	case FloorChanged:
		what = "lowest revocation list"
	}
	return fmt.Sprintf("%s: %s %s, was %s", c.ID, what, orNone(c.Now), orNone(c.Was))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Diff lists every difference between two locks, ordered by id, member and
// platform. A nil lock is an empty one. Equal locks give nil.
func Diff(a, b *File) []Change {
	a, b = a.canonical(), b.canonical()
	var changes []Change
	for _, id := range pluginIDs(a, b) {
		was, inA := a.Plugin(id)
		now, inB := b.Plugin(id)
		switch {
		case !inA:
			changes = append(changes, Change{Kind: Added, ID: id, Now: now.Version})
		case !inB:
			changes = append(changes, Change{Kind: Removed, ID: id, Was: was.Version})
		default:
			changes = append(changes, diffPlugin(was, now)...)
		}
	}
	return append(changes, diffFloors(a, b)...)
}

// pluginIDs returns the ids of all the locks, sorted, each once.
func pluginIDs(locks ...*File) []string {
	var ids []string
	for _, f := range locks {
		if f == nil {
			continue
		}
		for _, p := range f.Plugins {
			ids = append(ids, p.ID)
		}
	}
	return sortedSet(ids)
}

// diffPlugin compares two entries of one id, both in canonical order.
func diffPlugin(was, now Plugin) []Change {
	var changes []Change
	note := func(kind Kind, platform, a, b string) {
		if a != b {
			changes = append(changes, Change{Kind: kind, ID: was.ID, Platform: platform, Was: a, Now: b})
		}
	}
	note(VersionChanged, "", was.Version, now.Version)
	note(SourceChanged, "", was.Source, now.Source)
	note(GrantsChanged, "", strings.Join(was.Grants, ", "), strings.Join(now.Grants, ", "))
	note(SignerChanged, "", was.Signer.String(), now.Signer.String())
	for _, key := range sortedSet(append(was.keys(), now.keys()...)) {
		a, inA := was.Platforms[key]
		b, inB := now.Platforms[key]
		switch {
		case !inA:
			changes = append(changes, Change{Kind: PlatformAdded, ID: was.ID, Platform: key, Now: string(b.Package)})
		case !inB:
			changes = append(changes, Change{Kind: PlatformMissing, ID: was.ID, Platform: key, Was: string(a.Package)})
		default:
			note(ArchiveDiffers, key, string(a.Archive), string(b.Archive))
			note(PackageDiffers, key, string(a.Package), string(b.Package))
			note(ManifestDiffers, key, string(a.Manifest), string(b.Manifest))
			note(FingerprintDiffers, key, string(a.Fingerprint), string(b.Fingerprint))
			note(EvidenceChanged, key, strings.Join(a.Evidence, ", "), strings.Join(b.Evidence, ", "))
		}
	}
	return changes
}

// String says who signed; "" for a nil Signer.
func (s *Signer) String() string {
	switch {
	case s == nil:
		return ""
	case s.Key != "":
		return fmt.Sprintf("key \"%s\"", s.Key)
	}
	return fmt.Sprintf("\"%s\" certified by \"%s\"", s.Identity, s.Issuer)
}

func diffFloors(a, b *File) []Change {
	was, now := floors(a), floors(b)
	var issuers []string
	for issuer := range was {
		issuers = append(issuers, issuer)
	}
	issuers = slices.AppendSeq(issuers, maps.Keys(now))
	var changes []Change
	for _, issuer := range sortedSet(issuers) {
		if x, y := was[issuer], now[issuer]; x != y {
			changes = append(changes, Change{Kind: FloorChanged, ID: issuer, Was: number(x), Now: number(y)})
		}
	}
	return changes
}

func floors(f *File) map[string]int64 {
	m := make(map[string]int64, len(f.Revocations))
	for _, floor := range f.Revocations {
		m[floor.Issuer] = max(m[floor.Issuer], floor.Version)
	}
	return m
}

func number(v int64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprint(v)
}
