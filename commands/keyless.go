package commands

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// Sigstore's public instance.
const (
	publicFulcio = "https://fulcio.sigstore.dev"
	publicRekor  = "https://rekor.sigstore.dev"
)

// Where an identity token is looked for: as cosign does, then what a job of GitHub Actions
// is given.
const (
	tokenVariable        = "SIGSTORE_ID_TOKEN"
	actionsURLVariable   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	actionsTokenVariable = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
)

// keyless is what a signature under a certificate needs to know.
type keyless struct {
	wanted                               bool
	fulcio, rekor, timestamp, from, root string
}

func (k *keyless) flags() flags {
	return flags{
		&cli.BoolFlag{Name: "keyless", Destination: &k.wanted, Usage: "sign under a certificate for an identity token"},
		&cli.StringFlag{Name: "fulcio-url", Destination: &k.fulcio, Usage: "`URL` of the certificate authority (default: " + publicFulcio + ")"},
		&cli.StringFlag{Name: "rekor-url", Destination: &k.rekor, Usage: "`URL` of the transparency log (default: " + publicRekor + ")"},
		&cli.StringFlag{Name: "timestamp-url", Destination: &k.timestamp, Usage: "whole `URL` of a timestamp authority; none is asked by default"},
		&cli.StringFlag{Name: "identity-token", Destination: &k.from, Usage: "`WHERE` the identity token stands: @FILE, env:NAME or - (standard input) (default: env:" + tokenVariable + ")"},
		&cli.StringFlag{Name: "trusted-root", Destination: &k.root, Usage: "the signature must prove itself under the trusted root in `FILE`"},
	}
}

// given reports whether anything was said about signing without a key, and what.
func (k *keyless) given() string {
	for _, f := range []struct{ name, value string }{
		{"fulcio-url", k.fulcio}, {"rekor-url", k.rekor}, {"timestamp-url", k.timestamp}, {"identity-token", k.from}, {"trusted-root", k.root},
	} {
		if f.value != "" {
			return f.name
		}
	}
	return ""
}

// A tokenMissing says that nobody said who signs.
type tokenMissing struct{}

func (*tokenMissing) Error() string {
	return "--keyless needs an identity token that says who signs, and there is none: put it into " + tokenVariable +
		", or say with --identity-token where it stands. In a job of GitHub Actions the permission \"id-token: write\" gives it one"
}

// keylessRequest is what the worker is asked, but for the file. Nothing is opened yet.
func (in *invocation) keylessRequest(k *keyless) (*verify.KeylessRequest, error) {
	r := &verify.KeylessRequest{Fulcio: k.fulcio, Rekor: k.rekor, Timestamp: k.timestamp, Now: in.env.Now()}
	if r.Fulcio == "" {
		r.Fulcio = publicFulcio
	}
	if r.Rekor == "" {
		r.Rekor = publicRekor
	}
	var err error
	if r.TrustedRoot, err = in.signersRoot(k.root); err != nil {
		return nil, err
	}
	if r.Network, err = in.network(); err != nil {
		return nil, err
	}
	return r, in.identityToken(k.from, r)
}

// identityToken finds the identity token, or how to get one.
func (in *invocation) identityToken(from string, r *verify.KeylessRequest) error {
	if from == "" {
		if text := in.getenv(tokenVariable); text != "" {
			r.Token = strings.TrimSpace(text)
			return nil
		}
		if a := (verify.AmbientToken{URL: in.getenv(actionsURLVariable), Token: in.getenv(actionsTokenVariable)}); a.URL != "" && a.Token != "" {
			r.Ambient = &a
			return nil
		}
		return &tokenMissing{}
	}
	text, err := in.secret("identity-token", "an identity token", from, verify.MaxToken)
	r.Token = string(bytes.TrimSpace(text))
	return err
}

// signersRoot is the trusted root that was named, else the user's; nil: the one that is
// shipped.
func (in *invocation) signersRoot(file string) ([]byte, error) {
	if file != "" {
		text, err := readGiven(file, verify.MaxTrustedRoot)
		if err == nil && len(text) == 0 {
			err = fmt.Errorf("%s is empty", file)
		}
		if err != nil {
			return nil, fmt.Errorf("--trusted-root: %w", err)
		}
		return text, nil
	}
	dir, err := pkgmgr.ConfigDir(in.getenv)
	if err != nil {
		return nil, err
	}
	a, err := pkgmgr.ReadAssurance(dir)
	if err != nil {
		return nil, err
	}
	return a.TrustedRoot, nil
}

// keylessSignature finds out who signs, and is what the worker is asked then.
func (in *invocation) keylessSignature(k *keyless, sum digest.Digest) (func(*verify.Session) (*verify.Signed, error), error) {
	r, err := in.keylessRequest(k)
	if err != nil {
		return nil, err
	}
	r.Artifact = sum
	return func(worker *verify.Session) (*verify.Signed, error) { return worker.Keyless(in.context(), *r) }, nil
}
