package commands

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/verify"
)

type keygenData struct {
	ID        string `json:"id" doc:"What facts and policies call the key: the SHA-256 of its public half."`
	Algorithm string `json:"algorithm" doc:"The kind of key." enum:"ecdsa-p256|ed25519"`
	Private   string `json:"private" doc:"The file of the private key."`
	Public    string `json:"public" doc:"The file of the public key."`
	Encrypted bool   `json:"encrypted" doc:"Whether the private key needs its passphrase."`
}

func keygenCommand(in *invocation) *cli.Command {
	var (
		algorithm, name string
		secret          passphrase
	)
	return &cli.Command{
		Description: "Makes a key pair for sign: NAME.key, which only you can read, and NAME.pub, which you publish. The private key is encrypted " +
			"with a passphrase in the form that cosign uses, unless --no-passphrase says otherwise. Existing files are never overwritten.",
		UsageText: "switchyard keygen\nswitchyard keygen -o release --passphrase env:RELEASE_PASSPHRASE\nswitchyard keygen --algorithm ed25519",
		Flags: append(flags{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "switchyard", Destination: &name, Usage: "write `NAME`.key and NAME.pub"},
			&cli.StringFlag{Name: "algorithm", Value: string(verify.ECDSA), Destination: &algorithm, Usage: "`ALGORITHM`: ecdsa-p256 or ed25519"},
			&cli.BoolFlag{Name: "no-passphrase", Destination: &secret.none, Usage: "leave the private key unencrypted"},
		}, secret.flag()),
		Action: func(c *cli.Context) error {
			if err := in.noArguments(c); err != nil {
				return err
			}
			if a := verify.Algorithm(algorithm); a != verify.ECDSA && a != verify.Ed25519 {
				return in.usage("--algorithm: %q is neither %s nor %s", algorithm, verify.ECDSA, verify.Ed25519)
			}
			private, public := name+".key", name+".pub"
			for _, path := range []string{private, public} {
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					return &fileExists{path, freeName(name, ".key", ".pub")}
				}
			}
			words, err := in.passphrase(secret, twice)
			if err != nil {
				return err
			}
			worker, err := in.worker()
			if err != nil {
				return err
			}
			defer worker.Close()
			pair, err := worker.NewKey(in.context(), verify.NewKeyRequest{Algorithm: verify.Algorithm(algorithm), Passphrase: words})
			if err != nil {
				return err
			}
			if err := create(private, 0o600, pair.Private); err != nil {
				return err
			}
			if err := create(public, 0o644, pair.Public); err != nil {
				return errors.Join(err, os.Remove(private))
			}
			data := keygenData{pair.ID, string(pair.Algorithm), private, public, len(words) > 0}
			in.report(data, func(p *page) {
				p.line("Made the key %s", p.style.Mark(render.Strong, data.ID))
				p.field("private", "%s", data.Private)
				p.field("public", "%s", data.Public)
				if !data.Encrypted {
					p.prose(2, "The private key is not encrypted: whoever reads the file can sign.")
				}
				p.next(in.signArchiveHint(data.Private, secret))
			})
			return nil
		},
	}
}

// A fileExists says that a file would have to be overwritten.
type fileExists struct {
	path    string
	instead string // what -o may say instead, "" where that is not known
}

func (e *fileExists) Error() string { return e.path + " exists; it is never overwritten" }

// create writes a new file whole, or leaves none.
func create(path string, mode os.FileMode, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return &fileExists{path: path}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
