package commands

import (
	"errors"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type revocationsUpdateData struct {
	Lists []updatedListData `json:"lists" doc:"What came of each source, in order."`
}

// updatedListData is what came of one source: Adopted, or why nothing did.
type updatedListData struct {
	Source  string           `json:"source" doc:"A directory, a file or an https address; empty where nobody remembers where the issuer's lists come from."`
	Issuer  string           `json:"issuer" doc:"Whose list it is; empty where that is not known."`
	Project bool             `json:"project" doc:"Whether the project's switchyard.toml names the source."`
	Adopted *adoptedListData `json:"adopted,omitzero" doc:"The list that is in force now; absent where the source was refused."`
	Error   *updateErrorData `json:"error,omitzero" doc:"Why the list before stays in force; absent where it does not."`
}

type adoptedListData struct {
	Version     int64         `json:"version" doc:"The list's version."`
	Was         int64         `json:"was" doc:"The version before; 0 where there was none."`
	Entries     int           `json:"entries" doc:"How many entries it has."`
	IssuedAt    time.Time     `json:"issuedAt" doc:"When it was issued."`
	ExpiresAt   time.Time     `json:"expiresAt" doc:"When it expires."`
	Unchanged   bool          `json:"unchanged" doc:"Whether this list was adopted before."`
	Signers     []signerData  `json:"signers" doc:"Who signed it, of those whom the root names."`
	Root        digest.Digest `json:"root" doc:"The digest of the root that says who may."`
	RootVersion int64         `json:"rootVersion" doc:"The root's version."`
	RootAdopted bool          `json:"rootAdopted" doc:"Whether the root was adopted now."`
	Outcome     string        `json:"outcome" doc:"fresh, or why what the list does not name is not taken for unrevoked." enum:"fresh|expired|too_old"`
	Stopped     int           `json:"stopped" doc:"The number of running calls that were told to stop."`
}

type updateErrorData struct {
	Code    string `json:"code" doc:"As the error code of a command that does nothing else."`
	Message string `json:"message" doc:"What happened."`
	Hint    string `json:"hint" doc:"The next command to type, or empty."`
}

func revocationsUpdateCommand(in *invocation) *cli.Command {
	var trust string
	return &cli.Command{
		ArgsUsage: "[SOURCE…]",
		Description: "Adopts revocation lists. A SOURCE is a directory of this machine, the file of a list in one, or where either is published: an https " +
			"address. There lie list.json and list.json.sigstore.jsonl, with root.json and root.json.sigstore.jsonl beside them; roots that were missed " +
			"lie there as root.<version>.json. The first time the root is accepted by its digest, which you have from the issuer by a way that you " +
			"trust; afterwards only a root that the one before signed is. A list that is older than the one in force, signed by too few, or another " +
			"one with the same version is refused, and the one in force stays. Running calls that the list blocks are told to stop.\n\n" +
			"Without SOURCE every list that is followed is updated from where it came last, and the project's switchyard.toml may name more places. Those " +
			"add nothing to what is followed, and may lead to the public internet only. What is refused does not stop the others.\n\n" +
			"HTTPS_PROXY and NO_PROXY say how servers are reached, SSL_CERT_FILE names the authorities that vouch for them.",
		UsageText: "switchyard revocations update https://security.example.com/lists/ \\\n    --trust-root sha256:…\nswitchyard revocations update ./lists\n" +
			"switchyard revocations update",
		Flags: flags{
			&cli.StringFlag{Name: "trust-root", Destination: &trust, Usage: "accept the first root of an issuer, which has this `DIGEST`"},
		},
		Action: func(c *cli.Context) error {
			sources, err := in.arguments(c, 0, -1)
			if err != nil {
				return err
			}
			var root digest.Digest
			if trust != "" {
				if root, err = digest.Parse(trust); err != nil {
					return in.usage("--trust-root: %v", err)
				}
				if len(sources) == 0 {
					return in.usage("--trust-root goes with a SOURCE")
				}
			}
			in.heedless = true
			h, err := in.home()
			if err != nil {
				return err
			}
			u := &listUpdates{in: in, home: h}
			for _, s := range sources {
				u.update(updatedListData{Source: s}, func() (*pkgmgr.ListUpdate, error) { return h.UpdateLists(in.context(), s, root) })
			}
			if len(sources) == 0 {
				if err := u.followed(); err != nil {
					return err
				}
			}
			return u.end(len(sources) == 1)
		},
	}
}

// listUpdates are the updates of one command.
type listUpdates struct {
	in     *invocation
	home   *pkgmgr.Home
	data   revocationsUpdateData
	failed error // the first
}

// update makes one update; d says what is known before. After an interrupt, none is made.
func (u *listUpdates) update(d updatedListData, do func() (*pkgmgr.ListUpdate, error)) {
	if u.in.interrupted() {
		return
	}
	done, err := do()
	if err != nil {
		f := u.in.classify(err)
		d.Error = &updateErrorData{f.code, f.message, f.hint}
		var refused *pkgmgr.ListRefused
		if errors.As(err, &refused) {
			d.Issuer = refused.Issuer
		}
		if u.failed == nil || u.in.interrupted() {
			u.failed = err
		}
	} else {
		d.Issuer, d.Adopted = done.List.Issuer, newAdoptedListData(done)
		if !done.Verdict.Silence() {
			u.in.warn("the list of %s was adopted, but it is not fresh: %s", d.Issuer, done.Verdict.Message)
		}
	}
	u.data.Lists = append(u.data.Lists, d)
}

// followed updates what is followed from where it came last, then from where the project
// says.
func (u *listUpdates) followed() error {
	h, in := u.home, u.in
	issuers, err := h.Issuers()
	if err != nil {
		return err
	}
	for _, issuer := range issuers {
		d := updatedListData{Issuer: issuer}
		if source, err := h.ListSource(issuer); err == nil {
			d.Source = source
		}
		u.update(d, func() (*pkgmgr.ListUpdate, error) { return h.UpdateIssuer(in.context(), issuer) })
	}
	here, err := in.env.Getwd()
	if err != nil {
		return err
	}
	lists, err := project.Lists(here)
	if err != nil {
		u.update(updatedListData{Source: project.ConfigName, Project: true}, func() (*pkgmgr.ListUpdate, error) { return nil, err })
	}
	for _, at := range lists {
		source := at.String()
		if slices.ContainsFunc(u.data.Lists, func(d updatedListData) bool { return d.Source == source }) {
			continue
		}
		u.update(updatedListData{Source: source, Project: true}, func() (*pkgmgr.ListUpdate, error) { return h.UpdateProjectLists(in.context(), source) })
	}
	return nil
}

// end tells what was done. The first failure decides; where there was one source alone, it
// is the command's own.
func (u *listUpdates) end(alone bool) error {
	if alone && u.failed != nil {
		return u.failed
	}
	u.in.report(u.data, func(p *page) { p.updates(u.in, u.data) })
	if u.failed != nil {
		return &updateFailure{u.failed, u.data}
	}
	return nil
}

// An updateFailure is the first failure among several updates, which go along.
type updateFailure struct {
	error
	data revocationsUpdateData
}

func (e *updateFailure) Unwrap() error { return e.error }

func (p *page) updates(in *invocation, d revocationsUpdateData) {
	if len(d.Lists) == 0 {
		p.line("No signed revocation list is followed here.")
		p.next(in.followHint(""))
		return
	}
	adopted := false
	for _, one := range d.Lists {
		if one.Error != nil {
			name := one.Source
			if name == "" {
				name = one.Issuer
			}
			p.line("%s %s: %s", p.style.Mark(render.Bad, "Refused"), p.style.Mark(render.Strong, name), one.Error.Message)
			continue
		}
		adopted = true
		p.adopted(one)
	}
	if adopted {
		p.next(in.next("revocations", "affected"))
	}
}

func (p *page) adopted(one updatedListData) {
	d := one.Adopted
	verb := "Adopted"
	if d.Unchanged {
		verb = "Already in force:"
	}
	p.line("%s list %d of %s", render.Safe(verb), d.Version, p.style.Mark(render.Strong, one.Issuer))
	p.field("entries", "%d", d.Entries)
	p.field("expires", "%s", p.moment(d.ExpiresAt))
	for _, s := range d.Signers {
		p.field("signed by", "%s", s)
	}
	if d.RootAdopted {
		p.field("new root", "%d, %s", d.RootVersion, d.Root)
	}
	if d.Stopped > 0 {
		p.line("  told %s to stop", count(d.Stopped, "running call"))
	}
}

func newAdoptedListData(u *pkgmgr.ListUpdate) *adoptedListData {
	l := u.List
	return &adoptedListData{Version: int64(l.Version), Was: int64(u.Was), Entries: l.Entries, IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt,
		Unchanged: u.Unchanged, Signers: newSigners(u.Signers), Root: u.RootDigest, RootVersion: int64(u.Root.Version), RootAdopted: u.RootAdopted,
		Outcome: string(u.Verdict.Outcome), Stopped: u.Stopped}
}
