package pkgmgr

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// A Listed is the entry of a signed list that denies a package.
type Listed struct {
	Issuer  string
	Version uint64 // of the list
	Entry   revlist.Entry
	Dissent *revlist.Dissent // why its block is not followed here; nil where it is, or where it only warns
}

// Blocks reports whether the entry refuses the package on this machine.
func (l Listed) Blocks() bool { return l.Entry.Action == revlist.Block && l.Dissent == nil }

// denial is the entry as a denial of this machine would be.
func (l Listed) denial() Denial {
	e := l.Entry
	d := Denial{Digest: e.Digest, PluginID: e.PluginID, Range: e.Range, Reason: string(e.Reason), List: &l}
	if e.Text != "" {
		d.Reason += ": " + e.Text
	}
	return d
}

// Subject says what the entry is about, for people.
func (l Listed) Subject() string {
	e := l.Entry
	switch e.Kind {
	case revlist.Version:
		return e.PluginID + "@" + e.Range
	case revlist.Signer:
		return "everything signed by " + e.Signer.String()
	case revlist.Publisher:
		return e.PluginID + " of " + e.PublisherID + " with the manifest " + string(e.Digest)
	}
	return string(e.Kind) + " " + string(e.Digest)
}

// named returns the entries about a package, those that block first. signers are who
// signed its archive, or a provenance of it.
func (l *openList) named(s subject, signers []verify.Signer) ([]Listed, error) {
	if l.index == nil {
		return nil, nil
	}
	var keys []revlist.Key
	if s.Archive != "" {
		keys = append(keys, revlist.DigestKey(revlist.Archive, s.Archive))
	}
	if s.Manifest != "" {
		keys = append(keys, revlist.DigestKey(revlist.Manifest, s.Manifest))
	}
	if s.Package != "" {
		keys = append(keys, revlist.DigestKey(revlist.Package, s.Package))
	}
	if s.ID != "" {
		keys = append(keys, revlist.VersionKey(s.ID))
	}
	if p := s.publisher(); p != "" && s.Manifest != "" {
		keys = append(keys, revlist.PublisherKey(p, s.ID, s.Manifest))
	}
	for _, one := range signers {
		keys = append(keys, revlist.SignerKey(one))
	}
	entries, err := l.index.Lookup(keys...)
	if err == nil {
		entries, err = revlist.Covering(entries, s.Version, versionRanges)
	}
	if err != nil {
		return nil, fmt.Errorf("revocation list of %s: %w", l.issuer, err)
	}
	var list []Listed
	for _, e := range entries {
		list = append(list, Listed{Issuer: l.issuer, Version: l.index.Header().Version, Entry: e})
	}
	return list, nil
}

// named returns what all lists say about a package.
func (l openLists) named(s subject, signers []verify.Signer) ([]Listed, error) {
	var list []Listed
	for _, one := range l {
		some, err := one.named(s, signers)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// listedIn returns what the signed lists say about a package, what blocks it first.
// signers vouch for its archive, beside those of whom evidence is kept. An index that turns out to be damaged is built again, once.
func (h *Home) listedIn(lists openLists, s subject, signers []verify.Signer) ([]Listed, error) {
	if len(lists) == 0 {
		return nil, nil
	}
	if s.Archive != "" {
		evidence, err := h.Evidence(s.Archive)
		if err != nil {
			return nil, err
		}
		for _, one := range evidence.vouching(verify.Signature, verify.Provenance) {
			if !slices.Contains(signers, one) {
				signers = append(slices.Clip(signers), one)
			}
		}
	}
	list, err := lists.named(s, signers)
	if errors.Is(err, revlist.ErrIndexDamaged) {
		if err = h.rebuild(lists); err == nil {
			list, err = lists.named(s, signers)
		}
	}
	if err == nil {
		err = h.soften(list, s.Package)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Listed) int {
		switch {
		case a.Blocks() == b.Blocks():
			return 0
		case a.Blocks():
			return -1
		}
		return 1
	})
	return list, nil
}

// rebuild builds every open index again.
func (h *Home) rebuild(lists openLists) error {
	for _, one := range lists {
		if one.index == nil {
			continue
		}
		fresh, err := h.rebuilt(one)
		if err != nil {
			return err
		}
		one.index.Close()
		one.index = fresh
	}
	return nil
}

// checkListed returns a *Revoked if a signed list blocks the package, and tells what
// lists warn of.
func (h *Home) checkListed(s subject, signers []verify.Signer) error {
	lists, err := h.openLists()
	if err != nil {
		return err
	}
	defer lists.close()
	return h.checkListedIn(lists, s, signers)
}

// checkListedIn is checkListed with lists that were opened before.
func (h *Home) checkListedIn(lists openLists, s subject, signers []verify.Signer) error {
	list, err := h.listedIn(lists, s, signers)
	if err != nil {
		return err
	}
	for _, one := range list {
		if one.Blocks() {
			return &Revoked{ID: s.ID, Version: s.Version, Package: s.Package, Denial: one.denial()}
		}
		h.on.warn("%s", one.warning(label(s.ID, s.Version)))
	}
	return nil
}

func (l Listed) warning(name string) string {
	d := l.denial()
	text := fmt.Sprintf("%s is named by the revocation list of %s (%s): %s", name, l.Issuer, l.Subject(), d.Reason)
	if l.Dissent != nil {
		text = fmt.Sprintf("%s is blocked by the revocation list of %s (%s): %s; not followed on this machine until %s: %s",
			name, l.Issuer, l.Subject(), d.Reason, l.Dissent.ExpiresAt.UTC().Format(time.RFC3339), l.Dissent.Reason)
	}
	if l.Entry.Advisory != "" {
		text += "; see " + l.Entry.Advisory
	}
	if l.Entry.Replacement != "" {
		text += "; use " + l.Entry.Replacement
	}
	return text
}

// states says for the policy how every list stands now. floors are what a lock holds:
// an issuer that it names is asked for also where none of its lists ever was.
func (l openLists) states(floors []lockfile.Floor, now time.Time) []policy.List {
	var out []policy.List
	floorOf := map[string]uint64{}
	for _, f := range floors {
		floorOf[f.Issuer] = uint64(f.Version)
	}
	for _, one := range l {
		seen := one.seen
		if f := floorOf[one.issuer]; f > seen.Floor {
			seen.Floor, seen.Digest = f, ""
		}
		delete(floorOf, one.issuer)
		head := one.header()
		state := policy.List{Issuer: one.issuer, State: policyState(revlist.Judge(seen, head, now).Outcome)}
		if head != nil {
			state.Version, state.IssuedAt, state.ExpiresAt = int64(head.Version), head.IssuedAt, head.ExpiresAt
		}
		out = append(out, state)
	}
	for _, f := range floors {
		if _, missing := floorOf[f.Issuer]; missing {
			out = append(out, policy.List{Issuer: f.Issuer, State: policy.ListAbsent})
		}
	}
	return out
}

// withFloors raises a lock's floors to the lists that were adopted here, so that a
// machine that starts empty takes no older ones.
func (h *Home) withFloors(f *lockfile.File) (*lockfile.File, error) {
	issuers, err := h.issuers()
	if err != nil {
		return nil, err
	}
	for _, issuer := range issuers {
		seen, err := h.seen(issuer)
		if err != nil {
			return nil, err
		}
		if seen.Floor > 0 { // 0: a rotation was interrupted
			f = f.WithFloor(issuer, int64(seen.Floor))
		}
	}
	return f, nil
}

func policyState(o revlist.Outcome) policy.ListState {
	switch o {
	case revlist.Fresh, revlist.TooOld: // its age is judged by the policy
		return policy.ListFresh
	case revlist.Expired:
		return policy.ListStale
	case revlist.Absent:
		return policy.ListAbsent
	case revlist.Future:
		return policy.ListFuture
	case revlist.Rollback:
		return policy.ListRolledBack
	}
	return policy.ListInvalid
}

// ListsNotFresh says that a call is refused because of how the revocation lists
// stand: what they do not name is not known to be unrevoked.
type ListsNotFresh struct{ Result policy.Result }

func (e *ListsNotFresh) Error() string { return "the revocation lists are not fresh: " + e.Result.Why }

// allowCall asks the policy whether lists that are not fresh stop a call, and tells
// where they do not.
func (h *Home) allowCall(lists openLists, lock *Lock) error {
	var floors []lockfile.Floor
	if lock != nil {
		floors = lock.File.Revocations
	}
	states := lists.states(floors, h.now())
	if len(states) == 0 {
		return nil
	}
	rules, err := h.rules()
	if err != nil {
		return err
	}
	switch r := policy.JudgeLists(rules, policy.Run, states, h.now()); r.Outcome {
	case policy.Failed:
		return &ListsNotFresh{Result: r}
	case policy.Warned:
		h.on.warn("the revocation lists are not fresh: %s", r.Why)
	}
	return nil
}
