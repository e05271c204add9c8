package wire

// Remembered is the least number of UUIDs that a Seen remembers.
const Remembered = 32_768

// Seen remembers the UUIDs that came last on a connection, in bounded memory. The
// zero value is empty. It is not safe for concurrent use.
type Seen struct {
	young, old map[UUID]struct{}
}

// Add remembers u and reports whether it is new.
func (s *Seen) Add(u UUID) bool {
	if s.Has(u) {
		return false
	}
	if s.young == nil {
		s.young = make(map[UUID]struct{})
	}
	if len(s.young) == Remembered {
		s.old, s.young = s.young, make(map[UUID]struct{}, Remembered)
	}
	s.young[u] = struct{}{}
	return true
}

// Has reports whether u is remembered.
func (s *Seen) Has(u UUID) bool {
	if _, ok := s.young[u]; ok {
		return true
	}
	_, ok := s.old[u]
	return ok
}
