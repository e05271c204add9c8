package revlist

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/verify"
)

// sixKeys is what is asked about one package at each call.
func sixKeys() []Key {
	return []Key{
		DigestKey(Archive, sha(1)), DigestKey(Package, sha(2)), DigestKey(Manifest, sha(3)),
		PublisherKey("org.example", "com.example.indexer", sha(3)), VersionKey("com.example.indexer"),
		SignerKey(verify.Signer{Identity: "release@example.com", Issuer: "https://accounts.example.com"}),
	}
}

// BenchmarkCall is what a list costs one call: open its index, ask for a package,
// close.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{0, 1_000, 1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			if err := Build(dir, generated(n, func() {})); err != nil {
				b.Fatal(err)
			}
			keys := sixKeys()
			b.ResetTimer()
			for range b.N {
				x, err := Open(filepath.Join(dir, IndexName))
				if err != nil {
					b.Fatal(err)
				}
				if got, err := x.Lookup(keys...); err != nil || len(got) > 0 {
					b.Fatal(got, err)
				}
				x.Close()
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	const n = 100_000
	doc, err := io.ReadAll(&generator{n: n, tail: generatedTail})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "list.json")
	if err := os.WriteFile(path, doc, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for range b.N {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Read(f, 0, exactly, func(Entry) error { return nil }); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			for range b.N {
				if err := Build(dir, generated(n, func() {})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
