package commands

import (
	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type trustData struct {
	ID          string        `json:"id" doc:"The plugin's id."`
	Version     string        `json:"version" doc:"The package's version."`
	Package     digest.Digest `json:"package" doc:"The package digest that is trusted."`
	Fingerprint digest.Digest `json:"fingerprint" doc:"The digest of manifest and executable."`
	Already     bool          `json:"already" doc:"Whether exactly this package was trusted before."`
	Status      string        `json:"status" doc:"Where it stands now." enum:"disabled|enabled"`
	Next        string        `json:"next" doc:"The next command to type."`
}

func trustCommand(in *invocation) *cli.Command {
	var fingerprint string
	return &cli.Command{
		ArgsUsage: "NAME[@VERSION] --fingerprint DIGEST",
		Description: "Records that you reviewed exactly the package with this digest. The plugin stays disabled until scopes are granted " +
			"with enable. The digest is the package digest that review shows; the fingerprint does where the package holds nothing " +
			"but its manifest and executable. --digest is the same flag by another name. Any change of any file takes the trust away.",
		UsageText: "switchyard trust repo-facts --fingerprint sha256:…",
		Flags: flags{
			&cli.StringFlag{Name: "fingerprint", Aliases: []string{"digest"}, Destination: &fingerprint, Usage: "trust the package with this `DIGEST`"},
		},
		Action: func(c *cli.Context) error {
			ref, err := in.oneRef(c)
			if err != nil {
				return err
			}
			if fingerprint == "" {
				return &usageError{message: "--fingerprint is missing: it is the package digest that review shows",
					hint: []string{"review", in.subject}}
			}
			given, err := digest.Parse(fingerprint)
			if err != nil {
				return in.usage("--fingerprint: %v", err)
			}
			h, lock, err := in.site()
			if err != nil {
				return err
			}
			t, err := h.Trust(in.context(), ref, lock, given)
			if err != nil {
				return err
			}
			data := trustData{ID: t.ID, Version: t.Version, Package: t.Package, Fingerprint: t.Fingerprint, Already: t.Already, Status: string(t.Status)}
			if data.Next, err = in.afterTrust(); err != nil {
				return err
			}
			in.report(data, func(p *page) {
				verb := "Trusted"
				if t.Already {
					verb = "Already trusted:"
				}
				p.line("%s %s %s, which is %s.", render.Safe(verb), t.ID, t.Version, p.style.Mark(statusMark(data.Status), data.Status))
				p.field("package", "%s", t.Package)
				p.next(data.Next)
			})
			return nil
		},
	}
}

// afterTrust is what the review of the plugin that was just trusted would name
// next.
func (in *invocation) afterTrust() (string, error) {
	r, err := in.review(in.subject)
	if err != nil {
		return "", err
	}
	return in.afterReview(in.subject, r), nil
}
