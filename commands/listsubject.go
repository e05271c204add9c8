package commands

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// A listSubject is what an entry of a revocation list is about, as flags say it.
type listSubject struct{ archive, pkg, manifest, publisher, version, signer, signerIssuer string }

func (s *listSubject) flags(verb string) flags {
	return flags{
		&cli.StringFlag{Name: "archive", Destination: &s.archive, Usage: verb + " the archive with this `DIGEST`"},
		&cli.StringFlag{Name: "package", Destination: &s.pkg, Usage: verb + " the package with this `DIGEST`"},
		&cli.StringFlag{Name: "manifest", Destination: &s.manifest, Usage: verb + " every package with the manifest of this `DIGEST`"},
		&cli.StringFlag{Name: "publisher", Destination: &s.publisher, Usage: "with --manifest: only as `PUBLISHER/PLUGIN`, the ids that a session package states"},
		&cli.StringFlag{Name: "version", Destination: &s.version, Usage: verb + " versions of a plugin: `ID@RANGE`"},
		&cli.StringFlag{Name: "signer", Destination: &s.signer, Usage: verb + " what `SIGNER` signed: a public key's file or id, or IDENTITY,issuer=URL"},
		&cli.StringFlag{Name: "signer-issuer", Destination: &s.signerIssuer, Usage: "`URL` of who vouches for --signer, which is an identity then"},
	}
}

// entry returns an entry that has its kind and its subject, and nothing else yet.
func (s *listSubject) entry(in *invocation) (e revlist.Entry, err error) {
	given := 0
	for _, one := range []struct {
		value string
		set   func(string) error
	}{
		{s.archive, in.digestSubject(&e, revlist.Archive, "archive")},
		{s.pkg, in.digestSubject(&e, revlist.Package, "package")},
		{s.manifest, in.digestSubject(&e, revlist.Manifest, "manifest")},
		{s.version, func(text string) error {
			d, err := pkgmgr.ParseDenial(text, "-")
			if err != nil || d.PluginID == "" || d.Range == "" {
				return in.usage("--version: %q is no ID@RANGE; every version is ID@'*'", text)
			}
			e.Kind, e.PluginID, e.Range = revlist.Version, d.PluginID, d.Range
			return nil
		}},
		{s.signer, func(text string) (err error) {
			if s.signerIssuer != "" {
				text += identityIssuer + s.signerIssuer
			}
			e.Kind = revlist.Signer
			e.Signer, _, err = in.signer("signer", text)
			return err
		}},
	} {
		if one.value == "" {
			continue
		}
		given++
		if err := one.set(one.value); err != nil {
			return e, err
		}
	}
	switch {
	case s.publisher != "" && s.manifest == "":
		return e, in.usage("--publisher goes with --manifest: a publisher's plugin is denied by the digest of its manifest")
	case given != 1 || s.signerIssuer != "" && s.signer == "":
		return e, in.usage("an entry has one subject: --archive, --package, --manifest, --version or --signer")
	case s.publisher == "":
		return e, nil
	}
	publisher, plugin, ok := strings.Cut(s.publisher, "/")
	if !ok {
		return e, in.usage("--publisher: %q is no PUBLISHER/PLUGIN", s.publisher)
	}
	e.Kind, e.PublisherID, e.PluginID = revlist.Publisher, publisher, plugin
	return e, nil
}

// digestSubject makes a digest the subject of an entry.
func (in *invocation) digestSubject(e *revlist.Entry, kind revlist.Kind, flag string) func(string) error {
	return func(text string) error {
		d, err := digest.Parse(text)
		if err != nil {
			return in.usage("--%s: %v", flag, err)
		}
		e.Kind, e.Digest = kind, d
		return nil
	}
}
