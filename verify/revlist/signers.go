package revlist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// checkSigner demands a key, or an identity and who vouches for it; not both.
func checkSigner(s verify.Signer) *problem {
	switch {
	case s.Key != "" && (s.Identity != "" || s.Issuer != ""):
		return broken("a signer is a key or an identity, not both")
	case s.Key != "" && !digest.IsCanonical(s.Key):
		return broken("a signer's key is not \"sha256:\" and 64 lower-case hex digits")
	case s.Key == "" && (s.Identity == "" || s.Issuer == ""):
		return broken("a signer has a key, or an identity with its issuer")
	}
	if p := checkText("a signer's identity", s.Identity, MaxSignerText); p != nil {
		return p
	}
	return checkText("a signer's issuer", s.Issuer, MaxSignerText)
}

func compareSigners(a, b verify.Signer) int {
	return strings.Compare(signerSubject(a), signerSubject(b))
}

// A TooFewError says that a document lacks signers.
type TooFewError struct {
	Document  string // "revocation list", "revocation root"
	Role      string // whose signers were wanted: "list", "root", "old root"
	Have      int    // distinct signers of that role among those who signed
	Threshold int
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("%s: signed by %d of the signers that the %s role names; %d are required", e.Document, e.Have, e.Role, e.Threshold)
}

// count returns how many of allowed are among signed. A signer counts once,
// whatever the number of its signatures.
func count(signed, allowed []verify.Signer) int {
	n := 0
	for i, s := range allowed {
		if slices.Contains(signed, s) && !slices.Contains(allowed[:i], s) {
			n++
		}
	}
	return n
}

func enough(document, role string, signed, allowed []verify.Signer, threshold int) error {
	have := count(signed, allowed)
	if threshold < 1 || have < threshold {
		return &TooFewError{document, role, have, threshold}
	}
	return nil
}

var signerMembers = []string{"identity", "issuer", "key"}

// signer reads a signer; what it may hold is checkSigner's.
func (s *scanner) signer() verify.Signer {
	var v verify.Signer
	s.object(signerMembers, 0, "a signer", func(i int) {
		if !s.str(MaxSignerText, signerMembers[i]) {
			return
		}
		if len(s.text) == 0 {
			s.fail(badValue, "member %q is empty", signerMembers[i])
			return
		}
		switch i {
		case 0:
			v.Identity = string(s.text)
		case 1:
			v.Issuer = string(s.text)
		case 2:
			v.Key = string(s.text)
		}
	})
	return v
}

// signers reads a sorted array of distinct signers.
func (s *scanner) signers(what string) []verify.Signer {
	var list []verify.Signer
	s.array(what, MaxSigners, func() {
		at := s.offset()
		v := s.signer()
		s.broke(at, checkSigner(v))
		if n := len(list); n > 0 && s.err == nil {
			switch c := compareSigners(list[n-1], v); {
			case c == 0:
				s.failAt(at, duplicate, "a signer occurs twice in %s", what)
			case c > 0:
				s.failAt(at, notSorted, "%s is not sorted", what)
			}
		}
		list = append(list, v)
	})
	return list
}
