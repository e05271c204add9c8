// Package receipt signs this host's copies of receipts, and verifies them anywhere with
// the public key alone (docs/protocol-session.md, "Receipts").
//
// A signed receipt is {receipt, keyId, signature}: an Ed25519 signature (RFC 8032) over
// the canonical form (RFC 8785) of the receipt, base64url without padding. It is evidence
// towards third parties that this host held the receipt; it proves nothing against code
// that runs as the same user, which can read the key.
//
// The package keeps no receipts and decides nothing about them.
package receipt

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// Names of the two files of a host's key, below the data directory's keys/.
const (
	PrivateFile = "receipts.key" // PKCS #8, PEM, 0600
	PublicFile  = "receipts.pub" // SubjectPublicKeyInfo, PEM: to be given to whoever verifies
)

// MaxDocument bounds a signed receipt in bytes.
const MaxDocument = 64 << 10

// Signed is a receipt with a host's signature.
type Signed struct {
	Receipt   json.RawMessage `json:"receipt"`
	KeyID     string          `json:"keyId"`
	Signature string          `json:"signature"`
}

// A Key signs.
type Key struct {
	private ed25519.PrivateKey
	ID      string
}

// Errors of Verify.
var (
	// ErrSignature reports a signature that is not of this key over this receipt.
	ErrSignature = errors.New("the signature does not belong to this receipt and this key")
	// ErrOtherKey reports a document that another key signed.
	ErrOtherKey = errors.New("another key signed it")
)

// KeyID names a public key: "sha256:" and the SHA-256 of its 32 bytes in hexadecimal.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The DER of these keys differs in the key's own 32 bytes alone (RFC 8410 §4 and §7).
var (
	privatePrefix = []byte{0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20}
	publicPrefix  = []byte{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}
)

const (
	privateType = "PRIVATE KEY"
	publicType  = "PUBLIC KEY"
)

// Open returns the key below dir, and makes one, with dir, where there is none. Two
// processes that make one at the same time come to the same.
func Open(dir string) (*Key, error) {
	path := filepath.Join(dir, PrivateFile)
	key, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(dir, path); err != nil {
			return nil, fmt.Errorf("receipt key: %w", err)
		}
		key, err = read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("receipt key: %w", err)
	}
	return key, publish(dir, key)
}

func read(path string) (*Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxDocument {
		return nil, fmt.Errorf("%s is no key file", path)
	}
	if open := info.Mode().Perm() & exposed; open != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): whoever read it can sign receipts", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seed, err := der(raw, privateType, privatePrefix)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	return &Key{private: private, ID: KeyID(private.Public().(ed25519.PublicKey))}, nil
}

// der returns the key in a PEM file.
func der(raw []byte, kind string, prefix []byte) ([]byte, error) {
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != kind || len(rest) > 0 || len(block.Bytes) != len(prefix)+32 || string(block.Bytes[:len(prefix)]) != string(prefix) {
		return nil, fmt.Errorf("is no %s of the kind Ed25519 in PEM", kind)
	}
	return block.Bytes[len(prefix):], nil
}

// create makes a key. A key that another process made meanwhile is left as it is.
func create(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	raw := pem.EncodeToMemory(&pem.Block{Type: privateType, Bytes: append(privatePrefix[:len(privatePrefix):len(privatePrefix)], private.Seed()...)})
	err = writeNew(dir, path, raw)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// writeNew writes a file that appears whole or not at all, and only where there was none.
func writeNew(dir, path string, raw []byte) error {
	f, err := os.CreateTemp(dir, ".key-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// publish writes the public half beside the key, where it is missing.
func publish(dir string, key *Key) error {
	path := filepath.Join(dir, PublicFile)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := writeNew(dir, path, key.Public()); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("receipt key: %w", err)
	}
	return nil
}

// Public returns the public key in PEM.
func (k *Key) Public() []byte {
	public := k.private.Public().(ed25519.PublicKey)
	return pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: append(publicPrefix[:len(publicPrefix):len(publicPrefix)], public...)})
}

// Sign returns the document {receipt, keyId, signature}. receipt must keep the value
// rules.
func (k *Key) Sign(receipt json.RawMessage) (json.RawMessage, error) {
	canonical, err := wire.Canonical(receipt)
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	out := append([]byte(`{"receipt":`), canonical...)
	out = append(out, `,"keyId":"`+k.ID+`","signature":"`...)
	out = append(out, wire.EncodeBytes(ed25519.Sign(k.private, canonical))...)
	return append(out, `"}`...), nil
}

// ReadPublic reads a public key in PEM.
func ReadPublic(raw []byte) (ed25519.PublicKey, error) {
	b, err := der(raw, publicType, publicPrefix)
	if err != nil {
		return nil, err
	}
	return ed25519.PublicKey(b), nil
}

// Verify returns the receipt of a signed document if the key signed it. The error is an
// *ijson.Error, a *wire.Fault of the receipt's form, or wraps ErrOtherKey or ErrSignature.
func Verify(document []byte, public ed25519.PublicKey) (*wire.Receipt, error) {
	if len(document) > MaxDocument {
		return nil, fmt.Errorf("a document of %d bytes: %w", len(document), ErrSignature)
	}
	var s Signed
	if err := ijson.Unmarshal(document, &s); err != nil {
		return nil, err
	}
	var r wire.Receipt
	if err := wire.Decode(s.Receipt, &r); err != nil {
		return nil, err
	}
	if id := KeyID(public); s.KeyID != id {
		return nil, fmt.Errorf("%w: %s, not %s", ErrOtherKey, s.KeyID, id)
	}
	signature, ok := wire.DecodeBytes(s.Signature)
	if !ok || len(signature) != ed25519.SignatureSize {
		return nil, ErrSignature
	}
	canonical, err := wire.Canonical(s.Receipt)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(public, canonical, signature) {
		return nil, ErrSignature
	}
	return &r, nil
}
