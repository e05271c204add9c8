package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func frame(text string) string {
	var b bytes.Buffer
	if err := wire.WriteFrame(&b, []byte(text), len(text)); err != nil {
		panic(err)
	}
	return b.String()
}

func TestFrames(t *testing.T) {
	stream := frame("{}") + frame(strings.Repeat("x", 300_000)) + frame("[1]")
	for name, r := range map[string]io.Reader{
		"at once":      strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
		"in halves":    iotest.HalfReader(strings.NewReader(stream)),
		"with the end": iotest.DataErrReader(strings.NewReader(stream)),
	} {
		frames := wire.NewFrameReader(r)
		buf := make([]byte, 0, 64)
		for i, want := range []int{2, 300_000, 3} {
			got, err := frames.Next(buf)
			if err != nil || len(got) != want {
				t.Fatalf("%s: frame %d: %d bytes, %v", name, i, len(got), err)
			}
			if small := want <= cap(buf); small != (&got[0] == &buf[:1][0]) {
				t.Errorf("%s: frame %d: in the buffer %v", name, i, !small)
			}
		}
		for range 2 {
			if _, err := frames.Next(nil); !errors.Is(err, io.EOF) || code(err) != "" {
				t.Errorf("%s: at the end: %v", name, err)
			}
		}
	}
}

// pausing is a stream of which a read comes to its deadline before each byte.
type pausing struct {
	r      io.Reader
	paused bool
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.paused = !p.paused; p.paused {
		return 0, os.ErrDeadlineExceeded
	}
	return p.r.Read(b[:1])
}

// A read that was interrupted, in whatever place, goes on where it was.
func TestInterruptedFrames(t *testing.T) {
	texts := []string{"{}", strings.Repeat("x", 300_000), "[1]"}
	frames := wire.NewFrameReader(&pausing{r: strings.NewReader(frame(texts[0]) + frame(texts[1]) + frame(texts[2]))})
	for _, want := range texts {
		for interrupted := 0; ; interrupted++ {
			got, err := frames.Next(make([]byte, 0, 8))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if err != nil || string(got) != want || interrupted < len(want) {
				t.Fatalf("%d bytes after %d interruptions, %v", len(got), interrupted, err)
			}
			break
		}
	}
	for range 3 {
		if _, err := frames.Next(nil); err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}
}

func TestBadFrames(t *testing.T) {
	header := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	for name, tc := range map[string]struct {
		stream string
		want   wire.Code
	}{
		"zero":                 {header(0), wire.CodeFrameInvalid},
		"negative":             {header(1 << 31), wire.CodeFrameInvalid},
		"minus one":            {header(1<<32 - 1), wire.CodeFrameInvalid},
		"largest":              {header(1<<31 - 1), wire.CodeFrameTooLarge},
		"one byte too large":   {header(101), wire.CodeFrameTooLarge},
		"as large as allowed":  {header(100) + strings.Repeat("x", 100), ""},
		"truncated length":     {"\x00\x00", wire.CodeFrameInvalid},
		"length and no frame":  {header(5), wire.CodeFrameInvalid},
		"truncated":            {header(5) + "1234", wire.CodeFrameInvalid},
		"text before a frame":  {"Starting up…\n", wire.CodeFrameTooLarge},
		"a line of JSON first": {`{"jsonrpc":"2.0"}` + "\n", wire.CodeFrameTooLarge},
	} {
		frames := wire.NewFrameReader(strings.NewReader(tc.stream))
		frames.SetMax(100)
		if got, err := frames.Next(nil); code(err) != tc.want || (err == nil) != (tc.want == "") {
			t.Errorf("%s: %d bytes, %v, want %q", name, len(got), err, tc.want)
		}
	}
	broken := wire.NewFrameReader(iotest.ErrReader(errors.New("broken")))
	if _, err := broken.Next(nil); err == nil || code(err) != "" || errors.Is(err, io.EOF) {
		t.Errorf("a stream that fails: %v", err)
	}
	if err := wire.WriteFrame(io.Discard, nil, 10); code(err) != wire.CodeFrameInvalid {
		t.Errorf("writing nothing: %v", err)
	}
	if err := wire.WriteFrame(io.Discard, make([]byte, 11), 10); code(err) != wire.CodeFrameTooLarge {
		t.Errorf("writing too much: %v", err)
	}
}

// TestLengthIsOnlyAClaim holds that a length alone costs no memory.
func TestLengthIsOnlyAClaim(t *testing.T) {
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			frames := wire.NewFrameReader(strings.NewReader("\x00\x7f\xff\xff" + strings.Repeat("x", 1000)))
			if _, err := frames.Next(nil); code(err) != wire.CodeFrameInvalid {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp(); n > 512<<10 {
		t.Errorf("%d bytes for a frame of which 1000 came", n)
	}
}

func TestBuffered(t *testing.T) {
	frames := wire.NewFrameReader(strings.NewReader(frame("{}") + frame("[]") + "\x00\x00\x00\x09x"))
	for i, want := range []bool{true, false} {
		if _, err := frames.Next(nil); err != nil || frames.Buffered() != want {
			t.Errorf("after frame %d: %v, buffered %v", i, err, !want)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", frame("{}"), frame("{}") + frame("[]"), "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x00\x00\x00\x05abc", "\x00\x00", "\x00\x01\x00\x00x"} {
		f.Add([]byte(s))
	}
	const limit = 1000
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames := wire.NewFrameReader(iotest.OneByteReader(bytes.NewReader(stream)))
		frames.SetMax(limit)
		var again bytes.Buffer
		for {
			got, err := frames.Next(nil)
			if err != nil {
				if !errors.Is(err, io.EOF) && code(err) != wire.CodeFrameInvalid && code(err) != wire.CodeFrameTooLarge {
					t.Errorf("%v", err)
				}
				if errors.Is(err, io.EOF) && again.Len() != len(stream) {
					t.Errorf("%d of %d bytes are no frame and no fault", len(stream)-again.Len(), len(stream))
				}
				break
			}
			if len(got) == 0 || len(got) > limit {
				t.Fatalf("a frame of %d bytes", len(got))
			}
			if err := wire.WriteFrame(&again, got, limit); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(stream, again.Bytes()) {
			t.Error("frames written again differ")
		}
	})
}
