package pkgmgr

import (
	"crypto/sha256"
	"hash"
	"io"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A hashWriter passes bytes on and hashes them.
type hashWriter struct {
	w io.Writer
	h hash.Hash
}

func newHashWriter(w io.Writer) *hashWriter { return &hashWriter{w: w, h: sha256.New()} }

func (w *hashWriter) Write(b []byte) (int, error) {
	w.h.Write(b)
	return w.w.Write(b)
}

func (w *hashWriter) digest() digest.Digest { return digest.FromBytes(w.h.Sum(nil)) }
