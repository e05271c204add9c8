//go:build unix

package worker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/worker/sigstoretest"
)

// cosignVariable names the real cosign; without it the one in PATH is taken.
const cosignVariable = "SWITCHYARD_TEST_COSIGN"

// A cosign is the real program, in a directory of its own.
type cosign struct {
	t       *testing.T
	program string
	dir     string
	under   []string // runs it, where it needs no network
	env     []string
}

const cosignWords = "correct horse"

func newCosign(t *testing.T) *cosign {
	t.Helper()
	program := os.Getenv(cosignVariable)
	if program == "" {
		var err error
		if program, err = exec.LookPath("cosign"); err != nil {
			t.Skipf("there is no cosign: neither %s nor PATH names one", cosignVariable)
		}
	}
	dir := t.TempDir()
	return &cosign{t: t, program: program, dir: dir, env: []string{"HOME=" + dir, "COSIGN_PASSWORD=" + cosignWords, "PATH=" + os.Getenv("PATH")}}
}

// file writes a file and returns its path.
func (c *cosign) file(name string, text []byte) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *cosign) read(name string) []byte {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// try runs cosign, and run fails the test where that fails.
func (c *cosign) try(args ...string) (string, error) {
	line := append(append([]string{}, c.under...), c.program)
	command := exec.Command(line[0], append(line[1:], args...)...)
	command.Dir, command.Env = c.dir, c.env
	out, err := command.CombinedOutput()
	return string(out), err
}

func (c *cosign) run(args ...string) {
	c.t.Helper()
	if out, err := c.try(args...); err != nil {
		c.t.Fatalf("cosign %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// refuses fails the test unless cosign fails and says why.
func (c *cosign) refuses(says string, args ...string) {
	c.t.Helper()
	if out, err := c.try(args...); err == nil || !strings.Contains(out, says) {
		c.t.Errorf("cosign %s: %v, and not %q\n%s", strings.Join(args, " "), err, says, out)
	}
}

// The flags with which cosign works with a key and without a log.
var (
	cosignSigns  = []string{"sign-blob", "--tlog-upload=false", "--use-signing-config=false", "--yes"}
	cosignProves = []string{"verify-blob", "--insecure-ignore-tlog=true"}
)

// cosignKey is a key of ours as files of cosign's, its name and the pair.
func (c *cosign) key(name string, algorithm verify.Algorithm, passphrase string) *verify.KeyPair {
	c.t.Helper()
	pair, err := newKey(verify.NewKeyRequest{Algorithm: algorithm, Passphrase: []byte(passphrase)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.file(name+".key", []byte(pair.Private))
	c.file(name+".pub", []byte(pair.Public))
	return pair
}

// asksKey is the question whether a bundle in a file proves anything with a key in one.
func (c *cosign) asksKey(bundle, public, artifact string) verify.BundleRequest {
	content := c.read(artifact)
	return verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(content), Path: filepath.Join(c.dir, artifact), Document: c.read(bundle),
		Keys: []string{string(c.read(public))}, Now: time.Now()}
}

// TestCosignAcceptsOurKeySignatures holds that the real cosign proves what we sign with a
// key, without a network, and that both refuse it for another archive.
func TestCosignAcceptsOurKeySignatures(t *testing.T) {
	c := newCosign(t)
	c.under = withoutNetwork(t)
	c.file("a", archive)
	c.file("b", []byte("another"))
	for _, algorithm := range algorithms {
		for _, words := range []string{"", cosignWords} {
			t.Run(fmt.Sprintf("%s, encrypted %v", algorithm, words != ""), func(t *testing.T) {
				pair := c.key("k", algorithm, words)
				out, err := sign(verify.SignRequest{Artifact: digest.Of(archive), Path: filepath.Join(c.dir, "a"), Key: pair.Private, Passphrase: []byte(words)})
				if err != nil {
					t.Fatal(err)
				}
				c.file("a.json", out.Bundle)
				c.run(append(cosignProves, "--key", "k.pub", "--bundle", "a.json", "a")...)
				c.refuses("failed to verify signature", append(cosignProves, "--key", "k.pub", "--bundle", "a.json", "b")...)
				if _, err := checkBundle(c.asksKey("a.json", "k.pub", "a")); err != nil {
					t.Error(err)
				}
				_, err = checkBundle(c.asksKey("a.json", "k.pub", "b"))
				refused(t, err, verify.CodeSignature)
			})
		}
	}
}

// TestCosignKeys holds that each program signs with the keys of the other, and that we
// prove what cosign signs with a key.
func TestCosignKeys(t *testing.T) {
	c := newCosign(t)
	c.under = withoutNetwork(t)
	c.file("a", archive)
	c.file("b", []byte("another"))
	proved := func(t *testing.T, key string) {
		t.Helper()
		c.run(append(cosignSigns, "--key", key+".key", "--bundle", "a.json", "a")...)
		public, err := parsePublic(string(c.read(key + ".pub")))
		if err != nil {
			t.Fatal(err)
		}
		facts, err := checkBundle(c.asksKey("a.json", key+".pub", "a"))
		if err != nil {
			t.Fatal(err)
		}
		if facts.Signer.Key != public.id() {
			t.Errorf("signed by %+v", facts.Signer)
		}
		_, err = checkBundle(c.asksKey("a.json", key+".pub", "b"))
		refused(t, err, verify.CodeSignature)
		c.refuses("failed to verify signature", append(cosignProves, "--key", key+".pub", "--bundle", "a.json", "b")...)
	}
	t.Run("generated by cosign", func(t *testing.T) {
		c.run("generate-key-pair", "--output-key-prefix", "theirs")
		proved(t, "theirs")
		private := string(c.read("theirs.key"))
		pair, err := readKey(verify.KeyRequest{PEM: private, Passphrase: []byte(cosignWords)})
		if err != nil {
			t.Fatal(err)
		}
		if pair.Public != string(c.read("theirs.pub")) {
			t.Errorf("the public half is %s", pair.Public)
		}
		_, err = readKey(verify.KeyRequest{PEM: private, Passphrase: []byte("wrong")})
		refused(t, err, verify.CodeKeyPassphrase)
		out, err := sign(verify.SignRequest{Artifact: digest.Of(archive), Key: private, Passphrase: []byte(cosignWords)})
		if err != nil {
			t.Fatal(err)
		}
		c.file("ours.json", out.Bundle)
		c.run(append(cosignProves, "--key", "theirs.pub", "--bundle", "ours.json", "a")...)
	})
	t.Run("encrypted by keygen", func(t *testing.T) {
		c.key("ours", verify.ECDSA, cosignWords)
		proved(t, "ours")
	})
	t.Run("in the clear by keygen, and imported", func(t *testing.T) {
		c.key("clear", verify.ECDSA, "")
		c.refuses("unsupported pem type: PRIVATE KEY", append(cosignSigns, "--key", "clear.key", "--bundle", "a.json", "a")...)
		c.run("import-key-pair", "--key", "clear.key", "--output-key-prefix", "imported")
		proved(t, "imported")
	})
}

// TestCosignEd25519 holds what cosign cannot do with an Ed25519 key: the bundle that it
// writes names no digest, and neither program takes it, logged or not.
func TestCosignEd25519(t *testing.T) {
	c := newCosign(t)
	c.file("a", archive)
	c.key("ed", verify.Ed25519, cosignWords)
	c.run(append(cosignSigns, "--key", "ed.key", "--bundle", "a.json", "a")...)
	c.refuses("missing artifact digest", append(cosignProves, "--key", "ed.pub", "--bundle", "a.json", "a")...)
	_, err := checkBundle(c.asksKey("a.json", "ed.pub", "a"))
	refused(t, err, verify.CodeSignature)

	l := newLocal(t)
	c.env = append(c.env, "SSL_CERT_FILE="+c.file("ca.pem", []byte(certificateOf(l.server))))
	c.file("root.json", l.root)
	c.run("sign-blob", "--key", "ed.key", "--rekor-url", l.server.URL, "--use-signing-config=false", "--trusted-root", "root.json", "--bundle", "log.json", "--yes", "a")
	c.refuses("failed to verify", "verify-blob", "--key", "ed.pub", "--trusted-root", "root.json", "--bundle", "log.json", "a")
	r := c.asksKey("log.json", "ed.pub", "a")
	r.TrustedRoot = l.root
	_, err = checkBundle(r)
	refused(t, err, verify.CodeSignature)
}

// certified are the flags with which cosign expects a signer.
func certified(identity, issuer string) []string {
	return []string{"verify-blob", "--trusted-root", "root.json", "--certificate-identity", identity, "--certificate-oidc-issuer", issuer}
}

// TestCosignAcceptsOurKeylessSignatures holds that the real cosign proves what we sign
// under a certificate, without a network: certificate, its log's timestamp, log entry and
// times; and that both refuse another archive, identity, issuer and trusted root.
func TestCosignAcceptsOurKeylessSignatures(t *testing.T) {
	c := newCosign(t)
	c.under = withoutNetwork(t)
	l := newLocal(t)
	c.file("a", archive)
	c.file("b", []byte("another"))
	c.file("root.json", l.root)
	c.file("foreign.json", newLocal(t).root)
	job := sigstoretest.Claims{Issuer: "https://token.actions.example.com", Subject: "https://example.com/o/r/.github/workflows/release.yml@refs/tags/v1", Audience: sigstoretest.Audience}
	for name, claims := range map[string]sigstoretest.Claims{"an address": address, "a workflow": job} {
		for _, stamp := range []string{"", l.server.URL + sigstoretest.TimestampPath} {
			t.Run(fmt.Sprintf("%s, stamped %v", name, stamp != ""), func(t *testing.T) {
				r := l.asks()
				r.Token, r.Timestamp = l.names(claims), stamp
				out, err := signKeyless(r, soon)
				if err != nil {
					t.Fatal(err)
				}
				c.file("a.json", out.Bundle)
				expects := certified(out.Signer.Identity, out.Signer.Issuer)
				if stamp != "" {
					expects = append(expects, "--use-signed-timestamps")
				}
				c.run(append(expects, "--bundle", "a.json", "a")...)
				c.refuses("failed to verify signature", append(expects, "--bundle", "a.json", "b")...)
				c.refuses("no matching CertificateIdentity", append(certified("x"+out.Signer.Identity, out.Signer.Issuer), "--bundle", "a.json", "a")...)
				c.refuses("no matching CertificateIdentity", append(certified(out.Signer.Identity, out.Signer.Issuer+".example.org"), "--bundle", "a.json", "a")...)
				foreign := append(certified(out.Signer.Identity, out.Signer.Issuer), "--trusted-root", "foreign.json", "--bundle", "a.json", "a")
				c.refuses("failed to verify", foreign...)
			})
		}
	}
}

// TestCosignKeyless holds that we prove what the real cosign signs under a certificate of
// the same services, and that what it signs with a key and logs is proved, too.
func TestCosignKeyless(t *testing.T) {
	c := newCosign(t)
	l := newLocal(t)
	c.env = append(c.env, "SSL_CERT_FILE="+c.file("ca.pem", []byte(certificateOf(l.server))))
	c.file("a", archive)
	c.file("root.json", l.root)
	c.file("token", []byte(l.token))
	c.run("sign-blob", "--fulcio-url", l.server.URL, "--rekor-url", l.server.URL, "--use-signing-config=false", "--identity-token", "token",
		"--trusted-root", "root.json", "--bundle", "a.json", "--yes", "a")
	asks := verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(archive), Document: c.read("a.json"), TrustedRoot: l.root, Now: time.Now()}
	facts, err := checkBundle(asks)
	if err != nil {
		t.Fatal(err)
	}
	if want := (verify.Signer{Identity: somebody, Issuer: vouching}); facts.Signer != want || len(facts.Log) != 1 || len(facts.Times) != 1 {
		t.Errorf("facts %+v", facts)
	}
	asks.Artifact = digest.Of([]byte("another"))
	_, err = checkBundle(asks)
	refused(t, err, verify.CodeSignature)
	asks.Artifact, asks.TrustedRoot = digest.Of(archive), newLocal(t).root
	_, err = checkBundle(asks)
	refused(t, err, verify.CodeLog)

	c.run("generate-key-pair", "--output-key-prefix", "k")
	c.run("sign-blob", "--key", "k.key", "--rekor-url", l.server.URL, "--use-signing-config=false", "--trusted-root", "root.json", "--bundle", "k.json", "--yes", "a")
	r := c.asksKey("k.json", "k.pub", "a")
	r.TrustedRoot = l.root
	if facts, err = checkBundle(r); err != nil {
		t.Fatal(err)
	}
	if len(facts.Log) != 1 || facts.TrustedRoot != digest.Of(l.root) {
		t.Errorf("facts %+v", facts)
	}
	c.run("verify-blob", "--key", "k.pub", "--bundle", "k.json", "--trusted-root", "root.json", "a")
}
