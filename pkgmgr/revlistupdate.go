package pkgmgr

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// EventLists is the history's kind of an adopted list.
const EventLists = "revocations.update"

// A ListUpdate says what an update did.
type ListUpdate struct {
	List        revlist.Header
	Verdict     revlist.Verdict // expired lists are adopted, too: they deny more than older ones
	Was         uint64          // the version before; 0: there was none
	Unchanged   bool            // this list was adopted before
	Root        *revlist.Root
	RootDigest  digest.Digest
	RootAdopted bool            // the first one, or one or several that follow it
	Signers     []verify.Signer // of the list, of those whom the root names
	Stopped     int             // running calls that were told to stop
}

// A listSource is where a list is taken from, and what may come of it.
type listSource struct {
	name    string        // an https URL, a directory or the file of a list
	issuer  string        // whose lists come from there; "": whoever's
	first   digest.Digest // the first root that is accepted; "": none
	project bool          // a project's file names it
}

// expects refuses another issuer than the one whose lists come from here.
func (s listSource) expects(issuer string) error {
	if s.issuer == "" || s.issuer == issuer {
		return nil
	}
	return &ListRefused{Issuer: s.issuer, Code: ListCode(revlist.WrongIssuer.Code()), Reason: fmt.Sprintf("%s has a list of %s now", s.name, issuer)}
}

// notFollowed refuses what would have a project add an issuer.
func (s listSource) notFollowed(issuer string, root digest.Digest) error {
	return &ListRefused{Issuer: issuer, Code: CodeNotFollowed, Root: root,
		Reason: "the project names " + s.name + " as its source, and its lists are not followed on this machine; a project adds no issuer and no root"}
}

// UpdateLists adopts the list at source, an https URL, a directory that holds ListFile, or
// a list in one, with the root beside it where there is one. The first root of an issuer is
// accepted if it has the digest first. The source is remembered for UpdateIssuer. A URL that
// no list can be fetched from is a *BadListURL.
func (h *Home) UpdateLists(ctx context.Context, source string, first digest.Digest) (*ListUpdate, error) {
	return h.updateLists(ctx, listSource{name: source, first: first})
}

// UpdateIssuer updates the list of an issuer that is followed, from where it came before.
func (h *Home) UpdateIssuer(ctx context.Context, issuer string) (*ListUpdate, error) {
	source, err := h.ListSource(issuer)
	if err != nil {
		return nil, err
	}
	if source == "" {
		return nil, &ListRefused{Issuer: issuer, Code: CodeNoSource, Reason: "nobody remembers where it comes from"}
	}
	return h.updateLists(ctx, listSource{name: source, issuer: issuer})
}

// UpdateProjectLists adopts the list at a URL that a project's file names. It must be of an
// issuer that is followed here, is fetched from public addresses alone, and is not
// remembered.
func (h *Home) UpdateProjectLists(ctx context.Context, source string) (*ListUpdate, error) {
	return h.updateLists(ctx, listSource{name: source, project: true})
}

// updateLists is takeAndAccept, which names the source in what is refused.
func (h *Home) updateLists(ctx context.Context, s listSource) (*ListUpdate, error) {
	u, err := h.takeAndAccept(ctx, s)
	var refused *ListRefused
	if errors.As(err, &refused) {
		refused.Source = s.name
	}
	return u, err
}

// takeAndAccept verifies everything before anything changes: the first root against its
// digest, or each that follows against the one before, then who signed the list, then that
// it is no step back. Killed at any point it leaves the old list or the new one. Other
// commands are kept waiting only when everything is there and proved.
func (h *Home) takeAndAccept(ctx context.Context, s listSource) (*ListUpdate, error) {
	place, done, err := h.openPlace(ctx, s)
	if err != nil {
		return nil, err
	}
	defer done()
	stage, err := h.newStage()
	if err != nil {
		return nil, err
	}
	defer stage.discard()
	o, err := h.takeOffer(ctx, stage, s, place)
	if err != nil {
		return nil, err
	}
	if err := h.proveOffer(ctx, o); err != nil {
		return nil, err
	}
	unlock, err := h.lockMutations(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := &ListUpdate{List: o.list}
	known, before, err := h.acceptRoots(o, s, out)
	if err != nil {
		return nil, err
	}
	if err := h.acceptList(o, before, out); err != nil {
		return nil, err
	}
	if err := o.note(s, before); err != nil {
		return nil, h.cannotWrite("revocation lists", err)
	}
	if err := h.swapLists(o, known, before, out.RootAdopted); err != nil {
		return nil, h.cannotWrite("revocation lists", err)
	}
	if out.Stopped, err = h.stopListed(); err != nil || out.Unchanged && !out.RootAdopted {
		return out, err
	}
	return out, h.update(ctx, func(tx *state.Tx) error {
		return tx.AppendEvent(h.event(EventLists, "", "", "", map[string]string{"issuer": o.list.Issuer,
			"version": fmt.Sprint(o.list.Version), "list": string(o.list.Digest), "root": string(out.RootDigest)}))
	})
}

// note writes beside what is offered what is known of it from now on.
func (o *listOffer) note(s listSource, before revlist.State) error {
	next, err := encodeSeen(before.Adopted(o.list))
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(o.dir, seenFile), next); err != nil || s.project {
		return err
	}
	source := s.name
	if !IsListURL(source) {
		source, err = filepath.Abs(source)
	} else if at, perr := project.ParseListURL(source); perr == nil {
		source = at.String()
	}
	if err != nil {
		return err
	}
	text, err := encodeSource(source)
	if err != nil {
		return err
	}
	o.remembered = true
	return writeSynced(filepath.Join(o.dir, sourceFile), text)
}

// stopListed asks every running call that a list blocks by now to stop.
func (h *Home) stopListed() (n int, err error) {
	lists, err := h.openLists()
	if err != nil {
		return 0, err
	}
	defer lists.close()
	for _, id := range h.callIDs() {
		m, err := h.readMarker(id)
		if err != nil {
			continue // it has ended
		}
		list, err := h.listedIn(lists, m.subject(), nil)
		if err != nil {
			return n, err
		}
		if len(list) == 0 || !list[0].Blocks() {
			continue
		}
		stopped, err := h.requestStop(id, StopRevoked)
		if err != nil {
			return n, err
		}
		if stopped {
			n++
		}
	}
	return n, nil
}
