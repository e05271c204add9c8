package commands

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

type revocationsSignData struct {
	File       string        `json:"file" doc:"The file that was signed."`
	Digest     digest.Digest `json:"digest" doc:"Its digest."`
	Bundles    string        `json:"bundles" doc:"The file with the Sigstore bundles over it, one a line."`
	Signer     signerData    `json:"signer" doc:"Who signed."`
	Proved     *provedData   `json:"proved" doc:"What others state about the signature, proved; null for a key."`
	Signatures int           `json:"signatures" doc:"How many bundles the file holds now."`
}

// maxBundlesFile bounds the file of bundles beside a list, in bytes.
const maxBundlesFile = 64 << 20

func revocationsSignCommand(in *invocation) *cli.Command {
	var how signing
	return &cli.Command{
		ArgsUsage: "FILE",
		Description: "Signs a revocation list or a root: appends a Sigstore bundle over the file's bytes to FILE.sigstore.jsonl. Where several " +
			"must sign, each of them does. With --key nothing is sent anywhere; --keyless works as in sign.",
		UsageText: "switchyard revocations sign lists/list.json --key list.key\nswitchyard revocations sign lists/list.json --keyless",
		Flags:     how.flags(),
		Action: func(c *cli.Context) error {
			file, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			data, err := in.signList(listPath(file), &how)
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				p.line("Signed %s", p.style.Mark(render.Strong, data.File))
				p.field("digest", "%s", data.Digest)
				p.signedBy(data.Signer, data.Proved)
				p.field("bundles", "%s", data.Bundles)
				p.field("signatures", "%d", data.Signatures)
			})
			return nil
		},
	}
}

func (in *invocation) signList(file string, how *signing) (*revocationsSignData, error) {
	out := file + pkgmgr.BundlesSuffix
	before, err := readUpTo(out, maxBundlesFile)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, err
	case len(before) > maxBundlesFile:
		return nil, fmt.Errorf("%s has more than %d bytes", out, maxBundlesFile)
	case len(before) > 0 && before[len(before)-1] != '\n':
		before = append(before, '\n')
	}
	sum, signed, err := in.signature(file, how)
	if err != nil {
		return nil, err
	}
	// A bundle is one line: JSON in which line feeds are only white space.
	line := bytes.ReplaceAll(bytes.TrimSpace(signed.Bundle), []byte("\n"), nil)
	text := append(append(before, line...), '\n')
	if err := textfile.Write(out, text); err != nil {
		return nil, err
	}
	return &revocationsSignData{file, sum, out, newSignerData(signed.Signer), newProvedData(signed.Facts), bytes.Count(text, []byte("\n"))}, nil
}
