package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// benchPackage writes a package of about n files with the given sum of sizes,
// of text and of what does not compress, and returns the file's path.
func benchPackage(b *testing.B, n, size int) string {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([][]byte, 4000)
	for i := range words {
		w := make([]byte, 2+rng.IntN(9))
		for j := range w {
			w[j] = 'a' + byte(rng.IntN(26))
		}
		words[i] = append(w, ' ')
	}
	path := filepath.Join(b.TempDir(), "bench.tar.zst")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	z, err := zstd.NewWriter(out)
	if err != nil {
		b.Fatal(err)
	}
	t := newTarWriter(z)
	add := func(name string, contents []byte) {
		if err := t.begin(name, int64(len(contents)), false); err != nil {
			b.Fatal(err)
		}
		t.Write(contents)
		t.end()
	}
	add("plugin.json", []byte(manifest))
	for i := range n {
		var c bytes.Buffer
		want := size/n/2 + rng.IntN(size/n)
		for c.Len() < want {
			if i%4 == 0 && c.Len() < want/2 {
				fmt.Fprintf(&c, "%c%c%c%c", rng.IntN(256), rng.IntN(256), rng.IntN(256), rng.IntN(256))
				continue
			}
			c.Write(words[rng.IntN(len(words))])
		}
		add(fmt.Sprintf("lib/m%02d/s%d/f%04d.dat", i*50/n, i*350/n%7, i), c.Bytes()[:want])
	}
	if _, err := t.close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkExtract unpacks 100 MB in 5,000 files, and compares with tar and one
// batch of sha256sum; both end with a sync.
func BenchmarkExtract(b *testing.B) {
	path := benchPackage(b, 5000, 100<<20)
	b.Run("extract", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			dir := freshDir(b)
			b.StartTimer()
			src, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				b.Fatal(err)
			}
			tree, err := Extract(context.Background(), src, path, root, Options{})
			if err != nil {
				b.Fatal(err)
			}
			src.Close()
			root.Close()
			run(b, "sync -f "+dir)
			b.SetBytes(tree.Unpacked)
		}
	})
	b.Run("tar-and-sha256sum", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			dir := freshDir(b)
			b.StartTimer()
			run(b, "tar --zstd -xf "+path+" -C "+dir+" && find "+dir+" -type f -print0 | xargs -0 sha256sum >/dev/null && sync -f "+dir)
		}
	})
}

// freshDir returns an empty directory on a disk with nothing left to write.
// What was unpacked before stays until the end: ext4 goes out of its way not to
// use inodes again that were freed moments ago, which would be all there is to
// measure.
func freshDir(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	run(b, "sync -f "+dir)
	return dir
}

func run(b *testing.B, command string) {
	b.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		b.Skipf("%s: %v: %s", command, err, out)
	}
}

// executables writes n packages of one executable and a manifest.
func executables(b *testing.B, n, size int) []string {
	b.Helper()
	var dirs []string
	contents := make([]byte, size)
	for i := range contents {
		contents[i] = byte(i * i >> 3)
	}
	for range n {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tool"), contents, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifest), 0o644); err != nil {
			b.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// BenchmarkHashDir hashes a package with an executable of 2 MB, and compares
// with hashing its files one after the other.
func BenchmarkHashDir(b *testing.B) {
	dir := executables(b, 1, 2<<20)[0]
	b.Run("hashdir", func(b *testing.B) {
		b.SetBytes(2 << 20)
		b.ReportAllocs()
		root, err := os.OpenRoot(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer root.Close()
		for b.Loop() {
			if _, err := HashDir(context.Background(), root); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("minimal", func(b *testing.B) {
		b.SetBytes(2 << 20)
		for b.Loop() {
			minimalHasher(b, dir)
		}
	})
}

// BenchmarkVerify hashes 100 packages of 3 MB on as many goroutines as there
// are processors, and compares with hashing their files one after the other.
func BenchmarkVerify(b *testing.B) {
	dirs := executables(b, 100, 3<<20)
	b.Run("hashdir", func(b *testing.B) {
		b.SetBytes(300 << 20)
		for b.Loop() {
			next := make(chan string)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for dir := range next {
						root, err := os.OpenRoot(dir)
						if err == nil {
							_, err = HashDir(context.Background(), root)
							root.Close()
						}
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			for _, dir := range dirs {
				next <- dir
			}
			close(next)
			all.Wait()
		}
	})
	b.Run("minimal", func(b *testing.B) {
		b.SetBytes(300 << 20)
		for b.Loop() {
			for _, dir := range dirs {
				minimalHasher(b, dir)
			}
		}
	})
}

func minimalHasher(b *testing.B, dir string) {
	b.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h.Reset()
		_, err = io.Copy(h, f)
		h.Sum(nil)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPack packs 20 MB in 1,000 files in each format.
func BenchmarkPack(b *testing.B) {
	path := benchPackage(b, 1000, 20<<20)
	src, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	root, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	if _, err := Extract(context.Background(), src, path, root, Options{}); err != nil {
		b.Fatal(err)
	}
	for _, f := range formats {
		b.Run(string(f), func(b *testing.B) {
			for b.Loop() {
				tree, err := Pack(context.Background(), root, io.Discard, f, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(tree.Unpacked)
			}
		})
	}
}
