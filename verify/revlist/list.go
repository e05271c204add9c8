package revlist

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// ListSchema is the schemaVersion of a revocation list.
const ListSchema = "switchyard.revocations/v1"

// The bounds of a list.
const (
	MaxBytes       = 256 << 20
	MaxEntries     = 2_000_000
	MaxRangesPerID = 1_000 // entries of kind Version for one plugin id
	MaxVersion     = maxInteger
)

// A Header is what a list says about itself, and what its bytes are.
type Header struct {
	Issuer    string        `json:"issuer"`
	Version   uint64        `json:"version"` // only rises
	IssuedAt  time.Time     `json:"issuedAt"`
	ExpiresAt time.Time     `json:"expiresAt"`
	Entries   int           `json:"entries"`
	Bytes     int64         `json:"bytes"`
	Digest    digest.Digest `json:"digest"` // of the bytes
}

// A List is a revocation list in memory, to be edited. Edits leave it as it is and
// return another.
type List struct {
	Issuer    string
	Version   uint64
	IssuedAt  time.Time
	ExpiresAt time.Time
	Entries   []Entry // sorted by kind and subject, none twice
}

// New returns the empty list number 1 of an issuer.
func New(issuer string, now time.Time, validity time.Duration) (*List, error) {
	return (&List{Issuer: issuer}).Bump(now, validity)
}

// Bump returns the list as the next version, issued now. A list whose content
// changed must be bumped before it is signed: two lists with one version are an
// equivocation.
func (l *List) Bump(now time.Time, validity time.Duration) (*List, error) {
	next := *l
	now = now.UTC().Truncate(time.Second)
	if now.Before(l.IssuedAt) {
		return nil, broken("the list was issued at %s, later than now", l.IssuedAt.Format(timeLayout)).in(listKind, 0)
	}
	next.Version++
	next.IssuedAt = now
	next.ExpiresAt = now.Add(validity).Truncate(time.Second)
	if p := next.checkHeader(); p != nil {
		return nil, p.in(listKind, 0)
	}
	return &next, nil
}

func (l *List) checkHeader() *problem {
	return checkHeader(l.Issuer, l.Version, l.IssuedAt, l.ExpiresAt)
}

func checkHeader(issuer string, version uint64, issued, expires time.Time) *problem {
	if p := checkTime("issuedAt", issued); p != nil {
		return p
	}
	if p := checkTime("expiresAt", expires); p != nil {
		return p
	}
	switch {
	case !isIssuer(issuer):
		return broken("issuer is not an issuer's name")
	case version < 1 || version > MaxVersion:
		return &problem{reason: badNumber, message: fmt.Sprintf("version is not between 1 and %d", uint64(MaxVersion))}
	case !expires.After(issued):
		return broken("expiresAt is not later than issuedAt")
	}
	return nil
}

// Find returns the place of a subject among the entries, and whether it is there.
func (l *List) Find(k Kind, subject string) (int, bool) {
	return slices.BinarySearchFunc(l.Entries, subject, func(e Entry, subject string) int {
		return compareSubjects(e.Kind, e.Subject(), k, subject)
	})
}

func compareSubjects(k1 Kind, s1 string, k2 Kind, s2 string) int {
	if k1 != k2 {
		return strings.Compare(string(k1), string(k2))
	}
	return strings.Compare(s1, s2)
}

// With returns the list with an entry, which replaces one about the same subject.
func (l *List) With(e Entry, ranges Ranges) (*List, error) {
	if p := checkWhole(e, ranges); p != nil {
		return nil, p.in(listKind, 0)
	}
	next := *l
	i, found := l.Find(e.Kind, e.Subject())
	if found {
		next.Entries = slices.Clone(l.Entries)
		next.Entries[i] = e
		return &next, nil
	}
	if len(l.Entries) >= MaxEntries {
		return nil, tooManyEntries().in(listKind, 0)
	}
	if e.Kind == Version && l.rangesOf(e.PluginID) >= MaxRangesPerID {
		return nil, tooManyRanges(e.PluginID).in(listKind, 0)
	}
	next.Entries = slices.Insert(slices.Clip(l.Entries), i, e)
	return &next, nil
}

// rangesOf returns how many entries of kind Version a plugin id has.
func (l *List) rangesOf(id string) int {
	from, _ := l.Find(Version, id)
	n := 0
	for _, e := range l.Entries[from:] {
		if e.Kind != Version || e.PluginID != id {
			break
		}
		n++
	}
	return n
}

func tooManyEntries() *problem {
	return &problem{reason: tooMany, message: fmt.Sprintf("a list has at most %d entries", MaxEntries)}
}

func tooManyRanges(id string) *problem {
	return &problem{reason: tooMany, message: fmt.Sprintf("plugin %s has more than %d ranges of versions", shown(id), MaxRangesPerID)}
}

// Without returns the list without the entry about a subject, and whether there
// was one.
func (l *List) Without(k Kind, subject string) (*List, bool) {
	i, found := l.Find(k, subject)
	if !found {
		return l, false
	}
	next := *l
	next.Entries = slices.Delete(slices.Clone(l.Entries), i, i+1)
	return &next, true
}

// An order holds entries to the order of a list, one after the other.
type order struct {
	any     bool
	kind    Kind
	subject string
	id      string // the plugin id of the last entry of kind Version
	ranges  int    // entries with that id
}

func (o *order) check(e Entry) *problem {
	subject := e.Subject()
	if o.any {
		switch c := compareSubjects(o.kind, o.subject, e.Kind, subject); {
		case c == 0:
			return &problem{reason: duplicate, message: "the entry before has the same kind and subject"}
		case c > 0:
			return &problem{reason: notSorted, message: "the entry sorts before the one that precedes it"}
		}
	}
	o.any, o.kind, o.subject = true, e.Kind, subject
	if e.Kind == Version {
		if e.PluginID != o.id {
			o.id, o.ranges = e.PluginID, 0
		}
		if o.ranges++; o.ranges > MaxRangesPerID {
			return tooManyRanges(e.PluginID)
		}
	}
	return nil
}

// Write writes the list's canonical form, which is what a signature covers. It
// writes nothing that Read refuses: the list is checked first, whole.
func Write(w io.Writer, l *List, ranges Ranges) error {
	if p := l.checkHeader(); p != nil {
		return p.in(listKind, 0)
	}
	if len(l.Entries) > MaxEntries {
		return tooManyEntries().in(listKind, 0)
	}
	head, tail := []byte(`{"entries":[`), l.appendTail(nil)
	size := int64(len(head) + len(tail) + max(0, len(l.Entries)-1))
	var bounds order
	var b []byte
	for i, e := range l.Entries {
		p := checkWhole(e, ranges)
		if p == nil {
			p = bounds.check(e)
		}
		if p != nil {
			return p.in(listKind, i+1)
		}
		b = appendEntry(b[:0], e)
		size += int64(len(b))
	}
	if size > MaxBytes {
		return (&problem{reason: tooLarge, message: fmt.Sprintf("the list would be %d bytes long; at most %d are allowed", size, MaxBytes)}).in(listKind, 0)
	}
	b = append(b[:0], head...)
	for i, e := range l.Entries {
		if i > 0 {
			b = append(b, ',')
		}
		if b = appendEntry(b, e); len(b) >= bufferSize {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := w.Write(append(b, tail...))
	return err
}

// appendTail appends what follows the entries.
func (l *List) appendTail(b []byte) []byte {
	b = append(b, `],"expiresAt":"`...)
	b = appendTime(b, l.ExpiresAt)
	b = append(b, `","issuedAt":"`...)
	b = appendTime(b, l.IssuedAt)
	b = append(b, `","issuer":`...)
	b = appendString(b, l.Issuer)
	b = append(b, `,"schemaVersion":"`+ListSchema+`"`...)
	b = appendInteger(b, "version", l.Version)
	return append(b, '}')
}
