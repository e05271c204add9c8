package commands

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

type revocationsCreateData struct {
	Issuer     string        `json:"issuer" doc:"Whose lists they will be."`
	Root       string        `json:"root" doc:"The file of the root document."`
	RootDigest digest.Digest `json:"rootDigest" doc:"Its digest: what machines accept the first time."`
	List       string        `json:"list" doc:"The file of the list, which is empty."`
	Version    int64         `json:"version" doc:"The version of the list."`
	ExpiresAt  time.Time     `json:"expiresAt" doc:"When the list expires."`
}

func revocationsCreateCommand(in *invocation) *cli.Command {
	var (
		issuer, out            string
		rootSigners, signers   cli.StringSlice
		rootThreshold, signing int
		validity, rootFor      time.Duration
	)
	return &cli.Command{
		Description: "Begins the revocation lists of an issuer: writes a root document, which says who may sign lists and who may sign the next root, " +
			"and an empty list, with the public keys beside them. Nobody has both roles, so that a stolen list key can be locked out. A SIGNER is the " +
			"file of a public key, the id of one, or IDENTITY,issuer=URL: the name in a certificate and who vouches for it. Both files are then signed with revocations sign; existing files are never overwritten.",
		UsageText: "switchyard revocations create --issuer security.example.com \\\n" +
			"    --root-signer root.pub --list-signer list.pub -o lists\n" +
			"switchyard revocations create --issuer security.example.com -o lists \\\n" +
			"    --root-signer root.pub \\\n" +
			"    --list-signer 'me@example.com,issuer=https://accounts.example.com'",
		Flags: flags{
			&cli.StringFlag{Name: "issuer", Destination: &issuer, Usage: "`ID`: lower-case letters, digits, dots and hyphens"},
			&cli.StringSliceFlag{Name: "root-signer", Destination: &rootSigners, Usage: "`SIGNER` of roots; may be repeated"},
			&cli.StringSliceFlag{Name: "list-signer", Destination: &signers, Usage: "`SIGNER` of lists; may be repeated"},
			&cli.IntFlag{Name: "root-threshold", Value: 1, Destination: &rootThreshold, Usage: "`N` different signers must sign a root"},
			&cli.IntFlag{Name: "threshold", Value: 1, Destination: &signing, Usage: "`N` different signers must sign a list"},
			validityFlag(&validity),
			&cli.DurationFlag{Name: "root-validity", Value: rootValidity, Destination: &rootFor, Usage: "a newer root will be there after `TIME` at the latest"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &out, Usage: "write into `DIR`"},
		},
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			switch {
			case issuer == "":
				return in.usage("--issuer says whose lists they will be")
			case len(rootSigners.Value()) == 0 || len(signers.Value()) == 0:
				return in.usage("--root-signer and --list-signer say who signs what")
			case out == "":
				return in.usage("-o says where to write")
			}
			now := in.env.Now().UTC().Truncate(time.Second)
			root := &revlist.Root{Issuer: issuer, Version: 1, ListThreshold: signing, RootThreshold: rootThreshold, ExpiresAt: now.Add(rootFor).Truncate(time.Second)}
			var keys, more []string
			var err error
			if root.RootSigners, keys, err = in.signers("root-signer", rootSigners.Value()); err != nil {
				return err
			}
			if root.ListSigners, more, err = in.signers("list-signer", signers.Value()); err != nil {
				return err
			}
			list, err := revlist.New(issuer, now, validity)
			if err != nil {
				return err
			}
			data, err := createLists(out, root, list, slices.Concat(keys, more))
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				p.line("Began the revocation lists of %s", p.style.Mark(render.Strong, data.Issuer))
				p.field("root", "%s", data.Root)
				p.field("its digest", "%s", data.RootDigest)
				p.field("list", "%s", data.List)
				p.prose(2, "Both have to be signed. Tell everybody who is to follow the lists the digest of the root, by a way that they trust.")
				p.nextAll(slices.Concat(in.signCommands(data.Root, root.RootSigners, atLeast(root.RootThreshold)),
					in.signCommands(data.List, root.ListSigners, atLeast(root.ListThreshold))))
			})
			return nil
		},
	}
}

// createLists writes root, list and public keys into a directory.
func createLists(dir string, root *revlist.Root, list *revlist.List, keys []string) (*revocationsCreateData, error) {
	var rootText, listText bytes.Buffer
	if err := errors.Join(revlist.WriteRoot(&rootText, root), revlist.Write(&listText, list, versionRanges)); err != nil {
		return nil, err
	}
	data := &revocationsCreateData{Issuer: root.Issuer, Root: filepath.Join(dir, pkgmgr.RootFile), RootDigest: digest.Of(rootText.Bytes()),
		List: filepath.Join(dir, pkgmgr.ListFile), Version: int64(list.Version), ExpiresAt: list.ExpiresAt}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(data.List); !errors.Is(err, os.ErrNotExist) {
		return nil, &fileExists{data.List, freeName(dir, "")}
	}
	if err := create(data.Root, 0o644, rootText.String()); err != nil {
		return nil, err
	}
	if err := create(data.List, 0o644, listText.String()); err != nil {
		return nil, err
	}
	for _, text := range keys {
		id, err := verify.KeyID(text)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, pkgmgr.KeyFile(id)), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return data, nil
}
