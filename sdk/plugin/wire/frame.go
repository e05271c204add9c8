package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// HeaderSize is the length in bytes of what stands before a frame's JSON: its
// length N as uint32, big-endian.
const HeaderSize = 4

// A FrameReader reads frames from a stream in bounded memory.
type FrameReader struct {
	r    *bufio.Reader
	max  int
	part []byte // of a frame whose reading was interrupted, with its length
	got  int
	want int
}

// NewFrameReader returns a reader of r that takes frames of at most
// DefaultMaxFrame bytes.
func NewFrameReader(r io.Reader) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, 64<<10), max: DefaultMaxFrame}
}

// SetMax changes the limit for the frames to come.
func (f *FrameReader) SetMax(bytes int) { f.max = bytes }

// Buffered reports whether the next frame has been received as a whole, so that
// Next would not wait.
func (f *FrameReader) Buffered() bool {
	head, err := f.r.Peek(min(HeaderSize, f.r.Buffered()))
	return err == nil && len(head) == HeaderSize &&
		uint64(f.r.Buffered()) >= HeaderSize+uint64(binary.BigEndian.Uint32(head))
}

// Next returns the JSON of the next frame, in buf if it has the room, else in
// memory of its own. The error is io.EOF at the end of the stream between two
// frames, a *Fault with frame.invalid or frame.too_large, or what the stream
// failed with. After any of them nothing more can be read, except after
// os.ErrDeadlineExceeded of the stream: Next then goes on where it was.
func (f *FrameReader) Next(buf []byte) ([]byte, error) {
	if f.part != nil {
		buf, f.part = f.part, nil
		return f.rest(buf)
	}
	head, err := f.r.Peek(HeaderSize)
	if err != nil {
		if errors.Is(err, io.EOF) && len(head) > 0 {
			return nil, faultf(CodeFrameInvalid, len(head), "the stream ends inside a frame's length")
		}
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if err := checkSize(size, f.max); err != nil {
		return nil, err
	}
	f.r.Discard(HeaderSize)
	f.want, f.got = int(size), 0
	if first := min(f.want, trusted); cap(buf) < first {
		buf = make([]byte, first)
	}
	return f.rest(buf[:min(f.want, cap(buf))])
}

// trusted is the memory in bytes that a length alone gets. It is only a claim: more comes
// with what has really come.
const trusted = 256 << 10

// rest reads the rest of a frame into buf, and more memory.
func (f *FrameReader) rest(buf []byte) ([]byte, error) {
	for {
		n, err := io.ReadFull(f.r, buf[f.got:])
		f.got += n
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, faultf(CodeFrameInvalid, HeaderSize+f.got, "the stream ends after %d of a frame's %d bytes", f.got, f.want)
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.part = buf
			return nil, err
		case err != nil:
			return nil, err
		case f.got == f.want:
			return buf, nil
		}
		grown := make([]byte, min(f.want, 2*len(buf)))
		copy(grown, buf)
		buf = grown
	}
}

func checkSize(size uint32, limit int) error {
	switch {
	case size == 0:
		return faultf(CodeFrameInvalid, 0, "a frame of no bytes")
	case size > MaxMaxFrame:
		return faultf(CodeFrameInvalid, 0, "a frame with a negative length")
	case uint64(size) > uint64(limit):
		return faultf(CodeFrameTooLarge, 0, "a frame of %d bytes, more than %d", size, limit)
	}
	return nil
}

// BeginFrame makes room in dst for the length of a frame whose JSON is appended
// next, and returns where the frame starts.
func BeginFrame(dst []byte) (out []byte, start int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// EndFrame writes the length of the frame that starts at start and ends with dst.
// The error is a *Fault with frame.too_large; dst should then be cut at start.
func EndFrame(dst []byte, start, limit int) error {
	size := len(dst) - start - HeaderSize
	if size > limit || size > MaxMaxFrame {
		return faultf(CodeFrameTooLarge, 0, "a frame of %d bytes, more than %d", size, limit)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	return nil
}

// WriteFrame writes the JSON of one frame with one call of w.Write.
func WriteFrame(w io.Writer, frame []byte, limit int) error {
	if len(frame) == 0 {
		return faultf(CodeFrameInvalid, 0, "a frame of no bytes")
	}
	out, start := BeginFrame(make([]byte, 0, HeaderSize+len(frame)))
	out = append(out, frame...)
	if err := EndFrame(out, start, limit); err != nil {
		return err
	}
	_, err := w.Write(out)
	return err
}
