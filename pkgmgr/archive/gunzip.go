package archive

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A gunzip decodes exactly one gzip member (RFC 1952) and refuses whatever
// follows it: readers differ over further members, padding and garbage.
type gunzip struct {
	in    *bufio.Reader
	flate io.ReadCloser // nil before the header was read
	crc   uint32
	size  uint32 // modulo 2^32, as the format counts
	err   error  // of the last Read, for all that follow: readers drop one that comes with data
}

func newGunzip(in *bufio.Reader) *gunzip { return &gunzip{in: in} }

func (g *gunzip) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	if g.flate == nil {
		if g.err = noEOF(g.header()); g.err != nil {
			return 0, g.err
		}
		g.flate = flate.NewReader(g.in)
	}
	n, err := g.flate.Read(p)
	g.crc = crc32.Update(g.crc, crc32.IEEETable, p[:n])
	g.size += uint32(n)
	if err == io.EOF {
		if e := g.trailer(); e != nil {
			err = e
		}
	}
	g.err = err
	return n, err
}

const (
	gzipHeaderCRC = 1 << 1
	gzipExtra     = 1 << 2
	gzipName      = 1 << 3
	gzipComment   = 1 << 4
	gzipReserved  = 0xe0
)

func (g *gunzip) header() error {
	h := make([]byte, 10, 512)
	if _, err := io.ReadFull(g.in, h); err != nil {
		return err
	}
	switch flags := h[3]; {
	case h[0] != 0x1f || h[1] != 0x8b:
		return refuse("", RuleCorrupt, "the gzip header does not start as one")
	case h[2] != 8 || flags&gzipReserved != 0:
		return refuse("", RuleUnsupported, "the gzip header asks for an unknown method")
	}
	flags := h[3]
	take := func(n int) error {
		at := len(h)
		h = append(h, make([]byte, n)...)
		_, err := io.ReadFull(g.in, h[at:])
		return err
	}
	if flags&gzipExtra != 0 {
		if err := take(2); err != nil {
			return err
		}
		if err := take(int(binary.LittleEndian.Uint16(h[10:]))); err != nil {
			return err
		}
	}
	for _, text := range []byte{gzipName, gzipComment} {
		if flags&text == 0 {
			continue
		}
		for end := len(h) + 4096; ; {
			if err := take(1); err != nil {
				return err
			}
			if h[len(h)-1] == 0 {
				break
			}
			if len(h) > end {
				return refuse("", RuleHeaderSize, "a text in the gzip header is longer than 4096 bytes")
			}
		}
	}
	if flags&gzipHeaderCRC != 0 {
		sum := uint16(crc32.ChecksumIEEE(h))
		if err := take(2); err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(h[len(h)-2:]) != sum {
			return refuse("", RuleCorrupt, "the gzip header's checksum is wrong")
		}
	}
	return nil
}

func (g *gunzip) trailer() error {
	var t [8]byte
	if _, err := io.ReadFull(g.in, t[:]); err != nil {
		return noEOF(err)
	}
	if binary.LittleEndian.Uint32(t[:]) != g.crc || binary.LittleEndian.Uint32(t[4:]) != g.size {
		return refuse("", RuleCorrupt, "the gzip member's checksum or length is wrong")
	}
	switch b, err := g.in.Peek(2); {
	case len(b) == 2 && b[0] == 0x1f && b[1] == 0x8b:
		return refuse("", RuleTrailing, "a second gzip member follows the first")
	case len(b) > 0:
		return refuse("", RuleTrailing, "data follow the gzip member")
	case err != io.EOF:
		return err
	}
	return nil
}

// noEOF makes an end where none may be an error of its own.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
