package commands

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

type signData struct {
	Archive digest.Digest `json:"archive" doc:"The digest of the archive that was signed."`
	Bundle  string        `json:"bundle" doc:"The Sigstore bundle that was written."`
	Signer  signerData    `json:"signer" doc:"Who signed."`
}

type signerData struct {
	Key      string `json:"key" doc:"The id of the key, empty for a signature under a certificate."`
	Identity string `json:"identity" doc:"The identity in the certificate, empty for a key."`
	Issuer   string `json:"issuer" doc:"Who vouched for the identity, empty for a key."`
}

func newSignerData(s verify.Signer) signerData { return signerData(s) }

// String is who it is, for people.
func (d signerData) String() string { return verify.Signer(d).String() }

// maxKeyFile bounds a key's file, in bytes.
const maxKeyFile = 64 << 10

// bundleSuffix is what a signature's file adds to the archive's name.
const bundleSuffix = ".sigstore.json"

func signCommand(in *invocation) *cli.Command {
	var (
		key, out string
		secret   passphrase
	)
	return &cli.Command{
		ArgsUsage: "ARCHIVE",
		Description: "Signs an archive's bytes with a key and writes a Sigstore bundle v0.3 beside it, ARCHIVE.sigstore.json, " +
			"which verify and install read. The key is ECDSA P-256 or Ed25519, a PKCS8 file or an encrypted one of keygen's or cosign's. " +
			"Nothing is sent anywhere.",
		UsageText: "switchyard sign repo-facts-1.0.0.tar.zst --key release.key\nswitchyard sign repo-facts.zip --key release.key --passphrase env:WORDS",
		Flags: flags{
			&cli.StringFlag{Name: "key", Destination: &key, Usage: "sign with the private key in `FILE`"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &out, Usage: "write the bundle to `FILE`"},
			secret.flag(),
		},
		Action: func(c *cli.Context) error {
			archive, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			if key == "" {
				return in.usage("--key says with which key to sign")
			}
			if out == "" {
				out = archive + bundleSuffix
			}
			data, err := in.sign(archive, key, out, secret)
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				p.line("Signed %s", p.style.Mark(render.Strong, archive))
				p.field("archive", "%s", data.Archive)
				p.field("key", "%s", data.Signer.Key)
				p.field("bundle", "%s", data.Bundle)
			})
			return nil
		},
	}
}

func (in *invocation) sign(archive, keyFile, out string, secret passphrase) (*signData, error) {
	sum, signed, err := in.signature(archive, keyFile, secret)
	if err != nil {
		return nil, err
	}
	if err := textfile.Write(out, append(signed.Bundle, '\n')); err != nil {
		return nil, err
	}
	return &signData{sum, out, newSignerData(signed.Signer)}, nil
}

// signature signs a file with the key in keyFile and returns the file's digest too. It
// asks for a passphrase only where the key needs one or where secret says from where.
func (in *invocation) signature(file, keyFile string, secret passphrase) (digest.Digest, *verify.Signed, error) {
	pem, err := readUpTo(keyFile, maxKeyFile)
	if err != nil {
		return "", nil, fmt.Errorf("--key: %w", err)
	}
	var words []byte
	if secret.from != "" || bytes.Contains(pem, []byte("ENCRYPTED")) {
		if words, err = in.passphrase(secret, once); err != nil {
			return "", nil, err
		}
	}
	sum, err := fileDigest(file)
	if err != nil {
		return "", nil, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return "", nil, err
	}
	worker, err := in.worker()
	if err != nil {
		return "", nil, err
	}
	defer worker.Close()
	signed, err := worker.Sign(in.context(), verify.SignRequest{Artifact: sum, Path: path, Key: string(pem), Passphrase: words})
	return sum, signed, err
}

// fileDigest returns the SHA-256 of a regular file's bytes.
func fileDigest(path string) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file; pack a directory first", path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return digest.FromBytes(h.Sum(nil)), nil
}
