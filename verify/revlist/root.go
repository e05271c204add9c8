package revlist

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// RootSchema is the schemaVersion of a root document.
const RootSchema = "switchyard.revocations-root/v1"

// The bounds of a root document.
const (
	MaxRootBytes = 1 << 20
	MaxSigners   = 64 // of one role
)

// A Root names who speaks for an issuer: the list signers sign lists, the root
// signers sign the next root. Nobody has both roles, so that a stolen list key
// cannot make itself root. Signers are sorted by key, identity and issuer.
type Root struct {
	Issuer        string
	Version       uint64
	ListSigners   []verify.Signer
	ListThreshold int // distinct list signers that a list needs
	RootSigners   []verify.Signer
	RootThreshold int // distinct root signers that a root needs
	ExpiresAt     time.Time
}

var rootMembers = []string{"expiresAt", "issuer", "listSigners", "listThreshold", "rootSigners", "rootThreshold", "schemaVersion", "version"}

// ReadRoot reads a root document. Faults of the document are *Error.
func ReadRoot(r io.Reader) (*Root, error) {
	s := newScanner(rootKind, r, MaxRootBytes, nil)
	var root Root
	s.object(rootMembers, 1<<len(rootMembers)-1, "a root document", func(i int) {
		switch i {
		case 0:
			root.ExpiresAt = s.time("expiresAt")
		case 1:
			root.Issuer = s.value("issuer", MaxID)
		case 2:
			root.ListSigners = s.signers("listSigners")
		case 3:
			root.ListThreshold = int(s.integer(MaxSigners, "listThreshold"))
		case 4:
			root.RootSigners = s.signers("rootSigners")
		case 5:
			root.RootThreshold = int(s.integer(MaxSigners, "rootThreshold"))
		case 6:
			s.schema(RootSchema)
		case 7:
			root.Version = s.integer(MaxVersion, "version")
		}
	})
	if s.err == nil {
		s.broke(s.offset()-1, root.check())
	}
	s.end()
	if s.err != nil {
		return nil, s.err
	}
	return &root, nil
}

// WriteRoot writes the root's canonical form, which is what a signature covers.
// Signers are written sorted, whatever their order in root.
func WriteRoot(w io.Writer, root *Root) error {
	sorted := *root
	sorted.ListSigners = slices.SortedFunc(slices.Values(root.ListSigners), compareSigners)
	sorted.RootSigners = slices.SortedFunc(slices.Values(root.RootSigners), compareSigners)
	if p := sorted.check(); p != nil {
		return p.in(rootKind, 0)
	}
	b := []byte(`{"expiresAt":"`)
	b = appendTime(b, sorted.ExpiresAt)
	b = append(b, `","issuer":`...)
	b = appendString(b, sorted.Issuer)
	b = appendSigners(b, "listSigners", sorted.ListSigners)
	b = appendInteger(b, "listThreshold", uint64(sorted.ListThreshold))
	b = appendSigners(b, "rootSigners", sorted.RootSigners)
	b = appendInteger(b, "rootThreshold", uint64(sorted.RootThreshold))
	b = append(b, `,"schemaVersion":"`+RootSchema+`"`...)
	b = appendInteger(b, "version", sorted.Version)
	_, err := w.Write(append(b, '}'))
	return err
}

// check demands sorted signers.
func (r *Root) check() *problem {
	switch {
	case !isIssuer(r.Issuer):
		return broken("issuer is not an issuer's name")
	case r.Version < 1 || r.Version > MaxVersion:
		return &problem{reason: badNumber, message: fmt.Sprintf("version is not between 1 and %d", uint64(MaxVersion))}
	}
	if p := checkTime("expiresAt", r.ExpiresAt); p != nil {
		return p
	}
	if p := checkRole("list", r.ListSigners, r.ListThreshold); p != nil {
		return p
	}
	if p := checkRole("root", r.RootSigners, r.RootThreshold); p != nil {
		return p
	}
	for _, s := range r.ListSigners {
		if slices.Contains(r.RootSigners, s) {
			return broken("a signer is named in both listSigners and rootSigners")
		}
	}
	return nil
}

func checkRole(role string, signers []verify.Signer, threshold int) *problem {
	if len(signers) > MaxSigners {
		return &problem{reason: tooMany, message: fmt.Sprintf("%sSigners has more than %d elements", role, MaxSigners)}
	}
	if threshold < 1 || threshold > len(signers) {
		return &problem{reason: badNumber, message: fmt.Sprintf("%sThreshold is %d, with %d %sSigners", role, threshold, len(signers), role)}
	}
	for i, s := range signers {
		if p := checkSigner(s); p != nil {
			return p
		}
		if i > 0 && compareSigners(signers[i-1], s) >= 0 {
			return &problem{reason: duplicate, message: fmt.Sprintf("a signer occurs twice in %sSigners", role)}
		}
	}
	return nil
}

// AcceptsList returns nil if enough distinct list signers are among those who
// signed a list, else a *TooFewError.
func (r *Root) AcceptsList(signed []verify.Signer) error {
	return enough(listKind.name, "list", signed, r.ListSigners, r.ListThreshold)
}

// AcceptsItself returns nil if enough distinct root signers of the root are among
// those who signed it, else a *TooFewError. It says nothing about where the root
// came from: a first root is one whose digest somebody compared.
func (r *Root) AcceptsItself(signed []verify.Signer) error {
	return enough(rootKind.name, "root", signed, r.RootSigners, r.RootThreshold)
}

// A RootError is a root that does not stand, though it is well-formed.
type RootError struct {
	Code    Code // RootExpired, RootWrongIssuer, RootVersion
	Message string
}

func (e *RootError) Error() string { return "revocation root: " + e.Message }

// The codes of RootError.
const (
	RootExpired     Code = "root.expired"
	RootWrongIssuer Code = "root.wrong_issuer"
	RootVersion     Code = "root.version" // not the successor of the root before
)

// Current returns a *RootError once the root has expired. An expired root accepts
// no list, but may still sign the next root.
func (r *Root) Current(now time.Time) error {
	if expired(r.ExpiresAt, now) {
		return &RootError{RootExpired, fmt.Sprintf("version %d expired at %s", r.Version, r.ExpiresAt.UTC().Format(timeLayout))}
	}
	return nil
}

// Rotate returns nil if next may take the place of old: it is the same issuer's
// next version, and among those who signed it are enough root signers of old and
// enough of its own. The state of the issuer's lists is then State.Rotated.
//
// Several rotations are made one after the other; whether the last root is still
// valid is Current's.
func Rotate(old, next *Root, signed []verify.Signer) error {
	switch {
	case old.Issuer != next.Issuer:
		return &RootError{RootWrongIssuer, fmt.Sprintf("it is of %s, not of %s", shown(next.Issuer), old.Issuer)}
	case next.Version != old.Version+1:
		return &RootError{RootVersion, fmt.Sprintf("version %d does not follow version %d", next.Version, old.Version)}
	}
	if p := next.check(); p != nil {
		return p.in(rootKind, 0)
	}
	if err := enough(rootKind.name, "old root", signed, old.RootSigners, old.RootThreshold); err != nil {
		return err
	}
	return next.AcceptsItself(signed)
}
