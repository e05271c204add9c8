package worker

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"

	"github.com/switchyard-plugins/switchyard/verify"
)

// checkTUF follows the client's workflow of the TUF specification (section 5.3 to 5.7) as
// far as the files that it is given go, and names the next one.
func checkTUF(r verify.TUFRequest) (*verify.TUFAnswer, error) {
	if r.Root == nil {
		r.Root = tuf.DefaultRoot()
	}
	for name, text := range map[string][]byte{"the root to begin with": r.Root, "the next root": r.NextRoot, "the timestamp that was kept": r.Kept.Timestamp,
		"the snapshot that was kept": r.Kept.Snapshot, "timestamp.json": r.Offered.Timestamp, "snapshot.json": r.Offered.Snapshot, "targets.json": r.Offered.Targets} {
		if text == nil {
			continue
		}
		if err := plainMetadata(text); err != nil {
			return nil, refuse(verify.CodeTUFMalformed, "%s: %v", name, err)
		}
	}
	trusted, err := trustedmetadata.New(r.Root)
	if err != nil {
		return nil, refuse(verify.CodeTUFRoot, "the TUF root to begin with: %v", err)
	}
	trusted.RefTime = r.Now
	out := &verify.TUFAnswer{Root: r.Root}
	if r.NextRoot != nil {
		version := trusted.Root.Signed.Version + 1
		if _, err := trusted.UpdateRoot(r.NextRoot); err != nil {
			return nil, refuseTUF(verify.TUFRootPath(version), err)
		}
		out.Root = r.NextRoot
	}
	out.RootVersion, out.RootExpires = trusted.Root.Signed.Version, trusted.Root.Signed.Expires
	if r.NextRoot != nil {
		out.Need = &timestampFile
		return out, nil
	}
	return out, checkBelow(trusted, r, out)
}

// plainMetadata refuses JSON that the library would read otherwise than others, or crash
// on: members that occur twice, and null where an object is meant.
func plainMetadata(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.ReadToken()
		switch {
		case err == io.EOF && d.InputOffset() > 0:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if token.Kind() == 'n' {
			at := d.StackPointer()
			if name := at.LastToken(); name != "custom" && name != "delegations" {
				return fmt.Errorf("null at %q", at)
			}
		}
	}
}

var timestampFile = verify.TUFFile{Role: verify.TUFTimestamp, Path: "timestamp.json", Limit: verify.MaxTUFTimestamp}

// checkBelow checks what stands below the root that is trusted. What was kept is loaded
// first: it need not be valid any more, but nothing older than it is taken.
func checkBelow(trusted *trustedmetadata.TrustedMetadata, r verify.TUFRequest, out *verify.TUFAnswer) error {
	root := trusted.Root.Signed
	if root.IsExpired(r.Now) {
		return refuse(verify.CodeTUFExpired, "root.json, version %d, expired at %s, and no newer one was offered", root.Version, root.Expires.Format(time.RFC3339))
	}
	if r.Kept.Timestamp != nil {
		// Not signed as the root of today asks: its keys were exchanged, which ends what
		// it says (5.3.11).
		if _, err := trusted.UpdateTimestamp(r.Kept.Timestamp); err != nil && trusted.Timestamp != nil && !expired(err) {
			return refuseTUF("the timestamp that was kept", err)
		}
	}
	if r.Offered.Timestamp == nil {
		out.Need = &timestampFile
		return nil
	}
	switch _, err := trusted.UpdateTimestamp(r.Offered.Timestamp); {
	case errors.Is(err, &metadata.ErrEqualVersionNumber{}) && !bytes.Equal(r.Offered.Timestamp, r.Kept.Timestamp):
		return refuse(verify.CodeTUFVersion, "%s is another one than the one with the same version, %d, that was proved before",
			timestampFile.Path, trusted.Timestamp.Signed.Version)
	case errors.Is(err, &metadata.ErrEqualVersionNumber{}):
	case err != nil:
		return refuseTUF(timestampFile.Path, err)
	}
	if trusted.Timestamp.Signed.IsExpired(r.Now) {
		return refuse(verify.CodeTUFExpired, "%s, version %d, expired at %s: newer ones are withheld, or the repository is not cared for",
			timestampFile.Path, trusted.Timestamp.Signed.Version, trusted.Timestamp.Signed.Expires.Format(time.RFC3339))
	}
	out.Expires = trusted.Timestamp.Signed.Expires
	if r.Kept.Snapshot != nil {
		_, _ = trusted.UpdateSnapshot(r.Kept.Snapshot, true) // as the timestamp above: loaded where it is signed
	}
	return checkSnapshot(trusted, r, out)
}

func checkSnapshot(trusted *trustedmetadata.TrustedMetadata, r verify.TUFRequest, out *verify.TUFAnswer) error {
	consistent := trusted.Root.Signed.ConsistentSnapshot
	announced := trusted.Timestamp.Signed.Meta["snapshot.json"]
	if announced == nil {
		return refuse(verify.CodeTUFMalformed, "%s announces no snapshot", timestampFile.Path)
	}
	snapshot := versioned(consistent, announced.Version, "snapshot.json")
	if r.Offered.Snapshot == nil {
		out.Need = &verify.TUFFile{Role: verify.TUFSnapshot, Path: snapshot, Limit: bound(announced.Length, verify.MaxTUFSnapshot)}
		return nil
	}
	if _, err := trusted.UpdateSnapshot(r.Offered.Snapshot, false); err != nil {
		return refuseTUF(snapshot, err)
	}
	announced = trusted.Snapshot.Signed.Meta["targets.json"]
	if announced == nil {
		return refuse(verify.CodeTUFMalformed, "%s announces no targets", snapshot)
	}
	targets := versioned(consistent, announced.Version, "targets.json")
	if r.Offered.Targets == nil {
		out.Need = &verify.TUFFile{Role: verify.TUFTargets, Path: targets, Limit: bound(announced.Length, verify.MaxTUFTargets)}
		return nil
	}
	signed, err := trusted.UpdateTargets(r.Offered.Targets)
	if err != nil {
		return refuseTUF(targets, err)
	}
	out.Version = signed.Signed.Version
	return checkDocument(signed.Signed.Targets[verify.TrustedRootTarget], consistent, targets, r.Document, out)
}

// checkDocument checks the file that was looked for against what the targets say of it,
// and that it is what it is called.
func checkDocument(target *metadata.TargetFiles, consistent bool, by string, document []byte, out *verify.TUFAnswer) error {
	if target == nil {
		return refuse(verify.CodeTUFTarget, "%s names no %s", by, verify.TrustedRootTarget)
	}
	sum := target.Hashes["sha256"]
	if len(sum) != 32 || target.Length < 1 || target.Length > verify.MaxTrustedRoot {
		return refuse(verify.CodeTUFTarget, "%s names a %s of %d bytes with a SHA-256 of %d; at most %d bytes are read, and a SHA-256 has 32",
			by, verify.TrustedRootTarget, target.Length, len(sum), verify.MaxTrustedRoot)
	}
	path := "targets/" + verify.TrustedRootTarget
	if consistent {
		path = "targets/" + hex.EncodeToString(sum) + "." + verify.TrustedRootTarget
	}
	if document == nil {
		out.Need = &verify.TUFFile{Role: verify.TUFDocument, Path: path, Limit: target.Length}
		return nil
	}
	if err := target.VerifyLengthHashes(document); err != nil {
		return refuseTUF(path, err)
	}
	facts, err := describeRoot(document)
	out.TrustedRoot = facts
	return err
}

func versioned(consistent bool, version int64, name string) string {
	if consistent {
		return fmt.Sprintf("%d.%s", version, name)
	}
	return name
}

// bound is the most bytes of a file of which a length may have been announced.
func bound(announced, most int64) int64 {
	if announced > 0 {
		return min(announced, most)
	}
	return most
}

func expired(err error) bool { return errors.Is(err, &metadata.ErrExpiredMetadata{}) }

// refuseTUF gives what is wrong with a file of a repository a code.
func refuseTUF(name string, err error) error {
	code := verify.CodeTUFMalformed
	switch {
	case expired(err):
		code = verify.CodeTUFExpired
	case errors.Is(err, &metadata.ErrUnsignedMetadata{}):
		code = verify.CodeTUFSignature
	case errors.Is(err, &metadata.ErrBadVersionNumber{}):
		code = verify.CodeTUFVersion
	case errors.Is(err, &metadata.ErrLengthOrHashMismatch{}):
		code = verify.CodeTUFMismatch
	}
	return refuse(code, "%s: %v", name, err)
}
