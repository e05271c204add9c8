package worker

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// maxPEM bounds a key's text.
const maxPEM = 64 << 10

// A publicKey is a key that may have signed.
type publicKey struct {
	key      crypto.PublicKey
	der      []byte // PKIX
	verifier signature.Verifier
}

// id is the key's name in facts and policies.
func (k publicKey) id() string { return string(digest.Of(k.der)) }

// hint is how a bundle names the key: base64 of the same digest, as cosign writes it.
func (k publicKey) hint() string {
	sum := sha256.Sum256(k.der)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// isKeyHint reports whether a hint names a key as hint does.
func isKeyHint(hint string) bool {
	sum, err := base64.StdEncoding.DecodeString(hint)
	return err == nil && len(sum) == sha256.Size
}

// hintID is the id of the key that such a hint names.
func hintID(hint string) string {
	sum, _ := base64.StdEncoding.DecodeString(hint)
	return string(digest.FromBytes(sum))
}

func (k publicKey) algorithm() verify.Algorithm {
	if _, ok := k.key.(ed25519.PublicKey); ok {
		return verify.Ed25519
	}
	return verify.ECDSA
}

// parsePublic reads one PEM public key of a kind that is signed with here.
func parsePublic(text string) (publicKey, error) {
	if len(text) > maxPEM {
		return publicKey{}, refuse(verify.CodeKeyMalformed, "a key of more than %d bytes", maxPEM)
	}
	if err := onePEM(text); err != nil {
		return publicKey{}, err
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(text))
	if err != nil {
		return publicKey{}, refuse(verify.CodeKeyMalformed, "a public key: %v", err)
	}
	return newPublic(key)
}

func newPublic(key crypto.PublicKey) (publicKey, error) {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return publicKey{}, refuse(verify.CodeKeyAlgorithm, "an ECDSA key on %s; P-256 and Ed25519 are supported", k.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return publicKey{}, refuse(verify.CodeKeyAlgorithm, "a key of type %T; ECDSA P-256 and Ed25519 are supported", key)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return publicKey{}, refuse(verify.CodeKeyMalformed, "%v", err)
	}
	verifier, err := signature.LoadDefaultVerifier(key)
	if err != nil {
		return publicKey{}, refuse(verify.CodeKeyAlgorithm, "%v", err)
	}
	return publicKey{key: key, der: der, verifier: verifier}, nil
}

// parsePrivate reads a PEM private key: PKCS8 in the clear, or cosign's encrypted form.
func parsePrivate(text string, passphrase []byte) (crypto.Signer, error) {
	if len(text) > maxPEM {
		return nil, refuse(verify.CodeKeyMalformed, "a key of more than %d bytes", maxPEM)
	}
	if err := onePEM(text); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(text))
	var key crypto.PrivateKey
	var err error
	switch cryptoutils.PEMType(block.Type) {
	case cryptoutils.EncryptedSigstorePrivateKeyPEMType, encryptedCosign:
		if len(passphrase) == 0 {
			return nil, refuse(verify.CodeKeyPassphrase, "the key is encrypted, and no passphrase was given")
		}
		der, err := encrypted.Decrypt(block.Bytes, passphrase)
		if err != nil {
			return nil, refuse(verify.CodeKeyPassphrase, "the passphrase does not open the key")
		}
		if key, err = x509.ParsePKCS8PrivateKey(der); err != nil {
			return nil, refuse(verify.CodeKeyMalformed, "%v", err)
		}
	case "PRIVATE KEY":
		if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			return nil, refuse(verify.CodeKeyMalformed, "%v", err)
		}
	default:
		return nil, refuse(verify.CodeKeyMalformed, "a PEM block of type %q; a PKCS8 key or an encrypted one of cosign's is wanted", block.Type)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, refuse(verify.CodeKeyAlgorithm, "a key of type %T cannot sign", key)
	}
	if _, err := newPublic(signer.Public()); err != nil {
		return nil, err
	}
	return signer, nil
}

// onePEM refuses a file of several keys: which one is meant would be a guess.
func onePEM(text string) error {
	block, rest := pem.Decode([]byte(text))
	if block == nil {
		return refuse(verify.CodeKeyMalformed, "the key is not PEM")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return refuse(verify.CodeKeyMalformed, "more than one key in the file")
	}
	return nil
}

// encryptedCosign is what older versions of cosign write.
const encryptedCosign = "ENCRYPTED COSIGN PRIVATE KEY"

// newKey makes a key pair, encrypted where a passphrase is given.
func newKey(r verify.NewKeyRequest) (*verify.KeyPair, error) {
	var private crypto.Signer
	var err error
	switch r.Algorithm {
	case verify.ECDSA:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case verify.Ed25519:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		return nil, refuse(verify.CodeKeyAlgorithm, "algorithm %q; %s and %s are supported", r.Algorithm, verify.ECDSA, verify.Ed25519)
	}
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	if len(r.Passphrase) > 0 {
		sealed, err := encrypted.Encrypt(der, r.Passphrase)
		if err != nil {
			return nil, err
		}
		block = &pem.Block{Type: string(cryptoutils.EncryptedSigstorePrivateKeyPEMType), Bytes: sealed}
	}
	public, err := newPublic(private.Public())
	if err != nil {
		return nil, err
	}
	return public.pair(string(pem.EncodeToMemory(block))), nil
}

// readKey says what a key is, public or private.
func readKey(r verify.KeyRequest) (*verify.KeyPair, error) {
	if block, _ := pem.Decode([]byte(r.PEM)); block != nil && block.Type == "PUBLIC KEY" {
		k, err := parsePublic(r.PEM)
		if err != nil {
			return nil, err
		}
		return k.pair(""), nil
	}
	private, err := parsePrivate(r.PEM, r.Passphrase)
	if err != nil {
		return nil, err
	}
	k, err := newPublic(private.Public())
	if err != nil {
		return nil, err
	}
	return k.pair(""), nil
}

func (k publicKey) pair(private string) *verify.KeyPair {
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der})
	return &verify.KeyPair{ID: k.id(), Algorithm: k.algorithm(), Public: string(public), Private: private}
}
