package verify

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// TestKeyID holds that an id is the digest of one public key, and of nothing else.
func TestKeyID(t *testing.T) {
	block := func(kind string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("key")}))
	}
	want := string(digest.Of([]byte("key")))
	for name, text := range map[string]string{
		"plain": block("PUBLIC KEY"), "with words around it": "A key:\n" + block("PUBLIC KEY") + "\nthat was it\n",
		"with CR LF": strings.ReplaceAll(block("PUBLIC KEY"), "\n", "\r\n"),
	} {
		if id, err := KeyID(text); err != nil || id != want {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "no PEM": "key", "a private key": block("PRIVATE KEY"), "a certificate": block("CERTIFICATE"),
		"an RSA key": block("RSA PUBLIC KEY"), "two keys": block("PUBLIC KEY") + block("PUBLIC KEY"),
		"a public key and its private": block("PUBLIC KEY") + block("PRIVATE KEY"), "without an end": strings.TrimSuffix(block("PUBLIC KEY"), "-----END PUBLIC KEY-----\n"),
	} {
		if id, err := KeyID(text); err == nil || id != "" {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}
