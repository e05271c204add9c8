package revlist

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// DissentSchema is the schemaVersion of a dissent file.
const DissentSchema = "switchyard.revocations-dissent/v1"

// The bounds of a dissent file.
const (
	MaxDissentBytes = 4 << 20
	MaxDissents     = 1_000
)

// A Dissent says that a block of exactly one digest is known and not followed here,
// for a reason, until a time.
type Dissent struct {
	Digest    digest.Digest
	Reason    string // one line, in the words of whoever dissents
	ExpiresAt time.Time
}

// Dissents are a machine's dissents, sorted by digest, none twice. The zero value
// is none.
type Dissents struct{ Entries []Dissent }

// Of returns the dissent about a digest that is valid now.
func (d *Dissents) Of(about digest.Digest, now time.Time) (Dissent, bool) {
	i, found := d.find(about)
	if !found || about == "" || expired(d.Entries[i].ExpiresAt, now) {
		return Dissent{}, false
	}
	return d.Entries[i], true
}

// Soften returns what an entry demands of a package here and now. A block becomes
// Warn if there is a dissent about the digest that the entry blocks, or, where it
// blocks a signer or a range of versions, about the package's own digest; the
// dissent is then returned, to be printed each time.
func (d *Dissents) Soften(e Entry, pkg digest.Digest, now time.Time) (Action, *Dissent) {
	about := e.Digest
	if about == "" {
		about = pkg
	}
	if e.Action == Warn {
		return Warn, nil
	}
	if dissent, ok := d.Of(about, now); ok {
		return Warn, &dissent
	}
	return Block, nil
}

// With returns the dissents with one more, which replaces one about its digest.
func (d *Dissents) With(n Dissent) (*Dissents, error) {
	if p := n.check(); p != nil {
		return nil, p.in(dissentKind, 0)
	}
	entries := slices.Clone(d.Entries)
	i, found := d.find(n.Digest)
	switch {
	case found:
		entries[i] = n
	case len(entries) >= MaxDissents:
		return nil, (&problem{reason: tooMany, message: fmt.Sprintf("there are at most %d dissents", MaxDissents)}).in(dissentKind, 0)
	default:
		entries = slices.Insert(entries, i, n)
	}
	return &Dissents{entries}, nil
}

// Without returns the dissents without the one about a digest, and whether there
// was one, valid or expired.
func (d *Dissents) Without(about digest.Digest) (*Dissents, bool) {
	i, found := d.find(about)
	if !found {
		return d, false
	}
	return &Dissents{slices.Delete(slices.Clone(d.Entries), i, i+1)}, true
}

func (d *Dissents) find(about digest.Digest) (int, bool) {
	return slices.BinarySearchFunc(d.Entries, about, func(e Dissent, about digest.Digest) int {
		return strings.Compare(string(e.Digest), string(about))
	})
}

func (d Dissent) check() *problem {
	if !digest.IsCanonical(string(d.Digest)) {
		return broken("digest is not \"sha256:\" and 64 lower-case hex digits")
	}
	if strings.TrimSpace(d.Reason) == "" {
		return broken("a dissent needs a reason")
	}
	if p := checkText("reason", d.Reason, MaxText); p != nil {
		return p
	}
	return checkTime("expiresAt", d.ExpiresAt)
}

// checkAfter is check and the order of the file.
func (d Dissent) checkAfter(before *Dissent) *problem {
	p := d.check()
	if p != nil || before == nil {
		return p
	}
	switch c := strings.Compare(string(before.Digest), string(d.Digest)); {
	case c == 0:
		return &problem{reason: duplicate, message: "the entry before has the same digest"}
	case c > 0:
		return &problem{reason: notSorted, message: "the entry sorts before the one that precedes it"}
	}
	return nil
}

var (
	dissentsMembers = []string{"entries", "schemaVersion"}
	dissentMembers  = []string{"digest", "expiresAt", "reason"}
)

// ReadDissents reads a dissent file. Faults of the document are *Error.
func ReadDissents(r io.Reader) (*Dissents, error) {
	s := newScanner(dissentKind, r, MaxDissentBytes, nil)
	d := &Dissents{}
	s.object(dissentsMembers, 1<<len(dissentsMembers)-1, "a dissent file", func(i int) {
		if i == 1 {
			s.schema(DissentSchema)
			return
		}
		s.array("entries", MaxDissents, func() {
			s.entry++
			at := s.offset()
			e := s.dissent()
			if s.err != nil {
				return
			}
			var before *Dissent
			if n := len(d.Entries); n > 0 {
				before = &d.Entries[n-1]
			}
			s.broke(at, e.checkAfter(before))
			d.Entries = append(d.Entries, e)
		})
		if s.err == nil {
			s.entry = 0
		}
	})
	s.end()
	if s.err != nil {
		return nil, s.err
	}
	return d, nil
}

func (s *scanner) dissent() Dissent {
	var d Dissent
	s.object(dissentMembers, 1<<len(dissentMembers)-1, "an entry", func(i int) {
		switch i {
		case 0:
			d.Digest = digest.Digest(s.value("digest", MaxID))
		case 1:
			d.ExpiresAt = s.time("expiresAt")
		case 2:
			d.Reason = s.value("reason", MaxText)
		}
	})
	return d
}

// WriteDissents writes the file's canonical form.
func WriteDissents(w io.Writer, d *Dissents) error {
	if len(d.Entries) > MaxDissents {
		return (&problem{reason: tooMany, message: fmt.Sprintf("there are at most %d dissents", MaxDissents)}).in(dissentKind, 0)
	}
	b := []byte(`{"entries":[`)
	var before *Dissent
	for i, e := range d.Entries {
		if p := e.checkAfter(before); p != nil {
			return p.in(dissentKind, i+1)
		}
		before = &d.Entries[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"digest":`...)
		b = appendString(b, string(e.Digest))
		b = append(b, `,"expiresAt":"`...)
		b = appendTime(b, e.ExpiresAt)
		b = append(b, `","reason":`...)
		b = append(appendString(b, e.Reason), '}')
	}
	_, err := w.Write(append(b, `],"schemaVersion":"`+DissentSchema+`"}`...))
	return err
}
