package revlist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// keysOf returns each key of a list once, and some that it does not hold.
func keysOf(l *List) (present, absent []Key) {
	for _, e := range l.Entries {
		if k := e.Key(); len(present) == 0 || present[len(present)-1] != k {
			present = append(present, k)
		}
	}
	for _, k := range []Kind{Archive, Manifest, Package} {
		absent = append(absent, DigestKey(k, sha(1000)), DigestKey(k, ""))
	}
	return present, append(absent, VersionKey("rep"), VersionKey("repo-fact"), VersionKey(""), SignerKey(key(1000)),
		SignerKey(verify.Signer{}), SignerKey(verify.Signer{Identity: "mallory@example.com"}), Key{}, DigestKey(Archive, sha(3)),
		PublisherKey("org.example", "com.example.indexer", sha(3)), PublisherKey("org.example2", "com.example.indexer", sha(2)))
}

func truth(l *List, k Key) []Entry {
	var out []Entry
	for _, e := range l.Entries {
		if e.Key() == k {
			out = append(out, e)
		}
	}
	return out
}

func TestLookup(t *testing.T) {
	l := sample(t)
	x := indexOf(t, l)
	present, absent := keysOf(l)
	if len(present) != len(l.Entries)-1 {
		t.Fatalf("%d keys", len(present))
	}
	for _, k := range slices.Concat(present, absent) {
		got, err := x.Lookup(k)
		if want := truth(l, k); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", k, got, err, want)
		}
	}
	all, err := x.Lookup(slices.Concat(absent, present)...)
	if err != nil || !reflect.DeepEqual(all, l.Entries) {
		t.Errorf("all: %+v, %v", all, err)
	}
	if h := x.Header(); h.Issuer != l.Issuer || h.Version != 1 || !h.IssuedAt.Equal(l.IssuedAt) || !h.ExpiresAt.Equal(l.ExpiresAt) || h.Entries != len(l.Entries) || h.Digest != sha(0) || h.Bytes != 1 {
		t.Errorf("header %+v", h)
	}
}

func TestLookupInEmptyList(t *testing.T) {
	x := indexOf(t, &List{Issuer: "example.com", Version: 1, IssuedAt: day0, ExpiresAt: day0.Add(time.Hour)})
	_, absent := keysOf(sample(t))
	if got, err := x.Lookup(absent...); err != nil || len(got) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// mixed is a list of n entries of all kinds.
func mixed(t testing.TB, n int) *List {
	t.Helper()
	l := &List{Issuer: "example.com", Version: 1, IssuedAt: day0, ExpiresAt: day0.Add(time.Hour)}
	for i := range n {
		e := Entry{Action: Block, Reason: Vulnerable}
		switch i % 6 {
		case 0:
			e.Kind, e.Digest = Archive, sha(i)
		case 1:
			e.Kind, e.Digest = Manifest, sha(i)
		case 2:
			e.Kind, e.Digest = Package, sha(i)
		case 3:
			e.Kind, e.PublisherID, e.PluginID, e.Digest = Publisher, "org.example", fmt.Sprintf("p%d", i/600), sha(i)
		case 4:
			e.Kind, e.PluginID, e.Range = Version, fmt.Sprintf("p%d", i/600), fmt.Sprintf("1.0.%d", i)
		case 5:
			e.Kind, e.Signer = Signer, key(i)
		}
		l.Entries = append(l.Entries, e)
	}
	slices.SortFunc(l.Entries, func(a, b Entry) int { return compareSubjects(a.Kind, a.Subject(), b.Kind, b.Subject()) })
	return l
}

func TestLookupInLargerLists(t *testing.T) {
	for _, n := range []int{1, 16, 17, 100, 12_000} {
		l := mixed(t, n)
		x := indexOf(t, l)
		present, absent := keysOf(l)
		want := map[Key][]Entry{}
		for _, e := range l.Entries {
			want[e.Key()] = append(want[e.Key()], e)
		}
		var group sync.WaitGroup
		for part := range 2 {
			group.Go(func() {
				for i := part; i < len(present); i += 2 {
					got, err := x.Lookup(present[i])
					if err != nil || !reflect.DeepEqual(got, want[present[i]]) {
						t.Errorf("%d entries: %q: %+v, %v", n, present[i], got, err)
						return
					}
				}
			})
		}
		group.Wait()
		for i := range 1000 {
			absent = append(absent, DigestKey(Package, sha(1_000_000+i)))
		}
		if got, err := x.Lookup(absent...); err != nil || len(got) > 0 {
			t.Errorf("%d entries: %+v, %v", n, got, err)
		}
	}
}

// answers asks a damaged index for everything. An error is a good answer; another
// answer than the truth is not.
func answers(t *testing.T, what string, index []byte, l *List, keys []Key) (errs int) {
	t.Helper()
	x, err := newIndex(bytes.NewReader(index), int64(len(index)))
	if err != nil {
		if !errors.Is(err, ErrIndexDamaged) {
			t.Fatalf("%s: open: %v", what, err)
		}
		return len(keys)
	}
	for _, k := range keys {
		got, err := x.Lookup(k)
		if err != nil {
			if !errors.Is(err, ErrIndexDamaged) {
				t.Fatalf("%s: %v", what, err)
			}
			errs++
		} else if want := truth(l, k); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %q is answered with %+v", what, k, got)
		}
	}
	return errs
}

func contentOf(t testing.TB, x *Index) []byte {
	t.Helper()
	b, err := os.ReadFile(x.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEveryDamagedByte: whichever byte of an index is changed, no lookup answers
// something else than the truth.
func TestEveryDamagedByte(t *testing.T) {
	l := sample(t)
	l.Entries = append(l.Entries, mixed(t, 36).Entries...)
	slices.SortFunc(l.Entries, func(a, b Entry) int { return compareSubjects(a.Kind, a.Subject(), b.Kind, b.Subject()) })
	x := indexOf(t, l)
	whole := contentOf(t, x)
	present, absent := keysOf(l)
	keys := slices.Concat(present, absent)
	if errs := answers(t, "undamaged", whole, l, keys); errs > 0 || x.head.bits < 1 {
		t.Fatalf("undamaged: %d errors, prefixes of %d bits", errs, x.head.bits)
	}
	for i := range whole {
		was := whole[i]
		whole[i] ^= byte(1) << (i % 8)
		if answers(t, fmt.Sprintf("byte %d", i), whole, l, keys) == 0 {
			t.Fatalf("byte %d of %d is covered by nothing", i, len(whole))
		}
		whole[i] = was
	}
	for n := range whole {
		if answers(t, fmt.Sprintf("cut at %d", n), whole[:n], l, keys[:1]) == 0 {
			t.Fatalf("an index that is cut at byte %d is believed", n)
		}
	}
	for name, content := range map[string][]byte{
		"longer": append(bytes.Clone(whole), 0), "zeros": make([]byte, len(whole)), "text": []byte("{}"),
	} {
		if answers(t, name, content, l, keys[:1]) == 0 {
			t.Errorf("%s: believed", name)
		}
	}
	path := filepath.Join(t.TempDir(), "index")
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrIndexDamaged) {
		t.Errorf("a file that is cut: %v", err)
	}
}

// TestPartsOfTwoIndexes: records and slots of an older index of the same shape do
// not fit a newer header.
func TestPartsOfTwoIndexes(t *testing.T) {
	l := mixed(t, 60)
	older := &List{Issuer: l.Issuer, Version: 2, IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt, Entries: slices.Clone(l.Entries)}
	for i, e := range older.Entries {
		if e.Kind == Package {
			older.Entries[i].Digest = sha(5000 + i)
		}
	}
	slices.SortFunc(older.Entries, func(a, b Entry) int { return compareSubjects(a.Kind, a.Subject(), b.Kind, b.Subject()) })
	x, y := indexOf(t, l), indexOf(t, older)
	a, b := contentOf(t, x), contentOf(t, y)
	if len(a) != len(b) {
		t.Fatalf("%d and %d bytes", len(a), len(b))
	}
	present, _ := keysOf(l)
	if errs := answers(t, "mixed", slices.Concat(a[:headerSize], b[headerSize:]), l, present); errs != len(present) {
		t.Errorf("%d of %d lookups were refused", errs, len(present))
	}
}

// TestForgedNumbers gives an index wrong numbers with right checksums: nothing is
// read outside the file, nothing large is allocated.
func TestForgedNumbers(t *testing.T) {
	l := sample(t)
	x := indexOf(t, l)
	whole := contentOf(t, x)
	present, absent := keysOf(l)
	keys := slices.Concat(present, absent)
	try := func(name string, content []byte) {
		t.Helper()
		if answers(t, name, content, l, keys) == 0 {
			t.Errorf("%s: believed", name)
		}
	}
	reseal := func(b []byte) []byte { // the header's checksum only
		sum := sumOf(b[:headerSize-32])
		copy(b[headerSize-32:], sum[:])
		return b
	}
	for _, at := range []int{8, 12, 16, 24, 32} {
		for _, v := range []uint64{1, 2, 7, 19, 63, 1 << 31, 1<<32 - 1, 1 << 62, 1<<64 - 1} {
			b := bytes.Clone(whole)
			if at < 16 {
				binary.LittleEndian.PutUint32(b[at:], uint32(v))
			} else {
				binary.LittleEndian.PutUint64(b[at:], v)
			}
			if at == 32 && v < 100 && int(v) >= len(present) || bytes.Equal(b, whole) {
				continue // a number that nothing is read by
			}
			try(fmt.Sprintf("header %d = %d", at, v), reseal(b))
		}
	}
	slot := int(x.head.slotsAt())
	records := whole[x.head.recordsAt():x.head.slotsAt()]
	for name, forged := range map[string][slotSize]byte{
		"a slot behind the records":  newSlot(x.seed, 0, len(present), records),
		"a slot that points far off": newSlot(x.seed, 0, 1<<32-1, records),
		"a slot of another prefix":   newSlot(x.seed, 1, 0, records),
		"a slot with a record twice": newSlot(x.seed, 0, 0, slices.Concat(records, records[:recordSize])),
		"a slot of a million":        newSlot(x.seed, 0, 0, make([]byte, recordSize<<20)),
	} {
		b := bytes.Clone(whole)
		copy(b[slot:], forged[:])
		try(name, b)
	}
	reordered := slices.Concat(records[recordSize:2*recordSize], records[:recordSize], records[2*recordSize:])
	outside := bytes.Clone(records)
	for r := outside; len(r) > 0; r = r[recordSize:] {
		binary.LittleEndian.PutUint64(r[32:], 1<<63)
	}
	long := bytes.Clone(records)
	for r := long; len(r) > 0; r = r[recordSize:] {
		binary.LittleEndian.PutUint32(r[40:], 1<<32-1)
	}
	swapped := bytes.Clone(records) // two keys, each with the other's body
	copy(swapped[32:recordSize], records[recordSize+32:])
	copy(swapped[recordSize+32:2*recordSize], records[32:recordSize])
	resummed := bytes.Clone(swapped)
	for i := range 2 {
		r := resummed[i*recordSize:]
		from := binary.LittleEndian.Uint64(r[32:]) + headerSize
		sum := bodySum(r[:32], whole[from:from+uint64(binary.LittleEndian.Uint32(r[40:]))])
		copy(r[44:recordSize], sum[:8])
	}
	for name, forged := range map[string][]byte{
		"records out of order": reordered, "bodies outside": outside, "bodies too long": long, "bodies swapped": swapped, "bodies swapped and summed": resummed,
	} {
		b := bytes.Clone(whole)
		copy(b[x.head.recordsAt():], forged)
		s := newSlot(x.seed, 0, 0, forged)
		copy(b[slot:], s[:])
		try(name, b)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "index")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrIndexDamaged) {
		t.Errorf("missing: %v", err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a directory was opened")
	}
}

func TestBuildReplacesInOneStep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, IndexName)
	l := mixed(t, 600)
	if err := Build(dir, entriesOf(l)); err != nil {
		t.Fatal(err)
	}
	onlyIndex(t, dir)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x := opened(t, path)

	stop := errors.New("stop")
	shuffled := *l
	shuffled.Entries = slices.Clone(l.Entries)
	slices.Reverse(shuffled.Entries)
	twice := *l
	twice.Entries = slices.Insert(slices.Clone(l.Entries), 7, l.Entries[7])
	bad := *l
	bad.Entries = slices.Clone(l.Entries)
	bad.Entries[0].Action = ""
	nobody := *l
	nobody.Issuer = ""
	for name, read := range map[string]func(func(Entry) error) (Header, error){
		"refused at the end": func(visit func(Entry) error) (Header, error) {
			if _, err := entriesOf(l)(visit); err != nil {
				t.Error(err)
			}
			return Header{}, stop
		},
		"out of order":   entriesOf(&shuffled),
		"an entry twice": entriesOf(&twice),
		"a bad entry":    entriesOf(&bad),
		"a bad header":   entriesOf(&nobody),
		"an error passed over": func(visit func(Entry) error) (Header, error) {
			h, _ := entriesOf(l)(func(e Entry) error { return nil })
			for _, e := range shuffled.Entries {
				_ = visit(e)
			}
			return h, nil
		},
		"entries left out": func(visit func(Entry) error) (Header, error) {
			h, err := entriesOf(l)(func(e Entry) error { return nil })
			return h, err
		},
		"no digest": func(visit func(Entry) error) (Header, error) {
			h, err := entriesOf(l)(visit)
			h.Digest = ""
			return h, err
		},
	} {
		err := Build(dir, read)
		if err == nil || name == "refused at the end" && !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
		onlyIndex(t, dir)
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Fatalf("%s: the old index changed", name)
		}
	}

	// What a killed process left is removed.
	if err := os.WriteFile(filepath.Join(dir, temporaryPrefix+"1"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Build(dir, entriesOf(&List{Issuer: "example.com", Version: 2, IssuedAt: day0, ExpiresAt: day0.Add(1e9)})); err != nil {
		t.Fatal(err)
	}
	onlyIndex(t, dir)
	// A reader that has the old index open keeps it; the next one sees the new.
	if got, err := x.Lookup(l.Entries[0].Key()); err != nil || len(got) == 0 {
		t.Errorf("the old index: %+v, %v", got, err)
	}
	if y := opened(t, path); y.Header().Version != 2 {
		t.Errorf("the new index: %+v", y.Header())
	}
	// The same list gives the same bytes.
	if err := Build(dir, entriesOf(l)); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(before, again) {
		t.Error("the same list has two indexes")
	}
	if err := Build(filepath.Join(dir, "missing"), entriesOf(l)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// generated is the list of n entries that a generator writes, read as a stream.
func generated(n int, tick func()) func(visit func(Entry) error) (Header, error) {
	return func(visit func(Entry) error) (Header, error) {
		return Read(&generator{n: n, tail: generatedTail}, 0, exactly, func(e Entry) error {
			tick()
			return visit(e)
		})
	}
}

// TestBuildMemory: the memory that building takes does not depend on the length.
func TestBuildMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200 MB")
	}
	const n = portion + 50_000
	dir := t.TempDir()
	memory := newMeter()
	b := generated(n, memory.tick)
	if err := Build(dir, b); err != nil {
		t.Fatal(err)
	}
	memory.atMost(t, 64<<20)
	x := opened(t, filepath.Join(dir, IndexName))
	for i := 0; i < n; i += n / 1000 {
		e := nth(i)
		if got, err := x.Lookup(e.Key()); err != nil || len(got) != 1 || got[0] != e {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
		if got, err := x.Lookup(DigestKey(Package, sha(i))); err != nil || len(got) > 0 {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
	}
}

type counter struct {
	in           io.ReaderAt
	reads, bytes int
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	c.bytes += len(p)
	return c.in.ReadAt(p, off)
}

// TestLookupCostIsConstant counts what is read, for lists of any length.
func TestLookupCostIsConstant(t *testing.T) {
	for _, n := range []int{0, 17, 1_000, 50_000} {
		dir := t.TempDir()
		if err := Build(dir, generated(n, func() {})); err != nil {
			t.Fatal(err)
		}
		x := opened(t, filepath.Join(dir, IndexName))
		c := &counter{in: x.in}
		x.in = c
		for i := range 2_000 {
			c.reads, c.bytes = 0, 0
			hit := i%2 == 0 && i < n
			k := DigestKey(Package, sha(i))
			if hit {
				k = nth(i).Key()
			}
			got, err := x.Lookup(k)
			if err != nil || (len(got) == 1) != hit {
				t.Fatalf("%d of %d: %+v, %v", i, n, got, err)
			}
			if most := 2 + len(got); c.reads > most || c.bytes > 4096 {
				t.Fatalf("%d of %d: %d reads of %d bytes", i, n, c.reads, c.bytes)
			}
		}
	}
}
