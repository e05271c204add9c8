//go:build unix

package pkgmgr

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// hundred is a data directory with a hundred enabled packages of a size, all seen
// by a listing before.
func hundred(b *testing.B, size int) *site {
	s := newSite(b)
	for i := range 100 {
		id := fmt.Sprintf("plugin-%02d", i)
		s.install(sample{id: id, version: "1.0.0", script: "#!/bin/sh\n" + random(uint64(i), size)}.dir(b))
		s.trust(id)
		s.enable(id, manifest.ScopeMetadataRead)
	}
	s.list(false)
	return s
}

func random(seed uint64, size int) string {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return string(b)
}

// cpu reports the processor time of an operation beside its wall time, which means
// little on a machine that is busy.
func cpu(b *testing.B) func() {
	var before, after syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	return func() {
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
		used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(used)/float64(b.N)/1e3, "cpu-µs/op")
	}
}

// BenchmarkList lists a hundred packages that did not change: what `list` does
// within the process.
func BenchmarkList(b *testing.B) {
	s := hundred(b, 100)
	b.Run("open and list", func(b *testing.B) {
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			h, err := openAt(s.Path())
			must(b, err)
			list, err := h.List(s.ctx, nil, false)
			if err != nil || len(list) != 100 || list[99].Status != StatusEnabled {
				b.Fatal(err)
			}
		}
	})
	b.Run("open alone", func(b *testing.B) {
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			_, err := openAt(s.Path())
			must(b, err)
		}
	})
}

// BenchmarkRehash is the part of a call that reads the package: with a program of
// 2 MB, beside reading and hashing the same files and nothing else.
func BenchmarkRehash(b *testing.B) {
	s := newSite(b)
	p := sample{id: "x", version: "1.0.0", script: "#!/bin/sh\n" + random(1, 2<<20)}
	s.install(p.dir(b))
	s.trust("x")
	s.enable("x", manifest.ScopeMetadataRead)
	b.Run("rehash", func(b *testing.B) {
		b.ReportAllocs()
		d, err := s.Consider(s.ctx, CallRequest{Ref: Ref{ID: "x"}, Method: MethodHealth})
		must(b, err)
		defer d.Call.End()
		a, err := d.approve(s.ctx)
		must(b, err)
		a.Close()
		defer cpu(b)()
		for b.Loop() {
			a, err := d.Rehash(s.ctx)
			must(b, err)
			a.Close()
		}
	})
	b.Run("hash alone", func(b *testing.B) {
		defer cpu(b)()
		buf := make([]byte, 256<<10)
		for b.Loop() {
			for _, name := range []string{manifest.FileName, "bin/tool"} {
				f, err := os.Open(filepath.Join(s.pluginPath("x"), name))
				must(b, err)
				_, err = io.CopyBuffer(struct{ io.Writer }{sha256.New()}, struct{ io.Reader }{f}, buf)
				must(b, err)
				f.Close()
			}
		}
	})
	b.Run("decide and rehash", func(b *testing.B) {
		b.ReportAllocs()
		defer cpu(b)()
		for b.Loop() {
			if _, err := s.health("x"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkInstall installs a package of 100 MB in 5,000 files, beside its parts:
// the copy of the archive, its digest, the extraction alone, the links, the sync.
// SWITCHYARD_BENCH_DIR names a directory on the file system to measure.
func BenchmarkInstall(b *testing.B) {
	dir := os.Getenv("SWITCHYARD_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	source := filepath.Join(dir, "bench.tar.zst")
	tree := filepath.Join(dir, "bench-tree")
	b.Cleanup(func() { os.Remove(source); removeTree(tree) })
	big := sample{id: "big", version: "1.0.0"}
	big.writeTo(b, tree)
	for i := range 5000 {
		// Half of each file compresses, as programs and texts do.
		content := random(uint64(i), 10_000) + string(bytes.Repeat([]byte(fmt.Sprintf("line %d of a text\n", i)), 500))
		write(b, filepath.Join(tree, fmt.Sprintf("d%02d/f%04d", i%50, i)), content, 0o644)
	}
	packInto(b, tree, source)
	home := func() *site {
		data, err := os.MkdirTemp(dir, "data-")
		must(b, err)
		b.Cleanup(func() { removeTree(data) })
		return siteAt(b, filepath.Join(data, "d"))
	}
	b.Run("install", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			s := home()
			s.install(source)
			b.StopTimer()
			must(b, removeTree(s.Path()))
			b.StartTimer()
		}
	})
	b.Run("copy and hash the archive", func(b *testing.B) {
		for b.Loop() {
			to := filepath.Join(dir, "copy")
			f, _, err := copyHashed(context.Background(), source, to)
			must(b, err)
			f.Close()
			os.Remove(to)
		}
	})
	extracted := func(b *testing.B) string {
		to, err := os.MkdirTemp(dir, "tree-")
		must(b, err)
		b.Cleanup(func() { removeTree(to) })
		root, err := os.OpenRoot(to)
		must(b, err)
		defer root.Close()
		f, err := os.Open(source)
		must(b, err)
		defer f.Close()
		_, err = archive.Extract(context.Background(), f, "x", root, archive.Options{})
		must(b, err)
		return to
	}
	b.Run("extract and hash the files", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			to := extracted(b)
			b.StopTimer()
			must(b, removeTree(to))
			b.StartTimer()
		}
	})
	to := extracted(b)
	must(b, syncTree(to))
	b.Run("link", func(b *testing.B) {
		for b.Loop() {
			linked := filepath.Join(dir, "linked")
			must(b, linkTree(to, linked))
			must(b, sealDirectories(linked))
			b.StopTimer()
			must(b, removeTree(linked))
			b.StartTimer()
		}
	})
	b.Run("sync", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			to := extracted(b)
			b.StartTimer()
			must(b, syncTree(to))
			b.StopTimer()
			must(b, removeTree(to))
			b.StartTimer()
		}
	})
}
