package commands

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	Proved  *provedData   `json:"proved" doc:"What others state about the signature, proved; null for a key."`
}

type provedData struct {
	Log         []logEntryData `json:"log" doc:"The signature's entries in transparency logs."`
	Times       []timeData     `json:"times" doc:"When it was made, as others state."`
	TrustedRoot digest.Digest  `json:"trustedRoot" doc:"The digest of the trusted root that it proved itself under."`
}

type logEntryData struct {
	Log   string `json:"log" doc:"The id of the log's key."`
	Index int64  `json:"index" doc:"The entry's index in the log."`
}

type timeData struct {
	Source string    `json:"source" doc:"Who states it." enum:"transparency-log|timestamp-authority"`
	At     time.Time `json:"at" doc:"The time."`
}

// newProvedData is nil for a signature that nobody else states anything about.
func newProvedData(f *verify.Facts) *provedData {
	if f == nil {
		return nil
	}
	d := &provedData{Log: []logEntryData{}, Times: []timeData{}, TrustedRoot: f.TrustedRoot}
	for _, e := range f.Log {
		d.Log = append(d.Log, logEntryData(e))
	}
	for _, t := range f.Times {
		d.Times = append(d.Times, timeData(t))
	}
	return d
}

// signedBy tells who signed, and what others state about that.
func (p *page) signedBy(s signerData, d *provedData) {
	if d == nil {
		p.field("key", "%s", s.Key)
		return
	}
	p.field("identity", "%s", s.Identity)
	p.field("issuer", "%s", s.Issuer)
	for _, e := range d.Log {
		p.field("log index", "%d", e.Index)
	}
	for _, t := range d.Times {
		p.field("signed at", "%s (%s)", t.At.Format(time.RFC3339), t.Source)
	}
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
		how signing
		out string
	)
	return &cli.Command{
		ArgsUsage: "ARCHIVE",
		Description: "Signs an archive's bytes and writes a Sigstore bundle v0.3 beside it, ARCHIVE.sigstore.json, which verify and install read. " +
			"With --key, the key is ECDSA P-256 or Ed25519, a PKCS8 file or an encrypted one of keygen's or cosign's, and nothing is sent anywhere. " +
			"With --keyless, the archive's digest, a new key's public half and an identity token go to the certificate authority and the transparency log: " +
			"the identity in the certificate and the digest become public, for good.",
		UsageText: "switchyard sign repo-facts-1.0.0.tar.zst --key release.key\nswitchyard sign repo-facts.zip --key release.key --passphrase env:WORDS\n" +
			"switchyard sign repo-facts.zip --keyless --identity-token @token",
		Flags: append(how.flags(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &out, Usage: "write the bundle to `FILE`"}),
		Action: func(c *cli.Context) error {
			archive, err := in.oneArgument(c)
			if err != nil {
				return err
			}
			data, err := in.sign(archive, &how, out)
			if err != nil {
				return err
			}
			in.report(data, func(p *page) {
				p.line("Signed %s", p.style.Mark(render.Strong, archive))
				p.field("archive", "%s", data.Archive)
				p.signedBy(data.Signer, data.Proved)
				p.field("bundle", "%s", data.Bundle)
			})
			return nil
		},
	}
}

// sign writes the signature over an archive to out, or where that is "" beside the
// archive, where it takes the place of no other signer's.
func (in *invocation) sign(archive string, how *signing, out string) (*signData, error) {
	sum, signed, err := in.signature(archive, how)
	if err != nil {
		return nil, err
	}
	if out == "" {
		out = archive + bundleSuffix
		if by := otherSigner(out, sum, signed.Signer); by != "" {
			return nil, &signedByOther{out, by, archive + freeLabel(archive, how.key) + bundleSuffix}
		}
	}
	if err := textfile.Write(out, append(signed.Bundle, '\n')); err != nil {
		return nil, err
	}
	return &signData{sum, out, newSignerData(signed.Signer), newProvedData(signed.Facts)}, nil
}

// A signing says how a file is signed: with a key, or under a certificate.
type signing struct {
	key     string
	secret  passphrase
	keyless keyless
}

func (s *signing) flags() flags {
	return append(flags{
		&cli.StringFlag{Name: "key", Destination: &s.key, Usage: "sign with the private key in `FILE`"},
		s.secret.flag(),
	}, s.keyless.flags()...)
}

// check refuses what contradicts itself.
func (s *signing) check(in *invocation) error {
	switch other := s.keyless.given(); {
	case s.key != "" && s.keyless.wanted:
		return in.usage("--key and --keyless exclude each other")
	case s.key == "" && !s.keyless.wanted:
		return in.usage("--key says with which key to sign, --keyless that it is done under a certificate")
	case s.keyless.wanted && s.secret.from != "":
		return in.usage("--passphrase is for --key")
	case !s.keyless.wanted && other != "":
		return in.usage("--%s is for --keyless", other)
	case s.keyless.wanted && in.globals.offline:
		return in.usage("--keyless asks a certificate authority and a transparency log, and --offline forbids that")
	}
	return nil
}

// signature signs a file and returns the file's digest too. It asks for a passphrase only
// where a key needs one or where it was said from where.
func (in *invocation) signature(file string, how *signing) (digest.Digest, *verify.Signed, error) {
	if err := how.check(in); err != nil {
		return "", nil, err
	}
	sum, err := fileDigest(file)
	if err != nil {
		return "", nil, err
	}
	var ask func(*verify.Session) (*verify.Signed, error)
	if how.keyless.wanted {
		ask, err = in.keylessSignature(&how.keyless, sum)
	} else {
		ask, err = in.keySignature(how, file, sum)
	}
	if err != nil {
		return "", nil, err
	}
	worker, err := in.worker()
	if err != nil {
		return "", nil, err
	}
	defer worker.Close()
	signed, err := ask(worker)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) && strings.HasPrefix(string(refusal.Code), "key.") {
		err = fmt.Errorf("--key: %s: %w", how.key, err)
	}
	return sum, signed, err
}

// keySignature reads the key, and is what the worker is asked with it.
func (in *invocation) keySignature(how *signing, file string, sum digest.Digest) (func(*verify.Session) (*verify.Signed, error), error) {
	pem, err := readGiven(how.key, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	var words []byte
	if how.secret.from != "" || bytes.Contains(pem, []byte("ENCRYPTED")) {
		if words, err = in.passphrase(how.secret, once); err != nil {
			return nil, err
		}
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	return func(worker *verify.Session) (*verify.Signed, error) {
		return worker.Sign(in.context(), verify.SignRequest{Artifact: sum, Path: path, Key: string(pem), Passphrase: words})
	}, nil
}

// fileDigest returns the SHA-256 of a regular file's bytes.
func fileDigest(path string) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", missingFile(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", &notAnArchive{path, info.IsDir()}
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return digest.FromBytes(h.Sum(nil)), nil
}
