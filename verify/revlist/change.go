package revlist

import (
	"slices"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// A RoleChange says what changes of one role. What is not said stays.
type RoleChange struct {
	Add, Remove []verify.Signer
	Threshold   int // 0 stays
}

// A RootChange says in what the next root differs from the root before.
type RootChange struct {
	List, Root RoleChange
	ExpiresAt  time.Time // zero stays
}

// Next returns the root that follows r: the next version, with the change made. To add
// who is named, to remove who is not, and to change nothing is an error, for whoever
// asks for it is mistaken about the root that is there; so is a root that would not
// stand, as one whose threshold is out of reach. Errors are *Error.
func (r *Root) Next(c RootChange) (*Root, error) {
	next := *r
	next.Version++
	var p *problem
	if next.ListSigners, p = c.List.apply("list", r.ListSigners); p != nil {
		return nil, p.in(rootKind, 0)
	}
	if next.RootSigners, p = c.Root.apply("root", r.RootSigners); p != nil {
		return nil, p.in(rootKind, 0)
	}
	if c.List.Threshold != 0 {
		next.ListThreshold = c.List.Threshold
	}
	if c.Root.Threshold != 0 {
		next.RootThreshold = c.Root.Threshold
	}
	if !c.ExpiresAt.IsZero() {
		next.ExpiresAt = c.ExpiresAt.UTC().Truncate(time.Second)
	}
	if p := next.check(); p != nil {
		return nil, p.in(rootKind, 0)
	}
	if c.ExpiresAt.IsZero() && next.SameLists(r) && next.RootThreshold == r.RootThreshold && slices.Equal(next.RootSigners, r.RootSigners) {
		return nil, broken("it would say what version %d says", r.Version).in(rootKind, 0)
	}
	return &next, nil
}

// SameLists reports whether the same lists are accepted under both roots.
func (r *Root) SameLists(other *Root) bool {
	return r.ListThreshold == other.ListThreshold && slices.Equal(r.ListSigners, other.ListSigners)
}

// apply returns the signers of a role after the change, sorted.
func (c RoleChange) apply(role string, signers []verify.Signer) ([]verify.Signer, *problem) {
	signers = slices.Clone(signers)
	for _, s := range c.Remove {
		i := slices.Index(signers, s)
		if i < 0 {
			return nil, broken("%s is not in %sSigners", s, role)
		}
		signers = slices.Delete(signers, i, i+1)
	}
	for _, s := range c.Add {
		if slices.Contains(signers, s) || slices.Contains(c.Remove, s) {
			return nil, broken("%s is in %sSigners already", s, role)
		}
		signers = append(signers, s)
	}
	slices.SortFunc(signers, compareSigners)
	return signers, nil
}
