package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

// naive reads a directory as simply as possible.
func naive(t testing.TB, dir string) []digest.File {
	t.Helper()
	var files []digest.File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		m := digest.ModeFile
		if info.Mode()&0o100 != 0 {
			m = digest.ModeExecutable
		}
		files = append(files, digest.File{Path: filepath.ToSlash(rel), Mode: m, Size: int64(len(b)), SHA256: digest.Of(b).Hex()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sortFiles(files)
	return files
}

func TestHashDir(t *testing.T) {
	many := t.TempDir()
	for i := range 3 * maxOpen {
		write(t, many, fmt.Sprintf("d%d/f%d", i%7, i), strings.Repeat(fmt.Sprint(i), i*i%5000))
	}
	write(t, many, "large", strings.Repeat("large", 300_000))
	one := t.TempDir()
	writeSample(t, one)
	for _, dir := range []string{many, one, t.TempDir()} {
		want := naive(t, dir)
		for _, procs := range []int{1, 2, 4} {
			old := runtime.GOMAXPROCS(procs)
			got, err := hashPath(t, dir)
			runtime.GOMAXPROCS(old)
			if err != nil || !slices.Equal(got.Files, want) {
				t.Errorf("%d processors: got %v, %v; want %v", procs, got, err, want)
			}
		}
	}
}

// TestHashDirTogether runs many at a time, as verify does.
func TestHashDirTogether(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	want := naive(t, dir)
	root := openRoot(t, dir)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 5 {
				got, err := HashDir(context.Background(), root)
				if err != nil || !slices.Equal(got.Files, want) {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

// TestHashDirOpen holds that the kept file is the one that was hashed.
func TestHashDirOpen(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	tree, kept, err := HashDirOpen(context.Background(), openRoot(t, dir), "bin/tool", "plugin.json", "missing", "bin")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tree.Files, sampleFiles()) {
		t.Errorf("got %v", tree.Files)
	}
	if len(kept) != 4 || kept[2] != nil || kept[3] != nil {
		t.Fatalf("kept %v", kept)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "bin/tool")), os.Remove(filepath.Join(dir, "plugin.json"))); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{sample[0].contents, manifest} {
		if b, err := io.ReadAll(kept[i]); err != nil || string(b) != want {
			t.Errorf("the kept file reads %q, %v; want %q", b, err, want)
		}
		kept[i].Close()
	}
}

func TestHashDirBounds(t *testing.T) {
	deep := t.TempDir()
	path := strings.TrimSuffix(strings.Repeat("d/", Default.Depth), "/")
	write(t, deep, path, "x")
	if _, err := hashPath(t, deep); err != nil {
		t.Errorf("at the depth: %v", err)
	}
	write(t, deep, strings.Repeat("e/", Default.Depth)+"f", "x")
	_, err := hashPath(t, deep)
	wantRefusal(t, err, RuleDepth, strings.Repeat("e/", Default.Depth)+"f")

	long := t.TempDir()
	write(t, long, strings.Repeat("l", 120)+"/"+strings.Repeat("l", 120), "x")
	_, err = hashPath(t, long)
	wantRefusal(t, err, RulePathLength, strings.Repeat("l", 120)+"/"+strings.Repeat("l", 120))

	large := t.TempDir()
	write(t, large, "a", "", "b", "x")
	if err := os.Truncate(filepath.Join(large, "a"), Default.Unpacked); err != nil {
		t.Fatal(err)
	}
	w := &hashWalk{queue: newHashQueue(context.Background()), limits: Limits{Entries: 1, PathBytes: 9, Depth: 9}}
	err = w.queue.finish(w.walk(openRoot(t, large), "", 1))
	wantRefusal(t, named(err, "x", ""), RuleEntries, "")
	w = &hashWalk{queue: newHashQueue(context.Background()), limits: Limits{Entries: 2, PathBytes: 9, Depth: 9, Unpacked: Default.Unpacked - 1}}
	err = w.queue.finish(w.walk(openRoot(t, large), "", 1))
	wantRefusal(t, named(err, "x", ""), RuleUnpackedSize, "a")
}

// TestHashDirChanged is a file that grows or shrinks while it is hashed.
func TestHashDirChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, make([]byte, 3*firstBuffer), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 1, 3*firstBuffer - 1, 3*firstBuffer + 1, 4 * firstBuffer} {
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		q := newHashQueue(context.Background())
		q.push(hashFile{in: in, file: &digest.File{Path: "a", Size: size}})
		wantRefusal(t, named(q.finish(nil), "x", ""), RuleChanged, "a")
	}
}

func TestHashDirCancelled(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir)
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("interrupted")
	cancel(cause)
	if _, err := HashDir(ctx, openRoot(t, dir)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// TestNothingLeft holds that no goroutine and no descriptor outlives a call,
// however it ends.
func TestNothingLeft(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	dir := t.TempDir()
	writeSample(t, dir)
	for i := range 200 {
		write(t, dir, fmt.Sprintf("many/%d/%d", i%10, i), "x")
	}
	bad := t.TempDir()
	for i := range 200 {
		write(t, bad, fmt.Sprintf("d%d/f%d", i, i), "x")
	}
	if err := os.Symlink("a", filepath.Join(bad, "d100", "link")); err != nil {
		t.Fatal(err)
	}
	packed, _ := mustPack(t, dir, TarZst)
	zipped, _ := mustPack(t, dir, Zip)
	ctx := context.Background()
	scratch := t.TempDir()
	archiveOf := func(data []byte) *os.File {
		f, err := os.CreateTemp(scratch, "")
		if err != nil {
			t.Fatal(err)
		}
		f.Write(data)
		t.Cleanup(func() { f.Close() })
		return f
	}
	good, goodZip := archiveOf(packed), archiveOf(zipped)
	cut, badZip := archiveOf(packed[:len(packed)/2]), archiveOf(flip(zipped, 300_00%len(zipped)/2))
	goodRoot, badRoot := openRoot(t, dir), openRoot(t, bad)
	calls := map[string]func(dst *os.Root){
		"hash":         func(*os.Root) { HashDir(ctx, goodRoot) },
		"hash, bad":    func(*os.Root) { HashDir(ctx, badRoot) },
		"copy":         func(dst *os.Root) { CopyDir(ctx, goodRoot, dst, Options{}) },
		"copy, bad":    func(dst *os.Root) { CopyDir(ctx, badRoot, dst, Options{}) },
		"pack":         func(*os.Root) { Pack(ctx, goodRoot, io.Discard, TarZst, Options{}) },
		"pack, bad":    func(*os.Root) { Pack(ctx, badRoot, io.Discard, Zip, Options{}) },
		"extract":      func(dst *os.Root) { Extract(ctx, good, "a", dst, Options{}) },
		"extract zip":  func(dst *os.Root) { Extract(ctx, goodZip, "a", dst, Options{}) },
		"extract, cut": func(dst *os.Root) { Extract(ctx, cut, "a", dst, Options{}) },
		"extract, bad": func(dst *os.Root) { Extract(ctx, badZip, "a", dst, Options{}) },
		"extract, in the way": func(dst *os.Root) {
			dst.WriteFile("plugin.json", nil, 0o600)
			Extract(ctx, good, "a", dst, Options{})
			Extract(ctx, goodZip, "a", dst, Options{})
		},
		"copy, in the way": func(dst *os.Root) {
			dst.WriteFile("plugin.json", nil, 0o600)
			CopyDir(ctx, goodRoot, dst, Options{})
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			dst, err := os.OpenRoot(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dst.Close()
			fds, goroutines := descriptors(), runtime.NumGoroutine()
			call(dst)
			if n := descriptors(); n > fds {
				t.Errorf("%d descriptors before, %d after", fds, n)
			}
			// One that has done its work may be on its way out still.
			for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatalf("%d goroutines before, %d after", goroutines, runtime.NumGoroutine())
				}
			}
		})
	}
}
