package sigstoretest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// A TUFRepository is what a TUF repository holds at one moment. Equal seeds have equal
// keys, so that one is the later state of another. Each root has a key of its own.
type TUFRepository struct {
	Seed       string
	Root       int64 // the last root's version
	Timestamp  int64
	Snapshot   int64
	Targets    int64
	Expires    time.Time // of all but the root
	RootExpiry time.Time
	Document   []byte // the trusted root; nil: none is named
	Flat       bool   // no consistent snapshot: names without versions and hashes
	NewKeys    bool   // the last root has other keys for the timestamp and the snapshot
}

// Files returns the files by their paths below the repository's address.
func (r TUFRepository) Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	var root *metadata.Metadata[metadata.RootType]
	for v := int64(1); v <= r.Root; v++ {
		root = metadata.Root(r.RootExpiry)
		root.Signed.Version, root.Signed.ConsistentSnapshot = v, !r.Flat
		for _, role := range []string{metadata.ROOT, metadata.TIMESTAMP, metadata.SNAPSHOT, metadata.TARGETS} {
			key, err := metadata.KeyFromPublicKey(r.key(role, v).Public())
			if err != nil {
				return nil, err
			}
			if err := root.Signed.AddKey(key, role); err != nil {
				return nil, err
			}
		}
		text, err := sign(root, r.key(metadata.ROOT, v-1), r.key(metadata.ROOT, v))
		if err != nil {
			return nil, err
		}
		files[fmt.Sprintf("%d.root.json", v)] = text
	}
	targets := metadata.Targets(r.Expires)
	targets.Signed.Version = r.Targets
	if r.Document != nil {
		target, err := metadata.TargetFile().FromBytes("trusted_root.json", r.Document, "sha256")
		if err != nil {
			return nil, err
		}
		targets.Signed.Targets["trusted_root.json"] = target
		sum := sha256.Sum256(r.Document)
		files["targets/"+r.name(hex.EncodeToString(sum[:]), "trusted_root.json")] = r.Document
	}
	snapshot := metadata.Snapshot(r.Expires)
	snapshot.Signed.Version = r.Snapshot
	snapshot.Signed.Meta["targets.json"] = metadata.MetaFile(r.Targets)
	timestamp := metadata.Timestamp(r.Expires)
	timestamp.Signed.Version = r.Timestamp
	timestamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(r.Snapshot)
	var err error
	if files[r.name(fmt.Sprint(r.Targets), "targets.json")], err = sign(targets, r.key(metadata.TARGETS, r.Root)); err != nil {
		return nil, err
	}
	if files[r.name(fmt.Sprint(r.Snapshot), "snapshot.json")], err = sign(snapshot, r.key(metadata.SNAPSHOT, r.Root)); err != nil {
		return nil, err
	}
	files["timestamp.json"], err = sign(timestamp, r.key(metadata.TIMESTAMP, r.Root))
	return files, err
}

func (r TUFRepository) name(prefix, name string) string {
	if r.Flat {
		return name
	}
	return prefix + "." + name
}

// key is the key of a role under the root of a version.
func (r TUFRepository) key(role string, root int64) ed25519.PrivateKey {
	name := r.Seed + " " + role
	switch {
	case role == metadata.ROOT:
		name += fmt.Sprint(max(root, 1))
	case r.NewKeys && root == r.Root && role != metadata.TARGETS:
		name += " new"
	}
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func sign[T metadata.Roles](m *metadata.Metadata[T], keys ...ed25519.PrivateKey) ([]byte, error) {
	signed := map[string]bool{}
	for _, key := range keys {
		if signed[string(key)] {
			continue
		}
		signed[string(key)] = true
		signer, err := signature.LoadSigner(key, crypto.Hash(0))
		if err != nil {
			return nil, err
		}
		if _, err := m.Sign(signer); err != nil {
			return nil, err
		}
	}
	return m.ToBytes(false)
}
