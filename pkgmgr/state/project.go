package state

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// A ProjectTrust says that the user trusts one project root: the exact resolved
// directory. Its key is Root.
type ProjectTrust struct {
	Root string
	ID   string // UUID, made when the root was trusted
	At   time.Time
}

// A ProjectApproval is trust and grants that a project's lockfile gave to a
// package, for that project only. Its key is Root and Package.
type ProjectApproval struct {
	Root       string
	Package    digest.Digest
	ID         string
	Scopes     []manifest.Scope
	LockDigest digest.Digest // of the lockfile that said so
	At         time.Time
}

func checkRoot(what, root string) error {
	if root == "" || strings.Contains(root, "\x00") {
		return fmt.Errorf("%w: %s: the root %q", ErrRecord, what, root)
	}
	return nil
}

// PutProjectTrust records the trust in a project root.
func (tx *Tx) PutProjectTrust(r ProjectTrust) error {
	if err := checkRoot("project trust", r.Root); err != nil {
		return err
	}
	e := newEncoder(128)
	e.text(r.Root)
	e.text(r.ID)
	e.time(r.At)
	return tx.put(bucketProjects, []byte(r.Root), e.b)
}

func decodeProjectTrust(key, value []byte) (ProjectTrust, error) {
	d := newDecoder(value)
	r := ProjectTrust{Root: d.text(), ID: d.text(), At: d.time()}
	d.must(string(key) == r.Root)
	return r, d.err()
}

// ProjectTrust returns the record of one root.
func (tx *Tx) ProjectTrust(root string) (ProjectTrust, error) {
	return getRecord(tx, bucketProjects, []byte(root), decodeProjectTrust)
}

// ProjectTrusts returns every trusted root, sorted.
func (tx *Tx) ProjectTrusts() ([]ProjectTrust, error) {
	return listRecords(tx, bucketProjects, nil, decodeProjectTrust)
}

// RemoveProjectTrust forgets the trust in a root and every approval that a
// lockfile gave there.
func (tx *Tx) RemoveProjectTrust(root string) error {
	if err := tx.remove(bucketProjects, []byte(root)); err != nil {
		return err
	}
	approvals, err := tx.ProjectApprovals(root)
	if err != nil {
		return err
	}
	for _, a := range approvals {
		if err := tx.RemoveProjectApproval(root, a.Package); err != nil {
			return err
		}
	}
	return nil
}

func approvalKey(root string, pkg digest.Digest) []byte {
	key := make([]byte, 0, len(root)+1+len(pkg))
	key = append(key, root...)
	key = append(key, 0)
	return append(key, pkg...)
}

// PutProjectApproval records what a lockfile approved.
func (tx *Tx) PutProjectApproval(r ProjectApproval) error {
	if err := checkRoot("project approval", r.Root); err != nil {
		return err
	}
	if err := checkDigest("project approval", r.Package); err != nil {
		return err
	}
	e := newEncoder(256)
	e.text(r.Root)
	e.digest(r.Package)
	e.text(r.ID)
	encodeTexts(e, r.Scopes)
	e.digest(r.LockDigest)
	e.time(r.At)
	return tx.put(bucketApprovals, approvalKey(r.Root, r.Package), e.b)
}

func decodeProjectApproval(key, value []byte) (ProjectApproval, error) {
	d := newDecoder(value)
	r := ProjectApproval{
		Root: d.text(), Package: d.digest(), ID: d.text(),
		Scopes: decodeTexts[manifest.Scope](d), LockDigest: d.digest(), At: d.time(),
	}
	d.must(string(key) == r.Root+"\x00"+string(r.Package) && digest.IsCanonical(string(r.Package)))
	d.must(isDigests(r.LockDigest) && isTexts(r.ID) && isScopes(r.Scopes))
	return r, d.err()
}

// ProjectApproval returns what was approved for one package in one project.
func (tx *Tx) ProjectApproval(root string, pkg digest.Digest) (ProjectApproval, error) {
	return getRecord(tx, bucketApprovals, approvalKey(root, pkg), decodeProjectApproval)
}

// ProjectApprovals returns what was approved in one project, sorted by package
// digest; with root "" what was approved in all of them.
func (tx *Tx) ProjectApprovals(root string) ([]ProjectApproval, error) {
	var prefix []byte
	if root != "" {
		prefix = approvalKey(root, "")
	}
	return listRecords(tx, bucketApprovals, prefix, decodeProjectApproval)
}

// RemoveProjectApproval forgets what was approved for one package in one project.
func (tx *Tx) RemoveProjectApproval(root string, pkg digest.Digest) error {
	return tx.remove(bucketApprovals, approvalKey(root, pkg))
}
