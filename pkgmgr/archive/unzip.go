package archive

import (
	"bufio"
	"compress/flate"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
)

// An inflater unpacks one zip entry after the other with one set of buffers.
type inflater struct {
	in    *bufio.Reader
	flate io.ReadCloser
	buf   []byte
}

// unpack hands the contents of e to put, and refuses contents of another length
// or checksum than the headers say, and packed bytes that are not part of them.
func (z *inflater) unpack(ctx context.Context, src io.ReaderAt, e *zipEntry, put func([]byte) error) error {
	packed := io.NewSectionReader(src, e.data, e.packed)
	if z.in == nil {
		z.in = bufio.NewReaderSize(packed, chunkSize)
		z.flate = flate.NewReader(z.in)
		z.buf = make([]byte, chunkSize)
	}
	z.in.Reset(packed)
	var r io.Reader = z.in
	if e.method == zipDeflate {
		if err := z.flate.(flate.Resetter).Reset(z.in, nil); err != nil {
			return err
		}
		r = z.flate
	}
	var crc uint32
	for left := e.size; ; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := r.Read(z.buf)
		if int64(n) > left {
			return refuse(e.name, RuleDisagree, "it unpacks to more than the %d bytes that its headers say", e.size)
		}
		left -= int64(n)
		crc = crc32.Update(crc, crc32.IEEETable, z.buf[:n])
		if err := put(z.buf[:n]); err != nil {
			return err
		}
		if err == io.EOF {
			if left > 0 {
				return refuse(e.name, RuleDisagree, "it unpacks to %d bytes less than its headers say", left)
			}
			break
		}
		if err != nil {
			var io *fs.PathError
			if errors.As(err, &io) {
				return err
			}
			return refuse(e.name, RuleCorrupt, "its compressed data are damaged: %v", err)
		}
	}
	if crc != e.crc {
		return refuse(e.name, RuleCorrupt, "its checksum is wrong")
	}
	if _, err := z.in.ReadByte(); err != io.EOF {
		return refuse(e.name, RuleUnlisted, "bytes after its compressed data belong to no entry")
	}
	return nil
}
