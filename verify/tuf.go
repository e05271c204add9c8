package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// TrustedRootTarget is what a TUF repository calls the trusted root of Sigstore.
const TrustedRootTarget = "trusted_root.json"

// SigstoreMirror is where the TUF repository of Sigstore's public instance is published.
const SigstoreMirror = "https://tuf-repo-cdn.sigstore.dev"

// The bounds of a TUF repository's files, in bytes, and of the roots that one update follows.
const (
	MaxTUFRoot      = 512 << 10
	MaxTUFTimestamp = 16 << 10
	MaxTUFSnapshot  = 2 << 20
	MaxTUFTargets   = 4 << 20
	MaxTUFRoots     = 256
)

// TUFMetadata is what a TUF repository says below its root, as it was signed.
type TUFMetadata struct {
	Timestamp []byte `json:"timestamp,omitempty"`
	Snapshot  []byte `json:"snapshot,omitempty"`
	Targets   []byte `json:"targets,omitempty"`
}

// A TUFRequest asks what the files of a TUF repository prove (TUF specification 1.0.31,
// section 5). Nothing is fetched: the answer names the file that is needed next.
type TUFRequest struct {
	// Root is the root that is trusted; absent: that of Sigstore's public instance.
	Root []byte `json:"root,omitempty"`
	// NextRoot is to follow it, and must be signed by both. Nothing else is looked at then.
	NextRoot []byte      `json:"nextRoot,omitempty"`
	Kept     TUFMetadata `json:"kept,omitzero"`    // what was proved last: nothing older counts
	Offered  TUFMetadata `json:"offered,omitzero"` // what was fetched so far
	Document []byte      `json:"document,omitempty"`
	Now      time.Time   `json:"now"`
}

// A TUFAnswer says what is proved. Exactly one of Need and TrustedRoot is set.
type TUFAnswer struct {
	Root        []byte    `json:"root"` // the root that is trusted now
	RootVersion int64     `json:"rootVersion"`
	RootExpires time.Time `json:"rootExpires"`
	// Need is the file to be fetched next if no further root follows.
	Need        *TUFFile          `json:"need,omitempty"`
	TrustedRoot *TrustedRootFacts `json:"trustedRoot,omitempty"` // what was looked for
	Version     int64             `json:"version,omitempty"`     // of the targets that name it
	Expires     time.Time         `json:"expires,omitzero"`      // when the timestamp does
}

// A TUFRole is a file of a repository, by what stands in it.
type TUFRole string

// The files that are asked for.
const (
	TUFTimestamp TUFRole = "timestamp"
	TUFSnapshot  TUFRole = "snapshot"
	TUFTargets   TUFRole = "targets"
	TUFDocument  TUFRole = "document"
)

// A TUFFile is a file of a repository: its path below the repository's address, and the
// most bytes that it may have.
type TUFFile struct {
	Role  TUFRole `json:"role"`
	Path  string  `json:"path"`
	Limit int64   `json:"limit"`
}

// TUFRootPath is where a repository has the root of a version.
func TUFRootPath(version int64) string { return fmt.Sprintf("%d.root.json", version) }

// A TrustedRootRequest asks what stands in a trusted root.
type TrustedRootRequest struct {
	Document []byte `json:"document,omitempty"` // absent: the one that is shipped
}

// TrustedRootFacts are what stands in a trusted root.
type TrustedRootFacts struct {
	Digest      digest.Digest `json:"digest"`
	Authorities []TrustedKey  `json:"authorities"` // certificate authorities
	Logs        []TrustedKey  `json:"logs"`        // transparency logs
	CTLogs      []TrustedKey  `json:"ctLogs"`      // logs of certificates
	Timestamps  []TrustedKey  `json:"timestamps"`  // timestamp authorities
}

// A TrustedKey is one authority or log with one key.
type TrustedKey struct {
	URL   string    `json:"url"`
	Name  string    `json:"name"` // a certificate's subject, or a log's id
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"` // zero: still in use
}

// The codes of refused TUF metadata.
const (
	CodeTUFRoot      Code = "tuf.root"      // the root to begin with is none
	CodeTUFMalformed Code = "tuf.malformed" // a file of the repository cannot be read
	CodeTUFSignature Code = "tuf.signature" // too few of those signed who must
	CodeTUFVersion   Code = "tuf.version"   // older than what was proved before, or another version than announced
	CodeTUFExpired   Code = "tuf.expired"   // its time is over
	CodeTUFMismatch  Code = "tuf.mismatch"  // other bytes than those that were announced
	CodeTUFTarget    Code = "tuf.target"    // the repository names no trusted root
)

// TUF asks what the files of a TUF repository prove. The error is as that of Bundle.
func (s *Session) TUF(ctx context.Context, r TUFRequest) (*TUFAnswer, error) {
	answer, err := s.ask(ctx, Request{TUF: &r})
	if err != nil {
		return nil, err
	}
	a := answer.TUF
	if a == nil || (a.Need == nil) == (a.TrustedRoot == nil) || len(a.Root) == 0 || a.RootVersion < 1 {
		return nil, s.breakOff("answered something else", nil)
	}
	if a.TrustedRoot != nil && (len(r.Document) == 0 || a.TrustedRoot.Digest != digest.Of(r.Document)) {
		return nil, s.breakOff("answered about something else", nil)
	}
	return a, nil
}

// TrustedRoot asks what stands in a trusted root. The error is as that of Bundle.
func (s *Session) TrustedRoot(ctx context.Context, document []byte) (*TrustedRootFacts, error) {
	answer, err := s.ask(ctx, Request{TrustedRoot: &TrustedRootRequest{Document: document}})
	if err != nil {
		return nil, err
	}
	f := answer.TrustedRoot
	if f == nil || document != nil && f.Digest != digest.Of(document) {
		return nil, s.breakOff("answered about something else", nil)
	}
	return f, nil
}
