package verify

import (
	"encoding/pem"
	"errors"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// KeyID returns the id of a PEM public key, as Signer.Key. It reads no more of the key
// than its text: whether it is one is for the worker to say.
func KeyID(text string) (string, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" {
		return "", errors.New("is not a public key in PEM")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return "", errors.New("holds more than one key")
	}
	return string(digest.Of(block.Bytes)), nil
}
