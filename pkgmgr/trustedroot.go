package pkgmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// TrustedRootPath is where the trusted root of a configuration directory lies.
func TrustedRootPath(configDir string) string { return filepath.Join(configDir, trustedRootFile) }

// A RootProver says what TUF metadata prove.
type RootProver interface {
	TUF(context.Context, verify.TUFRequest) (*verify.TUFAnswer, error)
}

// A TrustedRootUpdate says where a trusted root is taken from and put to.
type TrustedRootUpdate struct {
	Path    string // of the trusted root; what is known of its repository lies beside it
	URL     string // of the TUF repository; "": as the last time, else Sigstore's
	TUFRoot []byte // the repository's root to begin with; nil: as the last time, else Sigstore's
	Replace bool   // also a trusted root that no update put there
	Now     time.Time
	// Progress is told each file that is fetched; nil: nobody.
	Progress func(file string)
}

// A TrustedRootUpdated says what an update did.
type TrustedRootUpdated struct {
	Facts       *verify.TrustedRootFacts
	Was         digest.Digest // the one before, "" where there was none
	URL         string
	RootVersion int64     // of the TUF root that is followed
	Version     int64     // of the targets
	Expires     time.Time // when the repository will have said something newer at the latest
}

// A TrustedRootRefused says why no trusted root could be had from a repository.
type TrustedRootRefused struct {
	URL     string
	Refusal *verify.Refusal
}

func (e *TrustedRootRefused) Error() string {
	return "trusted root of " + e.URL + ": " + e.Refusal.Message
}

// Unwrap returns the refusal.
func (e *TrustedRootRefused) Unwrap() error { return e.Refusal }

// A ForeignTrustedRoot says that no update put the trusted root there that one would
// replace.
type ForeignTrustedRoot struct{ Path string }

func (e *ForeignTrustedRoot) Error() string {
	return e.Path + " is not what an update put there; it would be replaced"
}

// A BadMirror says why nothing can be fetched from a URL.
type BadMirror struct {
	URL string
	Err error
}

func (e *BadMirror) Error() string { return fmt.Sprintf("\"%s\" %v", e.URL, e.Err) }

// Unwrap returns the reason.
func (e *BadMirror) Unwrap() error { return e.Err }

// Update fetches the trusted root of a TUF repository and puts it at u.Path. Everything
// is proved before anything changes, and nothing that is older than what was proved the
// last time is taken. What was proved is kept beside the trusted root, which is written
// first: a call that is killed between is made good by the next.
func (u TrustedRootUpdate) Update(ctx context.Context, fetch Fetcher, prove RootProver) (*TrustedRootUpdated, error) {
	kept, before, err := readTUFState(u.Path)
	if err != nil {
		return nil, err
	}
	next, err := u.begin(kept)
	if err != nil {
		return nil, err
	}
	r := &tufRepository{url: next.URL, fetch: fetch, prove: prove, now: u.Now, until: time.Now().Add(maxTUFTime), progress: u.Progress}
	out := &TrustedRootUpdated{URL: next.URL}
	answer, document, err := r.take(ctx, next)
	if err != nil {
		return nil, err
	}
	out.Facts, out.RootVersion, out.Version, out.Expires = answer.TrustedRoot, answer.RootVersion, answer.Version, answer.Expires
	next.Document = answer.TrustedRoot.Digest
	text, err := next.encode()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(u.Path), 0o700); err != nil {
		return nil, err
	}
	return out, textfile.Edit(TUFStatePath(u.Path), maxTUFState, func(now []byte, exists bool) ([]byte, error) {
		if exists != (before != nil) || !bytes.Equal(now, before) {
			return nil, &Busy{What: u.Path}
		}
		if out.Was, err = u.replaced(kept, next.Document); err != nil {
			return nil, err
		}
		if out.Was != next.Document {
			err = textfile.Write(u.Path, document)
		}
		return text, err
	})
}

// begin says what a repository is begun with: what was proved of it the last time, unless
// another root to begin with is named, which makes it another repository.
func (u TrustedRootUpdate) begin(kept *tufState) (*tufState, error) {
	next := &tufState{Format: tufStateFormat, URL: u.URL}
	if u.TUFRoot != nil {
		next.Anchor, next.Root = digest.Of(u.TUFRoot), u.TUFRoot
	}
	if kept != nil && (u.TUFRoot == nil || kept.Anchor == next.Anchor) {
		next.Anchor, next.Root, next.Timestamp, next.Snapshot = kept.Anchor, kept.Root, kept.Timestamp, kept.Snapshot
		if next.URL == "" {
			next.URL = kept.URL
		}
	}
	if next.URL == "" {
		next.URL = verify.SigstoreMirror
	}
	at, err := parseMirror(next.URL)
	next.URL = at
	return next, err
}

// replaced returns the digest of the trusted root that is to be replaced, if it may be.
func (u TrustedRootUpdate) replaced(kept *tufState, by digest.Digest) (digest.Digest, error) {
	text, err := textfile.Read(u.Path, verify.MaxTrustedRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	was := digest.Of(text)
	if was != by && !u.Replace && (kept == nil || kept.Document != was) {
		return "", &ForeignTrustedRoot{u.Path}
	}
	return was, nil
}

// parseMirror reads the URL of a repository. The error continues a sentence.
func parseMirror(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		err = errors.New("is not a valid URL")
	case u.Scheme != "https":
		err = fmt.Errorf("has the scheme \"%s\"; trusted roots are fetched over https only", u.Scheme)
	case u.User != nil:
		err = errors.New("holds a user name; none is ever sent")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		err = errors.New("holds a query or a fragment; it names a directory")
	}
	if err != nil {
		return "", &BadMirror{text, err}
	}
	return strings.TrimRight(text, "/") + "/", nil
}

// maxTUFTime bounds the time after which no further file of a repository is fetched.
const maxTUFTime = 10 * time.Minute

// A tufRepository is a TUF repository behind https.
type tufRepository struct {
	url      string
	fetch    Fetcher
	prove    RootProver
	now      time.Time
	until    time.Time
	progress func(string)
}

// take follows the roots, then what stands below the last one. It returns the document
// that was looked for, and leaves in s what was proved.
func (r *tufRepository) take(ctx context.Context, s *tufState) (*verify.TUFAnswer, []byte, error) {
	request := verify.TUFRequest{Root: s.Root, Now: r.now}
	// The root to begin with may have expired; what is asked of it is its version only.
	version, err := r.rootVersion(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	for followed := 0; ; followed++ {
		next, err := r.file(ctx, verify.TUFRootPath(version+1), verify.MaxTUFRoot)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if followed == verify.MaxTUFRoots {
			return nil, nil, r.refused(&verify.Refusal{Code: verify.CodeTUFVersion,
				Message: fmt.Sprintf("more than %d roots follow each other; begin with a newer one", verify.MaxTUFRoots)})
		}
		answer, err := r.ask(ctx, verify.TUFRequest{Root: request.Root, NextRoot: next, Now: r.now})
		if err != nil {
			return nil, nil, err
		}
		request.Root, version = next, answer.RootVersion
	}
	request.Kept = verify.TUFMetadata{Timestamp: s.Timestamp, Snapshot: s.Snapshot}
	for range maxTUFSteps {
		answer, err := r.ask(ctx, request)
		if err != nil {
			return nil, nil, err
		}
		if answer.TrustedRoot != nil {
			s.Root, s.Timestamp, s.Snapshot = answer.Root, request.Offered.Timestamp, request.Offered.Snapshot
			return answer, request.Document, nil
		}
		text, err := r.file(ctx, answer.Need.Path, answer.Need.Limit)
		if errors.Is(err, fs.ErrNotExist) {
			err = r.refused(&verify.Refusal{Code: verify.CodeNetworkNotFound, Message: r.url + answer.Need.Path + " does not exist"})
		}
		if err != nil {
			return nil, nil, err
		}
		switch answer.Need.Role {
		case verify.TUFTimestamp:
			request.Offered.Timestamp = text
		case verify.TUFSnapshot:
			request.Offered.Snapshot = text
		case verify.TUFTargets:
			request.Offered.Targets = text
		default:
			request.Document = text
		}
	}
	return nil, nil, errors.New("the verify worker asks for one file of the repository again and again")
}

// maxTUFSteps is one question for each file below the root, and a last one.
const maxTUFSteps = 5

// rootVersion is the version of the root to begin with.
func (r *tufRepository) rootVersion(ctx context.Context, request verify.TUFRequest) (int64, error) {
	request.Now = time.Time{} // nothing has expired by then
	answer, err := r.ask(ctx, request)
	if err != nil {
		return 0, err
	}
	return answer.RootVersion, nil
}

func (r *tufRepository) ask(ctx context.Context, request verify.TUFRequest) (*verify.TUFAnswer, error) {
	answer, err := r.prove.TUF(ctx, request)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		err = r.refused(refusal)
	}
	return answer, err
}

func (r *tufRepository) refused(refusal *verify.Refusal) error {
	return &TrustedRootRefused{URL: r.url, Refusal: refusal}
}

// file fetches one file. One that is not there is fs.ErrNotExist; an empty one is none
// that proves anything, and is not nil.
func (r *tufRepository) file(ctx context.Context, path string, limit int64) ([]byte, error) {
	from := r.url + path
	if time.Now().After(r.until) {
		return nil, r.refused(&verify.Refusal{Code: verify.CodeNetworkTimeout, Message: fmt.Sprintf("not everything has come within %v", maxTUFTime)})
	}
	if r.progress != nil {
		r.progress(from)
	}
	b := bytes.NewBuffer([]byte{})
	_, err := r.fetch.Fetch(ctx, verify.FetchRequest{URL: from, Limit: limit}, b)
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		if refusal.Code == verify.CodeNetworkNotFound {
			return nil, fs.ErrNotExist
		}
		return nil, r.refused(refusal)
	}
	return b.Bytes(), err
}
