package pkgmgr

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// copyBuffer is the size of one read of an archive, in bytes.
const copyBuffer = 1 << 20

// staged is a package in staging/<name>/tree, not yet looked into.
type staged struct {
	*stage
	source  string        // where it came from, for messages and the record
	archive digest.Digest // "" for a directory source
	tree    *archive.Tree
	prove   *proving    // by whom everything about it is proved
	proof   chan proved // what the bundles beside the archive prove; nil where nobody asks
	stop    func()      // ends the proof; nil without one
}

// discard removes the stage after nobody reads it any more.
func (s *staged) discard() {
	if s.stop != nil {
		s.stop()
	}
	s.prove.close()
	s.stage.discard()
}

// proved is what came of proving.
type proved struct {
	evidence *Evidence
	err      error
}

// evidence waits for what vouches for the archive. It is called once.
func (s *staged) evidence() (*Evidence, error) {
	if s.proof == nil {
		return nil, nil
	}
	p := <-s.proof
	return p.evidence, p.err
}

// contents reads the staged package by the rules of packages.
func (s *staged) contents() (*Contents, error) {
	root, err := os.OpenRoot(s.join("tree"))
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	defer root.Close()
	return readContents(root, s.tree, s.source)
}

// stageSource brings a directory or an archive into a new stage, which is to be
// published. An archive is copied once; that copy is hashed and, only if its
// digest is the wanted one (or none is wanted), extracted. The caller discards the
// stage.
func (h *Home) stageSource(ctx context.Context, source string, want digest.Digest) (*staged, error) {
	return h.fill(ctx, h.newStage, source, want)
}

// readSource is stageSource for a package that is only looked at.
func (h *Home) readSource(ctx context.Context, source string, want digest.Digest) (*staged, error) {
	return h.fill(ctx, h.scratchStage, source, want)
}

func (h *Home) fill(ctx context.Context, open func() (*stage, error), source string, want digest.Digest) (_ *staged, err error) {
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NotFound{Kind: "source", Name: source}
	case err != nil:
		return nil, fmt.Errorf("source: %w", err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, &Malformed{Where: source, File: ".", Err: errors.New("is neither a directory nor a regular file")}
	}
	st, err := open()
	if err != nil {
		return nil, err
	}
	s := &staged{stage: st, source: source, prove: &proving{home: h}}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if err := os.Mkdir(s.join("tree"), 0o755); err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	dst, err := os.OpenRoot(s.join("tree"))
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	defer dst.Close()
	options := archive.Options{Limits: archive.Default, Progress: h.on.Bytes}
	if info.IsDir() {
		if want != "" {
			return nil, &Malformed{Where: source, File: ".", Err: errors.New("is a directory, which has no archive digest to compare")}
		}
		h.on.stage("copying " + filepath.Base(source))
		src, err := os.OpenRoot(source)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		defer src.Close()
		s.tree, err = archive.CopyDir(ctx, src, dst, options)
		return s, err
	}
	if info.Size() > archive.Default.Archive {
		return nil, &archive.Refusal{Archive: source, Rule: archive.RuleArchiveSize,
			Detail: fmt.Sprintf("%d bytes, at most %d", info.Size(), archive.Default.Archive)}
	}
	h.on.stage("reading " + filepath.Base(source))
	copied, sum, err := copyHashed(ctx, source, s.join("archive"))
	if err != nil {
		return nil, err
	}
	defer copied.Close()
	s.archive = sum
	if want != "" && want != sum {
		return nil, &Integrity{What: "archive digest", Expected: want, Found: sum, Where: source,
			Causes: []string{
				"the archive was rebuilt or replaced after the digest was recorded",
				"the download is incomplete",
				"somebody changed the archive",
			}}
	}
	if err := h.beginProof(ctx, s); err != nil {
		return nil, err
	}
	h.on.stage("extracting " + filepath.Base(source))
	s.tree, err = archive.Extract(ctx, copied, filepath.Base(source), dst, options)
	return s, err
}

// beginProof has the bundles beside the archive proved while it is extracted.
func (h *Home) beginProof(ctx context.Context, s *staged) error {
	if h.assure == nil {
		return nil
	}
	bundles, err := bundlesBeside(s.source)
	if err != nil || len(bundles) == 0 {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	s.proof = make(chan proved, 1)
	s.stop = sync.OnceFunc(func() { cancel(); <-gone })
	go func() {
		defer close(gone)
		// A pure Ed25519 signature is checked over the bytes: of the copy, which nobody
		// else changes.
		evidence, err := s.prove.bundles(ctx, s.archive, s.join("archive"), bundles)
		s.proof <- proved{evidence, err}
	}()
	return nil
}

// growsBeyond refuses an archive that is larger than it was when it was looked at.
func growsBeyond(path string) error {
	return &archive.Refusal{Archive: path, Rule: archive.RuleArchiveSize, Detail: fmt.Sprintf("grows beyond %d bytes", archive.Default.Archive)}
}

// copyHashed copies src to the new file dst and returns it, open for reading at
// its start, with its digest. Hashing overlaps with copying.
func copyHashed(ctx context.Context, src, dst string) (_ *os.File, _ digest.Digest, err error) {
	in, _, err := openGiven(src)
	var given *givenFile
	if errors.As(err, &given) { // it was another when it was looked at
		return nil, "", &Malformed{Where: src, File: ".", Err: errors.New(given.reason)}
	}
	if err != nil {
		return nil, "", fmt.Errorf("source: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("staging: %w", err)
	}
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	h := sha256.New()
	filled, free := make(chan []byte, 1), make(chan []byte, 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range filled {
			h.Write(b)
			free <- b[:cap(b)]
		}
	}()
	free <- make([]byte, copyBuffer)
	free <- make([]byte, copyBuffer)
	var total int64
	for {
		if err = context.Cause(ctx); err != nil {
			break
		}
		b := <-free
		n, rerr := in.Read(b)
		if total += int64(n); total > archive.Default.Archive {
			err = growsBeyond(src)
			break
		}
		if _, werr := out.Write(b[:n]); werr != nil {
			err = fmt.Errorf("staging: %w", werr)
			break
		}
		filled <- b[:n]
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			err = fmt.Errorf("source: %w", rerr)
			break
		}
	}
	close(filled)
	<-done
	if err != nil {
		return nil, "", err
	}
	if _, err = out.Seek(0, io.SeekStart); err != nil {
		return nil, "", fmt.Errorf("staging: %w", err)
	}
	return out, digest.FromBytes(h.Sum(nil)), nil
}
