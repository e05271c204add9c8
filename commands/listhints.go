package commands

import (
	"slices"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// updateHint is the command that adopts an issuer's list again, from where it came the last
// time.
func (in *invocation) updateHint(issuer string) string {
	if dir, err := in.dataDir(); err == nil {
		if h, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now}); err == nil {
			if source, err := h.ListSource(issuer); err == nil && source != "" {
				return in.next("revocations", "update", source)
			}
		}
	}
	return wanting(in.next("revocations", "update", "SOURCE"),
		"SOURCE is the directory or https address at which "+issuer+" publishes its lists; the issuer tells it")
}

// followHint is the command that follows an issuer, which may be "".
func (in *invocation) followHint(issuer string) string {
	if issuer == "" {
		issuer = "the issuer"
	}
	return wanting(in.next("revocations", "update", "SOURCE", "--trust-root", "DIGEST"),
		issuer+" tells both: where its lists lie, and the digest of its root")
}

// freshListsHint is the command that makes the lists fresh which a policy or a lock asks
// for: where the lock names an issuer that is not followed here, the one that follows it.
func (in *invocation) freshListsHint() string {
	var followed []string
	if dir, err := in.dataDir(); err == nil {
		if h, err := pkgmgr.Open(dir, pkgmgr.Options{Now: in.env.Now}); err == nil {
			followed, _ = h.Issuers() // of what cannot be read nothing is followed
		}
	}
	if lock := in.lockOrNone(); lock != nil {
		for _, floor := range lock.File.Revocations {
			if !slices.Contains(followed, floor.Issuer) {
				return in.followHint(floor.Issuer)
			}
		}
	}
	if len(followed) == 0 {
		return in.next("revocations", "list")
	}
	return in.next("revocations", "update")
}
