package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// readSize is the unit in which an archive file is read.
const readSize = 256 << 10

// A container is what the first bytes of an archive say it is.
type container int

const (
	containerTar container = iota
	containerGzip
	containerZstd
	containerZip
)

// sniff recognises a container by its first bytes. The archive's name says
// nothing: names are changed by browsers, and two readers that trust different
// hints would read different packages.
func sniff(src io.ReaderAt, size int64) (container, error) {
	head := make([]byte, min(size, tarBlock))
	if _, err := src.ReadAt(head, 0); err != nil && err != io.EOF {
		return 0, err
	}
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case len(head) == 0:
		return 0, refuse("", RuleTruncated, "the file is empty")
	case has("\x1f\x8b"):
		return containerGzip, nil
	case has("\x28\xb5\x2f\xfd"):
		return containerZstd, nil
	case len(head) >= 4 && head[0]&0xf0 == 0x50 && has(string(head[0])+"\x2a\x4d\x18"):
		return 0, refuse("", RuleUnlisted, "a skippable zstd frame precedes the data")
	case has("PK\x03\x04"), has("PK\x05\x06"):
		return containerZip, nil
	case has("BZh"), has("\xfd7zXZ\x00"), has("7z\xbc\xaf\x27\x1c"), has("Rar!"):
		return 0, refuse("", RuleFormat, "bzip2, xz, 7z and rar are not read; repack as tar.zst, tar.gz, tar or zip")
	case len(head) == tarBlock && string(head[257:262]) == "ustar", len(head) == tarBlock && isZero(head):
		return containerTar, nil
	}
	return 0, refuse("", RuleFormat, "neither tar, tar.gz, tar.zst nor zip")
}

// A stream is the tar inside an archive file: decompressed, counted, and judged
// by its ratio as it is read.
type stream struct {
	ctx     context.Context
	limits  Limits
	options Options
	src     *io.SectionReader
	size    int64 // of the archive file
	taken   int64 // of it
	srcErr  error // what reading the file failed with
	in      io.Reader
	out     int64      // bytes decoded
	frame   *zstdFrame // what decoder reads
	decoder *zstd.Decoder
}

func openStream(ctx context.Context, src *os.File, size int64, c container, o Options) (*stream, error) {
	s := &stream{ctx: ctx, limits: o.limits(), options: o, src: io.NewSectionReader(src, 0, size), size: size}
	raw := bufio.NewReaderSize((*source)(s), readSize)
	switch c {
	case containerGzip:
		s.in = newGunzip(raw)
	case containerZstd:
		// One goroutine decodes faster than several hand blocks to each other;
		// the other processor hashes and writes.
		s.frame = &zstdFrame{in: raw, maxWindow: s.limits.ZstdWindow}
		d, err := zstd.NewReader(s.frame,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(max(s.limits.ZstdWindow, zstd.MinWindowSize)),
		)
		if err != nil {
			return nil, s.explain(err)
		}
		s.decoder = d
		s.in = d
	default:
		s.in = raw
	}
	return s, nil
}

func (s *stream) close() {
	if s.decoder != nil {
		s.decoder.Close()
	}
}

// Read decodes. Any error but io.EOF is a refusal, the context's, or the
// file system's.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.out += int64(n)
	if r := s.limits.ratio(s.out, s.size); r != nil {
		return 0, r
	}
	if err == io.EOF && s.frame != nil {
		// The decoder takes an end before or within the first header for one
		// of the data.
		err = s.frame.atEnd()
	}
	if err != nil && err != io.EOF {
		err = s.explain(err)
	}
	return n, err
}

// explain sorts out whose fault an error of a decoder is.
func (s *stream) explain(err error) error {
	var r *Refusal
	switch {
	case s.srcErr != nil:
		return s.srcErr
	case errors.As(err, &r):
		return r
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return refuse("", RuleWindow, "the zstd window is larger than %d bytes", s.limits.ZstdWindow)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return refuse("", RuleTruncated, "the compressed data end too early")
	}
	return refuse("", RuleCorrupt, "the compressed data are damaged: %v", err)
}

// source is the archive file's side of a stream.
type source stream

func (s *source) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		s.srcErr = err
		return 0, err
	}
	n, err := s.src.Read(p)
	if err != nil && err != io.EOF {
		s.srcErr = err
	}
	if n > 0 {
		s.taken += int64(n)
		s.options.progress(s.taken, s.size)
	}
	return n, err
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
