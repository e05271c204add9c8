package revlist

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type chunks struct {
	b    []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:min(c.size, len(c.b))])
	c.b = c.b[n:]
	return n, nil
}

// TestTruncatedAtEveryByte: every beginning of a list is named as cut off, at the
// byte where it ends.
func TestTruncatedAtEveryByte(t *testing.T) {
	b := written(t, sample(t))
	if len(b) < 1000 {
		t.Fatalf("the list has only %d bytes", len(b))
	}
	for n := range b {
		_, err := readAll(b[:n])
		if e := fault(t, err, "list.truncated"); e.Offset != int64(n) {
			t.Fatalf("cut at %d, reported at %d", n, e.Offset)
		}
		// A transport that notices says so itself.
		_, err = Read(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(io.ErrUnexpectedEOF)), 0, exactly, func(Entry) error { return nil })
		fault(t, err, "list.truncated")
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: the cause is lost", n)
		}
	}
}

// TestEveryChangedByte: a list with one other byte is refused, or it is the
// canonical form of another list and has another digest.
func TestEveryChangedByte(t *testing.T) {
	b := written(t, sample(t))
	want, err := readAll(b)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range b {
		for _, c := range []byte{b[i] ^ 1, b[i] ^ 0x20, b[i] ^ 0x80, ' ', '"', 0} {
			if c == b[i] {
				continue
			}
			changed := bytes.Clone(b)
			changed[i] = c
			l, h, err := Parse(bytes.NewReader(changed), 0, exactly)
			if err != nil {
				refused++
				continue
			}
			if h.Digest == want.Digest {
				t.Fatalf("byte %d: same digest", i)
			}
			if !bytes.Equal(written(t, l), changed) {
				t.Fatalf("byte %d = %q: accepted though not canonical", i, c)
			}
		}
	}
	if refused < len(b) {
		t.Errorf("only %d of %d changes were refused", refused, 6*len(b))
	}
}

const (
	zeros    = "0000000000000000000000000000000000000000000000000000000000000000"
	entryA   = `{"action":"block","digest":"sha256:` + zeros + `","kind":"archive","reason":"malicious"}`
	entryB   = `{"action":"block","digest":"sha256:` + zeros + `","kind":"package","reason":"malicious"}`
	listTail = generatedTail
)

func TestRefusals(t *testing.T) {
	list := func(entries string) string { return `{"entries":[` + entries + listTail }
	swap := func(doc, old, new string) string {
		if !strings.Contains(doc, old) {
			t.Fatalf("%s is not in %s", old, doc)
		}
		return strings.Replace(doc, old, new, 1)
	}
	good := list(entryA + "," + entryB)
	if _, err := readAll([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, doc string
		code      Code
		entry     int
	}{
		{"empty", "", "list.truncated", 0},
		{"null", "null", "list.malformed", 0},
		{"array", "[]", "list.malformed", 0},
		{"no members", "{}", "list.missing_member", 0},
		{"byte order mark", "\ufeff" + good, "list.not_canonical", 0},
		{"leading space", " " + good, "list.not_canonical", 0},
		{"line feed at the end", good + "\n", "list.trailing_data", 0},
		{"two documents", good + good, "list.trailing_data", 0},
		{"NUL at the end", good + "\x00", "list.trailing_data", 0},
		{"space after a colon", swap(good, `"version":1`, `"version": 1`), "list.not_canonical", 0},
		{"space in an entry", swap(good, `,"digest"`, `, "digest"`), "list.not_canonical", 1},
		{"line feed between entries", swap(good, `},{`, "},\n{"), "list.not_canonical", 2},
		{"trailing comma", list(entryA + ","), "list.malformed", 2},
		{"leading comma", list("," + entryA), "list.malformed", 1},
		{"missing comma", list(entryA + entryB), "list.malformed", 1},
		{"swapped members", swap(good, `"issuedAt":"2030-01-01T00:00:00Z","issuer":"example.com"`, `"issuer":"example.com","issuedAt":"2030-01-01T00:00:00Z"`), "list.not_canonical", 0},
		{"swapped members of an entry", swap(good, `"kind":"archive","reason":"malicious"`, `"reason":"malicious","kind":"archive"`), "list.not_canonical", 1},
		{"header first", `{"version":1,"entries":[]}`, "list.not_canonical", 0},
		{"duplicate member", swap(good, `"version":1`, `"version":1,"version":1`), "list.duplicate_member", 0},
		{"duplicate member of an entry", swap(good, `"kind":"archive"`, `"kind":"archive","kind":"package"`), "list.duplicate_member", 1},
		{"duplicate member later", swap(good, `"reason":"malicious"`, `"reason":"malicious","action":"warn"`), "list.duplicate_member", 1},
		{"unknown member", swap(good, `"version":1`, `"version":1,"x":1`), "list.unknown_member", 0},
		{"unknown member of an entry", swap(good, `,"kind"`, `,"kin":[[[[]]]],"kind"`), "list.unknown_member", 1},
		{"another case", swap(good, `"version"`, `"Version"`), "list.unknown_member", 0},
		{"escaped name", swap(good, `"version"`, `"v\u0065rsion"`), "list.not_canonical", 0},
		{"long name", swap(good, `"version"`, `"`+strings.Repeat("v", 1<<20)+`"`), "list.too_long", 0},
		{"missing member", swap(good, `"issuer":"example.com",`, ``), "list.missing_member", 0},
		{"missing kind", swap(good, `"kind":"archive",`, ``), "list.missing_member", 1},
		{"null value", swap(good, `"issuer":"example.com"`, `"issuer":null`), "list.malformed", 0},
		{"number for a string", swap(good, `"issuer":"example.com"`, `"issuer":7`), "list.malformed", 0},
		{"string for a number", swap(good, `"version":1`, `"version":"1"`), "list.malformed", 0},
		{"object for entries", swap(good, `"entries":[`, `"entries":{`), "list.malformed", 0},
		{"deep value", swap(good, `"issuer":"example.com"`, `"issuer":`+strings.Repeat("[", 1<<20)), "list.malformed", 0},
		{"string for an entry", list(`"x"`), "list.malformed", 1},
		{"version 0", swap(good, `"version":1`, `"version":0`), "list.number", 0},
		{"version -1", swap(good, `"version":1`, `"version":-1`), "list.number", 0},
		{"version 2^53", swap(good, `"version":1`, `"version":9007199254740992`), "list.number", 0},
		{"a million digits", swap(good, `"version":1`, `"version":1`+strings.Repeat("0", 1_000_000)), "list.number", 0},
		{"version 2^64+1", swap(good, `"version":1`, `"version":18446744073709551617`), "list.number", 0},
		{"version 01", swap(good, `"version":1`, `"version":01`), "list.not_canonical", 0},
		{"version 1.0", swap(good, `"version":1`, `"version":1.0`), "list.not_canonical", 0},
		{"version 1e0", swap(good, `"version":1`, `"version":1e0`), "list.not_canonical", 0},
		{"version +1", swap(good, `"version":1`, `"version":+1`), "list.malformed", 0},
		{"version NaN", swap(good, `"version":1`, `"version":NaN`), "list.malformed", 0},
		{"another schema", swap(good, `revocations/v1`, `revocations/v2`), "list.schema_version", 0},
		{"unsorted", list(entryB + "," + entryA), "list.not_sorted", 2},
		{"duplicate", list(entryA + "," + entryA), "list.duplicate", 2},
		{"duplicate subject", list(entryA + "," + swap(entryA, `"block"`, `"warn"`)), "list.duplicate", 2},
		{"invalid UTF-8", swap(good, `"malicious"}`, `"malicious","text":"`+"\xff"+`"}`), "list.invalid_unicode", 1},
		{"overlong UTF-8", swap(good, `"malicious"}`, `"malicious","text":"`+"\xc0\xaf"+`"}`), "list.invalid_unicode", 1},
		{"surrogate in UTF-8", swap(good, `"malicious"}`, `"malicious","text":"`+"\xed\xa0\x80"+`"}`), "list.invalid_unicode", 1},
		{"noncharacter", swap(good, `"malicious"}`, `"malicious","text":"`+"\uffff"+`"}`), "list.invalid_unicode", 1},
		{"escaped surrogate", swap(good, `"malicious"}`, `"malicious","text":"\ud800"}`), "list.not_canonical", 1},
		{"escaped letter", swap(good, `"malicious"}`, `"malicious","text":"\u0041"}`), "list.not_canonical", 1},
		{"escaped slash", swap(good, `"malicious"}`, `"malicious","text":"\/"}`), "list.not_canonical", 1},
		{"long escape", swap(good, `"malicious"}`, `"malicious","text":"\u000a"}`), "list.not_canonical", 1},
		{"upper-case escape", swap(good, `"malicious"}`, `"malicious","text":"\u001F"}`), "list.not_canonical", 1},
		{"unknown escape", swap(good, `"malicious"}`, `"malicious","text":"\x41"}`), "list.malformed", 1},
		{"raw control character", swap(good, `"malicious"}`, `"malicious","text":"`+"\n"+`"}`), "list.malformed", 1},
		{"escaped control character", swap(good, `"malicious"}`, `"malicious","text":"\n"}`), "list.value", 1},
		{"empty text", swap(good, `"malicious"}`, `"malicious","text":""}`), "list.value", 1},
		{"long text", swap(good, `"malicious"}`, `"malicious","text":"`+strings.Repeat("x", MaxText+1)+`"}`), "list.too_long", 1},
		{"long text of escapes", swap(good, `"malicious"}`, `"malicious","text":"`+strings.Repeat(`\\`, MaxText+1)+`"}`), "list.too_long", 1},
		{"unknown reason", swap(good, `"malicious"`, `"Malicious"`), "list.value", 1},
		{"unknown action", swap(good, `"block"`, `"deny"`), "list.value", 1},
		{"unknown kind", swap(good, `"kind":"archive"`, `"kind":"zip"`), "list.value", 1},
		{"upper-case digest", swap(good, zeros, strings.Repeat("A", 64)), "list.value", 1},
		{"range that cannot be read", list(`{"action":"block","kind":"version","pluginId":"a","range":"!","reason":"malicious"}`), "list.value", 1},
		{"time with a zone", swap(good, `2030-01-01T00:00:00Z`, `2030-01-01T00:00:00+00:00`), "list.too_long", 0},
		{"time with a fraction", swap(good, `2030-01-01T00:00:00Z`, `2030-01-01T00:00:00.0Z`), "list.too_long", 0},
		{"30 February", swap(good, `2030-01-01T00:00:00Z`, `2030-02-30T00:00:00Z`), "list.value", 0},
		{"time without a leading zero", swap(good, `2030-01-01T00:00:00Z`, `2030-01-01T0:00:00Z`), "list.value", 0},
		{"leap second", swap(good, `2030-01-01T00:00:00Z`, `2029-12-31T23:59:60Z`), "list.value", 0},
		{"expires before issue", swap(good, `2031`, `2029`), "list.value", 0},
		{"bad issuer", swap(good, `"example.com"`, `"../x"`), "list.value", 0},
	} {
		_, err := readAll([]byte(c.doc))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error is %v", c.name, err)
			continue
		}
		if e.Code != c.code || e.Entry != c.entry {
			t.Errorf("%s: %s in entry %d (%v), want %s in entry %d", c.name, e.Code, e.Entry, err, c.code, c.entry)
		}
		if e.Offset < 0 || e.Offset > int64(len(c.doc)) {
			t.Errorf("%s: offset %d of %d", c.name, e.Offset, len(c.doc))
		}
		if len(e.Error()) > 512 {
			t.Errorf("%s: a message of %d bytes", c.name, len(e.Error()))
		}
	}
}

func TestOffsetsPointAtTheFault(t *testing.T) {
	doc := `{"entries":[` + entryA + "," + entryA + listTail
	_, err := readAll([]byte(doc))
	e := fault(t, err, "list.duplicate")
	if want := strings.LastIndex(doc, entryA); e.Offset != int64(want) {
		t.Errorf("offset %d, want %d", e.Offset, want)
	}
	_, err = readAll([]byte(strings.Replace(doc, `"kind"`, `"kink"`, 1)))
	e = fault(t, err, "list.unknown_member")
	if want := strings.Index(doc, `"kind"`); e.Offset != int64(want) {
		t.Errorf("offset %d, want %d", e.Offset, want)
	}
}

func TestTooLarge(t *testing.T) {
	b := written(t, sample(t))
	if _, err := Read(bytes.NewReader(b), int64(len(b)), exactly, func(Entry) error { return nil }); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := Read(bytes.NewReader(b), int64(len(b))-1, exactly, func(Entry) error { return nil })
	if e := fault(t, err, "list.too_large"); e.Offset != int64(len(b))-1 {
		t.Errorf("offset %d", e.Offset)
	}
}

// TestTooLargeAsAStream reads more than MaxBytes that no file holds, with a limit
// of the caller's that is larger still.
func TestTooLargeAsAStream(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 256 MiB")
	}
	long := strings.Repeat("x", MaxText)
	n := 0
	r := &repeat{next: func(b []byte) []byte {
		e := nth(n)
		e.Text = long
		if b = append(b, ','); n == 0 {
			b = append(b[:0], `{"entries":[`...)
		}
		n++
		return appendEntry(b, e)
	}}
	memory := newMeter()
	_, err := Read(r, 1<<40, exactly, func(Entry) error { memory.tick(); return nil })
	if e := fault(t, err, "list.too_large"); e.Offset != MaxBytes {
		t.Errorf("offset %d", e.Offset)
	}
	if r.given > MaxBytes+1 {
		t.Errorf("%d bytes were taken", r.given)
	}
	memory.atMost(t, 16<<20)
}

// repeat is an endless stream of what next appends.
type repeat struct {
	next  func([]byte) []byte
	buf   []byte
	given int64
}

func (r *repeat) Read(p []byte) (int, error) {
	if len(r.buf) == 0 {
		r.buf = r.next(r.buf[:0])
	}
	n := copy(p, r.buf)
	r.buf = append(r.buf[:0], r.buf[n:]...)
	r.given += int64(n)
	return n, nil
}

// TestMillionEntries: the memory that reading takes does not depend on the length.
func TestMillionEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 140 MB")
	}
	const n = 1_000_000
	seen := 0
	memory := newMeter()
	h, err := Read(&generator{n: n, tail: generatedTail}, 0, exactly, func(Entry) error { seen++; memory.tick(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if seen != n || h.Entries != n {
		t.Errorf("%d of %d entries", seen, h.Entries)
	}
	t.Logf("%d MiB read", h.Bytes>>20)
	memory.atMost(t, 16<<20)
}

func TestTooManyEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 256 MiB")
	}
	s := newScanner(listKind, &repeat{next: func(b []byte) []byte { return append(b, "1,"...) }}, 1<<40, nil)
	s.pos, s.buf = 0, append(s.buf, '[')
	s.read = 1
	n := 0
	s.array("entries", MaxEntries, func() { n++; s.next() })
	if e := fault(t, s.err, "list.too_many"); n != MaxEntries || e.Code == "" {
		t.Errorf("%d elements were read", n)
	}
}

func TestTooManyRanges(t *testing.T) {
	l := &List{Issuer: "example.com"}
	var doc []byte
	doc = append(doc, `{"entries":[`...)
	for n := range MaxRangesPerID + 1 {
		if n > 0 {
			doc = append(doc, ',')
		}
		e := Entry{Kind: Version, PluginID: "a", Range: string(rune('a'+n/100)) + string(rune('a'+n/10%10)) + string(rune('a'+n%10)), Action: Block, Reason: Malicious}
		l.Entries = append(l.Entries, e)
		doc = appendEntry(doc, e)
	}
	_, err := readAll(append(doc, generatedTail...))
	if e := fault(t, err, "list.too_many"); e.Entry != MaxRangesPerID+1 {
		t.Errorf("refused at entry %d", e.Entry)
	}
}

func TestVisitEndsTheReading(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	_, err := Read(&generator{n: 1000, tail: generatedTail}, 0, exactly, func(Entry) error {
		if n++; n == 3 {
			return stop
		}
		return nil
	})
	if err != stop || n != 3 {
		t.Errorf("%v after %d entries", err, n)
	}
}

func TestReadErrorIsNoRefusal(t *testing.T) {
	broken := errors.New("disk")
	b := written(t, sample(t))
	_, err := Read(io.MultiReader(bytes.NewReader(b[:100]), iotest.ErrReader(broken)), 0, exactly, func(Entry) error { return nil })
	var e *Error
	if !errors.Is(err, broken) || errors.As(err, &e) {
		t.Errorf("%v", err)
	}
	_, err = Read(&idle{}, 0, exactly, func(Entry) error { return nil })
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestRangesAreNeeded(t *testing.T) {
	_, err := Read(bytes.NewReader(written(t, sample(t))), 0, nil, func(Entry) error { return nil })
	fault(t, err, "list.value")
}
