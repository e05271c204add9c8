package process

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/runtime/process/redact"
)

func drained(r io.Reader) *Log {
	l := new(Log)
	l.drain(r, time.Now)
	return l
}

func texts(lines []Line) (s []string) {
	for _, l := range lines {
		s = append(s, l.Text)
	}
	return s
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	const in = "one\r\ntwo\n\n\xff\xfethree\x1b[31m\x00\nlast without end"
	for name, r := range map[string]io.Reader{
		"at once":      strings.NewReader(in),
		"byte by byte": iotest.OneByteReader(strings.NewReader(in)),
	} {
		l := drained(r)
		want := []string{"one", "two", "", "\uFFFDthree\x1b[31m\x00", "last without end"}
		if got := texts(l.Lines(0)); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: %q", name, got)
		}
		if lines, n := l.Size(); lines != 5 || n != int64(len(in)) {
			t.Errorf("%s: %d lines, %d bytes", name, lines, n)
		}
		if got := l.Lines(3); len(got) != 2 || got[0].Seq != 4 || got[0].At.IsZero() {
			t.Errorf("%s: after 3: %+v", name, got)
		}
		if got := l.Lines(5); got != nil {
			t.Errorf("%s: after the last: %+v", name, got)
		}
	}
}

func TestLogKeepsTheNewest(t *testing.T) {
	t.Parallel()
	var in bytes.Buffer
	for i := range 3*MaxLines + 17 {
		fmt.Fprintf(&in, "line %d\n", i+1)
	}
	l := drained(&in)
	lines := l.Lines(0)
	if len(lines) != MaxLines {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		seq := uint64(2*MaxLines + 17 + i + 1)
		if line.Seq != seq || line.Text != fmt.Sprintf("line %d", seq) {
			t.Fatalf("line %d is %+v", i, line)
		}
	}
}

func TestLogCutsLines(t *testing.T) {
	t.Parallel()
	for _, n := range []int{MaxLineBytes - 1, MaxLineBytes, MaxLineBytes + 1, heldBytes - 1, heldBytes, heldBytes + 1, 10 * heldBytes} {
		for _, ending := range []string{"\n", "\r\n", ""} {
			l := drained(strings.NewReader(strings.Repeat("x", n) + ending + "next\n")).Lines(0)
			if ending == "" {
				n += len("next")
			}
			got := l[0]
			want, cut := min(n, MaxLineBytes), n-min(n, MaxLineBytes)
			if n >= heldBytes && ending == "\r\n" {
				cut++ // the carriage return of an overlong line is one of its bytes
			}
			if len(got.Text) != want || got.Cut != cut {
				t.Errorf("%d bytes and %q: %d kept, %d cut", n, ending, len(got.Text), got.Cut)
			}
			if ending == "" {
				n -= len("next")
			}
		}
	}
	// Not in the middle of a character.
	l := drained(strings.NewReader("x" + strings.Repeat("é", MaxLineBytes))).Lines(0)
	if got := l[0]; !utf8.ValidString(got.Text) || len(got.Text) != MaxLineBytes-1 || got.Cut != 2*MaxLineBytes+1-len(got.Text) {
		t.Errorf("%d kept, %d cut", len(got.Text), got.Cut)
	}
}

// TestLogCutHidesSecrets moves a secret across every place where a line is cut.
func TestLogCutHidesSecrets(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("a1B2c3D4e5F6g7H8i9J0", 3)
	for _, secret := range []string{"ghp" + "_" + body, "password=" + body, `"token": "` + body + `"`, "https://u:" + body + "@h.test/"} {
		for _, around := range []int{MaxLineBytes, heldBytes - blindBytes, heldBytes} {
			for at := around - len(secret) - 4; at < around+4; at++ {
				in := strings.Repeat("x", at-1) + " " + secret + " " + strings.Repeat("y", 300)
				for _, line := range drained(strings.NewReader(in)).Lines(0) {
					if strings.Contains(line.Text, body[:8]) {
						t.Fatalf("secret at byte %d is shown: …%q", at, line.Text[len(line.Text)-80:])
					}
				}
			}
		}
	}
	// Redaction that shortens the line must not draw the blind end into view.
	long := "token=" + strings.Repeat("k", heldBytes-200) + " ghp" + "_" + body
	for cut := len(long) - len(body); cut < len(long); cut++ {
		l := drained(strings.NewReader(long[:cut] + strings.Repeat("z", heldBytes))).Lines(0)
		if strings.Contains(l[0].Text, "ghp"+"_") {
			t.Fatalf("head of a secret is shown: %q", l[0].Text)
		}
	}
}

func TestLogHidesBlocks(t *testing.T) {
	t.Parallel()
	in := "before\n-----BEGIN PRIVATE KEY-----\nc2VjcmV0\nc2VjcmV0\n-----END PRIVATE KEY-----\nafter\n"
	want := []string{"before", redact.Mask, redact.Mask, redact.Mask, redact.Mask, "after"}
	if got := texts(drained(strings.NewReader(in)).Lines(0)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	// The block's beginning has left the ring; its body is still one.
	in = "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("c2VjcmV0\n", 300) + "-----END PRIVATE KEY-----\n" + strings.Repeat("x\n", MaxLines-100)
	for _, line := range drained(strings.NewReader(in)).Lines(0) {
		if strings.Contains(line.Text, "c2Vj") {
			t.Fatalf("line %d: %q", line.Seq, line.Text)
		}
	}
}

// TestLogTorrent holds that what a line costs does not depend on there being a line:
// of the shortest ones neither each takes the time nor are more kept than may be, and
// the newest are right, whatever the reads bring.
func TestLogTorrent(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	for _, line := range []string{"\n", "\r\n", "x\n"} {
		l, asked := new(Log), 0
		l.drain(io.LimitReader(repeat(line), size), func() time.Time { asked++; return time.Unix(int64(asked), 0) })
		n := uint64(size / len(line))
		if lines, bytes := l.Size(); lines != n || bytes != size {
			t.Errorf("%q: %d lines, %d bytes", line, lines, bytes)
		}
		kept := l.Lines(0)
		if len(kept) != MaxLines || kept[0].Seq != n-MaxLines+1 || kept[MaxLines-1].Seq != n {
			t.Fatalf("%q: %d lines kept", line, len(kept))
		}
		for _, k := range kept {
			if k.Text != strings.TrimRight(line, "\r\n") || k.Cut != 0 || k.At.IsZero() {
				t.Fatalf("%q: %+v", line, k)
			}
		}
		if asked > size/(8<<10) {
			t.Errorf("%q: the clock was asked %d times", line, asked)
		}
	}
	// One read with more lines than are kept, after one with few, and with a secret
	// whose beginning is not kept.
	in := "few\n" + strings.Repeat("y\n", 1000) + "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("c2Vj\n", 350) + "-----END PRIVATE KEY-----\n"
	for i := range MaxLines - 100 {
		in += fmt.Sprintln("line", i)
	}
	l := new(Log)
	l.write([]byte("first\n"), time.Now())
	l.write([]byte(in), time.Now())
	kept := texts(l.Lines(0))
	if len(kept) != MaxLines || kept[MaxLines-1] != fmt.Sprint("line ", MaxLines-101) || kept[99] != redact.Mask || kept[0] != redact.Mask {
		t.Errorf("%d lines kept, from %q to %q", len(kept), kept[0], kept[len(kept)-1])
	}
}

// TestLogMemory holds that what the log keeps does not depend on what was
// written: lines without end, or a great many of the largest.
func TestLogMemory(t *testing.T) {
	const most = MaxLines*heldBytes + 2<<20
	for name, r := range map[string]io.Reader{
		"no line end":   io.LimitReader(repeat("x"), 64<<20),
		"longest lines": io.LimitReader(repeat(strings.Repeat("x", 2*heldBytes)+"\n"), 64<<20),
		"empty lines":   io.LimitReader(repeat("\n"), 16<<20),
	} {
		before := heap()
		l := drained(r)
		if grown := heap() - before; grown > most {
			t.Errorf("%s: %d bytes kept", name, grown)
		}
		runtime.KeepAlive(l)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// repeat reads s for ever.
type repeat string

func (s repeat) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], s)
	}
	return n, nil
}

func FuzzLog(f *testing.F) {
	seeds := []string{"", "a\nb", "password=x\n", "\xff\n", strings.Repeat("x", 5000), "-----BEGIN A-----\nx\n-----END A-----\n", "\r\n\r"}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole := drained(bytes.NewReader(in)).Lines(0)
		pieces := drained(iotest.HalfReader(bytes.NewReader(in))).Lines(0)
		if fmt.Sprint(texts(whole)) != fmt.Sprint(texts(pieces)) {
			t.Fatalf("how the bytes arrive matters:\n%q\n%q", texts(whole), texts(pieces))
		}
		for _, line := range whole {
			if !utf8.ValidString(line.Text) || len(line.Text) > MaxLineBytes || strings.Contains(line.Text, "\n") || line.Cut < 0 {
				t.Fatalf("bad line %+v", line)
			}
		}
	})
}
