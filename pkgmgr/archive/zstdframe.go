package archive

import (
	"bufio"
	"encoding/binary"
	"io"
)

// A zstdFrame hands on exactly one zstd frame (RFC 8878, section 3.1.1) and
// refuses what a decoder would silently take for more: further frames,
// skippable frames, dictionaries, and bytes after the end. It reads the headers
// of the frame and of its blocks only and leaves what is in them to the decoder.
type zstdFrame struct {
	in        *bufio.Reader
	maxWindow uint64

	pass     int64 // bytes to hand on before the next header
	state    zstdState
	checksum bool
}

type zstdState int

const (
	zstdHeader zstdState = iota
	zstdBlock
	zstdChecksum
	zstdEnd
)

func (z *zstdFrame) Read(p []byte) (int, error) {
	for z.pass == 0 {
		if err := z.advance(); err != nil {
			return 0, err
		}
	}
	n, err := z.in.Read(p[:min(int64(len(p)), z.pass)])
	z.pass -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// atEnd returns io.EOF if the frame, and with it the file, has been read to its
// end.
func (z *zstdFrame) atEnd() error {
	if z.state != zstdEnd || z.pass > 0 {
		return io.ErrUnexpectedEOF
	}
	return z.advance()
}

// advance reads ahead what comes next in the frame and sets how much to pass.
func (z *zstdFrame) advance() error {
	switch z.state {
	case zstdHeader:
		return z.header()
	case zstdBlock:
		b, err := z.peek(3)
		if err != nil {
			return err
		}
		h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		size := int64(h >> 3)
		switch h >> 1 & 3 {
		case 1:
			size = 1 // one byte, repeated
		case 3:
			return refuse("", RuleCorrupt, "a zstd block has a reserved type")
		}
		z.pass = 3 + size
		if last := h&1 == 1; last {
			z.state = zstdChecksum
		}
	case zstdChecksum:
		z.state = zstdEnd
		if z.checksum {
			z.pass = 4
		}
	case zstdEnd:
		b, err := z.in.Peek(1)
		if len(b) > 0 {
			return refuse("", RuleTrailing, "data follow the zstd frame")
		}
		return err
	}
	return nil
}

func (z *zstdFrame) header() error {
	b, err := z.peek(5)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b) != 0xfd2fb528 {
		return refuse("", RuleCorrupt, "the zstd frame does not start as one")
	}
	descriptor := b[4]
	z.checksum = descriptor&4 != 0
	single := descriptor&0x20 != 0
	switch {
	case descriptor&8 != 0:
		return refuse("", RuleCorrupt, "a reserved bit of the zstd frame is set")
	case descriptor&3 != 0:
		return refuse("", RuleUnsupported, "the zstd frame needs a dictionary")
	}
	sizeBytes := []int{0, 2, 4, 8}[descriptor>>6]
	length := 5 + sizeBytes
	if single {
		if sizeBytes == 0 {
			sizeBytes, length = 1, 6
		}
	} else {
		length++
	}
	if b, err = z.peek(length); err != nil {
		return err
	}
	var window uint64
	if single {
		var size [8]byte
		copy(size[:], b[5:])
		window = binary.LittleEndian.Uint64(size[:])
		if sizeBytes == 2 {
			window += 256
		}
	} else {
		base := uint64(1) << (10 + b[5]>>3)
		window = base + base/8*uint64(b[5]&7)
	}
	if window > z.maxWindow {
		return refuse("", RuleWindow, "the zstd window is %d bytes, at most %d are allowed", window, z.maxWindow)
	}
	z.pass = int64(length)
	z.state = zstdBlock
	return nil
}

func (z *zstdFrame) peek(n int) ([]byte, error) {
	b, err := z.in.Peek(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
