package revlist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

var (
	day0     = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	errRange = errors.New("no range")
)

// exactly reads ranges that are a version, or "*".
func exactly(text string) (func(string) bool, error) {
	if strings.Contains(text, "!") {
		return nil, errRange
	}
	return func(v string) bool { return text == "*" || text == v }, nil
}

func sha(n int) digest.Digest { return digest.Of(fmt.Appendf(nil, "subject %d", n)) }

func key(n int) verify.Signer { return verify.Signer{Key: string(sha(n))} }

func person(name string) verify.Signer {
	return verify.Signer{Identity: name + "@example.com", Issuer: "https://accounts.example.com"}
}

// sample is a list with an entry of every kind and every member.
func sample(t testing.TB) *List {
	t.Helper()
	l, err := New("security.example.com", day0, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{
		{Kind: Version, PluginID: "repo-facts", Range: "1.0.0", Action: Block, Reason: Vulnerable, Replacement: "repo-facts@1.0.1"},
		{Kind: Version, PluginID: "repo-facts", Range: "1.0.1", Action: Warn, Reason: Superseded, Replacement: string(sha(9))},
		{Kind: Version, PluginID: "repo", Range: "*", Action: Block, Reason: Withdrawn},
		{Kind: Signer, Signer: key(1), Action: Block, Reason: Compromised},
		{Kind: Signer, Signer: person("mallory"), Action: Block, Reason: Malicious},
		{Kind: Publisher, PublisherID: "org.example", PluginID: "com.example.indexer", Digest: sha(2), Action: Block, Reason: Malicious},
		{Kind: Package, Digest: sha(3), Action: Block, Reason: Malicious, Text: `Sends "secrets" \o/ to ∞ 💥`, Advisory: "https://example.com/advisories/1?x=y#z"},
		{Kind: Manifest, Digest: sha(4), Action: Warn, Reason: Vulnerable},
		{Kind: Archive, Digest: sha(5), Action: Block, Reason: Compromised},
	} {
		if l, err = l.With(e, exactly); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func written(t testing.TB, l *List) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, l, exactly); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// isCanonical asks another implementation of RFC 8785.
func isCanonical(t testing.TB, b []byte) {
	t.Helper()
	want, err := jcs.Transform(b)
	if err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if !bytes.Equal(b, want) {
		t.Fatalf("not canonical:\n%s\n%s", b, want)
	}
}

func readAll(b []byte) (Header, error) {
	return Read(bytes.NewReader(b), 0, exactly, func(Entry) error { return nil })
}

// fault demands an *Error with a code.
func fault(t testing.TB, err error, want Code) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want %s", err, want)
	}
	if e.Code != want {
		t.Fatalf("code is %s (%v), want %s", e.Code, err, want)
	}
	return e
}

func entriesOf(l *List) func(visit func(Entry) error) (Header, error) {
	return func(visit func(Entry) error) (Header, error) {
		for _, e := range l.Entries {
			if err := visit(e); err != nil {
				return Header{}, err
			}
		}
		return Header{Issuer: l.Issuer, Version: l.Version, IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt,
			Entries: len(l.Entries), Bytes: 1, Digest: sha(0)}, nil
	}
}

// indexOf builds and opens the index of a list.
func indexOf(t testing.TB, l *List) *Index {
	t.Helper()
	dir := t.TempDir()
	if err := Build(dir, entriesOf(l)); err != nil {
		t.Fatal(err)
	}
	return opened(t, filepath.Join(dir, IndexName))
}

func opened(t testing.TB, path string) *Index {
	t.Helper()
	x, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// onlyIndex demands that a directory holds an index and nothing else.
func onlyIndex(t testing.TB, dir string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 1 || names[0].Name() != IndexName {
		t.Fatalf("the directory holds %v", names)
	}
}

// A generator writes the document of a huge list while it is read: packages in
// order of their digests.
type generator struct {
	n, next int
	tail    string
	buf     []byte
	spent   bool
}

func (g *generator) Read(p []byte) (int, error) {
	for len(g.buf) < len(p) && !g.spent {
		switch {
		case g.next == 0 && len(g.buf) == 0 && g.n >= 0:
			g.buf = append(g.buf, `{"entries":[`...)
			if g.n == 0 {
				g.buf, g.spent = append(g.buf, g.tail...), true
				continue
			}
			fallthrough
		default:
			if g.next > 0 {
				g.buf = append(g.buf, ',')
			}
			g.buf = appendEntry(g.buf, nth(g.next))
			if g.next++; g.next == g.n {
				g.buf, g.spent = append(g.buf, g.tail...), true
			}
		}
	}
	n := copy(p, g.buf)
	g.buf = append(g.buf[:0], g.buf[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// nth is the entry number n of a generated list.
func nth(n int) Entry {
	return Entry{Kind: Package, Digest: digest.Digest(fmt.Sprintf("sha256:%064x", n)), Action: Block, Reason: Malicious}
}

const generatedTail = `],"expiresAt":"2031-01-01T00:00:00Z","issuedAt":"2030-01-01T00:00:00Z","issuer":"example.com","schemaVersion":"switchyard.revocations/v1","version":1}`

// A meter measures how far the heap grows, garbage included.
type meter struct {
	before, peak uint64
	ticks        int
}

func newMeter() *meter {
	runtime.GC()
	m := &meter{}
	m.before = heap()
	return m
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func (m *meter) tick() {
	if m.ticks++; m.ticks%4096 == 0 {
		m.sample()
	}
}

func (m *meter) sample() { m.peak = max(m.peak, heap()) }

func (m *meter) atMost(t *testing.T, bytes uint64) {
	t.Helper()
	m.sample()
	if m.ticks < 4096 {
		t.Fatalf("only %d measurements", m.ticks/4096)
	}
	grown := m.peak - min(m.peak, m.before)
	t.Logf("%d KiB of memory", grown>>10)
	if grown > bytes {
		t.Errorf("%d MiB of memory", grown>>20)
	}
}
