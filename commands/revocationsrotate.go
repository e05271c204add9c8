package commands

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type revocationsRotateData struct {
	Issuer       string           `json:"issuer" doc:"Whose lists they are."`
	Root         string           `json:"root" doc:"The file of the new root."`
	RootDigest   digest.Digest    `json:"rootDigest" doc:"Its digest."`
	Version      int64            `json:"version" doc:"Its version."`
	ExpiresAt    time.Time        `json:"expiresAt" doc:"When it expires."`
	Kept         string           `json:"kept" doc:"Where the root before stays, for machines that have not seen it."`
	Replaced     digest.Digest    `json:"replaced" doc:"The digest of an unfinished rotation that this one took the place of, else empty."`
	Signers      []rootSignerData `json:"signers" doc:"Who may sign the new root."`
	OldThreshold int              `json:"oldThreshold" doc:"How many signers of the root before must sign it."`
	Threshold    int              `json:"threshold" doc:"How many of its own signers must."`
	ListSigners  []signerData     `json:"listSigners" doc:"Who may sign lists under the new root."`
	SignList     bool             `json:"signList" doc:"Whether the list has to be signed again, because others sign lists now."`
}

type rootSignerData struct {
	Signer signerData `json:"signer" doc:"Who it is."`
	Old    bool       `json:"old" doc:"Whether the root before names it."`
	New    bool       `json:"new" doc:"Whether the new root names it."`
}

func revocationsRotateCommand(in *invocation) *cli.Command {
	var (
		addRoot, addList, removeRoot, removeList cli.StringSlice
		change                                   revlist.RootChange
		rootFor                                  time.Duration
	)
	return &cli.Command{
		ArgsUsage: "DIR",
		Description: "Writes the root that follows the one in DIR, where an issuer's list lies: the next version, with other signers, thresholds or " +
			"time of expiry; what is not said stays. The one before stays as root.<version>.json, with its signatures: machines that missed it adopt " +
			"one after the other. The new one counts when it is signed by enough root signers of both. A SIGNER is what it is for revocations create. " +
			"The list is not touched.\n\n" +
			"A root that too few have signed is not carried on: where the rotation before was not finished, this one takes its place.",
		UsageText: "switchyard revocations rotate lists \\\n" +
			"    --remove-list-signer stolen.pub --list-signer list2.pub\n" +
			"switchyard revocations rotate lists --root-signer root2.pub --root-threshold 2\n" +
			"switchyard revocations rotate lists --root-validity 8760h",
		Flags: flags{
			&cli.StringSliceFlag{Name: "root-signer", Destination: &addRoot, Usage: "one more `SIGNER` of roots; may be repeated"},
			&cli.StringSliceFlag{Name: "list-signer", Destination: &addList, Usage: "one more `SIGNER` of lists; may be repeated"},
			&cli.StringSliceFlag{Name: "remove-root-signer", Destination: &removeRoot, Usage: "`SIGNER` that signs roots no more; may be repeated"},
			&cli.StringSliceFlag{Name: "remove-list-signer", Destination: &removeList, Usage: "`SIGNER` that signs lists no more; may be repeated"},
			&cli.IntFlag{Name: "root-threshold", Destination: &change.Root.Threshold, Usage: "`N` different signers must sign a root"},
			&cli.IntFlag{Name: "threshold", Destination: &change.List.Threshold, Usage: "`N` different signers must sign a list"},
			&cli.DurationFlag{Name: "root-validity", Destination: &rootFor, Usage: "a newer root will be there after `TIME` at the latest"},
		},
		Action: func(c *cli.Context) error {
			dir, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			for _, name := range []string{"root-threshold", "threshold"} {
				if c.IsSet(name) && c.Int(name) < 1 {
					return in.usage("--%s is at least 1", name)
				}
			}
			if c.IsSet("root-validity") {
				if rootFor < time.Second {
					return in.usage("--root-validity says how long the root is valid, as 8760h")
				}
				change.ExpiresAt = in.env.Now().Add(rootFor)
			}
			var keys []string
			for _, role := range []struct {
				flag   string
				values []string
				to     *[]verify.Signer
				added  bool
			}{
				{"root-signer", addRoot.Value(), &change.Root.Add, true},
				{"list-signer", addList.Value(), &change.List.Add, true},
				{"remove-root-signer", removeRoot.Value(), &change.Root.Remove, false},
				{"remove-list-signer", removeList.Value(), &change.List.Remove, false},
			} {
				signers, texts, err := in.signers(role.flag, role.values)
				if err != nil {
					return err
				}
				*role.to = signers
				if role.added {
					keys = append(keys, texts...)
				}
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			r, err := h.RotateRoot(in.context(), dir, change, keys)
			if err != nil {
				return err
			}
			if r.Replaced != "" {
				in.warn("there was a version %d, which too few had signed: this one takes its place, and what was signed does not count for it", r.New.Version)
			}
			data := newRevocationsRotateData(r)
			in.report(data, func(p *page) { p.rotation(in, &data, dir) })
			return nil
		},
	}
}

func newRevocationsRotateData(r *pkgmgr.Rotation) revocationsRotateData {
	d := revocationsRotateData{Issuer: r.New.Issuer, Root: r.Path, RootDigest: r.Digest, Version: int64(r.New.Version), ExpiresAt: r.New.ExpiresAt,
		Kept: r.Kept, Replaced: r.Replaced, OldThreshold: r.Old.RootThreshold, Threshold: r.New.RootThreshold, ListSigners: newSigners(r.New.ListSigners), SignList: !r.New.SameLists(r.Old)}
	for _, s := range r.Old.RootSigners {
		d.Signers = append(d.Signers, rootSignerData{newSignerData(s), true, slices.Contains(r.New.RootSigners, s)})
	}
	for _, s := range r.New.RootSigners {
		if !slices.Contains(r.Old.RootSigners, s) {
			d.Signers = append(d.Signers, rootSignerData{newSignerData(s), false, true})
		}
	}
	return d
}

func (p *page) rotation(in *invocation, d *revocationsRotateData, dir string) {
	p.line("Wrote root %d of %s", d.Version, p.style.Mark(render.Strong, d.Issuer))
	p.field("root", "%s", d.Root)
	p.field("its digest", "%s", d.RootDigest)
	p.field("expires", "%s", p.moment(d.ExpiresAt))
	p.field("the one before", "%s", d.Kept)
	p.field("must sign it", "%d named by the root before, %d named by this one", d.OldThreshold, d.Threshold)
	for _, s := range d.Signers {
		label := "of both"
		switch {
		case !s.New:
			label = "of the one before"
		case !s.Old:
			label = "of this one"
		}
		p.field(label, "%s", s.Signer)
	}
	if d.SignList {
		p.prose(2, "Others sign lists now: the list has to be signed again. Where a list key was stolen, add an entry first, so that the list is newer than the thief's.")
	}
	p.nextAll(in.signCommands(d.Root, d.rootSigners(), d.enough))
	if d.SignList {
		p.nextAll(in.signListCommands(listPath(dir)))
	}
}

// rootSigners are those who may sign the new root, first those who do so for both.
func (d *revocationsRotateData) rootSigners() (signers []verify.Signer) {
	for _, both := range []bool{true, false} {
		for _, s := range d.Signers {
			if both == (s.Old && s.New) {
				signers = append(signers, verify.Signer(s.Signer))
			}
		}
	}
	return signers
}

// enough reports whether signers are as many as the root before and the new one want.
func (d *revocationsRotateData) enough(signers []verify.Signer) bool {
	var old, now int
	for _, s := range d.Signers {
		if !slices.Contains(signers, verify.Signer(s.Signer)) {
			continue
		}
		if s.Old {
			old++
		}
		if s.New {
			now++
		}
	}
	return old >= d.OldThreshold && now >= d.Threshold
}
