package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// create makes a database by bbolt and returns its bytes.
func create(t testing.TB, pageSize int, transactions ...func(*bolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize, NoSync: true, NoGrowSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, fn := range transactions {
		if err := db.Update(fn); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// variety writes buckets of every shape: empty, inline, of many levels, with
// values longer than a page, nested, with holes where keys were removed.
func variety(seed uint64) []func(*bolt.Tx) error {
	random := rand.New(rand.NewPCG(seed, 1))
	step := func(tx *bolt.Tx) error {
		for _, name := range []string{"a", "many", "empty", "inline", "long"} {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			n := map[string]int{"a": 3, "many": 1500, "inline": 2, "long": 4}[name]
			for range n {
				key := fmt.Appendf(nil, "key-%06d", random.IntN(9000))
				size := map[string]int{"long": 20000, "many": 60}[name] + random.IntN(40)
				if err := b.Put(key, bytes.Repeat([]byte{byte(random.IntN(256))}, size)); err != nil {
					return err
				}
				if err := b.Delete(fmt.Appendf(nil, "key-%06d", random.IntN(9000))); err != nil {
					return err
				}
			}
			if err := b.SetSequence(b.Sequence() + uint64(n)); err != nil {
				return err
			}
		}
		parent, err := tx.CreateBucketIfNotExists([]byte("nested"))
		if err != nil {
			return err
		}
		for i := range 5 {
			b, err := parent.CreateBucketIfNotExists(fmt.Appendf(nil, "inner-%d", i))
			if err != nil {
				return err
			}
			for j := range i * 40 {
				if err := b.Put(fmt.Appendf(nil, "%d", random.IntN(999)), make([]byte, j)); err != nil {
					return err
				}
			}
		}
		return parent.Put([]byte("key between"), []byte("value"))
	}
	return []func(*bolt.Tx) error{step, step, step, step}
}

func open(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSameAsBolt compares everything that can be read with what bbolt reads.
func TestSameAsBolt(t *testing.T) {
	for _, pageSize := range []int{1024, 4096, 16384} {
		t.Run(fmt.Sprint(pageSize), func(t *testing.T) {
			data := create(t, pageSize, variety(uint64(pageSize))...)
			path := filepath.Join(t.TempDir(), "db")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			f := open(t, data)
			if err := f.Verify(); err != nil {
				t.Fatalf("verify: %v", err)
			}
			buckets := 0
			err = db.View(func(tx *bolt.Tx) error {
				if f.Size() != tx.Size() {
					t.Errorf("size %d, want %d", f.Size(), tx.Size())
				}
				return tx.ForEach(func(name []byte, want *bolt.Bucket) error {
					buckets++
					got, err := f.Bucket(name)
					if err != nil || got == nil {
						t.Fatalf("bucket %q: %v, %v", name, got, err)
					}
					compare(t, got, want)
					return nil
				})
			})
			if err != nil || buckets != 6 {
				t.Fatalf("%d buckets, %v", buckets, err)
			}
			if b, err := f.Bucket([]byte("b")); b != nil || err != nil {
				t.Fatalf("a bucket that is not there: %v, %v", b, err)
			}
		})
	}
}

func compare(t *testing.T, got *Bucket, want *bolt.Bucket) {
	t.Helper()
	if got.Sequence() != want.Sequence() {
		t.Errorf("sequence %d, want %d", got.Sequence(), want.Sequence())
	}
	g, w := got.Cursor(), want.Cursor()
	defer g.Release()
	same := func(what string, wk, wv []byte) func(gk, gv []byte, err error) {
		return func(gk, gv []byte, err error) {
			t.Helper()
			if err != nil || !bytes.Equal(gk, wk) || !bytes.Equal(gv, wv) || (gv == nil) != (wv == nil) {
				t.Fatalf("%s: %q %.20q %v, want %q %.20q", what, gk, gv, err, wk, wv)
			}
		}
	}
	k, v := w.First()
	same("first", k, v)(g.First())
	var keys [][]byte
	for k != nil {
		keys = append(keys, k)
		if v == nil {
			inner, err := got.Bucket(k)
			if err != nil || inner == nil {
				t.Fatalf("bucket %q: %v", k, err)
			}
			compare(t, inner, want.Bucket(k))
		} else if inner, err := got.Bucket(k); inner != nil || err != nil {
			t.Fatalf("%q is no bucket: %v, %v", k, inner, err)
		}
		gv, err := got.Get(k)
		same("get", k, v)(k, gv, err)
		k, v = w.Next()
		same("next", k, v)(g.Next())
	}
	k, v = w.Last()
	same("last", k, v)(g.Last())
	for k != nil {
		k, v = w.Prev()
		same("prev", k, v)(g.Prev())
	}
	for _, seek := range append(keys, nil, []byte("a"), []byte("key-"), []byte("key-004"), []byte("key-0045005"), []byte("zz"), []byte{0xff}) {
		for _, seek := range [][]byte{seek, append(bytes.Clone(seek), 0)} {
			k, v := w.Seek(seek)
			same(fmt.Sprintf("seek %q", seek), k, v)(g.Seek(seek))
			gv, err := got.Get(seek)
			wv := want.Get(seek)
			same(fmt.Sprintf("get %q", seek), seek, wv)(seek, gv, err)
		}
	}
}

// TestOneMetaPageIsEnough: as after a crash while the other one was written.
func TestOneMetaPageIsEnough(t *testing.T) {
	for _, pageSize := range []int{1024, 4096} {
		data := create(t, pageSize, variety(3)...)
		newest := open(t, data).meta.txid
		for i := range 2 {
			b := bytes.Clone(data)
			b[i*pageSize+headerSize+20] ^= 1
			f := open(t, b)
			want := newest
			if newest%2 == uint64(i) {
				want--
			}
			if f.meta.txid != want {
				t.Errorf("meta page %d damaged: transaction %d, want %d", i, f.meta.txid, want)
			}
		}
		clear(data[:pageSize+headerSize+8])
		if _, err := Open(bytes.NewReader(data), int64(len(data))); !errors.Is(err, ErrDamaged) {
			t.Errorf("without meta pages: %v", err)
		}
	}
}

// readEverything uses every way to read.
func readEverything(f *File) error {
	// A tree that is no circle can still lead to one page in many ways; its readers
	// must bound what they take, as this one does.
	left := f.Size()
	var read func(b *Bucket, level int) error
	read = func(b *Bucket, level int) error {
		c := b.Cursor()
		defer c.Release()
		var k, v []byte
		var err error
		for k, v, err = c.First(); k != nil && err == nil && left > 0; k, v, err = c.Next() {
			left -= int64(16 + len(k) + len(v))
			if _, err := b.Get(k); err != nil {
				return err
			}
			if v == nil && level < 3 {
				if inner, err := b.Bucket(k); err != nil {
					return err
				} else if inner != nil {
					if err := read(inner, level+1); err != nil {
						return err
					}
				}
			}
		}
		if err != nil {
			return err
		}
		for k, _, err = c.Last(); k != nil && err == nil && left > 0; k, _, err = c.Prev() {
			left -= 100
		}
		if err == nil {
			_, _, err = c.Seek([]byte("key-004"))
		}
		return err
	}
	return read(&f.root, 0)
}

// TestDamage changes a database at random. Nothing but ErrDamaged may come of it.
func TestDamage(t *testing.T) {
	data := create(t, 1024, variety(5)[:2]...)
	random := rand.New(rand.NewPCG(5, 5))
	found := 0
	const rounds = 400
	for round := range rounds {
		b := bytes.Clone(data)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(b)/1024) * 1024
			switch random.IntN(4) {
			case 0:
				b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			case 1: // a number in the head of a page
				order.PutUint32(b[at+4*random.IntN(32):], random.Uint32()>>random.IntN(32))
			case 2: // an old page in the place of another, under its number
				from := random.IntN(len(b)/1024) * 1024
				copy(b[at+8:at+1024], b[from+8:])
			case 3:
				b = b[:len(b)-random.IntN(len(b)/8)]
			}
			if len(b) < 4096 {
				break
			}
		}
		if err := use(b); err != nil {
			found++
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	if found < rounds/4 {
		t.Errorf("%d of %d damages found", found, rounds)
	}
}

// TestMisplacedPages leads every branch of a tree to another leaf of it, which is
// sound by itself: a scan that comes there says so and does not end early.
func TestMisplacedPages(t *testing.T) {
	data := create(t, 1024, variety(5)[0])
	tried := 0
	for at := 0; at+1024 <= len(data); at += 1024 {
		p := page(data[at : at+1024])
		if p.id() != uint64(at/1024) || p.flags() != flagBranch || p.count() < 3 {
			continue
		}
		for i := range p.count() {
			b := bytes.Clone(data)
			order.PutUint64(b[at+headerSize+i*elementSize+8:], p.branch((i+1)%p.count()))
			if scan(b, []byte("many")) == nil {
				continue // an old branch, which nothing leads to
			}
			tried++
			if err := scan(b, []byte("many")); !errors.Is(err, ErrDamaged) {
				t.Errorf("page %d, element %d: %v", p.id(), i, err)
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d misplaced pages were noticed", tried)
	}
	// A leaf that lost its elements is no end.
	emptied := 0
	for at := 0; at+1024 <= len(data); at += 1024 {
		if p := page(data[at : at+1024]); p.id() == uint64(at/1024) && p.isLeaf() && p.count() > 1 {
			b := bytes.Clone(data)
			b[at+10], b[at+11] = 0, 0
			if errors.Is(scan(b, []byte("many")), ErrDamaged) {
				emptied++
			}
		}
	}
	if emptied < 20 {
		t.Errorf("%d emptied leaves were noticed", emptied)
	}
}

// scan reads one bucket from its first key to its last.
func scan(data, bucket []byte) error {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	b, err := f.Bucket(bucket)
	if err != nil || b == nil {
		return err
	}
	c := b.Cursor()
	defer c.Release()
	k, _, err := c.First()
	for k != nil && err == nil {
		k, _, err = c.Next()
	}
	return err
}

// use opens, verifies and reads. What Verify finds sound must read.
func use(b []byte) error {
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	verified := f.Verify()
	err = readEverything(f)
	if verified == nil && err != nil {
		return fmt.Errorf("verified, but: %v", err)
	}
	return verified
}

// FuzzOpen changes words of sound databases: behind the checksums, where blind
// changes of a whole file would not come.
func FuzzOpen(f *testing.F) {
	small := func(tx *bolt.Tx) error {
		for _, name := range []string{"inline", "tree", "empty"} {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			for i := range map[string]int{"inline": 2, "tree": 60}[name] {
				if err := b.Put(fmt.Appendf(nil, "key-%03d", i), bytes.Repeat([]byte{byte(i)}, 2*i)); err != nil {
					return err
				}
			}
			if _, err := b.CreateBucketIfNotExists([]byte("inner")); err != nil {
				return err
			}
		}
		return nil
	}
	bases := [][]byte{create(f, 1024), create(f, 1024, small), create(f, 4096, small, small)}
	seeds := 0
	for i, base := range bases {
		if err := use(base); err != nil {
			f.Fatalf("base %d: %v", i, err)
		}
		for _, word := range []uint32{0, 1, 2, 3, 5, 0xffff, 1 << 31} {
			for at := range uint16(40) {
				f.Add(uint8(i), order.AppendUint32(order.AppendUint32(nil, 2048+uint32(at)*4), word))
				seeds++
			}
		}
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, base uint8, edits []byte) {
		b := bytes.Clone(bases[int(base)%len(bases)])
		for ; len(edits) >= 8; edits = edits[8:] {
			order.PutUint32(b[int(order.Uint32(edits))%(len(b)-3):], order.Uint32(edits[4:]))
		}
		if err := use(b); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}
