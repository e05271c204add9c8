package revlist

import (
	"crypto/sha256"
	"io"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

var (
	listMembers  = []string{"entries", "expiresAt", "issuedAt", "issuer", "schemaVersion", "version"}
	entryMembers = []string{"action", "advisory", "digest", "kind", "pluginId", "publisherId", "range", "reason", "replacement", "signer", "text"}
)

const (
	listRequired  = 1<<len("123456") - 1
	entryRequired = 1<<0 | 1<<3 | 1<<7 // action, kind, reason
)

// Read reads a list as a stream and shows each entry to visit, in order. It holds
// one entry at a time. An error of visit ends the reading and is returned as it is.
//
// The canonical form puts the entries before everything else, so that visit sees
// entries of a list that may turn out to be refused: what it keeps is worth
// nothing until Read returns without an error.
//
// At most limit bytes are taken; a limit that is not between 1 and MaxBytes is
// MaxBytes. Without ranges, entries of kind Version are refused. Faults of the
// document are *Error; what r itself reports is wrapped.
func Read(r io.Reader, limit int64, ranges Ranges, visit func(Entry) error) (Header, error) {
	if limit < 1 || limit > MaxBytes {
		limit = MaxBytes
	}
	sum := sha256.New()
	s := newScanner(listKind, r, limit, sum)
	var h Header
	var bounds order
	s.object(listMembers, listRequired, "a revocation list", func(i int) {
		switch i {
		case 0:
			s.array("entries", MaxEntries, func() {
				s.entry++
				h.Entries++
				at := s.offset()
				e := s.readEntry()
				s.broke(at, checkWholeUnless(s.err, e, ranges))
				if s.err == nil {
					s.broke(at, bounds.check(e))
				}
				if s.err == nil {
					s.err = visit(e)
				}
			})
			if s.err == nil {
				s.entry = 0
			}
		case 1:
			h.ExpiresAt = s.time("expiresAt")
		case 2:
			h.IssuedAt = s.time("issuedAt")
		case 3:
			h.Issuer = s.value("issuer", MaxID)
		case 4:
			s.schema(ListSchema)
		case 5:
			h.Version = s.integer(MaxVersion, "version")
		}
	})
	if s.err == nil {
		s.broke(s.offset()-1, checkHeader(h.Issuer, h.Version, h.IssuedAt, h.ExpiresAt))
	}
	s.end()
	if s.err != nil {
		return Header{}, s.err
	}
	h.Bytes, h.Digest = s.read, digest.FromBytes(sum.Sum(nil))
	return h, nil
}

func checkWholeUnless(err error, e Entry, ranges Ranges) *problem {
	if err != nil {
		return nil
	}
	return checkWhole(e, ranges)
}

// Parse reads a whole list into memory, to be edited.
func Parse(r io.Reader, limit int64, ranges Ranges) (*List, Header, error) {
	l := &List{}
	h, err := Read(r, limit, ranges, func(e Entry) error {
		l.Entries = append(l.Entries, e)
		return nil
	})
	if err != nil {
		return nil, Header{}, err
	}
	l.Issuer, l.Version, l.IssuedAt, l.ExpiresAt = h.Issuer, h.Version, h.IssuedAt, h.ExpiresAt
	return l, h, nil
}

// readEntry reads the members of one entry; what they may hold is checkEntry's.
func (s *scanner) readEntry() Entry {
	var e Entry
	s.object(entryMembers, entryRequired, "an entry", func(i int) {
		switch i {
		case 0:
			e.Action = Action(s.word("action", "block", "warn"))
		case 1:
			e.Advisory = s.value("advisory", MaxAdvisory)
		case 2:
			e.Digest = digest.Digest(s.value("digest", len(digest.Prefix)+2*sha256.Size))
		case 3:
			e.Kind = Kind(s.word("kind", "archive", "manifest", "package", "publisher", "signer", "version"))
		case 4:
			e.PluginID = s.value("pluginId", MaxID)
		case 5:
			e.PublisherID = s.value("publisherId", MaxID)
		case 6:
			e.Range = s.value("range", MaxRange)
		case 7:
			e.Reason = Reason(s.word("reason", "compromised", "malicious", "superseded", "vulnerable", "withdrawn"))
		case 8:
			e.Replacement = s.value("replacement", MaxReplacement)
		case 9:
			e.Signer = s.signer()
		case 10:
			e.Text = s.value("text", MaxText)
		}
	})
	return e
}

// value reads a string that is not empty: an empty one is left out when written.
func (s *scanner) value(member string, most int) string {
	at := s.offset()
	if !s.str(most, member) {
		return ""
	}
	if len(s.text) == 0 {
		s.failAt(at, badValue, "member %q is empty", member)
		return ""
	}
	return string(s.text)
}

// word reads one of a few words.
func (s *scanner) word(member string, known ...string) string {
	at := s.offset()
	if !s.str(maxName, member) {
		return ""
	}
	for _, w := range known {
		if w == string(s.text) {
			return w
		}
	}
	s.failAt(at, badValue, "%s is %s", member, shown(string(s.text)))
	return ""
}

// schema demands the format that the document says it has.
func (s *scanner) schema(want string) {
	at := s.offset()
	if s.str(maxName, "schemaVersion") && string(s.text) != want {
		s.failAt(at, schemaVersion, "schemaVersion is %s; this reader knows %q", shown(string(s.text)), want)
	}
}

// expired reports whether a time has come.
func expired(at, now time.Time) bool { return !now.Before(at) }
