package archive

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// A tarball is built block by block, so that it can be wrong in any way.
type tarball struct{ bytes.Buffer }

// A tarField changes a header before its checksum is made.
type tarField func(*[tarBlock]byte)

func put(at int, s string) tarField { return func(b *[tarBlock]byte) { copy(b[at:], s) } }

func mode(m int) tarField         { return put(100, fmt.Sprintf("%07o\x00", m)) }
func link(target string) tarField { return put(157, target) }
func gnu() tarField               { return put(257, "ustar  \x00") }
func sized(n int) tarField        { return put(124, fmt.Sprintf("%011o\x00", n)) }

func (t *tarball) add(flag byte, name, contents string, fields ...tarField) *tarball {
	var b [tarBlock]byte
	copy(b[0:100], name)
	copy(b[100:], "0000644\x00")
	copy(b[108:], "0001750\x00")
	copy(b[116:], "0001750\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", len(contents)))
	copy(b[136:], "14717235410\x00")
	b[156] = flag
	copy(b[257:], "ustar\x0000user")
	for _, f := range fields {
		f(&b)
	}
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	t.Write(b[:])
	t.WriteString(contents)
	t.Write(make([]byte, -len(contents)&(tarBlock-1)))
	return t
}

func (t *tarball) file(name, contents string, fields ...tarField) *tarball {
	return t.add('0', name, contents, fields...)
}

func (t *tarball) dir(name string) *tarball { return t.add('5', name, "", mode(0o755)) }

func (t *tarball) pax(records ...string) *tarball {
	s := ""
	for i := 0; i < len(records); i += 2 {
		s += paxRecord(records[i], records[i+1])
	}
	return t.add('x', "pax", s)
}

func (t *tarball) done() []byte { return append(t.Bytes(), make([]byte, 2*tarBlock)...) }

func newTar() *tarball { return &tarball{} }

// A zipped is one entry of a zip built by hand. Zero fields take the values
// that agree with the contents.
type zipped struct {
	name, contents string
	localName      string
	method         uint16
	flags          uint16
	localFlags     *uint16
	madeBy         uint16
	attributes     uint32
	extra, local   []byte // extra fields, central and local
	crc            *uint32
	size, packed   *uint32 // central
	localSize      *uint32
	data           []byte // the packed bytes
	after          []byte // what follows them: a descriptor, or a gap
	offset         *uint32
}

func ptr[T any](v T) *T { return &v }

func orElse[T any](p *T, v T) T {
	if p != nil {
		return *p
	}
	return v
}

// A zipFile is a zip built by hand.
type zipFile struct {
	prefix, gap, comment string
	entries              []zipped
	end                  func(b []byte) // changes the end record
	zip64                bool
	zip64end             func(b []byte)
}

func zipOf(entries ...zipped) []byte { return zipFile{entries: entries}.bytes() }

func (z zipFile) bytes() []byte {
	le := binary.LittleEndian
	out := []byte(z.prefix)
	var central []byte
	for _, e := range z.entries {
		crc := orElse(e.crc, crc32.ChecksumIEEE([]byte(e.contents)))
		data := e.data
		if data == nil {
			data = []byte(e.contents)
			if e.method == zipDeflate {
				data = deflated(e.contents)
			}
		}
		size, packed := orElse(e.size, uint32(len(e.contents))), orElse(e.packed, uint32(len(data)))
		offset := orElse(e.offset, uint32(len(out)))
		name := e.localName
		if name == "" {
			name = e.name
		}
		common := func(b []byte, flags uint16, crc, packed, size uint32, name string, extra []byte) []byte {
			b = le.AppendUint16(b, 20)
			b = le.AppendUint16(b, flags)
			b = le.AppendUint16(b, e.method)
			b = le.AppendUint32(b, 0x5a21_0000)
			b = le.AppendUint32(b, crc)
			b = le.AppendUint32(b, packed)
			b = le.AppendUint32(b, size)
			b = le.AppendUint16(b, uint16(len(name)))
			return le.AppendUint16(b, uint16(len(extra)))
		}
		lcrc, lpacked, lsize := crc, packed, orElse(e.localSize, size)
		if e.flags&zipFlagDescriptor != 0 && e.localSize == nil {
			lcrc, lpacked, lsize = 0, 0, 0
		}
		out = le.AppendUint32(out, zipLocalSig)
		out = common(out, orElse(e.localFlags, e.flags), lcrc, lpacked, lsize, name, e.local)
		out = append(append(append(append(out, name...), e.local...), data...), e.after...)

		madeBy := e.madeBy
		if madeBy == 0 {
			madeBy = zipHostUnix<<8 | 20
		}
		central = le.AppendUint32(central, zipCentralSig)
		central = le.AppendUint16(central, madeBy)
		central = common(central, e.flags, crc, packed, size, e.name, e.extra)
		central = append(central, make([]byte, 6)...)
		central = le.AppendUint32(central, e.attributes)
		central = le.AppendUint32(central, offset)
		central = append(append(central, e.name...), e.extra...)
	}
	out = append(out, z.gap...)
	start := len(out)
	out = append(out, central...)
	if z.zip64 {
		at := len(out)
		r := le.AppendUint32(nil, zip64EndSig)
		r = le.AppendUint64(r, zip64EndLen-12)
		r = le.AppendUint32(r, 45<<16|45)
		r = append(r, make([]byte, 8)...)
		r = le.AppendUint64(r, uint64(len(z.entries)))
		r = le.AppendUint64(r, uint64(len(z.entries)))
		r = le.AppendUint64(r, uint64(len(central)))
		r = le.AppendUint64(r, uint64(start))
		if z.zip64end != nil {
			z.zip64end(r)
		}
		out = append(out, r...)
		out = le.AppendUint32(out, zip64LocatorSig)
		out = le.AppendUint32(out, 0)
		out = le.AppendUint64(out, uint64(at))
		out = le.AppendUint32(out, 1)
	}
	end := le.AppendUint32(nil, zipEndSig)
	end = append(end, 0, 0, 0, 0)
	end = le.AppendUint16(end, uint16(len(z.entries)))
	end = le.AppendUint16(end, uint16(len(z.entries)))
	end = le.AppendUint32(end, uint32(len(central)))
	end = le.AppendUint32(end, uint32(start))
	end = le.AppendUint16(end, uint16(len(z.comment)))
	if z.end != nil {
		z.end(end)
	}
	return append(append(out, end...), z.comment...)
}

func deflated(s string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9)
	w.Write([]byte(s))
	w.Close()
	return b.Bytes()
}

func descriptor(sig bool, crc, packed, size uint32) []byte {
	var b []byte
	if sig {
		b = binary.LittleEndian.AppendUint32(b, zipDataSig)
	}
	b = binary.LittleEndian.AppendUint32(b, crc)
	b = binary.LittleEndian.AppendUint32(b, packed)
	return binary.LittleEndian.AppendUint32(b, size)
}

func field(id uint16, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, id)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func zstded(data []byte, o ...zstd.EOption) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, o...)...)
	if err != nil {
		panic(err)
	}
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// A sandbox is a directory with an empty dst and a bystander, and nothing else.
type sandbox struct {
	t    testing.TB
	path string
}

func newSandbox(t testing.TB) sandbox {
	s := sandbox{t: t, path: t.TempDir()}
	s.must(os.Mkdir(filepath.Join(s.path, "dst"), 0o755))
	s.must(os.WriteFile(filepath.Join(s.path, "bystander"), []byte("untouched"), 0o600))
	return s
}

func (s sandbox) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s sandbox) dst() string { return filepath.Join(s.path, "dst") }

// extract runs Extract on the bytes and checks that nothing beside dst changed.
func (s sandbox) extract(data []byte, o Options) (*Tree, error) {
	s.t.Helper()
	f, err := os.CreateTemp(s.t.TempDir(), "")
	s.must(err)
	defer f.Close()
	_, err = f.Write(data)
	s.must(err)
	root, err := os.OpenRoot(s.dst())
	s.must(err)
	defer root.Close()
	tree, err := Extract(context.Background(), f, "given.archive", root, o)
	s.checkOutside()
	if (tree == nil) == (err == nil) {
		s.t.Fatalf("Extract returned %v and %v", tree, err)
	}
	return tree, err
}

func (s sandbox) checkOutside() {
	s.t.Helper()
	entries, err := os.ReadDir(s.path)
	s.must(err)
	if len(entries) != 2 || entries[0].Name() != "bystander" || entries[1].Name() != "dst" {
		s.t.Fatalf("beside dst there are now %v", entries)
	}
	if b, _ := os.ReadFile(filepath.Join(s.path, "bystander")); string(b) != "untouched" {
		s.t.Fatalf("the bystander now reads %q", b)
	}
}

// hash returns the tree that stands below dst.
func (s sandbox) hash() (*Tree, error) { return hashPath(s.t, s.dst()) }

func hashPath(t testing.TB, path string) (*Tree, error) {
	t.Helper()
	root := openRoot(t, path)
	return HashDir(context.Background(), root)
}

func openRoot(t testing.TB, path string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func packageOf(t testing.TB, tree *Tree) digest.Digest {
	t.Helper()
	d, err := tree.Package()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantRefusal(t testing.TB, err error, rule Rule, entry string) {
	t.Helper()
	var r *Refusal
	switch {
	case !errors.As(err, &r):
		t.Errorf("got error %v, want a refusal by rule %s", err, rule)
	case r.Rule != rule || r.Entry != entry:
		t.Errorf("got %v, want rule %s and entry %q", err, rule, entry)
	case r.Archive == "" || r.Detail == "":
		t.Errorf("the refusal %+v lacks a part", r)
	}
}
