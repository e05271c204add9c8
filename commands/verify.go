package commands

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type verifyData struct {
	Verified int            `json:"verified" doc:"How many are signed, and everything about them holds."`
	Unsigned int            `json:"unsigned" doc:"How many have right digests and no signature."`
	Skipped  int            `json:"skipped" doc:"How many could not be checked wholly."`
	Failed   int            `json:"failed" doc:"How many failed."`
	Packages []verifiedData `json:"packages" doc:"Every package that was looked at."`
}

type verifiedData struct {
	ID         string        `json:"id" doc:"The plugin's id, empty where the package cannot be read."`
	Version    string        `json:"version" doc:"The package's version."`
	Package    digest.Digest `json:"package" doc:"The package digest that was expected."`
	Where      string        `json:"where" doc:"What was read."`
	Verdict    string        `json:"verdict" doc:"The outcome." enum:"verified|unsigned|skipped|failed"`
	Digests    string        `json:"digests" doc:"Of the files, against what was recorded." enum:"verified|unsigned|skipped|failed"`
	Signature  string        `json:"signature" doc:"Of the archive." enum:"verified|unsigned|skipped|failed"`
	Revocation string        `json:"revocation" doc:"Against the local revocations." enum:"verified|unsigned|skipped|failed"`
	SBOM       string        `json:"sbom" doc:"Of the package's SBOM, against its files." enum:"verified|absent|skipped|failed"`
	Signers    []signerData  `json:"signers" doc:"Who signed, as the bundles prove it, whether the policy names them or not."`
	Reason     string        `json:"reason" doc:"Why a check was skipped or failed, and what the SBOM leaves open; else empty."`
}

func verifyCommand(in *invocation) *cli.Command {
	var (
		strict bool
		sha256 string
		keys   cli.StringSlice
		root   string
		asked  askedFor
	)
	return &cli.Command{
		ArgsUsage: "[NAME[@VERSION]...|ARCHIVE]",
		Description: "Hashes packages again, all installed ones or those that are named, and says of each whether its digests are the recorded " +
			"ones, whether it is signed, whether it is revoked, and whether its SBOM, where it has one, is true of its files. An archive is " +
			"read against the rules of packages; in a project whose lock names its plugin it must be the locked version for this platform, unless " +
			"--expect says what it must be. A check that was not made is counted as skipped, never as passed.",
		UsageText: "switchyard verify\nswitchyard verify repo-facts --strict\nswitchyard verify repo-facts.zip --sha256 9f86d081884c7d65…\n" +
			"switchyard verify repo-facts.zip --expect repo-facts@1.0.0",
		Flags: flags{
			&cli.BoolFlag{Name: "strict", Destination: &strict, Usage: "fail on anything but verified"},
			&cli.StringFlag{Name: "sha256", Destination: &sha256, Usage: "the archive must have this `DIGEST`"},
			&cli.StringSliceFlag{Name: "key", Destination: &keys, Usage: "it must be signed with the public key in `FILE`, whatever the policy says; may be repeated"},
			&cli.StringFlag{Name: "expect", Destination: &asked.name, Usage: "the archive must hold the plugin `NAME[@VERSION]`"},
			&cli.StringFlag{Name: "platform", Destination: &asked.platform, Usage: "the archive must be for `OS/ARCH`"},
			&cli.StringFlag{Name: "trusted-root", Destination: &root, Usage: "check certificates and logs against the trusted root in `FILE`"},
		},
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 0, -1)
			if err != nil {
				return err
			}
			in.adjust = evidenceFlags(keys.Value(), root)
			list, err := in.verify(args, sha256, asked)
			if err != nil {
				return err
			}
			return in.verified(list, strict)
		},
	}
}

// askedFor is what an archive is to hold.
type askedFor struct{ name, platform string }

func (in *invocation) asked(a askedFor, lock *pkgmgr.Lock) (out pkgmgr.Asked, err error) {
	out.Platform, out.Lock = a.platform, lock
	if a.platform != "" {
		if err := lockfile.CheckPlatform(a.platform); err != nil {
			return out, in.usage("--platform: %v", err)
		}
	}
	if a.name == "" {
		return out, nil
	}
	ref, err := pkgmgr.ParseRef(a.name)
	if err != nil || ref.Digest != "" {
		return out, in.usage("--expect names a plugin as NAME or NAME@VERSION")
	}
	out.ID, out.Version = ref.ID, ref.Version
	return out, nil
}

func (in *invocation) verify(args []string, sha256 string, asked askedFor) ([]pkgmgr.Verification, error) {
	if len(args) == 1 && isPath(args[0]) {
		var want digest.Digest
		if sha256 != "" {
			var err error
			if want, err = digest.Parse(sha256); err != nil {
				return nil, in.usage("--sha256: %v", err)
			}
		}
		h, lock, err := in.site()
		if err != nil {
			return nil, err
		}
		expected, err := in.asked(asked, lock)
		if err != nil {
			return nil, err
		}
		in.working("verifying " + args[0])
		v, err := h.VerifyArchive(in.context(), args[0], want, expected)
		return []pkgmgr.Verification{v}, err
	}
	switch {
	case sha256 != "":
		return nil, in.usage("--sha256 goes with exactly one archive")
	case asked != askedFor{}:
		return nil, in.usage("--expect and --platform go with exactly one archive")
	}
	var refs []pkgmgr.Ref
	for _, a := range args {
		ref, err := in.ref(a)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	h, lock, err := in.site()
	if err != nil {
		return nil, err
	}
	in.working("verifying packages")
	return h.Verify(in.context(), refs, lock)
}

// verified prints the verdicts. The worst of them decides: a failure keeps the
// exit code and the block that its error has by itself.
func (in *invocation) verified(list []pkgmgr.Verification, strict bool) error {
	data := verifyData{}
	var failure error
	unchecked := false
	for _, v := range list {
		d := verifiedData{v.ID, v.Version, v.Package, v.Where, string(v.Verdict), string(v.Digests), string(v.Signature), string(v.Revocation), string(v.SBOM), newSigners(v.Signers), v.Reason}
		if v.Err != nil {
			d.Reason = v.Err.Error()
			if failure == nil {
				failure = v.Err
				in.subject = v.ID
			}
		}
		unchecked = unchecked || v.SBOM == pkgmgr.Skipped
		switch v.Verdict {
		case pkgmgr.Verified:
			data.Verified++
		case pkgmgr.Unsigned:
			data.Unsigned++
		case pkgmgr.Skipped:
			data.Skipped++
		default:
			data.Failed++
		}
		data.Packages = append(data.Packages, d)
	}
	in.show(data, func(p *page) { p.verified(data) })
	switch {
	case failure != nil:
		return &verifyFailure{failure, data}
	case strict && (unchecked || data.Unsigned+data.Skipped > 0):
		return &findings{exit: exitEvidence, code: "evidence.missing", data: data,
			message: "--strict: not every package is verified", hint: in.unverified(data)}
	}
	return nil
}

// unverified is the review of the first package that --strict does not accept.
func (in *invocation) unverified(data verifyData) string {
	for _, p := range data.Packages {
		switch {
		case p.Verdict == string(pkgmgr.Verified) && p.SBOM != string(pkgmgr.Skipped):
			continue
		case in.givenSource(p.Where) == p.Where && !in.inDataDir(p.Where):
			return in.next("review", p.Where)
		}
		if name := in.nameOf(in.lockOrNone(), p.ID, p.Version, p.Package); name != "" {
			return in.next("review", name)
		}
		return in.next("list", "--all")
	}
	return ""
}

// A verifyFailure is the first failure among the verdicts, which go along.
type verifyFailure struct {
	error
	data verifyData
}

func (e *verifyFailure) Unwrap() error { return e.error }

// name is the plugin's, else where its package was read.
func (d verifiedData) name() string {
	if d.ID == "" {
		return d.Where
	}
	return d.ID
}

func (p *page) verified(data verifyData) {
	if len(data.Packages) > 0 {
		t := render.Table{
			Columns: []render.Column{{Title: "NAME"}, {Title: "VERSION"}, {Title: "VERDICT", Fixed: true}, {Title: "DIGESTS", Fixed: true},
				{Title: "SIGNATURE", Fixed: true}, {Title: "REVOCATION", Fixed: true}, {Title: "SBOM", Fixed: true}},
			Paint: func(row, column int) render.Mark {
				if column != 2 {
					return render.Plain
				}
				switch pkgmgr.Verdict(data.Packages[row].Verdict) {
				case pkgmgr.Verified:
					return render.Good
				case pkgmgr.Failed:
					return render.Bad
				}
				return render.Warn
			},
		}
		for _, d := range data.Packages {
			t.Rows = append(t.Rows, []string{d.name(), d.Version, d.Verdict, d.Digests, d.Signature, d.Revocation, d.SBOM})
		}
		p.table(t)
		for _, d := range data.Packages {
			if d.Reason != "" {
				p.hanging("  ", 2, "%s: %s", strings.TrimSpace(d.name()+" "+d.Version), d.Reason)
			}
		}
	}
	p.line("verified %d, unsigned %d, skipped %d, failed %d", data.Verified, data.Unsigned, data.Skipped, data.Failed)
}
