package worker

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/switchyard-plugins/switchyard/verify"
)

var algorithms = []verify.Algorithm{verify.ECDSA, verify.Ed25519}

func pair(t testing.TB, algorithm verify.Algorithm) *verify.KeyPair {
	t.Helper()
	p, err := newKey(verify.NewKeyRequest{Algorithm: algorithm})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pemOf(t testing.TB, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// private and public are a key in the forms that are read here.
func private(t testing.TB, key crypto.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pemOf(t, "PRIVATE KEY", der, err)
}

func public(t testing.TB, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	return pemOf(t, "PUBLIC KEY", der, err)
}

// TestKeys holds that both kinds of keys are read as they are written, in the clear and
// encrypted, and have one id wherever it is told.
func TestKeys(t *testing.T) {
	for _, algorithm := range algorithms {
		for name, passphrase := range map[string][]byte{"in the clear": nil, "encrypted": []byte("correct horse")} {
			t.Run(string(algorithm)+" "+name, func(t *testing.T) {
				made, err := newKey(verify.NewKeyRequest{Algorithm: algorithm, Passphrase: passphrase})
				if err != nil {
					t.Fatal(err)
				}
				if encrypted := strings.Contains(made.Private, "ENCRYPTED SIGSTORE PRIVATE KEY"); encrypted != (passphrase != nil) {
					t.Errorf("the private key: %s", made.Private)
				}
				want := verify.KeyPair{ID: made.ID, Algorithm: algorithm, Public: made.Public}
				for _, text := range []string{made.Private, made.Public} {
					read, err := readKey(verify.KeyRequest{PEM: text, Passphrase: passphrase})
					if err != nil || *read != want {
						t.Errorf("got %+v, %v, want %+v", read, err, want)
					}
				}
				if id, err := verify.KeyID(made.Public); err != nil || id != made.ID {
					t.Errorf("the id is %s, %v, and %s", id, err, made.ID)
				}
			})
		}
	}
	if a, b := pair(t, verify.ECDSA), pair(t, verify.ECDSA); a.ID == b.ID {
		t.Error("two keys are the same")
	}
}

// TestOldEncryptedKeys holds that the name which older versions of cosign give to the
// same form is read.
func TestOldEncryptedKeys(t *testing.T) {
	made, err := newKey(verify.NewKeyRequest{Algorithm: verify.ECDSA, Passphrase: []byte("words")})
	if err != nil {
		t.Fatal(err)
	}
	old := strings.ReplaceAll(made.Private, "ENCRYPTED SIGSTORE", "ENCRYPTED COSIGN")
	if read, err := readKey(verify.KeyRequest{PEM: old, Passphrase: []byte("words")}); err != nil || read.ID != made.ID {
		t.Errorf("%+v, %v", read, err)
	}
}

// TestKeysByTheLibrary holds that the encrypted form is the one that sigstore's
// library, and so cosign, reads.
func TestKeysByTheLibrary(t *testing.T) {
	made, err := newKey(verify.NewKeyRequest{Algorithm: verify.ECDSA, Passphrase: []byte("words")})
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey([]byte(made.Private), cryptoutils.StaticPasswordFunc([]byte("words")))
	if err != nil {
		t.Fatal(err)
	}
	if text := public(t, key.(crypto.Signer).Public()); text != made.Public {
		t.Errorf("it reads another key:\n%s%s", text, made.Public)
	}
}

// TestKeysRefused holds which keys are not signed with, and why.
func TestKeysRefused(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(p384)
	good, sealed := pair(t, verify.ECDSA), func() string {
		p, err := newKey(verify.NewKeyRequest{Algorithm: verify.Ed25519, Passphrase: []byte("words")})
		if err != nil {
			t.Fatal(err)
		}
		return p.Private
	}()
	for name, c := range map[string]struct {
		text       string
		passphrase string
		code       verify.Code
	}{
		"P-384":                        {text: private(t, p384), code: verify.CodeKeyAlgorithm},
		"P-384, public":                {text: public(t, p384.Public()), code: verify.CodeKeyAlgorithm},
		"RSA":                          {text: private(t, rsa2048), code: verify.CodeKeyAlgorithm},
		"RSA, public":                  {text: public(t, rsa2048.Public()), code: verify.CodeKeyAlgorithm},
		"SEC1":                         {text: pemOf(t, "EC PRIVATE KEY", sec1, err), code: verify.CodeKeyMalformed},
		"a certificate":                {text: pemOf(t, "CERTIFICATE", []byte{1}, nil), code: verify.CodeKeyMalformed},
		"garbage":                      {text: "garbage", code: verify.CodeKeyMalformed},
		"nothing":                      {text: "", code: verify.CodeKeyMalformed},
		"garbage in PEM":               {text: pemOf(t, "PRIVATE KEY", []byte("garbage"), nil), code: verify.CodeKeyMalformed},
		"garbage in PEM, public":       {text: pemOf(t, "PUBLIC KEY", []byte("garbage"), nil), code: verify.CodeKeyMalformed},
		"two private keys":             {text: good.Private + pair(t, verify.ECDSA).Private, code: verify.CodeKeyMalformed},
		"two public keys":              {text: good.Public + pair(t, verify.ECDSA).Public, code: verify.CodeKeyMalformed},
		"a private key and its public": {text: good.Private + good.Public, code: verify.CodeKeyMalformed},
		"a public key and its private": {text: good.Public + good.Private, code: verify.CodeKeyMalformed},
		"too long":                     {text: good.Private + strings.Repeat("\n", maxPEM), code: verify.CodeKeyMalformed},
		"too long, public":             {text: good.Public + strings.Repeat("\n", maxPEM), code: verify.CodeKeyMalformed},
		"no passphrase":                {text: sealed, code: verify.CodeKeyPassphrase},
		"a wrong passphrase":           {text: sealed, passphrase: "word", code: verify.CodeKeyPassphrase},
		"encrypted garbage":            {text: pemOf(t, "ENCRYPTED SIGSTORE PRIVATE KEY", []byte("{}"), nil), passphrase: "words", code: verify.CodeKeyPassphrase},
		"encrypted, and costly": {text: pemOf(t, "ENCRYPTED SIGSTORE PRIVATE KEY", []byte(`{"kdf":{"name":"scrypt",
			"params":{"N":1073741824,"r":8,"p":1},"salt":"AA=="},"cipher":{"name":"nacl/secretbox","nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},"ciphertext":"AA=="}`), nil),
			passphrase: "words", code: verify.CodeKeyPassphrase},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := readKey(verify.KeyRequest{PEM: c.text, Passphrase: []byte(c.passphrase)})
			refused(t, err, c.code)
			if read != nil {
				t.Errorf("and yet: %+v", read)
			}
			_, err = sign(verify.SignRequest{Artifact: digestOfNothing, Key: c.text, Passphrase: []byte(c.passphrase)})
			if err == nil {
				t.Error("it signs")
			}
		})
	}
	t.Run("a public key signs nothing", func(t *testing.T) {
		_, err := sign(verify.SignRequest{Artifact: digestOfNothing, Key: good.Public})
		refused(t, err, verify.CodeKeyMalformed)
	})
	t.Run("a private key verifies nothing", func(t *testing.T) {
		_, err := parsePublic(good.Private)
		refused(t, err, verify.CodeKeyMalformed)
	})
	t.Run("an unknown algorithm", func(t *testing.T) {
		for _, algorithm := range []verify.Algorithm{"", "rsa", "ed448", "ECDSA-P256"} {
			_, err := newKey(verify.NewKeyRequest{Algorithm: algorithm})
			refused(t, err, verify.CodeKeyAlgorithm)
		}
	})
}
