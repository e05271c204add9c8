package revlist

import (
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// An Outcome says what a list's silence is worth: whether a subject that it does
// not name may be believed to be unrevoked. What a list does name is denied under
// every outcome but WrongIssuer: a denial that its issuer signed is never made
// weaker by age.
type Outcome string

// The outcomes.
const (
	Fresh        Outcome = "fresh"
	Absent       Outcome = "absent"       // there is no list
	WrongIssuer  Outcome = "wrong_issuer" // it is somebody else's
	Rollback     Outcome = "rollback"     // older than one that was seen
	Equivocation Outcome = "equivocation" // the version that was seen, with another content
	Future       Outcome = "future"       // issued later than now
	Expired      Outcome = "expired"      // its issuer said that it would be replaced by now: perhaps newer ones are withheld
	TooOld       Outcome = "too_old"      // older than the caller's policy allows
)

// Code returns the outcome's stable code.
func (o Outcome) Code() Code { return listKind.code(string(o)) }

// Skew is how far a list's time of issue may lie ahead of the reader's clock.
const Skew = 10 * time.Minute

// A State is what is known of an issuer's lists before one is judged.
type State struct {
	Issuer string        // whose list is wanted
	Floor  uint64        // the lowest version that is accepted; 0: any
	Digest digest.Digest // of the list with version Floor, where that is known
	Issued time.Time     // when the newest list that was adopted was issued, where that is known
	MaxAge time.Duration // since the time of issue; 0: until the list expires
}

// Rotated returns the state after a new root was adopted: the versions begin anew,
// so that one which a thief of a list key signed with a huge version is no obstacle.
// The time of issue stays, so that lists from before do not come back.
func (s State) Rotated() State {
	s.Floor, s.Digest = 0, ""
	return s
}

// Adopted returns the state after a list was adopted.
func (s State) Adopted(h Header) State {
	s.Floor, s.Digest, s.Issued = h.Version, h.Digest, h.IssuedAt
	return s
}

// A Verdict is the one outcome of a list.
type Verdict struct {
	Outcome Outcome
	Message string // "" for Fresh
}

// Code returns the code of the outcome.
func (v Verdict) Code() Code { return v.Outcome.Code() }

// Silence reports whether what the list does not name may be believed to be
// unrevoked. Where it is false, installing, trusting and ci refuse by default, and
// running warns.
func (v Verdict) Silence() bool { return v.Outcome == Fresh }

// Adoptable reports whether the list may take the place of the one that is kept. An
// expired list may: it still denies more than an older one.
func (v Verdict) Adoptable() bool {
	return v.Outcome == Fresh || v.Outcome == Expired || v.Outcome == TooOld
}

// Judge returns what the list with header h is worth at the time now; a nil header
// is an absent list. Whether the signatures suffice is Root.AcceptsList's.
func Judge(s State, h *Header, now time.Time) Verdict {
	at := func(t time.Time) string { return t.UTC().Format(timeLayout) }
	verdict := func(o Outcome, format string, args ...any) Verdict {
		return Verdict{o, fmt.Sprintf(format, args...)}
	}
	switch {
	case h == nil:
		return verdict(Absent, "there is no revocation list of %s", s.Issuer)
	case h.Issuer != s.Issuer:
		return verdict(WrongIssuer, "the revocation list is of %s, not of %s", shown(h.Issuer), s.Issuer)
	case h.Version < s.Floor:
		return verdict(Rollback, "version %d is older than version %d, which was seen before", h.Version, s.Floor)
	case h.Version == s.Floor && s.Digest != "" && h.Digest != s.Digest:
		return verdict(Equivocation, "version %d has the digest %s; it had %s before", h.Version, h.Digest, s.Digest)
	case h.IssuedAt.Before(s.Issued):
		return verdict(Rollback, "version %d was issued at %s, before the list that was adopted last (%s)", h.Version, at(h.IssuedAt), at(s.Issued))
	case h.IssuedAt.After(now.Add(Skew)):
		return verdict(Future, "version %d was issued at %s, later than now (%s)", h.Version, at(h.IssuedAt), at(now))
	case expired(h.ExpiresAt, now):
		return verdict(Expired, "version %d expired at %s", h.Version, at(h.ExpiresAt))
	case s.MaxAge > 0 && now.Sub(h.IssuedAt) > s.MaxAge:
		return verdict(TooOld, "version %d was issued at %s; the policy allows an age of %s", h.Version, at(h.IssuedAt), s.MaxAge)
	}
	return Verdict{Outcome: Fresh}
}
