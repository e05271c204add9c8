package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRoundTrip packs, unpacks and copies random trees: whatever the way, the
// package is the same.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			src := t.TempDir()
			randomTree(t, rng, src)
			plain, err := hashPath(t, src)
			if err != nil {
				t.Fatal(err)
			}
			copied := newSandbox(t)
			want, err := copyPath(t, src, copied.dst(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want.Stripped == "" && packageOf(t, want) != packageOf(t, plain) {
				t.Errorf("the copy differs from its source")
			}
			copied.check(want)
			for _, f := range formats {
				data, packed := mustPack(t, src, f)
				if packageOf(t, packed) != packageOf(t, want) {
					t.Errorf("%s: packed %v, copied %v", f, packed.Files, want.Files)
				}
				s := newSandbox(t)
				tree, err := s.extract(data, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(tree.Files, want.Files) || tree.Unpacked != want.Unpacked {
					t.Errorf("%s: unpacked %v, copied %v", f, tree.Files, want.Files)
				}
				s.check(want)
				again, _ := mustPack(t, s.dst(), f)
				if !bytes.Equal(again, data) {
					t.Errorf("%s: packing the unpacked tree gives other bytes", f)
				}
			}
		})
	}
}

// check compares what is on disk.
func (s sandbox) check(want *Tree) {
	s.t.Helper()
	got, err := s.hash()
	if err != nil || !slices.Equal(got.Files, want.Files) {
		s.t.Errorf("on disk %v, %v; want %v", got, err, want.Files)
	}
	s.checkModes(want)
}

func randomTree(t *testing.T, rng *rand.Rand, dir string) {
	t.Helper()
	letters := []string{"a", "b", "c", "-", "_", "0", "é", "字", " x", ".y"}
	var fill func(dir string, depth int, left *int)
	fill = func(dir string, depth int, left *int) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(6) {
			if *left--; *left < 0 {
				return
			}
			name := letters[rng.IntN(7)]
			for range rng.IntN(5) {
				name += letters[rng.IntN(len(letters))]
			}
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				continue
			}
			if depth < 6 && rng.IntN(3) == 0 {
				fill(path, depth+1, left)
				continue
			}
			size := []int{0, 1, 511, 512, 513, 4000, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7}[rng.IntN(10)]
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(rng.IntN(17) * rng.IntN(16))
			}
			m := fs.FileMode(0o644)
			if rng.IntN(4) == 0 {
				m = 0o755
			}
			if err := errors.Join(os.WriteFile(path, b, m), os.Chmod(path, m)); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := 60
	root := dir
	if rng.IntN(3) == 0 {
		root = filepath.Join(dir, "wrapper")
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fill(root, 1, &left)
	write(t, root, "plugin.json", manifest)
}
