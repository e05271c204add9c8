package revlist

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// seeds adds documents and pieces of them, and demands that there are some and that the
// documents themselves are accepted.
func seeds(f *testing.F, accept func(doc []byte) error, docs ...[]byte) {
	f.Helper()
	n := 0
	for _, d := range docs {
		if err := accept(d); err != nil {
			f.Fatalf("a seed is refused: %v", err)
		}
		for _, s := range [][]byte{d, d[:len(d)/2], bytes.ToUpper(d), bytes.ReplaceAll(d, []byte(","), []byte(" ,")), append(bytes.Clone(d), d...)} {
			f.Add(s)
			n++
		}
	}
	if n < 5 {
		f.Fatalf("only %d seeds", n)
	}
}

// FuzzRead: what is read is exactly what writing it again gives; all else is an
// *Error that points into the document.
func FuzzRead(f *testing.F) {
	accept := func(doc []byte) error {
		_, _, err := Parse(bytes.NewReader(doc), 0, exactly)
		return err
	}
	seeds(f, accept, written(f, sample(f)), []byte(`{"entries":[`+generatedTail), []byte(`{"entries":[`+entryA+","+entryB+listTail))
	f.Fuzz(func(t *testing.T, doc []byte) {
		l, h, err := Parse(bytes.NewReader(doc), 0, exactly)
		checkFault(t, doc, err)
		if err != nil {
			return
		}
		if !bytes.Equal(written(t, l), doc) {
			t.Fatalf("accepted, but written differently: %s", doc)
		}
		if h.Bytes != int64(len(doc)) || h.Entries != len(l.Entries) {
			t.Fatalf("header %+v", h)
		}
		isCanonical(t, doc)
		// In pieces it reads the same.
		if h2, err := Read(&chunks{b: doc, size: 3}, 0, exactly, func(Entry) error { return nil }); err != nil || h2 != h {
			t.Fatalf("in pieces: %+v, %v", h2, err)
		}
	})
}

func checkFault(t *testing.T, doc []byte, err error) {
	t.Helper()
	var e *Error
	if err == nil {
		return
	}
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(doc)) || e.Code == "" || e.Message == "" {
		t.Fatalf("%#v for %q", err, doc)
	}
	for _, c := range e.Error() {
		if c < 0x20 || c == 0x7F {
			t.Fatalf("control character in %q", e.Error())
		}
	}
}

func FuzzReadRoot(f *testing.F) {
	accept := func(doc []byte) error {
		_, err := ReadRoot(bytes.NewReader(doc))
		return err
	}
	seeds(f, accept, writtenRoot(f, sampleRoot()))
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := ReadRoot(bytes.NewReader(doc))
		checkFault(t, doc, err)
		if err != nil {
			return
		}
		if !bytes.Equal(writtenRoot(t, r), doc) {
			t.Fatalf("accepted, but written differently: %s", doc)
		}
		isCanonical(t, doc)
		if r.AcceptsList(nil) == nil || r.AcceptsItself(nil) == nil {
			t.Fatal("nobody suffices")
		}
	})
}

func FuzzReadDissents(f *testing.F) {
	accept := func(doc []byte) error {
		_, err := ReadDissents(bytes.NewReader(doc))
		return err
	}
	seeds(f, accept, writtenDissents(f, sampleDissents(f)), writtenDissents(f, &Dissents{}))
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := ReadDissents(bytes.NewReader(doc))
		checkFault(t, doc, err)
		if err == nil && !bytes.Equal(writtenDissents(t, d), doc) {
			t.Fatalf("accepted, but written differently: %s", doc)
		}
	})
}

// FuzzIndex lays bytes over an index, with the header's checksum made right if
// asked: a lookup gives the truth or an error, whatever the index holds.
func FuzzIndex(f *testing.F) {
	l := mixed(f, 60)
	x := indexOf(f, l)
	whole := contentOf(f, x)
	present, absent := keysOf(l)
	n := 0
	for _, at := range []int{0, 12, 16, 40, 480, headerSize, int(x.head.recordsAt()), int(x.head.recordsAt()) + 32, int(x.head.slotsAt()), len(whole) - 1} {
		for _, over := range []string{"\x00", "\xff\xff\xff\xff", strings.Repeat("\x7f", 64)} {
			for _, sealed := range []bool{false, true} {
				f.Add(at, []byte(over), sealed)
				n++
			}
		}
	}
	if n < 20 {
		f.Fatalf("only %d seeds", n)
	}
	f.Fuzz(func(t *testing.T, at int, over []byte, sealed bool) {
		if at < 0 || at > len(whole) {
			return
		}
		b := bytes.Clone(whole)
		copy(b[at:], over)
		if sealed {
			sum := sumOf(b[:headerSize-32])
			copy(b[headerSize-32:], sum[:])
		}
		y, err := newIndex(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, ErrIndexDamaged) {
				t.Fatal(err)
			}
			return
		}
		for _, k := range append(present[:8:8], absent...) {
			got, err := y.Lookup(k)
			if err != nil && !errors.Is(err, ErrIndexDamaged) {
				t.Fatal(err)
			}
			if err == nil && !reflect.DeepEqual(got, truth(l, k)) {
				t.Fatalf("%q is answered with %+v", k, got)
			}
		}
	})
}

// FuzzOpen takes any bytes as an index: no panic, no answer but an error or the
// index's own.
func FuzzOpen(f *testing.F) {
	n := 0
	for _, l := range []*List{sample(f), mixed(f, 20), {Issuer: "a", Version: 1, IssuedAt: day0, ExpiresAt: day0.Add(1e9)}} {
		f.Add(contentOf(f, indexOf(f, l)))
		n++
	}
	if n == 0 {
		f.Fatal("no seeds")
	}
	_, keys := keysOf(sample(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize { // let the fuzzer past the first checksum
			sum := sumOf(b[:headerSize-32])
			b = bytes.Clone(b)
			copy(b[headerSize-32:], sum[:])
		}
		x, err := newIndex(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			_, err = x.Lookup(keys...)
		}
		if err != nil && !errors.Is(err, ErrIndexDamaged) {
			t.Fatal(err)
		}
	})
}
