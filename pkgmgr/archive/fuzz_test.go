package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// fuzzSeeds returns every archive of this package's tests that is small.
func fuzzSeeds() [][]byte {
	var seeds [][]byte
	for _, c := range slices.Concat(refusedTars(), refusedStreams(), refusedZips(), polyglots()) {
		if len(c.data) < 64<<10 {
			seeds = append(seeds, c.data)
		}
	}
	tiny := newTar().dir("p/").file("p/plugin.json", manifest).file("p/bin/tool", "x", mode(0o755)).pax("path", "p/größe").file("p/gr__e", "y")
	return append(seeds, tiny.done(), gzipped(tiny.done()), zstded(tiny.done()),
		zipOf(zipped{name: "p/plugin.json", contents: manifest, method: zipDeflate}, zipped{name: "p/a", contents: "a"}))
}

// FuzzExtract feeds any bytes to Extract: it must not panic, write outside of
// dst, or exceed its bounds; and what it accepts must be what another reader
// sees, and what is on disk.
func FuzzExtract(f *testing.F) {
	seeds := fuzzSeeds()
	if len(seeds) < 200 {
		f.Fatalf("only %d seeds", len(seeds))
	}
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newSandbox(t)
		tree, err := s.extract(data, Options{Limits: small})
		var r *Refusal
		if err != nil {
			if !errors.As(err, &r) {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		if len(tree.Files) == 0 || len(tree.Files) > small.Entries || tree.Unpacked > small.Unpacked {
			t.Fatalf("%d files with %d bytes", len(tree.Files), tree.Unpacked)
		}
		for _, f := range tree.Files {
			if len(f.Path) > small.PathBytes || strings.Count(f.Path, "/") >= small.Depth {
				t.Fatalf("the path %q is beyond the bounds", f.Path)
			}
		}
		s.check(tree)
		compareWithStandard(t, data, tree)
	})
}

// compareWithStandard has the standard library read an archive that Extract
// accepted. It may fail where it is stricter about what does not matter here,
// such as times; it may not see other files.
func compareWithStandard(t *testing.T, data []byte, tree *Tree) {
	t.Helper()
	files, err := standardFiles(data)
	if err != nil {
		return
	}
	for i := range files {
		if tree.Stripped != "" {
			files[i].Path = strings.TrimPrefix(files[i].Path, tree.Stripped+"/")
		}
		if tree.NoModes {
			files[i].Mode = tree.Files[0].Mode
		}
	}
	sortFiles(files)
	if bytes.HasPrefix(data, []byte("PK")) {
		// The library takes modes from zips of other systems, too.
		for i := range files {
			if f, ok := tree.File(files[i].Path); ok {
				files[i].Mode = f.Mode
			}
		}
	}
	if !slices.Equal(files, tree.Files) {
		t.Errorf("the standard library sees\n%v\nExtract wrote\n%v", files, tree.Files)
	}
}

// FuzzTar feeds any bytes to Extract as the inside of each compression.
func FuzzTar(f *testing.F) {
	seeds := 0
	for _, c := range refusedTars() {
		if len(c.data) > 0 && len(c.data) < 64<<10 {
			f.Add(c.data)
			seeds++
		}
	}
	if seeds < 100 {
		f.Fatalf("only %d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := small
		limits.RatioFree = 1 << 30 // the three are not alike in ratio
		plain := newSandbox(t)
		want, err := plain.extract(data, Options{Limits: limits})
		var r *Refusal
		if errors.As(err, &r) && (r.Rule == RuleFormat || r.Rule == RuleArchiveSize || r.Rule == RuleEmpty) {
			return
		}
		if c, e := sniff(bytes.NewReader(data), int64(len(data))); e != nil || c != containerTar {
			return
		}
		for _, data := range [][]byte{gzipped(data), zstded(data)} {
			s := newSandbox(t)
			got, e := s.extract(data, Options{Limits: limits})
			if (err == nil) != (e == nil) || err != nil && err.Error() != e.Error() {
				t.Fatalf("plain: %v; compressed: %v", err, e)
			}
			if err == nil && !slices.Equal(got.Files, want.Files) {
				t.Fatalf("plain: %v; compressed: %v", want.Files, got.Files)
			}
		}
	})
}

// FuzzFrame feeds any bytes to the readers of compressed data: what they accept
// is one frame or member, and decodes to what the decoders themselves see.
func FuzzFrame(f *testing.F) {
	seeds := refusedStreams()
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, c := range seeds {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := sniff(bytes.NewReader(data), int64(len(data)))
		if err != nil || c != containerGzip && c != containerZstd {
			return
		}
		path := t.TempDir() + "/a"
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		s, err := openStream(context.Background(), src, int64(len(data)), c, Options{})
		if err != nil {
			return
		}
		defer s.close()
		got, err := io.ReadAll(io.LimitReader(s, 4<<20))
		if err != nil || len(got) == 4<<20 {
			return
		}
		var want []byte
		if c == containerGzip {
			z, e := gzip.NewReader(bytes.NewReader(data))
			if e != nil {
				t.Fatalf("accepted, but gzip says %v", e)
			}
			want, err = io.ReadAll(z)
		} else {
			z, e := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
			if e != nil {
				t.Fatal(e)
			}
			defer z.Close()
			want, err = z.DecodeAll(data, nil)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("accepted as %d bytes; the decoder says %d, %v", len(got), len(want), err)
		}
	})
}
