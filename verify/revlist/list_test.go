package revlist

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

func TestWriteIsCanonicalAndReadsBack(t *testing.T) {
	l := sample(t)
	b := written(t, l)
	isCanonical(t, b)
	got, h, err := Parse(bytes.NewReader(b), 0, exactly)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, l) {
		t.Errorf("read\n%+v\nwrote\n%+v", got, l)
	}
	want := Header{l.Issuer, 1, l.IssuedAt, l.ExpiresAt, len(l.Entries), int64(len(b)), digest.Of(b)}
	if h != want {
		t.Errorf("header %+v, want %+v", h, want)
	}
	empty, err := New("example.com", day0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	isCanonical(t, written(t, empty))
	if h, err := readAll(written(t, empty)); err != nil || h.Entries != 0 {
		t.Errorf("empty list: %+v, %v", h, err)
	}
}

// TestStringsAreCanonical compares with another implementation what no entry may
// hold today.
func TestStringsAreCanonical(t *testing.T) {
	var all []rune
	for r := rune(0); r < 0x300; r++ {
		all = append(all, r)
	}
	all = append(all, 0x2028, 0xE000, 0xFFFD, 0x1F4A5)
	b := append(appendString([]byte(`[`), string(all)), ']')
	isCanonical(t, b)
	s := scanBytes(listKind, b[1:len(b)-1])
	if !s.str(1<<20, "text") || string(s.text) != string(all) {
		t.Errorf("read back %q, %v", s.text, s.err)
	}
}

func TestSmallReads(t *testing.T) {
	b := written(t, sample(t))
	for _, size := range []int{1, 2, 3, 7} {
		h, err := Read(&chunks{b: b, size: size}, 0, exactly, func(Entry) error { return nil })
		if err != nil || h.Digest != digest.Of(b) {
			t.Errorf("in pieces of %d: %v", size, err)
		}
	}
}

func TestEdits(t *testing.T) {
	l := sample(t)
	before := written(t, l)
	e := Entry{Kind: Package, Digest: sha(3), Action: Warn, Reason: Withdrawn}
	replaced, err := l.With(e, exactly)
	if err != nil {
		t.Fatal(err)
	}
	i, found := replaced.Find(Package, e.Subject())
	if !found || replaced.Entries[i] != e || len(replaced.Entries) != len(l.Entries) {
		t.Errorf("With did not replace: %+v", replaced.Entries)
	}
	gone, ok := replaced.Without(Package, e.Subject())
	if !ok || len(gone.Entries) != len(l.Entries)-1 {
		t.Error("Without did not remove")
	}
	if again, ok := gone.Without(Package, e.Subject()); ok || again != gone {
		t.Error("Without removed what is not there")
	}
	if !bytes.Equal(before, written(t, l)) {
		t.Error("an edit changed the list that it was made of")
	}
	if _, err := l.With(Entry{Kind: Version, PluginID: "a", Range: "!", Action: Block, Reason: Malicious}, exactly); !errors.Is(err, errRange) {
		t.Errorf("a bad range: %v", err)
	}
	_, err = l.With(Entry{Kind: Version, PluginID: "a", Range: "1", Action: Block, Reason: Malicious}, nil)
	fault(t, err, "list.value")
	many := &List{Issuer: "example.com"}
	for n := range MaxRangesPerID {
		many.Entries = append(many.Entries, Entry{Kind: Version, PluginID: "a", Range: fmt.Sprintf("%05d", n), Action: Block, Reason: Malicious})
	}
	if _, err := many.With(many.Entries[7], exactly); err != nil {
		t.Errorf("replacing one of the most ranges: %v", err)
	}
	_, err = many.With(Entry{Kind: Version, PluginID: "a", Range: "x", Action: Block, Reason: Malicious}, exactly)
	fault(t, err, "list.too_many")
	if _, err = many.With(Entry{Kind: Version, PluginID: "b", Range: "x", Action: Block, Reason: Malicious}, exactly); err != nil {
		t.Errorf("another id: %v", err)
	}
}

func TestBump(t *testing.T) {
	l := sample(t)
	next, err := l.Bump(day0.Add(time.Hour+time.Millisecond), 7*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if next.Version != 2 || !next.IssuedAt.Equal(day0.Add(time.Hour)) || !next.ExpiresAt.Equal(day0.Add(169*time.Hour)) || l.Version != 1 {
		t.Errorf("bumped to %+v", next)
	}
	_, err = l.Bump(day0.Add(-time.Second), time.Hour)
	fault(t, err, "list.value")
	_, err = l.Bump(day0, 0)
	fault(t, err, "list.value")
	_, err = l.Bump(day0, -time.Hour)
	fault(t, err, "list.value")
	last := *l
	last.Version = MaxVersion
	_, err = last.Bump(day0, time.Hour)
	fault(t, err, "list.number")
	for _, issuer := range []string{"", "Example.com", "../x", "a..b", "con", "nul.example", ".a", "a.", "a/b", "-a"} {
		if _, err := New(issuer, day0, time.Hour); err == nil {
			t.Errorf("issuer %q was taken", issuer)
		}
	}
	if _, err := New("1st.example.com", day0, time.Hour); err != nil {
		t.Error(err)
	}
}

func TestWriteRefusesWhatReadRefuses(t *testing.T) {
	base := sample(t)
	for name, spoil := range map[string]func(*List){
		"list.not_sorted": func(l *List) { slices.Reverse(l.Entries) },
		"list.duplicate":  func(l *List) { l.Entries = slices.Insert(l.Entries, 1, l.Entries[0]) },
		"list.number":     func(l *List) { l.Version = 0 },
		"list.value":      func(l *List) { l.IssuedAt = l.IssuedAt.Add(1) },
		"list.too_many": func(l *List) {
			l.Entries = make([]Entry, MaxEntries+1)
		},
		"list.too_long":        func(l *List) { l.Entries[0].Text = string(make([]byte, MaxText+1)) },
		"list.invalid_unicode": func(l *List) { l.Entries[0].Text = "\xff" },
	} {
		l := *base
		l.Entries = slices.Clone(base.Entries)
		spoil(&l)
		var b bytes.Buffer
		fault(t, Write(&b, &l, exactly), Code(name))
		if b.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, b.Len())
		}
	}
}

func TestEntriesThatBreakRules(t *testing.T) {
	good := Entry{Kind: Package, Digest: sha(1), Action: Block, Reason: Malicious}
	bad := map[string]func(e *Entry){
		"no kind":             func(e *Entry) { e.Kind = "" },
		"unknown kind":        func(e *Entry) { e.Kind = "archives" },
		"no digest":           func(e *Entry) { e.Digest = "" },
		"bare digest":         func(e *Entry) { e.Digest = digest.Digest(sha(1).Hex()) },
		"two subjects":        func(e *Entry) { e.PluginID = "a" },
		"a signer too":        func(e *Entry) { e.Signer = key(1) },
		"publisher, no id":    func(e *Entry) { e.Kind, e.PublisherID = Publisher, "org.example" },
		"version, no range":   func(e *Entry) { e.Kind, e.Digest, e.PluginID = Version, "", "a" },
		"version, bad id":     func(e *Entry) { e.Kind, e.Digest, e.PluginID, e.Range = Version, "", "A/b", "1" },
		"signer, none":        func(e *Entry) { e.Kind, e.Digest = Signer, "" },
		"signer, no issuer":   func(e *Entry) { e.Kind, e.Digest, e.Signer = Signer, "", verify.Signer{Identity: "a"} },
		"signer, both":        func(e *Entry) { e.Kind, e.Digest, e.Signer = Signer, "", person("a"); e.Signer.Key = string(sha(1)) },
		"signer, bad key":     func(e *Entry) { e.Kind, e.Digest, e.Signer = Signer, "", verify.Signer{Key: "sha256:00"} },
		"no action":           func(e *Entry) { e.Action = "" },
		"unknown action":      func(e *Entry) { e.Action = "Block" },
		"no reason":           func(e *Entry) { e.Reason = "" },
		"control character":   func(e *Entry) { e.Text = "a\nb" },
		"C1 control":          func(e *Entry) { e.Text = "a\u0085b" },
		"noncharacter":        func(e *Entry) { e.Text = "a\uFFFEb" },
		"http advisory":       func(e *Entry) { e.Advisory = "http://example.com" },
		"advisory, no host":   func(e *Entry) { e.Advisory = "https:///x" },
		"advisory, user":      func(e *Entry) { e.Advisory = "https://a@example.com/" },
		"advisory, space":     func(e *Entry) { e.Advisory = "https://example.com/ x" },
		"replacement":         func(e *Entry) { e.Replacement = "repo-facts" },
		"replacement, spaces": func(e *Entry) { e.Replacement = "repo-facts@1 2" },
	}
	for name, spoil := range bad {
		e := good
		spoil(&e)
		if p := checkWhole(e, exactly); p == nil {
			t.Errorf("%s: taken", name)
		}
		if name == "signer, both" {
			continue // has no form
		}
		// As JSON it is refused too, whatever the writer would say.
		doc := append(appendEntry([]byte(`{"entries":[`), e), generatedTail...)
		if _, err := readAll(doc); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	if p := checkWhole(good, exactly); p != nil {
		t.Error(p.message)
	}
}

func TestCovering(t *testing.T) {
	entries := []Entry{
		{Kind: Package, Digest: sha(1)},
		{Kind: Version, PluginID: "a", Range: "1.0.0"},
		{Kind: Version, PluginID: "a", Range: "2.0.0"},
	}
	got, err := Covering(entries, "2.0.0", exactly)
	if err != nil || len(got) != 2 || got[0].Kind != Package || got[1].Range != "2.0.0" {
		t.Errorf("%+v, %v", got, err)
	}
	entries[1].Range = "!"
	if _, err := Covering(entries, "2.0.0", exactly); !errors.Is(err, errRange) {
		t.Errorf("a range that cannot be read: %v", err)
	}
	if _, err := Covering(entries, "2.0.0", nil); err == nil {
		t.Error("no ranges, no error")
	}
}
