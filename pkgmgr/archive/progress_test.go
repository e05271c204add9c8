package archive

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// CopyDir and Pack tell of every part of a large file when it has been taken in,
// rise without a gap, and end with all of it.
func TestProgressWithinFiles(t *testing.T) {
	const parts = 40
	dir := t.TempDir()
	for name, size := range map[string]int{"plugin.json": 2, "large": parts * chunkSize, "empty": 0} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const all = parts*chunkSize + 2
	for name, work := range map[string]func(Options) error{
		"CopyDir": func(o Options) error {
			_, err := CopyDir(context.Background(), openRoot(t, dir), openRoot(t, t.TempDir()), o)
			return err
		},
		"Pack": func(o Options) error {
			o.Limits = Default
			o.Limits.RatioFree = 2 * all
			_, err := Pack(context.Background(), openRoot(t, dir), io.Discard, TarZst, o)
			return err
		},
	} {
		calls, last := 0, int64(0)
		err := work(Options{Progress: func(done, total int64) {
			calls++
			if total != all || done <= last || done-last > chunkSize {
				t.Errorf("%s: %d of %d after %d", name, done, total, last)
			}
			last = done
		}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if calls < parts || last != all {
			t.Errorf("%s: %d reports, the last of %d bytes; want at least %d, and %d", name, calls, last, parts, all)
		}
	}
}
