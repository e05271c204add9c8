package wire

import "bytes"

// Remembered is how many UUIDs a Seen remembers.
const Remembered = 32_768

// Seen remembers the UUIDs that came last on a connection, in bounded memory. Senders
// make UUIDs that rise, so that one comparison tells that one is new; the first that does
// not rise makes a set of them. The zero value is empty. It is not safe for concurrent
// use.
type Seen struct {
	ring    []UUID
	next    int
	highest UUID
	set     map[UUID]struct{} // of ring, once it is needed
}

// Add remembers u and reports whether it is new.
func (s *Seen) Add(u UUID) bool {
	if bytes.Compare(u[:], s.highest[:]) > 0 {
		s.highest = u
	} else if s.Has(u) {
		return false
	}
	if s.set != nil {
		s.set[u] = struct{}{}
	}
	if len(s.ring) < Remembered {
		s.ring = append(s.ring, u)
		return true
	}
	if s.set != nil {
		delete(s.set, s.ring[s.next])
	}
	s.ring[s.next] = u
	s.next = (s.next + 1) % Remembered
	return true
}

// Has reports whether u is remembered.
func (s *Seen) Has(u UUID) bool {
	if bytes.Compare(u[:], s.highest[:]) > 0 {
		return false
	}
	if s.set == nil {
		s.set = make(map[UUID]struct{}, len(s.ring))
		for _, old := range s.ring {
			s.set[old] = struct{}{}
		}
	}
	_, ok := s.set[u]
	return ok
}
