package pkgmgr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// The codes of ListRefused beside those of package revlist.
const (
	CodeListSigners   = "list.signers"   // too few of those who may sign a list signed it
	CodeRootSigners   = "root.signers"   // too few of those who must sign a root signed it
	CodeRootUntrusted = "root.untrusted" // a first root, and nobody said that it is the right one
	CodeRootMissing   = "root.missing"   // the list's issuer is not known here, and no root came with it

	CodeIssuerReserved = "list.issuer_reserved" // the issuer's name is that of a file in revocations/
	CodeNotFollowed    = "list.not_followed"    // a project's file names a list of an issuer that the user does not follow
	CodeNoSource       = "list.no_source"       // nobody remembers where an issuer's lists come from
)

// The codes of documents that break a rule of their format; which rule it is, is the
// fault.
const (
	CodeListUnreadable = "list.unreadable"
	CodeRootUnreadable = "root.unreadable"
)

// A ListRefused says why a revocation list or its root is not adopted. What was
// adopted before stays in force.
type ListRefused struct {
	Issuer string // "" where that is not known
	Code   string
	Fault  revlist.Code // of an unreadable document: which rule it breaks; else ""
	Reason string
	Root   digest.Digest // of the root that came with the list, "" where none did
	Source string        // where it was taken from, as it was named
	Err    error         // what package revlist or the verify worker said; may be nil
}

func (e *ListRefused) Error() string {
	if e.Issuer == "" {
		return "revocation list refused: " + e.Reason
	}
	return fmt.Sprintf("revocation list of %s refused: %s", e.Issuer, e.Reason)
}

func (e *ListRefused) Unwrap() error { return e.Err }

// ListCode is the code of a refusal for a code of package revlist. Documents that
// break a rule of their format have one code; which rule it is, is the fault.
func ListCode(fault revlist.Code) (code string) {
	switch fault {
	case revlist.WrongIssuer.Code():
		code = "list.wrong_issuer"
	case revlist.Rollback.Code():
		code = "list.rollback"
	case revlist.Equivocation.Code():
		code = "list.equivocation"
	case revlist.Future.Code():
		code = "list.future"
	case revlist.RootExpired:
		code = "root.expired"
	case revlist.RootWrongIssuer:
		code = "root.wrong_issuer"
	case revlist.RootVersion:
		code = "root.version"
	default:
		code = CodeListUnreadable
		if strings.HasPrefix(string(fault), "root.") {
			code = CodeRootUnreadable
		}
	}
	return code
}

// refusedList gives what package revlist found wrong its code.
func refusedList(issuer string, err error) error {
	var (
		fault *revlist.Error
		root  *revlist.RootError
		few   *revlist.TooFewError
	)
	switch {
	case errors.As(err, &fault):
		return &ListRefused{Issuer: issuer, Code: ListCode(fault.Code), Fault: fault.Code, Reason: fault.Error(), Err: err}
	case errors.As(err, &root):
		return &ListRefused{Issuer: issuer, Code: ListCode(root.Code), Reason: root.Error(), Err: err}
	case errors.As(err, &few) && few.Role == "list":
		return &ListRefused{Issuer: issuer, Code: CodeListSigners, Reason: few.Error(), Err: err}
	case errors.As(err, &few):
		return &ListRefused{Issuer: issuer, Code: CodeRootSigners, Reason: few.Error(), Err: err}
	}
	return err
}

// refusedFile gives a file of a source that is not read the code of what it should be:
// a list or a root, or the bundles or keys beside them.
func refusedFile(issuer, code string, err error) error {
	var given *givenFile
	if !errors.As(err, &given) {
		return err
	}
	r := &ListRefused{Issuer: issuer, Code: code, Reason: given.Error()}
	if given.tooLarge {
		r.Fault = revlist.Code(strings.TrimSuffix(code, "unreadable") + "too_large")
	}
	return r
}
