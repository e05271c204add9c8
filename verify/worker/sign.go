package worker

import (
	"crypto"
	"crypto/rand"
	"encoding/hex"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/switchyard-plugins/switchyard/verify"
)

// bundleType is the version of Sigstore bundles that is written.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// sign makes a bundle over an artifact's bytes with a key. ECDSA signs the digest;
// a pure Ed25519 signature is over the bytes themselves, which are read.
func sign(r verify.SignRequest) (*verify.Signed, error) {
	private, err := parsePrivate(r.Key, r.Passphrase)
	if err != nil {
		return nil, err
	}
	public, err := newPublic(private.Public())
	if err != nil {
		return nil, err
	}
	sum, err := hex.DecodeString(r.Artifact.Hex())
	if err != nil || len(sum) != 32 {
		return nil, refuse(verify.CodeRequestMalformed, "artifact %q is no SHA-256 digest", r.Artifact)
	}
	message, hash := sum, crypto.SHA256
	if public.algorithm() == verify.Ed25519 {
		if message, err = readArtifact(r.Path, r.Artifact); err != nil {
			return nil, err
		}
		hash = crypto.Hash(0)
	}
	signature, err := private.Sign(rand.Reader, message, hash)
	if err != nil {
		return nil, err
	}
	document, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: bundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: public.hint()}},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum},
			Signature:     signature,
		}},
	})
	if err != nil {
		return nil, err
	}
	return &verify.Signed{Bundle: document, Signer: verify.Signer{Key: public.id()}}, nil
}
